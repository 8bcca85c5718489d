//! Which operations name which descriptor number.
//!
//! The kernel reuses a number for the next file that is opened. So code that closes a descriptor must first find and
//! end the operations that name its number. Each number has a doubly linked list of its operations, with the links
//! stored by token. So adding an operation, removing one and finding the first take constant time.

use std::os::fd::RawFd;

use crate::io::backend::Token;

/// No operation.
const NONE: u32 = u32::MAX;

/// An operation's place in the list of its number.
#[derive(Debug, Clone, Copy)]
struct Link {
    fd: RawFd,
    previous: u32,
    next: u32,
}

/// No number.
const UNNAMED: RawFd = -1;

impl Link {
    const UNLINKED: Link = Link { fd: UNNAMED, previous: NONE, next: NONE };
}

/// See the module.
#[derive(Debug, Default)]
pub struct DescriptorIndex {
    /// The first operation of each number. The kernel hands out the smallest free number, so this stays small.
    first: Vec<u32>,
    /// The links of each token. Tokens are slab indices, so this stays small, too.
    links: Vec<Link>,
}

impl DescriptorIndex {
    /// Records that the operation `token`, which must not be in the index yet, names `fd`. Ignores negative numbers,
    /// which name no file.
    pub fn insert(&mut self, token: Token, fd: RawFd) {
        let Ok(number) = usize::try_from(fd) else { return };
        if number >= self.first.len() {
            self.first.resize(number + 1, NONE);
        }
        if token >= self.links.len() {
            self.links.resize(token + 1, Link::UNLINKED);
        }
        debug_assert_eq!(self.links[token].fd, UNNAMED, "token {token} names a number already");
        let next = self.first[number];
        self.links[token] = Link { fd, previous: NONE, next };
        if next != NONE {
            self.links[next as usize].previous = token as u32;
        }
        self.first[number] = token as u32;
    }

    /// Removes an operation. Does nothing if it is not in the index.
    pub fn remove(&mut self, token: Token) {
        let Some(link) = self.links.get_mut(token) else { return };
        let Link { fd, previous, next } = std::mem::replace(link, Link::UNLINKED);
        if fd == UNNAMED {
            return;
        }
        match previous {
            NONE => self.first[fd as usize] = next,
            previous => self.links[previous as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].previous = previous;
        }
    }

    /// The operations that name `fd`, the latest first.
    pub fn named(&self, fd: RawFd) -> impl Iterator<Item = Token> {
        let first = usize::try_from(fd).ok().and_then(|number| self.first.get(number)).copied().unwrap_or(NONE);
        std::iter::successors(known(first), |token| known(self.links[*token].next))
    }

    /// Removes all operations.
    pub fn clear(&mut self) {
        self.first.clear();
        self.links.clear();
    }
}

fn known(token: u32) -> Option<Token> {
    (token != NONE).then_some(token as Token)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn named(index: &DescriptorIndex, fd: RawFd) -> Vec<Token> {
        let mut tokens: Vec<Token> = index.named(fd).collect();
        tokens.sort_unstable();
        tokens
    }

    #[test]
    fn a_number_that_no_operation_names_has_none() {
        let mut index = DescriptorIndex::default();
        index.insert(0, 7);
        assert_eq!((named(&index, 6), named(&index, 8), named(&index, -1)), (vec![], vec![], vec![]));
    }

    #[test]
    fn a_negative_number_is_ignored() {
        let mut index = DescriptorIndex::default();
        index.insert(3, -1);
        index.remove(3);
        assert_eq!(named(&index, -1), []);
    }

    #[test]
    fn clearing_removes_every_operation() {
        let mut index = DescriptorIndex::default();
        index.insert(1, 4);
        index.clear();
        index.insert(1, 5);
        assert_eq!((named(&index, 4), named(&index, 5)), (vec![], vec![1]));
    }

    proptest! {
        /// After any sequence of insertions and removals the index holds the same as a plain map.
        #[test]
        fn it_behaves_like_a_map(steps in prop::collection::vec((0..24_usize, 0..6_i32, any::<bool>()), 0..200)) {
            let mut index = DescriptorIndex::default();
            let mut map = BTreeMap::new();
            for (token, fd, insert) in steps {
                if !insert {
                    index.remove(token);
                    map.remove(&token);
                } else if let std::collections::btree_map::Entry::Vacant(entry) = map.entry(token) {
                    index.insert(token, fd);
                    entry.insert(fd);
                }
            }
            for fd in 0..6 {
                let expected: Vec<Token> = map.iter().filter(|(_, on)| **on == fd).map(|(token, _)| *token).collect();
                prop_assert_eq!(named(&index, fd), expected);
            }
        }
    }
}
