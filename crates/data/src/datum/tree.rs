//! The form of large data: a persistent B+tree whose leaves and inner nodes are shared by reference
//! count.
//!
//! ```text
//!                  Inner { separators: [a m], children: [. .] }            height 2
//!                 /                                        \
//!     Inner [a f] height 1                          Inner [m t] height 1
//!      /        \                                     /        \
//!   a..e        f..l                               m..s        t..z      leaves
//! ```
//!
//! Invariants: all leaves are equally deep; `separators[i]` is the smallest key below
//! `children[i]`; `len` counts the elements below. No child is empty, and every child of a node
//! with more than one child is at least `LEAF_MIN` or `FANOUT_MIN` long. A change copies the shared
//! nodes on one path from the root, so it costs O(log n), and everything else stays shared. Only
//! [`crate::Datum`] makes and changes trees.
//!
//! A change searches for its key once ([`Inner::locate`]) and then takes the path that it found,
//! because each comparison of a search reads a string that is probably in no cache.
//!
//! Nodes are small, because copying a node increments reference counts: one per child, and in a
//! leaf one per string. Each is an atomic instruction on memory that is probably in no cache.
//! Versions of an inner node share its separators. A change in 10,000 strings copies a leaf and
//! three nodes, about 50 references in all.

use smallvec::SmallVec;
use triomphe::Arc;

use super::leaf::Leaf;
use super::separators::Separators;
use crate::atoms::Atoms;
use crate::{Atom, AtomRef};

/// Limit on the elements of a tree's leaf.
const LEAF_MAX: usize = 32;
/// A leaf with fewer elements is joined with a neighbour.
const LEAF_MIN: usize = 8;
/// Elements of a leaf of a freshly built tree, which leaves room for inserts before the first
/// split.
const LEAF_FILL: usize = 24;
/// Limit on the children of an inner node.
const FANOUT_MAX: usize = 16;
/// An inner node with fewer children is joined with a neighbour.
const FANOUT_MIN: usize = 4;
/// Children of an inner node of a freshly built tree.
const FANOUT_FILL: usize = 12;

#[derive(Clone, Debug)]
pub(crate) struct Inner {
    len: usize,
    height: u32,
    /// Whether the leaves have values. Stored here because each step to a leaf may miss the cache.
    is_map: bool,
    separators: Separators,
    children: Children,
}

#[derive(Clone, Debug)]
pub(crate) enum Children {
    Leaves(Vec<Arc<Leaf>>),
    Inners(Vec<Arc<Inner>>),
}

/// The position of a key, or where it would be inserted, in a tree that has not changed since.
pub(crate) struct Position {
    /// The index of the child at each node from the root on.
    path: SmallVec<[u8; 8]>,
    /// In the leaf: `Ok` with the key's index, or `Err` with the index to insert at.
    pub(crate) at: Result<usize, usize>,
}

