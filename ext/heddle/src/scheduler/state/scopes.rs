//! Scopes: the blocks of `Heddle.run` on a thread whose scheduler runs already.
//!
//! A scope ends after the fibers of `Fiber.schedule` that were started in it, in whichever of its fibers. So each fiber
//! knows the innermost scope that it is in, and passes it on to the fibers that it starts. Fibers of `Heddle.spin` pass
//! it on, too, but are no members: the tree of fibers ends them.

use rustc_hash::FxHashMap;

use super::State;
use crate::scheduler::record::{FiberKey, FiberState};
use crate::scheduler::state::fibers::Fibers;

/// With fewer members than this, removing those that have ended is not worth its cost.
const FEW_MEMBERS: usize = 64;

/// The open scopes, by number.
#[derive(Default)]
pub struct Scopes(FxHashMap<u64, Scope>);

struct Scope {
    /// The scope around this one.
    outer: Option<u64>,
    /// The fibers of `Fiber.schedule` that were started in it. Some of them may have ended.
    members: Vec<FiberKey>,
}

impl Scope {
    fn add(&mut self, member: FiberKey, fibers: &Fibers) {
        if self.members.len() >= FEW_MEMBERS && self.members.len() == self.members.capacity() {
            self.members.retain(|key| is_alive(fibers, *key));
        }
        self.members.push(member);
    }
}

fn is_alive(fibers: &Fibers, key: FiberKey) -> bool {
    fibers.get(key).is_some_and(|record| record.state() != FiberState::Lost)
}

impl State {
    /// The fiber begins a scope. Returns the scope's number.
    pub fn open_scope(&mut self, key: FiberKey) -> u64 {
        let number = self.limits.next_number();
        let outer = self.fibers.get_mut(key).and_then(|record| record.task.scope.replace(number));
        self.scopes.0.insert(number, Scope { outer, members: Vec::new() });
        number
    }

    /// The fiber leaves the scope. Members that have not ended, because the wait for them was broken off, become
    /// members of the scope around it.
    pub fn close_scope(&mut self, key: FiberKey, number: u64) {
        let Some(closed) = self.scopes.0.remove(&number) else { return };
        if let Some(record) = self.fibers.get_mut(key) {
            record.task.scope = closed.outer;
        }
        let members: Vec<FiberKey> = closed.members.into_iter().filter(|key| is_alive(&self.fibers, *key)).collect();
        if members.is_empty() {
            return;
        }
        for scope in self.scopes.0.values_mut().filter(|scope| scope.outer == Some(number)) {
            scope.outer = closed.outer;
        }
        for member in members {
            if let Some(record) = self.fibers.get_mut(member)
                && record.task.scope == Some(number)
            {
                record.task.scope = closed.outer;
            }
            if let Some(outer) = closed.outer.and_then(|outer| self.scopes.0.get_mut(&outer)) {
                outer.add(member, &self.fibers);
            }
        }
    }

    /// A new fiber is in the scope of the fiber that starts it. Only a member is awaited at the scope's end.
    pub fn inherit_scope(&mut self, starter: FiberKey, fiber: FiberKey, is_member: bool) {
        if self.scopes.0.is_empty() {
            return;
        }
        let starter = self.responsible_fiber(starter);
        let Some(number) = self.fibers.get(starter).and_then(|record| record.task.scope) else { return };
        let Some(scope) = self.scopes.0.get_mut(&number) else { return };
        if let Some(record) = self.fibers.get_mut(fiber) {
            record.task.scope = Some(number);
        }
        if is_member {
            scope.add(fiber, &self.fibers);
        }
    }

    /// The members of a scope that have not ended.
    pub fn scope_members(&self, number: u64) -> Vec<FiberKey> {
        let members = self.scopes.0.get(&number).map_or(&[][..], |scope| &scope.members);
        members.iter().copied().filter(|key| is_alive(&self.fibers, *key)).collect()
    }
}
