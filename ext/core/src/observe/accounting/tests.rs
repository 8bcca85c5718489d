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
        Commanded { accounting: Accounting::new(now), begun: now, now }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    /// The fiber begins the activity, and so many milliseconds pass.
    fn enter(&mut self, fiber: u64, activity: Activity, milliseconds: u64) {
        self.accounting.enter(fiber, activity, self.now);
        self.pass(milliseconds);
    }

    fn name(&mut self, fiber: u64, name: Option<&str>) {
        self.accounting.name(fiber, name, self.now);
    }

    fn times(&mut self, fiber: u64) -> Times {
        self.accounting.statement(fiber, self.now).expect("the fiber is known").0.times
    }

    fn number(&self, name: &str) -> usize {
        let totals = self.accounting.totals(self.now);
        totals.iter().position(|(each, _)| each.text.as_deref() == Some(name)).expect("the name is known")
    }

    fn total(&self, number: usize) -> Name {
        self.accounting.totals(self.now)[number].0.clone()
    }

    /// The ages of the fibers that have the name now: how many, their sum, and the highest.
    fn present(&self, number: usize) -> (u64, u64, u64) {
        let present = &self.accounting.totals(self.now)[number].1;
        (present.counts().iter().sum(), whole(present.sum()), whole(present.max()))
    }
}

fn milliseconds(nanoseconds: u64) -> u64 {
    nanoseconds / 1_000_000
}

fn whole(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("it is short")
}

fn all_of(times: &Times) -> u64 {
    times.ran + times.runnable + times.waited.iter().sum::<u64>()
}

#[test]
fn a_fibers_time_is_split_by_what_it_did() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Runnable, 3);
    counted.enter(FIBER, Activity::Running, 5);
    counted.enter(FIBER, Activity::Waiting(IO), 7);
    counted.enter(FIBER, Activity::Runnable, 11);
    counted.enter(FIBER, Activity::Running, 13);
    let times = counted.times(FIBER);
    assert_eq!((milliseconds(times.ran), milliseconds(times.runnable)), (18, 14), "the present activity counts");
    assert_eq!((milliseconds(times.waited[IO]), milliseconds(all_of(&times))), (7, 39));
}

#[test]
fn a_name_gets_what_its_fibers_do_while_they_have_it() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 5);
    counted.name(FIBER, Some("GET /orders/7"));
    counted.pass(10);
    counted.enter(FIBER, Activity::Waiting(IO), 20);
    counted.enter(FIBER, Activity::Running, 0);
    let (_, named) = counted.accounting.statement(FIBER, counted.now).expect("the fiber is known");
    let named = named.expect("it has a name");
    assert_eq!((milliseconds(named.age), milliseconds(named.times.ran)), (30, 10));
    counted.name(FIBER, None);
    counted.pass(40);
    let number = counted.number("GET /orders/:id");
    let total = counted.total(number);
    assert_eq!((milliseconds(total.times.ran), milliseconds(total.times.waited[IO])), (10, 20));
    assert_eq!(total.ages.max(), Duration::from_millis(30));
    assert_eq!(milliseconds(counted.total(UNNAMED).times.ran), 45);
}

#[test]
fn fibers_that_have_a_name_are_present_until_they_lose_it_or_end() {
    let mut counted = Commanded::new();
    for fiber in [FIBER, OTHER_FIBER] {
        counted.enter(fiber, Activity::Waiting(SLEEP), 1);
        counted.name(fiber, Some("job"));
    }
    let number = counted.number("job");
    assert_eq!(counted.present(number), (2, 1, 1));
    counted.name(FIBER, None);
    counted.accounting.end(OTHER_FIBER, counted.now);
    assert_eq!((counted.present(number).0, counted.present(UNNAMED).0), (0, 1));
    assert_eq!(counted.accounting.statement(OTHER_FIBER, counted.now), None);
}

#[test]
fn a_wait_with_a_label_counts_as_that_and_other_activities_do_not() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 0);
    counted.accounting.label(FIBER, Some("a connection"));
    counted.enter(FIBER, Activity::Waiting(SLEEP), 5);
    counted.enter(FIBER, Activity::Running, 2);
    counted.accounting.label(FIBER, None);
    counted.enter(FIBER, Activity::Waiting(SLEEP), 3);
    let times = counted.times(FIBER);
    assert_eq!((milliseconds(times.waited[WAIT_KINDS]), milliseconds(times.waited[SLEEP])), (5, 3));
}

