use super::*;

const FIBER: u64 = 1 << 32;
const OTHER_FIBER: u64 = 1 << 32 | 1;
const SLEEP: usize = 0;
const IO: usize = 2;

/// Accounts whose clock the test commands.
struct Commanded {
    accounting: Accounting,
    begun: Instant,
    now: Instant,
}

impl Commanded {
    fn new() -> Self {
        let now = Instant::now();
        Commanded { accounting: Accounting::new(now, now), begun: now, now }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    /// The fiber begins the phase, and so many milliseconds pass.
    fn enter(&mut self, fiber: u64, phase: Phase, milliseconds: u64) {
        self.accounting.enter(fiber, phase, self.now);
        self.pass(milliseconds);
    }

    fn name(&mut self, fiber: u64, name: Option<&str>) {
        self.accounting.name(fiber, name, self.now);
    }

    fn times(&mut self, fiber: u64) -> Times {
        self.accounting.statement(fiber, self.now).expect("the fiber is known").0.times
    }

    fn number(&self, name: &str) -> usize {
        let found = self.accounting.names().find(|(_, each)| each.text.as_deref() == Some(name));
        found.expect("the name is known").0
    }

    fn total(&mut self, number: usize) -> &Done {
        self.accounting.bring_up_to_date(self.now);
        &self.accounting.name_of(number).total
    }
}

fn milliseconds(nanoseconds: u64) -> u64 {
    nanoseconds / 1_000_000
}

#[test]
fn a_fibers_time_is_split_by_what_it_did() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Runnable, 3);
    counted.enter(FIBER, Phase::Running, 5);
    counted.enter(FIBER, Phase::Waiting(IO), 7);
    counted.enter(FIBER, Phase::Runnable, 11);
    counted.enter(FIBER, Phase::Running, 13);
    let times = counted.times(FIBER);
    assert_eq!((milliseconds(times.ran), milliseconds(times.runnable)), (18, 14), "the present phase counts");
    assert_eq!((milliseconds(times.waited[IO]), milliseconds(times.total())), (7, 39));
}

#[test]
fn a_name_gets_what_its_fibers_do_while_they_have_it() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 5);
    counted.name(FIBER, Some("GET /orders/7"));
    counted.pass(10);
    counted.enter(FIBER, Phase::Waiting(IO), 20);
    counted.enter(FIBER, Phase::Running, 0);
    let (_, named) = counted.accounting.statement(FIBER, counted.now).expect("the fiber is known");
    let named = named.expect("it has a name");
    assert_eq!((milliseconds(named.age), milliseconds(named.times.ran)), (30, 10));
    counted.name(FIBER, None);
    counted.pass(40);
    let number = counted.number("GET /orders/:id");
    let total = counted.total(number).clone();
    assert_eq!((milliseconds(total.times.ran), milliseconds(total.times.waited[IO])), (10, 20));
    assert_eq!(total.ages.expect("a fiber had it").max(), Duration::from_millis(30));
    assert_eq!(milliseconds(counted.total(UNNAMED).times.ran), 45);
}

#[test]
fn fibers_that_have_a_name_count_as_running_until_they_lose_it_or_end() {
    let mut counted = Commanded::new();
    for fiber in [FIBER, OTHER_FIBER] {
        counted.enter(fiber, Phase::Waiting(SLEEP), 1);
        counted.name(fiber, Some("job"));
    }
    let number = counted.number("job");
    let ages: Vec<u64> = counted.accounting.present_ages(number, counted.now).map(milliseconds).collect();
    assert_eq!((counted.accounting.name_of(number).running, ages), (2, vec![1, 0]));
    counted.name(FIBER, None);
    counted.accounting.end(OTHER_FIBER, counted.now);
    assert_eq!(counted.accounting.name_of(number).running, 0);
    assert_eq!(counted.accounting.name_of(UNNAMED).running, 1);
    assert_eq!(counted.accounting.statement(OTHER_FIBER, counted.now), None);
}