/// A borrowed child.
#[derive(Clone, Copy)]
pub(crate) enum Node<'a> {
    Leaf(&'a Arc<Leaf>),
    Inner(&'a Arc<Inner>),
}

impl Children {
    fn len(&self) -> usize {
        match self {
            Children::Leaves(leaves) => leaves.len(),
            Children::Inners(inners) => inners.len(),
        }
    }

    /// Number of elements below.
    fn elements(&self) -> usize {
        match self {
            Children::Leaves(leaves) => leaves.iter().map(|leaf| leaf.len()).sum(),
            Children::Inners(inners) => inners.iter().map(|inner| inner.len).sum(),
        }
    }

    fn split_off(&mut self, at: usize) -> Children {
        match self {
            Children::Leaves(leaves) => Children::Leaves(leaves.split_off(at)),
            Children::Inners(inners) => Children::Inners(inners.split_off(at)),
        }
    }

    fn append(&mut self, right: &Children) {
        match (self, right) {
            (Children::Leaves(left), Children::Leaves(right)) => left.extend_from_slice(right),
            (Children::Inners(left), Children::Inners(right)) => left.extend_from_slice(right),
            _ => unreachable!("neighbours of different height"),
        }
    }
}

impl Inner {
    /// Builds a tree of at least one element in O(n).
    pub(crate) fn build(elements: Leaf) -> Arc<Inner> {
        let mut elements = elements;
        let mut leaves = Vec::with_capacity(elements.len() / LEAF_FILL + 1);
        // Cut from the end: each part is moved once, and the rest is not moved.
        for at in cuts(elements.len(), LEAF_FILL).rev() {
            let mut leaf = elements.split_off(at);
            leaf.shrink_to_fit();
            leaves.push(Arc::new(leaf));
        }
        leaves.reverse();
        let mut level = Inner::level(Children::Leaves(leaves), 1);
        let mut height = 2;
        while level.len() > 1 {
            level = Inner::level(Children::Inners(level), height);
            height += 1;
        }
        match level.pop() {
            Some(root) => root,
            None => unreachable!("a tree without elements"),
        }
    }

    /// Puts `children` under as many nodes as they need.
    fn level(children: Children, height: u32) -> Vec<Arc<Inner>> {
        let mut children = children;
        let mut level = Vec::new();
        for at in cuts(children.len(), FANOUT_FILL).rev() {
            level.push(Arc::new(Inner::over(children.split_off(at), height)));
        }
        level.reverse();
        level
    }

    /// A node over `children`, of which there must be at least one.
    fn over(children: Children, height: u32) -> Inner {
        let is_map = match &children {
            Children::Leaves(leaves) => leaves.iter().any(|leaf| leaf.values.is_some()),
            Children::Inners(inners) => inners.iter().any(|inner| inner.is_map),
        };
        let mut keys = match &children {
            Children::Leaves(leaves) => Keys::Leaves(leaves.iter()),
            Children::Inners(inners) => Keys::Inners(inners.iter()),
        };
        let first = match keys.next() {
            Some(first) => first,
            None => unreachable!("a node without children"),
        };
        let mut separators = Atoms::for_atom(&first, children.len());
        separators.push(first);
        keys.for_each(|key| separators.push(key));
        Inner {
            len: children.elements(),
            height,
            is_map,
            separators: Separators::new(separators),
            children,
        }
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Number of elements below nodes that only `this` holds, and that dropping `this` would free.
    /// Counting ends above `enough`; shared nodes are not entered.
    pub(crate) fn unshared_len(this: &Arc<Inner>, enough: usize) -> usize {
        if !this.is_unique() {
            return 0;
        }
        let mut alone = 0;
        match &this.children {
            Children::Leaves(leaves) => {
                let own = leaves.iter().filter(|leaf| leaf.is_unique());
                alone += own.map(|leaf| leaf.len()).sum::<usize>();
            }
            Children::Inners(inners) => {
                for inner in inners {
                    if alone > enough {
                        break;
                    }
                    alone += Inner::unshared_len(inner, enough - alone);
                }
            }
        }
        alone
    }

    /// Whether the elements are pairs.
    pub(crate) fn is_map(&self) -> bool {
        self.is_map
    }

    /// Levels of nodes down to the leaves: 1 for a node directly above them.
    pub(crate) fn height(&self) -> u32 {
        self.height
    }

    pub(crate) fn children_len(&self) -> usize {
        self.children.len()
    }

    pub(crate) fn child(&self, at: usize) -> Node<'_> {
        match &self.children {
            Children::Leaves(leaves) => Node::Leaf(&leaves[at]),
            Children::Inners(inners) => Node::Inner(&inners[at]),
        }
    }

    fn first_key(&self) -> Atom {
        self.separators.slice().get(0).to_owned()
    }

    /// The child that holds `key`, or into which it would be inserted.
    fn child_of(&self, key: AtomRef<'_>) -> usize {
        match self.separators.slice().search(key) {
            Ok(at) => at,
            Err(at) => at.saturating_sub(1),
        }
    }

    /// The leaf that holds `key`, or into which it would be inserted.
    pub(crate) fn leaf_of(&self, key: AtomRef<'_>) -> &Leaf {
        let mut node = self;
        loop {
            let at = node.child_of(key);
            match &node.children {
                Children::Leaves(leaves) => return &leaves[at],
                Children::Inners(inners) => node = &inners[at],
            }
        }
    }

    /// The position of `key`, or where it would be inserted, and the leaf there.
    pub(crate) fn locate(&self, key: AtomRef<'_>) -> (Position, &Leaf) {
        let (mut node, mut path) = (self, SmallVec::new());
        loop {
            let at = node.child_of(key);
            // A node has at most `FANOUT_MAX` children.
            path.push(u8::try_from(at).unwrap_or(u8::MAX));
            match &node.children {
                Children::Leaves(leaves) => {
                    let leaf = &*leaves[at];
                    let at = leaf.search(key);
                    return (Position { path, at }, leaf);
                }
                Children::Inners(inners) => node = &inners[at],
            }
        }
    }

    /// The leaf of the smallest keys.
    pub(crate) fn first_leaf(&self) -> &Leaf {
        let mut node = self;
        loop {
            match &node.children {
                Children::Leaves(leaves) => return &leaves[0],
                Children::Inners(inners) => node = &inners[0],
            }
        }
    }

    /// Inserts an element whose key is absent, at the position that [`Inner::locate`] returned.
    pub(crate) fn insert(
        root: &mut Arc<Inner>,
        position: &Position,
        key: Atom,
        value: Option<Atom>,
    ) {
        let Err(at) = position.at else {
            unreachable!("insert of a present key");
        };
        if let Some(right) = Inner::insert_below(root, &position.path, at, key, value) {
            let height = root.height + 1;
            let left = Arc::clone(root);
            *root = Arc::new(Inner::over(Children::Inners(vec![left, right]), height));
        }
    }

    /// Inserts below `this`. Returns the right half if `this` had to be split.
    fn insert_below(
        this: &mut Arc<Inner>,
        path: &[u8],
        offset: usize,
        key: Atom,
        value: Option<Atom>,
    ) -> Option<Arc<Inner>> {
        let node = Arc::make_mut(this);
        let at = usize::from(path[0]);
        node.len += 1;
        // Only the smallest key of all is inserted before the first key of a leaf.
        if offset == 0 {
            node.separators
                .edit(|separators| separators.set(at, key.clone()));
        }
        match &mut node.children {
            Children::Leaves(leaves) => {
                let leaf = &mut leaves[at];
                Leaf::insert(leaf, offset, key, value);
                if leaf.len() > LEAF_MAX {
                    let half = leaf.len() / 2;
                    let right = Arc::make_mut(leaf).split_off(half);
                    node.separators
                        .edit(|separators| separators.insert(at + 1, right.first_key()));
                    leaves.insert(at + 1, Arc::new(right));
                }
            }
            Children::Inners(inners) => {
                let below = &mut inners[at];
                if let Some(right) = Inner::insert_below(below, &path[1..], offset, key, value) {
                    node.separators
                        .edit(|separators| separators.insert(at + 1, right.first_key()));
                    inners.insert(at + 1, right);
                }
            }
        }
        (node.children.len() > FANOUT_MAX).then(|| Arc::new(node.split_half()))
    }

    /// Replaces the value at the position of a present key of a map.
    pub(crate) fn set_value(root: &mut Arc<Inner>, position: &Position, value: Atom) {
        let Ok(at) = position.at else {
            unreachable!("replacement at an absent key");
        };
        Inner::set_value_below(root, &position.path, at, value);
    }

    fn set_value_below(this: &mut Arc<Inner>, path: &[u8], offset: usize, value: Atom) {
        let at = usize::from(path[0]);
        match &mut Arc::make_mut(this).children {
            Children::Leaves(leaves) => Leaf::set_value(&mut leaves[at], offset, value),
            Children::Inners(inners) => {
                Inner::set_value_below(&mut inners[at], &path[1..], offset, value);
            }
        }
    }

    /// Removes the element at a position. The caller turns trees of [`LEAF_MAX`] elements into
    /// leaves, so no tree becomes empty.
    pub(crate) fn remove(root: &mut Arc<Inner>, position: &Position) {
        let Ok(at) = position.at else {
            unreachable!("removal of an absent key");
        };
        Inner::remove_below(root, &position.path, at);
        while let Children::Inners(inners) = &root.children {
            if inners.len() > 1 {
                break;
            }
            *root = Arc::clone(&inners[0]);
        }
    }

    fn remove_below(this: &mut Arc<Inner>, path: &[u8], offset: usize) {
        let node = Arc::make_mut(this);
        let at = usize::from(path[0]);
        node.len -= 1;
        // The first key of the first leaf below is the first key of the whole node.
        let is_first = offset == 0 && path[1..].iter().all(|&at| at == 0);
        let (size, minimum, first) = match &mut node.children {
            Children::Leaves(leaves) => {
                let leaf = &mut leaves[at];
                Leaf::remove(leaf, offset);
                (leaf.len(), LEAF_MIN, is_first.then(|| leaf.first_key()))
            }
            Children::Inners(inners) => {
                Inner::remove_below(&mut inners[at], &path[1..], offset);
                let inner = &inners[at];
                (
                    inner.children.len(),
                    FANOUT_MIN,
                    is_first.then(|| inner.first_key()),
                )
            }
        };
        if let Some(first) = first {
            node.separators.edit(|separators| separators.set(at, first));
        }
        if size < minimum && node.children.len() > 1 {
            // The last child is joined with its left neighbour, any other with its right one.
            node.join(at.min(node.children.len() - 2));
        }
    }

    /// Joins the children `at` and `at + 1`, and splits the result in halves if it is too long for
    /// one.
    fn join(&mut self, at: usize) {
        self.separators.edit(|separators| separators.remove(at + 1));
        match &mut self.children {
            Children::Leaves(leaves) => {
                let right = leaves.remove(at + 1);
                let left = Arc::make_mut(&mut leaves[at]);
                left.append(right.chunk());
                if left.len() > LEAF_MAX {
                    let half = left.split_off(left.len() / 2);
                    self.separators
                        .edit(|separators| separators.insert(at + 1, half.first_key()));
                    leaves.insert(at + 1, Arc::new(half));
                }
            }
            Children::Inners(inners) => {
                let right = inners.remove(at + 1);
                let left = Arc::make_mut(&mut inners[at]);
                left.len += right.len;
                let more = right.separators.slice();
                left.separators
                    .edit(|separators| separators.extend_from(more, 0, more.len()));
                left.children.append(&right.children);
                if left.children.len() > FANOUT_MAX {
                    let half = left.split_half();
                    self.separators
                        .edit(|separators| separators.insert(at + 1, half.first_key()));
                    inners.insert(at + 1, Arc::new(half));
                }
            }
        }
    }

    /// Keeps the left half of the children and returns a node with the right half.
    fn split_half(&mut self) -> Inner {
        let half = self.children.len() / 2;
        let children = self.children.split_off(half);
        let right = Inner {
            len: children.elements(),
            height: self.height,
            is_map: self.is_map,
            separators: Separators::new(
                self.separators
                    .edit(|separators| separators.split_off(half)),
            ),
            children,
        };
        self.len -= right.len;
        right
    }

    /// All elements in one leaf.
    pub(crate) fn flatten(&self) -> Leaf {
        let model = self.first_leaf();
        let run = |atoms: &Atoms| Atoms::with_capacity(atoms.atom_type(), self.len);
        let mut flat = Leaf {
            keys: run(&model.keys),
            values: model.values.as_ref().map(run),
        };
        self.append_to(&mut flat);
        flat
    }

    fn append_to(&self, flat: &mut Leaf) {
        match &self.children {
            Children::Leaves(leaves) => leaves.iter().for_each(|leaf| flat.append(leaf.chunk())),
            Children::Inners(inners) => inners.iter().for_each(|inner| inner.append_to(flat)),
        }
    }

    /// Asserts the invariants stated at the head of this file.
    #[cfg(test)]
    pub(crate) fn check(&self, is_root: bool) {
        assert_eq!(self.len, self.children.elements());
        assert_eq!(self.separators.slice().len(), self.children.len());
        assert!(self.children.len() <= FANOUT_MAX);
        assert!(is_root || self.children.len() >= FANOUT_MIN);
        for at in 0..self.children.len() {
            match self.child(at) {
                Node::Leaf(leaf) => {
                    assert_eq!(self.is_map, leaf.values.is_some());
                    assert_eq!(self.height, 1);
                    assert!(self.separators.slice().get(at) == leaf.first_key().as_ref());
                    assert!(leaf.len() <= LEAF_MAX && leaf.len() >= LEAF_MIN);
                    assert!(leaf.values.as_ref().is_none_or(|v| v.len() == leaf.len()));
                }
                Node::Inner(inner) => {
                    assert_eq!(self.height, inner.height + 1);
                    assert!(self.separators.slice().get(at) == inner.separators.slice().get(0));
                    inner.check(false);
                }
            }
        }
    }
}

/// Smallest keys of children, in order.
enum Keys<'a> {
    Leaves(std::slice::Iter<'a, Arc<Leaf>>),
    Inners(std::slice::Iter<'a, Arc<Inner>>),
}

impl Iterator for Keys<'_> {
    type Item = Atom;

    fn next(&mut self) -> Option<Atom> {
        match self {
            Keys::Leaves(leaves) => leaves.next().map(|leaf| leaf.first_key()),
            Keys::Inners(inners) => inners.next().map(|inner| inner.first_key()),
        }
    }
}

/// The offsets at which `len` items are cut into parts of about `fill`, whose lengths differ by at
/// most one.
fn cuts(len: usize, fill: usize) -> impl DoubleEndedIterator<Item = usize> {
    let parts = len.div_ceil(fill).max(1);
    (0..parts).map(move |part| part * len / parts)
}