#[test]
fn labels_beyond_the_limit_count_as_none() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 0);
    for text in (0..=LABELS).map(|index| format!("x{index}x")).chain(["x0x".to_owned()]) {
        counted.accounting.label(FIBER, Some(&text));
        counted.enter(FIBER, Activity::Waiting(SLEEP), 1);
        counted.enter(FIBER, Activity::Running, 0);
    }
    let waited = counted.times(FIBER).waited.map(milliseconds);
    assert_eq!(
        (waited[SLEEP], waited[WAIT_KINDS], waited[WAIT_KINDS + LABELS - 1]),
        (1, 2, 1),
        "those that are known keep theirs"
    );
}

#[test]
fn names_beyond_the_limit_count_as_other() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 0);
    for index in (0..500).chain([0]) {
        counted.name(FIBER, Some(&format!("name{index}x")));
        counted.pass(1);
    }
    counted.name(FIBER, None);
    assert_eq!(counted.accounting.totals(counted.now).len(), names::LIMIT);
    let (first, others) = (counted.total(counted.number("name0x")), counted.total(counted.number("other")));
    assert_eq!((milliseconds(first.times.ran), milliseconds(others.times.ran)), (2, 400));
    assert_eq!(others.ages.counts().iter().sum::<u64>(), 400);
}

/// All places are taken, each by a name that a fiber had for a millisecond.
fn full() -> Commanded {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 0);
    for index in 0..names::LIMIT - 2 {
        counted.name(FIBER, Some(&format!("name{index}x")));
        counted.pass(1);
    }
    counted.name(FIBER, None);
    counted
}

fn has(counted: &Commanded, name: &str) -> bool {
    counted.accounting.totals(counted.now).iter().any(|(each, _)| each.text.as_deref() == Some(name))
}

const IDLE: u64 = names::IDLE / 1_000_000;

#[test]
fn a_new_name_takes_the_place_of_the_one_that_had_no_fiber_for_longest() {
    let mut counted = full();
    counted.name(FIBER, Some("name0x"));
    counted.name(FIBER, None);
    counted.pass(IDLE);
    counted.name(FIBER, Some("late"));
    assert_eq!(["name0x", "name1x", "name2x", "late"].map(|name| has(&counted, name)), [true, false, true, true]);
    assert_eq!(counted.accounting.totals(counted.now).len(), names::LIMIT);
}

#[test]
fn a_name_that_had_a_fiber_in_the_last_minutes_keeps_its_place() {
    let mut counted = full();
    counted.pass(IDLE - names::LIMIT as u64);
    counted.name(FIBER, Some("late"));
    assert!(!has(&counted, "late"));
}

#[test]
fn a_name_that_a_fiber_has_keeps_its_place() {
    let mut counted = full();
    for index in 0..names::LIMIT as u64 - 2 {
        let fiber = OTHER_FIBER + index;
        counted.enter(fiber, Activity::Waiting(IO), 0);
        counted.name(fiber, Some(&format!("name{index}x")));
    }
    counted.pass(2 * IDLE);
    counted.name(FIBER, Some("late"));
    assert!(!has(&counted, "late"));
}

#[test]
fn a_name_whose_fiber_has_vanished_or_whose_fibers_are_forgotten_loses_its_place() {
    let mut counted = full();
    counted.name(FIBER, Some("name0x"));
    let next = 2 << 32;
    counted.enter(next, Activity::Running, 0);
    counted.name(next, Some("name1x"));
    counted.accounting.forget_fibers(counted.now);
    counted.pass(IDLE);
    counted.enter(FIBER, Activity::Running, 0);
    for index in 0..names::LIMIT - 2 {
        counted.name(FIBER, Some(&format!("late{index}x")));
    }
    assert_eq!(["name0x", "name1x"].map(|name| has(&counted, name)), [false, false]);
}

#[test]
fn what_a_name_without_a_place_had_counted_is_moved_to_other() {
    let mut counted = full();
    counted.pass(IDLE);
    counted.name(FIBER, Some("late"));
    counted.pass(7);
    let (other, late) = (counted.total(names::OTHER), counted.total(counted.number("late")));
    assert_eq!((milliseconds(other.times.ran), milliseconds(late.times.ran)), (1, 7));
    assert_eq!((other.ages.counts().iter().sum::<u64>(), whole(other.ages.sum())), (1, 1));
}