#[test]
fn a_wait_with_a_label_counts_as_that_and_other_phases_do_not() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 0);
    let label = counted.accounting.label_number("a connection");
    assert_eq!(counted.accounting.label(FIBER, label), None);
    counted.enter(FIBER, Phase::Waiting(SLEEP), 5);
    counted.enter(FIBER, Phase::Running, 2);
    assert_eq!(counted.accounting.label(FIBER, None), label);
    counted.enter(FIBER, Phase::Waiting(SLEEP), 3);
    let times = counted.times(FIBER);
    assert_eq!((milliseconds(times.waited[KINDS]), milliseconds(times.waited[SLEEP])), (5, 3));
}

#[test]
fn labels_beyond_the_limit_have_no_number() {
    let mut counted = Commanded::new();
    let numbers: Vec<_> = (0..=LABELS).map(|index| counted.accounting.label_number(&format!("x{index}x"))).collect();
    assert_eq!((numbers[LABELS - 1], numbers[LABELS]), (Some(LABELS - 1), None));
    assert_eq!(counted.accounting.label_number("x0x"), Some(0), "those that are known keep theirs");
}

#[test]
fn the_number_of_a_label_of_earlier_accounts_counts_as_no_label() {
    let label = Commanded::new().accounting.label_number("a connection");
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 0);
    counted.accounting.label(FIBER, label);
    counted.enter(FIBER, Phase::Waiting(SLEEP), 5);
    assert_eq!(milliseconds(counted.times(FIBER).waited[SLEEP]), 5);
}

#[test]
fn names_beyond_the_limit_count_as_other() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 0);
    for index in 0..500 {
        counted.name(FIBER, Some(&format!("name{index}")));
        counted.pass(1);
    }
    counted.name(FIBER, None);
    assert_eq!(counted.accounting.names().count(), names::LIMIT);
    let others = counted.total(OTHER).clone();
    assert_eq!((milliseconds(others.times.ran), others.ages.expect("some").count()), (400, 400));
}

#[test]
fn a_name_of_which_nothing_was_seen_for_minutes_makes_room_and_becomes_one_of_the_others() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 0);
    for index in 0..100 {
        counted.name(FIBER, Some(&format!("name{index}")));
        counted.pass(1);
    }
    counted.name(FIBER, None);
    counted.enter(FIBER, Phase::Waiting(SLEEP), SPAN / 1_000_000 * SPANS as u64);
    counted.name(FIBER, Some("late"));
    counted.number("late");
    assert_eq!(counted.accounting.names().count(), names::LIMIT);
    assert_eq!(milliseconds(counted.total(OTHER).times.ran), 1, "what was counted is not lost");
}

#[test]
fn a_long_phase_is_split_among_the_spans_that_it_lasts_for() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 0);
    counted.name(FIBER, Some("slow"));
    counted.pass(25_000);
    let (present, progress) = counted.accounting.bring_up_to_date(counted.now);
    assert_eq!((present, progress), (2, Duration::from_secs(5)));
    let name = counted.accounting.name_of(counted.number("slow"));
    let spans = (0..=2).map(|span| milliseconds(name.in_span(span, present).expect("it ran").times.ran));
    assert_eq!(spans.collect::<Vec<_>>(), [10_000, 10_000, 5_000]);
}

#[test]
fn only_the_last_minutes_are_kept_by_span() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, SPAN / 1_000_000 * 1000);
    let (present, _) = counted.accounting.bring_up_to_date(counted.now);
    let unnamed = counted.accounting.name_of(UNNAMED);
    let kept = (0..=present).filter(|span| unnamed.in_span(*span, present).is_some()).count();
    assert_eq!((present, kept), (1000, SPANS));
    assert_eq!(milliseconds(unnamed.total.times.ran), 10_000_000);
}

#[test]
fn preemptions_are_counted_and_the_wait_after_one_is_not_late() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 10);
    counted.accounting.preempted(FIBER);
    counted.enter(FIBER, Phase::Runnable, 50);
    counted.enter(FIBER, Phase::Running, 0);
    assert_eq!(counted.times(FIBER).preemptions, 1);
    assert_eq!(counted.accounting.late(counted.now).count(), 0);
}

