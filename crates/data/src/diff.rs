//! Differences of data: the basis of `modify` in update2, of `_is_diff` records and of reference
//! counting (docs/spec/protocol.md 4.7, docs/spec/storage.md 4.4). Subtrees that old and new share
//! are skipped, so the cost follows the change.
//!
//! [`Changes`] walks both data in lockstep. The next item of each side is an element of the leaf
//! that it reads or, between leaves, a whole node that it has not entered yet. If both sides are at
//! the same shared node, both skip it. If they are at different nodes, the higher one is entered,
//! so that siblings of equal height meet again after a difference:
//!
//! ```text
//! old   [ L1 ][ L2 ][ L3        ][ L4 ]      L1, L2: same memory, passed
//! new   [ L1 ][ L2 ][ L3a ][ L3b ][ L4 ]     L3 against L3a, L3b: element by element
//!                                            L4: both are at it again, passed
//! ```

use std::cmp::Ordering;

use crate::datum::{Chunk, Inner, Node, Path};
use crate::{AtomRef, ColumnType, Datum, DatumBuilder, Tag, WireError};

/// Shorter maps are not checked for being rewritten: computing their difference is faster.
const REWRITTEN_MIN: usize = 16;

/// One element of the difference between two data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The element is only in the new datum.
    Added(AtomRef<'a>, Option<AtomRef<'a>>),
    /// The element is only in the old datum.
    Removed(AtomRef<'a>, Option<AtomRef<'a>>),
    /// A map key is in both, with another value: key, old value, new value.
    Replaced(AtomRef<'a>, AtomRef<'a>, AtomRef<'a>),
}

/// Calls `visit` for each difference in key order. O(changes · log n) if memory is shared, O(n)
/// otherwise.
pub fn changes<'a>(old: &'a Datum, new: &'a Datum, visit: &mut dyn FnMut(Change<'a>)) {
    match (old.is_empty(), new.is_empty()) {
        (true, true) => {}
        (true, false) => {
            for (key, value) in new {
                visit(Change::Added(key, value));
            }
        }
        (false, true) => {
            for (key, value) in old {
                visit(Change::Removed(key, value));
            }
        }
        (false, false) if old.root().is_none() && new.root().is_none() => {
            leaf_changes(old.chunk(), new.chunk(), visit);
        }
        (false, false) => Changes::new(old, new).for_each(visit),
    }
}

/// Visits the differences of two data without trees. They share no nodes, so no path needs to be
/// tracked.
fn leaf_changes<'a>(old: Chunk<'a>, new: Chunk<'a>, visit: &mut dyn FnMut(Change<'a>)) {
    let (mut at, mut new_at) = (0, 0);
    loop {
        let equal = Chunk::common(old, at, new, new_at);
        at += equal;
        new_at += equal;
        let left = (at < old.len()).then(|| old.get(at));
        let right = (new_at < new.len()).then(|| new.get(new_at));
        let order = match (&left, &right) {
            (Some((left, _)), Some((right, _))) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        at += usize::from(order.is_le());
        new_at += usize::from(order.is_ge());
        match (left, right) {
            (Some((key, value)), _) if order.is_lt() => visit(Change::Removed(key, value)),
            (_, Some((key, value))) if order.is_gt() => visit(Change::Added(key, value)),
            (Some((key, Some(before))), Some((_, Some(after)))) if before != after => {
                visit(Change::Replaced(key, before, after));
            }
            _ => {}
        }
    }
}

/// Iterates over the differences between two data in key order. O(changes · log n) if memory is
/// shared, O(n) otherwise.
pub struct Changes<'a> {
    old: Side<'a>,
    new: Side<'a>,
}

/// A position in one datum.
struct Side<'a> {
    /// The leaf being read, and the index in it.
    chunk: Chunk<'a>,
    at: usize,
    /// The nodes above the leaf, each with the index of its next child.
    path: Path<'a>,
    /// Numbers of nodes entered and of elements stepped over, for tests of cost.
    #[cfg(test)]
    cost: (usize, usize),
}

