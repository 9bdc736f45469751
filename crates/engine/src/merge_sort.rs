//! Sorts in slices: a `select` with `sort` may find all rows of a large table.
//!
//! A stable bottom-up merge sort. First it sorts runs of [`RUN`] items, each at once. Then passes
//! merge pairs of runs, from `items` into `merged`, until one run is left. It can pause between two
//! runs in the first part, and between any two items in the second.

use std::cmp::Ordering;

use crate::slice::Slice;

/// Items of a run that is sorted at once.
const RUN: usize = 256;

/// Steps per item of a run.
const RUN_STEPS: u64 = 16;

/// Steps to merge an item.
const MERGE_STEPS: u64 = 4;

/// Items that are being sorted: numbers of rows.
#[derive(Debug)]
pub(crate) struct MergeSort {
    items: Vec<u32>,
    merged: Vec<u32>,
    /// The number of `items` in sorted runs.
    in_runs: usize,
    /// Length of a run.
    width: usize,
    /// The start of the pair of runs that is being merged, and the next item of each run.
    start: usize,
    left: usize,
    right: usize,
}

impl MergeSort {
    /// A sort of these items that has not begun.
    pub(crate) fn new(items: Vec<u32>) -> MergeSort {
        MergeSort {
            merged: Vec::with_capacity(items.len()),
            items,
            in_runs: 0,
            width: RUN,
            start: 0,
            left: 0,
            right: RUN,
        }
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Continues for a slice. Returns the items once they are in order.
    pub(crate) fn advance(
        &mut self,
        slice: &mut Slice,
        compare: impl Fn(u32, u32) -> Ordering,
    ) -> Option<Vec<u32>> {
        while self.in_runs < self.items.len() {
            if slice.is_over() {
                return None;
            }
            let end = self.items.len().min(self.in_runs + RUN);
            let run = &mut self.items[self.in_runs..end];
            run.sort_by(|a, b| compare(*a, *b));
            slice.spend(run.len() as u64 * RUN_STEPS, 0);
            self.in_runs = end;
        }
        while self.width < self.items.len() {
            if !self.merge(slice, &compare) {
                return None;
            }
            std::mem::swap(&mut self.items, &mut self.merged);
            self.merged.clear();
            self.width *= 2;
            self.begin_pair(0);
        }
        Some(std::mem::take(&mut self.items))
    }

    /// Merges pairs of runs. Returns false if it pauses.
    fn merge(&mut self, slice: &mut Slice, compare: &impl Fn(u32, u32) -> Ordering) -> bool {
        let length = self.items.len();
        while self.merged.len() < length {
            if slice.is_over() {
                return false;
            }
            slice.spend(MERGE_STEPS, 0);
            let middle = length.min(self.start + self.width);
            let end = length.min(middle + self.width);
            // Of equal items the left one comes first.
            let is_right = self.left == middle
                || (self.right < end
                    && compare(self.items[self.right], self.items[self.left]).is_lt());
            let next = if is_right {
                &mut self.right
            } else {
                &mut self.left
            };
            self.merged.push(self.items[*next]);
            *next += 1;
            if self.left == middle && self.right == end {
                self.begin_pair(end);
            }
        }
        true
    }

    fn begin_pair(&mut self, start: usize) {
        self.start = start;
        self.left = start;
        self.right = self.items.len().min(start + self.width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_in_slices_of_any_size_equals_the_standard_sort() {
        let mut state = 1_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as u32
        };
        for length in [0, 1, 2, 255, 256, 257, 511, 512, 513, 1000, 4096, 5000] {
            if cfg!(miri) && length > 600 {
                break;
            }
            let items: Vec<u32> = (0..length).map(|_| draw()).collect();
            // Many items are equal, so an unstable sort would be noticed.
            let compare = |a: u32, b: u32| (a % 64).cmp(&(b % 64));
            let mut expected = items.clone();
            expected.sort_by(|a, b| compare(*a, *b));
            for steps in [1, 100, u64::MAX] {
                let mut sorting = MergeSort::new(items.clone());
                let mut slices = 0;
                let sorted = loop {
                    slices += 1;
                    if let Some(sorted) = sorting.advance(&mut Slice::new(steps), compare) {
                        break sorted;
                    }
                };
                assert_eq!(sorted, expected, "{length} items, {steps} steps");
                assert_eq!(slices > 1, steps < u64::MAX && length > RUN as u32);
            }
        }
    }
}
