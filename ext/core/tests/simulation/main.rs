//! The core's state machine over a simulated kernel: fibers begin operations, wait, time out, close descriptors, raise
//! into each other, end and are abandoned. A seed decides when and how operations end, when a wait is interrupted, and
//! which runnable fiber is next.
//!
//! A failure prints the shortest programs and the seed that still fail. `PROPTEST_RNG_SEED` repeats a whole run.

mod kernel;
mod world;

use proptest::prelude::*;

use crate::world::{Action, World};

/// Fibers of one program, at most.
const FIBERS: usize = 5;
/// Descriptor numbers. Few, so that operations meet on them.
const NUMBERS: usize = 3;

fn action() -> impl Strategy<Value = Action> {
    let (number, fiber, time) = (0..NUMBERS, 0..FIBERS, 0..20u64);
    prop_oneof![
        6 => (number.clone(), prop::option::of(time.clone())).prop_map(|(number, limit)| Action::Read { number, limit }),
        3 => (number.clone(), prop::option::of(time.clone())).prop_map(|(number, limit)| Action::Ready { number, limit }),
        2 => time.prop_map(Action::Sleep),
        2 => Just(Action::Yield),
        1 => Just(Action::Suspend),
        2 => fiber.clone().prop_map(Action::Wake),
        3 => fiber.clone().prop_map(Action::Raise),
        3 => number.clone().prop_map(Action::Close),
        1 => number.prop_map(Action::CloseAtOnce),
        1 => fiber.prop_map(Action::Abandon),
    ]
}

fn programs() -> impl Strategy<Value = Vec<Vec<Action>>> {
    prop::collection::vec(prop::collection::vec(action(), 0..8), 1..=FIBERS)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// See [`World`] for what is checked meanwhile.
    #[test]
    fn every_wait_ends_and_nothing_is_left(programs in programs(), seed in any::<u64>()) {
        World::new(programs, NUMBERS, seed).run();
    }
}