/// The next item of a side.
enum Top<'a> {
    Element(AtomRef<'a>, Option<AtomRef<'a>>),
    Node(Node<'a>),
    End,
}

impl<'a> Side<'a> {
    fn new(datum: &'a Datum) -> Side<'a> {
        let mut path = Path::new();
        if let Some(root) = datum.root() {
            path.push((root, 0));
        }
        Side {
            chunk: datum.chunk(),
            at: 0,
            path,
            #[cfg(test)]
            cost: (0, 0),
        }
    }

    fn top(&mut self) -> Top<'a> {
        if self.at < self.chunk.len() {
            let (key, value) = self.chunk.get(self.at);
            return Top::Element(key, value);
        }
        while let Some((inner, at)) = self.path.last() {
            if *at < inner.children_len() {
                return Top::Node(inner.child(*at));
            }
            self.path.pop();
        }
        Top::End
    }

    /// Skips the next element.
    fn step(&mut self) {
        #[cfg(test)]
        {
            self.cost.1 += 1;
        }
        self.at += 1;
    }

    /// Skips `count` elements of the current leaf.
    fn leap(&mut self, count: usize) {
        #[cfg(test)]
        {
            self.cost.1 += count;
        }
        self.at += count;
    }

    /// Skips the whole next node.
    fn pass(&mut self) {
        if let Some((_, at)) = self.path.last_mut() {
            *at += 1;
        }
    }

    /// Moves to the start of the next node.
    fn enter(&mut self, node: Node<'a>) {
        self.pass();
        #[cfg(test)]
        {
            self.cost.0 += 1;
        }
        match node {
            Node::Leaf(leaf) => {
                self.chunk = leaf.chunk();
                self.at = 0;
            }
            Node::Inner(inner) => self.path.push((inner, 0)),
        }
    }
}

fn height(node: Node<'_>) -> u32 {
    match node {
        Node::Leaf(_) => 0,
        Node::Inner(inner) => Inner::height(inner),
    }
}

fn is_same(left: Node<'_>, right: Node<'_>) -> bool {
    match (left, right) {
        (Node::Leaf(left), Node::Leaf(right)) => triomphe::Arc::ptr_eq(left, right),
        (Node::Inner(left), Node::Inner(right)) => triomphe::Arc::ptr_eq(left, right),
        _ => false,
    }
}

impl<'a> Changes<'a> {
    /// Starts before the first element of both.
    #[must_use]
    pub fn new(old: &'a Datum, new: &'a Datum) -> Changes<'a> {
        static EMPTY: Datum = Datum::empty();
        let (old, new) = if old.ptr_eq(new) {
            (&EMPTY, &EMPTY)
        } else {
            (old, new)
        };
        Changes {
            old: Side::new(old),
            new: Side::new(new),
        }
    }

    /// Skips the equal elements that come next in the leaves of both sides. That costs a few
    /// instructions per element, whereas a step of the walk costs a hundred.
    fn pass_equal(&mut self) {
        let (old, new) = (&self.old, &self.new);
        let count = Chunk::common(old.chunk, old.at, new.chunk, new.at);
        if count > 0 {
            self.old.leap(count);
            self.new.leap(count);
        }
    }
}

