//! What the time of fibers went to.

/// How many kinds of waits there are.
pub const WAIT_KINDS: usize = 9;
/// How many texts of `Heddle.waiting_for` are told apart.
pub const LABELS: usize = 15;

/// What a fiber does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It runs.
    Running,
    /// It is in the run queue.
    Runnable,
    /// It waits for an event of this kind, less than [`WAIT_KINDS`].
    Waiting(usize),
}

/// Durations in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// It ran.
    pub ran: u64,
    /// It waited for its turn.
    pub runnable: u64,
    /// It waited for events, by kind; then by label.
    pub waited: [u64; WAIT_KINDS + LABELS],
    /// How often it was preempted.
    pub preemptions: u64,
}

impl Times {
    /// The time of an activity. A wait with a label counts as that.
    #[inline]
    pub fn of(&mut self, activity: Activity, label: Option<usize>) -> &mut u64 {
        match activity {
            Activity::Running => &mut self.ran,
            Activity::Runnable => &mut self.runnable,
            Activity::Waiting(kind) => &mut self.waited[label.map_or(kind, |label| WAIT_KINDS + label)],
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Times) {
        self.ran += other.ran;
        self.runnable += other.runnable;
        self.waited.iter_mut().zip(&other.waited).for_each(|(time, added)| *time += added);
        self.preemptions += other.preemptions;
    }
}
