//! What the time of fibers went to.

/// How many kinds of waits there are.
pub const KINDS: usize = 9;
/// How many texts of `Heddle.waiting_for` are told apart.
pub const LABELS: usize = 15;

/// What a fiber does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It runs.
    Running,
    /// It is in the run queue.
    Runnable,
    /// It waits for an event of this kind, less than [`KINDS`].
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
    pub waited: [u64; KINDS + LABELS],
    /// How often it was preempted.
    pub preemptions: u64,
}

impl Times {
    /// The time of a phase. A wait with a label counts as that.
    #[inline]
    pub fn of(&mut self, phase: Phase, label: Option<usize>) -> &mut u64 {
        match phase {
            Phase::Running => &mut self.ran,
            Phase::Runnable => &mut self.runnable,
            Phase::Waiting(kind) => &mut self.waited[label.map_or(kind, |label| KINDS + label)],
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