/// Whether two maps have the same keys and a different value at every key, so that the new map
/// itself is the difference and can be shared. Compares run by run, and returns false if the two
/// are cut into runs differently. Maps that were read with equally many elements are cut alike.
fn is_rewritten(old: &Datum, new: &Datum) -> bool {
    if old.len() != new.len() {
        return false;
    }
    let (mut olds, mut news) = (old.chunks(), new.chunks());
    loop {
        match (olds.next(), news.next()) {
            (Some(old), Some(new)) if old.is_rewritten(new) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
impl Changes<'_> {
    /// Numbers of nodes entered and of elements stepped over, on both sides together.
    pub(crate) fn cost(&self) -> (usize, usize) {
        let ((a, b), (c, d)) = (self.old.cost, self.new.cost);
        (a + c, b + d)
    }
}

impl<'a> Iterator for Changes<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        loop {
            self.pass_equal();
            match (self.old.top(), self.new.top()) {
                (Top::End, Top::End) => return None,
                (Top::Node(old), Top::Node(new)) => {
                    if is_same(old, new) {
                        self.old.pass();
                        self.new.pass();
                        continue;
                    }
                    let (old_height, new_height) = (height(old), height(new));
                    if old_height >= new_height {
                        self.old.enter(old);
                    }
                    if new_height >= old_height {
                        self.new.enter(new);
                    }
                }
                (Top::Node(old), _) => self.old.enter(old),
                (_, Top::Node(new)) => self.new.enter(new),
                (Top::Element(key, value), Top::End) => {
                    self.old.step();
                    return Some(Change::Removed(key, value));
                }
                (Top::End, Top::Element(key, value)) => {
                    self.new.step();
                    return Some(Change::Added(key, value));
                }
                (Top::Element(old_key, old_value), Top::Element(new_key, new_value)) => {
                    match old_key.cmp(&new_key) {
                        Ordering::Less => {
                            self.old.step();
                            return Some(Change::Removed(old_key, old_value));
                        }
                        Ordering::Greater => {
                            self.new.step();
                            return Some(Change::Added(new_key, new_value));
                        }
                        Ordering::Equal => {
                            self.old.step();
                            self.new.step();
                            // Equal pairs, and equal elements of sets, have been skipped.
                            debug_assert!(old_value != new_value);
                            if let (Some(old), Some(new)) = (old_value, new_value) {
                                return Some(Change::Replaced(old_key, old, new));
                            }
                        }
                    }
                }
            }
        }
    }
}

impl Datum {
    /// The difference in the form of the wire and the file: the new value if the type is not
    /// composite, else the symmetric difference. `None` if they are equal.
    #[must_use]
    pub fn diff(old: &Datum, new: &Datum, column_type: &ColumnType) -> Option<Datum> {
        if !column_type.is_composite() {
            return (old != new).then(|| new.clone());
        }
        if old.is_empty() || new.is_empty() {
            let all = if old.is_empty() { new } else { old };
            return (!all.is_empty()).then(|| all.clone());
        }
        if column_type.is_map() && new.len() >= REWRITTEN_MIN && is_rewritten(old, new) {
            return Some(new.clone());
        }
        let mut diff = DatumBuilder::new();
        changes(old, new, &mut |change| {
            let (key, value) = match change {
                Change::Added(key, value) | Change::Removed(key, value) => (key, value),
                Change::Replaced(key, _, new) => (key, Some(new)),
            };
            diff.push(key.to_owned(), value.map(AtomRef::to_owned));
        });
        (!diff.is_empty()).then(|| diff.finish_sorted())
    }

    /// Applies such a difference. O(|diff| · log n). On error nothing is changed.
    ///
    /// # Errors
    /// `Datum crated by diff has size error` (the reference's spelling) if the result has too many
    /// or too few elements.
    pub fn apply_diff(&mut self, diff: &Datum, column_type: &ColumnType) -> Result<(), WireError> {
        let is_bounded = column_type.min > 0 || column_type.max != ColumnType::UNLIMITED;
        if is_bounded && !column_type.admits(self.len_after(diff, column_type)) {
            return Err(WireError::new(
                Tag::OvsdbError,
                "Datum crated by diff has size error",
            ));
        }
        if !column_type.is_composite() || self.is_empty() {
            *self = diff.clone();
        } else if crate::datum::is_lookup_cheaper(diff.len(), self.len()) {
            for (key, value) in diff {
                self.toggle(key, value);
            }
        } else {
            *self = crate::datum::merge(self, diff, |here, there| (here != there).then_some(there));
        }
        Ok(())
    }

    /// The number of elements after `diff`.
    fn len_after(&self, diff: &Datum, column_type: &ColumnType) -> usize {
        if !column_type.is_composite() {
            return diff.len();
        }
        let mut len = self.len();
        for (key, value) in diff {
            match self.find(key) {
                None => len += 1,
                Some(present) if present == value => len -= 1,
                Some(_) => {}
            }
        }
        len
    }
}
