//! Linked lists of connections without allocation: every connection has a link for each kind of list.
//!
//! A connection is in at most one list of each [`Kind`], and can be removed from any position in O(1). With a hundred
//! thousand connections, neither a timeout nor a server that closes them all may require a scan of every one.

use crate::reactor::ConnId;

/// Marker for "no connection".
const NONE: ConnId = ConnId::MAX;

/// Purpose of a list; each connection has one link per kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Connections that can take a request, the longest idle first.
    Free,
    /// Connections from which something is awaited, the longest waiting first.
    Awaited,
    /// Open connections, the oldest first; kept only if age matters.
    Aging,
}

/// Number of links per connection, one per [`Kind`].
const KINDS: usize = 3;

#[derive(Debug, Clone, Copy)]
struct Link {
    before: ConnId,
    after: ConnId,
    linked: bool,
}

/// A doubly linked list of connections; its links are in [`Links`].
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    kind: Kind,
    first: ConnId,
    last: ConnId,
}

impl List {
    pub(super) fn new(kind: Kind) -> List {
        List { kind, first: NONE, last: NONE }
    }

    pub(super) fn first(&self) -> Option<ConnId> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// Links of all connections, one per kind.
#[derive(Debug)]
pub(super) struct Links(Vec<[Link; KINDS]>);

impl Links {
    pub(super) fn new(connections: usize) -> Links {
        let none = Link { before: NONE, after: NONE, linked: false };
        Links(vec![[none; KINDS]; connections])
    }

    fn link(&mut self, id: ConnId, kind: Kind) -> &mut Link {
        &mut self.0[id as usize][kind as usize]
    }

    /// Returns true if a connection is in a list of this kind.
    pub(super) fn has(&self, id: ConnId, kind: Kind) -> bool {
        self.0[id as usize][kind as usize].linked
    }

    /// Appends a connection to the list, unless it is in the list already.
    pub(super) fn push(&mut self, list: &mut List, id: ConnId) {
        let last = list.last;
        let link = self.link(id, list.kind);
        if link.linked {
            return;
        }
        *link = Link { before: last, after: NONE, linked: true };
        match last {
            NONE => list.first = id,
            last => self.link(last, list.kind).after = id,
        }
        list.last = id;
    }

    /// Removes a connection from the list, if it is in it.
    pub(super) fn remove(&mut self, list: &mut List, id: ConnId) {
        let link = self.link(id, list.kind);
        if !link.linked {
            return;
        }
        link.linked = false;
        let (before, after) = (link.before, link.after);
        match before {
            NONE => list.first = after,
            before => self.link(before, list.kind).after = after,
        }
        match after {
            NONE => list.last = before,
            after => self.link(after, list.kind).before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_does_what_a_queue_with_removal_does(
            steps in prop::collection::vec((any::<bool>(), 0_u32..12), 0..200),
        ) {
            let mut links = Links::new(12);
            let mut list = List::new(Kind::Awaited);
            let mut model: VecDeque<ConnId> = VecDeque::new();
            for (push, id) in steps {
                if push {
                    links.push(&mut list, id);
                    if !model.contains(&id) {
                        model.push_back(id);
                    }
                } else {
                    links.remove(&mut list, id);
                    model.retain(|&other| other != id);
                }
                prop_assert_eq!(list.first(), model.front().copied());
                prop_assert_eq!(list.is_empty(), model.is_empty());
                for id in 0..12 {
                    prop_assert_eq!(links.has(id, Kind::Awaited), model.contains(&id));
                }
            }
            while let Some(id) = list.first() {
                prop_assert_eq!(model.pop_front(), Some(id));
                links.remove(&mut list, id);
            }
            prop_assert!(model.is_empty());
        }
    }
}
