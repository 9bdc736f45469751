//! Row numbers in an order that the caller defines: the storage of an index.
//!
//! The numbers are stored in runs of up to [`RUN_MAX`], each run before the next. Locating a
//! position takes two binary searches. Adding or removing a number moves the rest of its run, at
//! most a kilobyte. About once in a hundred times it also moves the list of runs. Costs four to
//! eight bytes per row.
//!
//! Invariant: no run is empty.

/// Limit on the length of a run; one more number splits it.
const RUN_MAX: usize = 256;
/// Two neighbouring runs are joined if they hold at most this many numbers together.
const JOIN_MAX: usize = 128;

/// A position before a number, or at the end. Valid until the next change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Position {
    run: usize,
    at: usize,
}

/// Numbers in order.
#[derive(Debug, Default)]
pub(crate) struct Order {
    runs: Vec<Vec<u32>>,
    len: usize,
}

impl Order {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The position of the first number for which `is_before` is false. `is_before` must be true up
    /// to some position and false from there on.
    pub(crate) fn place(&self, mut is_before: impl FnMut(u32) -> bool) -> Position {
        let run = self
            .runs
            .partition_point(|run| run.last().is_some_and(|&last| is_before(last)));
        let at = self
            .runs
            .get(run)
            .map_or(0, |run| run.partition_point(|&number| is_before(number)));
        Position { run, at }
    }

    /// The number at a position.
    pub(crate) fn get(&self, place: Position) -> Option<u32> {
        self.runs.get(place.run)?.get(place.at).copied()
    }

    /// The next position.
    pub(crate) fn next(&self, place: Position) -> Position {
        match self.runs.get(place.run) {
            Some(run) if place.at + 1 < run.len() => Position {
                at: place.at + 1,
                ..place
            },
            Some(_) => Position {
                run: place.run + 1,
                at: 0,
            },
            None => place,
        }
    }

    /// Numbers from one position to another, or to the end; empty if `to` is before `from`.
    pub(crate) fn iter(
        &self,
        from: Position,
        to: Option<Position>,
    ) -> impl Iterator<Item = u32> + '_ {
        let to = to.unwrap_or(Position {
            run: self.runs.len(),
            at: 0,
        });
        let part = move |run: usize| {
            let numbers = self.runs.get(run).map(Vec::as_slice).unwrap_or_default();
            let start = if run == from.run { from.at } else { 0 };
            let end = if run == to.run { to.at } else { numbers.len() };
            numbers.get(start..end).unwrap_or_default()
        };
        (from.run..=to.run).flat_map(part).copied()
    }

    /// Inserts a number at a position that [`Order::place`] returned.
    pub(crate) fn insert(&mut self, place: Position, number: u32) {
        self.len += 1;
        // A position past the last run is the end of the last run.
        let place = match self.runs.len().checked_sub(1) {
            Some(last) if place.run > last => Position {
                run: last,
                at: self.runs[last].len(),
            },
            Some(_) => place,
            None => {
                self.runs.push(vec![number]);
                return;
            }
        };
        let run = &mut self.runs[place.run];
        run.insert(place.at, number);
        if run.len() > RUN_MAX {
            // Rows often arrive in order, so a full last run is left full instead of half empty.
            let is_appended = place.at + 1 == run.len() && place.run + 1 == self.runs.len();
            let run = &mut self.runs[place.run];
            let half = run.split_off(if is_appended { RUN_MAX } else { RUN_MAX / 2 });
            self.runs.insert(place.run + 1, half);
        }
    }

    /// Removes the number at a position.
    pub(crate) fn remove(&mut self, place: Position) {
        let Some(run) = self.runs.get_mut(place.run) else {
            return;
        };
        run.remove(place.at);
        self.len -= 1;
        let len = run.len();
        let next = self.runs.get(place.run + 1).map(Vec::len);
        if len == 0 {
            self.runs.remove(place.run);
        } else if next.is_some_and(|next| len + next <= JOIN_MAX) {
            let next = self.runs.remove(place.run + 1);
            self.runs[place.run].extend(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_sorted_list_holds() {
        let (mut order, mut list) = (Order::default(), Vec::<u32>::new());
        let mut state = 7_u32;
        for step in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (state >> 8) % 3000;
            let place = order.place(|other| other < number);
            let at = list.partition_point(|&other| other < number);
            let is_growing = step % 10_000 < 6000;
            if is_growing {
                order.insert(place, number);
                list.insert(at, number);
            } else if list.get(at) == Some(&number) {
                assert_eq!(order.get(place), Some(number));
                order.remove(place);
                list.remove(at);
            }
            assert_eq!(order.len(), list.len());
        }
        assert!(
            order
                .iter(Position::default(), None)
                .eq(list.iter().copied())
        );
        for (from, to) in [(0, 3000), (700, 1900), (1500, 1500), (1900, 700)] {
            let [start, end] = [from, to].map(|bound| order.place(|number| number < bound));
            let inside = list.iter().filter(|&&number| number >= from && number < to);
            assert!(order.iter(start, Some(end)).eq(inside.copied()));
        }
        assert!(
            order
                .runs
                .iter()
                .all(|run| (1..=RUN_MAX).contains(&run.len()))
        );
        let mut place = order.place(|number| number < 1500);
        for &number in &list[list.partition_point(|&number| number < 1500)..] {
            assert_eq!(order.get(place), Some(number));
            place = order.next(place);
        }
        assert_eq!(order.get(place), None);
    }

    #[test]
    fn numbers_that_come_in_order_fill_their_runs() {
        let mut order = Order::default();
        for number in 0..10_000 {
            order.insert(order.place(|other| other < number), number);
        }
        assert_eq!(order.runs.len(), 10_000_usize.div_ceil(RUN_MAX));
    }
}
