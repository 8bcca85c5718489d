//! Whether the running fiber is in code that relies on no switch between two waits.

use heddle_core::queue::cooperative::Cooperative;
use magnus::{Error, RArray, RModule, Ruby, prelude::*};

use crate::ruby::constant::Constant;
use crate::ruby::frames;
use crate::scheduler::Scheduler;

/// Has `spared`, what each scheduler spares, and `transparent`: how the paths of files begin whose code counts as its
/// caller's.
static COOPERATION: Constant = Constant::new(&["Heddle", "Cooperation"]);

impl Scheduler {
    /// From now on ticks neither preempt a fiber in this code, nor raise there, nor in what adapters have named.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn spare_cooperative_code(&self, ruby: &Ruby, given: Vec<String>) -> Result<(), Error> {
        let cooperation: RModule = COOPERATION.get(ruby)?;
        let spared: Vec<String> = cooperation.funcall::<_, _, RArray>("spared", ())?.to_vec()?;
        if spared.is_empty() && given.is_empty() {
            return Ok(());
        }
        let transparent = cooperation.funcall::<_, _, RArray>("transparent", ())?.to_vec()?;
        self.preemption.cooperative.get_or_init(|| Cooperative::new(given.into_iter().chain(spared), transparent));
        Ok(())
    }

    /// Whether the running fiber is in such code: the innermost frame that is not its caller's decides.
    pub(super) fn is_in_cooperative_code(&self, ruby: &Ruby) -> bool {
        self.preemption
            .cooperative
            .get()
            .is_some_and(|cooperative| frames::find_by_path(ruby, |path| cooperative.judge(path)).unwrap_or(false))
    }
}
