//! Iterates over a datum of any form, in order.
//!
//! [`Chunks`] yields typed runs (one for a small datum, one per leaf for a tree), [`Iter`] single
//! elements.

use smallvec::SmallVec;

use super::leaf::{Chunk, Element};
use super::tree::{Inner, Node};

/// The nodes above the next child, each with the index of its child on the path. Four levels hold
/// millions of elements.
pub(crate) type Path<'a> = SmallVec<[(&'a Inner, usize); 4]>;

/// The runs of a datum.
pub(crate) struct Chunks<'a> {
    only: Option<Chunk<'a>>,
    path: Path<'a>,
}

impl<'a> Chunks<'a> {
    pub(crate) fn single(chunk: Chunk<'a>) -> Chunks<'a> {
        Chunks {
            only: Some(chunk),
            path: Path::new(),
        }
    }

    pub(crate) fn tree(root: &'a Inner) -> Chunks<'a> {
        let mut path = Path::new();
        path.push((root, 0));
        Chunks { only: None, path }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        if let Some(chunk) = self.only.take() {
            return Some(chunk);
        }
        loop {
            let (inner, at) = self.path.last_mut()?;
            if *at == inner.children_len() {
                self.path.pop();
                continue;
            }
            let child = inner.child(*at);
            *at += 1;
            match child {
                Node::Leaf(leaf) => return Some(leaf.chunk()),
                Node::Inner(inner) => self.path.push((inner, 0)),
            }
        }
    }
}

/// The elements of a datum in order, maps with their values.
pub struct Iter<'a> {
    chunk: Chunk<'a>,
    at: usize,
    chunks: Chunks<'a>,
    /// Elements not yielded yet, including those of `chunk`.
    remaining: usize,
}

impl<'a> Iter<'a> {
    pub(crate) fn new(chunks: Chunks<'a>, len: usize) -> Iter<'a> {
        Iter {
            chunk: Chunk::EMPTY,
            at: 0,
            chunks,
            remaining: len,
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        while self.at == self.chunk.len() {
            self.chunk = self.chunks.next()?;
            self.at = 0;
        }
        let element = self.chunk.get(self.at);
        self.at += 1;
        self.remaining -= 1;
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for Iter<'_> {}