#[test]
fn a_name_that_comes_back_counts_from_zero() {
    let mut counted = full();
    let begun = counted.total(counted.number("name0x")).begun;
    counted.pass(IDLE);
    counted.name(FIBER, Some("late"));
    counted.name(FIBER, Some("name0x"));
    counted.pass(3);
    let total = counted.total(counted.number("name0x"));
    assert_eq!((milliseconds(total.times.ran), milliseconds(total.begun - begun)), (3, IDLE + 100));
}

#[test]
fn what_a_fiber_does_now_counts_for_its_name_before_it_ends() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 0);
    counted.name(FIBER, Some("slow"));
    counted.pass(25);
    let number = counted.number("slow");
    assert_eq!((milliseconds(counted.total(number).times.ran), counted.present(number)), (25, (1, 25, 25)));
    counted.pass(5);
    counted.enter(FIBER, Activity::Waiting(IO), 0);
    assert_eq!(milliseconds(counted.total(number).times.ran), 30, "it counts once");
}

#[test]
fn preemptions_are_counted_and_the_wait_after_one_is_not_late() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 10);
    counted.accounting.preempted(FIBER);
    counted.enter(FIBER, Activity::Runnable, 50);
    counted.enter(FIBER, Activity::Running, 0);
    assert_eq!(counted.times(FIBER).preemptions, 1);
    assert_eq!(counted.accounting.late(counted.now).count(), 0);
}

#[test]
fn a_fiber_that_was_woken_and_is_late_is_told_with_the_name_that_ran() {
    let mut counted = Commanded::new();
    counted.enter(OTHER_FIBER, Activity::Waiting(SLEEP), 0);
    counted.name(OTHER_FIBER, Some("clock"));
    counted.enter(FIBER, Activity::Running, 0);
    counted.name(FIBER, Some("report"));
    counted.enter(OTHER_FIBER, Activity::Runnable, 40);
    counted.pass(40);
    counted.name(FIBER, None);
    counted.enter(FIBER, Activity::Waiting(IO), 0);
    counted.enter(OTHER_FIBER, Activity::Running, 100);
    let (late, ago) = counted.accounting.late(counted.now).next().expect("one was late");
    assert_eq!((milliseconds(late.waited), milliseconds(ago)), (80, 100));
    assert_eq!((late.name, late.causes[0].0), (counted.number("clock"), counted.number("report")));
}

#[test]
fn a_clock_that_steps_back_takes_no_time_away() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 10);
    counted.enter(FIBER, Activity::Waiting(IO), 0);
    counted.now = counted.begun;
    counted.enter(FIBER, Activity::Running, 30);
    let times = counted.times(FIBER);
    assert_eq!((milliseconds(times.ran), times.waited[IO]), (30, 0));
}

#[test]
fn a_record_that_takes_the_place_of_a_vanished_fiber_has_an_account_of_its_own() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 10);
    let next = 2 << 32;
    counted.enter(next, Activity::Running, 1);
    assert_eq!(milliseconds(counted.times(next).ran), 1);
    assert_eq!(counted.accounting.statement(FIBER, counted.now), None);
    assert_eq!(counted.present(UNNAMED).0, 1);
}

#[test]
fn what_was_counted_by_name_survives_the_fibers() {
    let mut counted = Commanded::new();
    counted.enter(FIBER, Activity::Running, 0);
    counted.name(FIBER, Some("job"));
    counted.pass(5);
    counted.accounting.forget_fibers(counted.now);
    let number = counted.number("job");
    assert_eq!((milliseconds(counted.total(number).times.ran), counted.present(number).0), (5, 0));
    assert!(!counted.accounting.is_running(FIBER));
}

#[test]
fn a_slice_that_began_before_the_counting_counts_from_then_on() {
    let began = Instant::now();
    let begun = began + Duration::from_millis(20);
    let mut accounting = Accounting::new(begun);
    accounting.enter(FIBER, Activity::Running, began);
    let (statement, _) = accounting.statement(FIBER, begun + Duration::from_millis(5)).expect("the fiber is known");
    assert_eq!((milliseconds(statement.age), milliseconds(statement.times.ran)), (5, 5));
}