#[test]
fn a_fiber_that_was_woken_and_is_late_is_told_with_the_name_that_ran() {
    let mut counted = Commanded::new();
    counted.enter(OTHER_FIBER, Phase::Waiting(SLEEP), 0);
    counted.name(OTHER_FIBER, Some("clock"));
    counted.enter(FIBER, Phase::Running, 0);
    counted.name(FIBER, Some("report"));
    counted.enter(OTHER_FIBER, Phase::Runnable, 40);
    counted.accounting.bring_up_to_date(counted.now);
    counted.pass(40);
    counted.name(FIBER, None);
    counted.enter(FIBER, Phase::Waiting(IO), 0);
    counted.enter(OTHER_FIBER, Phase::Running, 100);
    let (late, ago) = counted.accounting.late(counted.now).next().expect("one was late");
    assert_eq!((milliseconds(late.waited), ago), (80, Duration::from_millis(100)));
    assert_eq!((late.name, late.causes[0].0), (counted.number("clock"), counted.number("report")));
}

#[test]
fn a_clock_that_steps_back_takes_no_time_away() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 10);
    counted.enter(FIBER, Phase::Waiting(IO), 0);
    counted.now = counted.begun;
    counted.enter(FIBER, Phase::Running, 30);
    let times = counted.times(FIBER);
    assert_eq!((milliseconds(times.ran), times.waited[IO]), (30, 0));
}

#[test]
fn a_record_that_takes_the_place_of_a_vanished_fiber_has_an_account_of_its_own() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 10);
    let next = 2 << 32;
    counted.enter(next, Phase::Running, 1);
    assert_eq!(milliseconds(counted.times(next).ran), 1);
    assert_eq!(counted.accounting.statement(FIBER, counted.now), None);
    assert_eq!(counted.accounting.name_of(UNNAMED).running, 1);
}

#[test]
fn what_was_counted_by_name_survives_the_fibers() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Phase::Running, 0);
    counted.name(FIBER, Some("job"));
    counted.pass(5);
    counted.accounting.forget_fibers(counted.now);
    let number = counted.number("job");
    assert_eq!(milliseconds(counted.total(number).times.ran), 5);
    assert_eq!(counted.accounting.name_of(number).running, 0);
    assert_eq!(counted.accounting.running(), None);
}

#[test]
fn a_report_has_the_window_of_all_schedulers_by_name_with_the_ages_of_running_fibers() {
    let mut counted = Commanded::new();
    let mut other = Accounting::new(counted.begun, counted.begun);
    counted.enter(FIBER, Phase::Running, 0);
    counted.name(FIBER, Some("GET /"));
    counted.pass(100_000);
    other.enter(FIBER, Phase::Running, counted.now);
    other.name(FIBER, Some("GET /"), counted.now);
    counted.pass(5_000);
    other.name(FIBER, None, counted.now);
    let mut report = Report::new(Duration::from_secs(60));
    report.add(&mut counted.accounting, counted.now);
    report.add(&mut other, counted.now);
    let row = &report.rows[&Title::Named("GET /".into())];
    assert_eq!((row.running, row.finished, row.ages.count()), (1, 1, 2));
    assert_eq!((milliseconds(row.ran), row.ages.max()), (55_000 + 5_000, Duration::from_secs(105)));
    assert_eq!(milliseconds(report.counted), 55_000, "the present span and five whole ones");
    assert_eq!(report.spans.len(), 11);
}

#[test]
fn a_report_tells_what_was_waited_for_by_kind_and_by_label() {
    let mut counted = Commanded::new();
    let label = counted.accounting.label_number("a permit");
    counted.enter(FIBER, Phase::Waiting(IO), 2);
    counted.accounting.label(FIBER, label);
    counted.enter(FIBER, Phase::Running, 0);
    counted.enter(FIBER, Phase::Waiting(SLEEP), 3);
    let mut report = Report::new(Duration::from_secs(60));
    report.add(&mut counted.accounting, counted.now);
    let waited: Vec<_> = report.rows[&Title::Unnamed].waited.clone().into_iter().collect();
    assert_eq!(waited, [(Subject::Label("a permit".into()), 5_000_000)], "the label holds for the wait under way, too");
}

#[test]
fn a_slice_that_began_before_the_counting_counts_from_then_on() {
    let began = Instant::now();
    let begun = began + Duration::from_millis(20);
    let mut accounting = Accounting::new(began, begun);
    accounting.enter(FIBER, Phase::Running, began);
    let (statement, _) = accounting.statement(FIBER, begun + Duration::from_millis(5)).expect("the fiber is known");
    assert_eq!((milliseconds(statement.age), milliseconds(statement.times.ran)), (5, 5));
}
