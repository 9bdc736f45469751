//! Items in an order that the caller defines, in runs: the storage of orders and indexes of rows.
//!
//! The items are stored in runs of up to a limit, each run before the next. Locating a position
//! takes two binary searches. Adding or removing an item moves the rest of its run, and now and
//! then the list of runs. A page at any offset adds up the lengths of the runs before it.
//!
//! Invariant: no run is empty.

/// Items in order, in runs of at most `RUN_MAX`. Small items, for example numbers of rows, are
/// moved when others are added; an item costs one to two times its size.
///
/// ```
/// use corvid_data::Runs;
///
/// let mut runs = Runs::<u32, 4>::of_sorted((0..10).map(|number| number * 10));
/// let place = runs.position(|other| other < 35);
/// assert_eq!(runs.get(place), Some(40));
/// runs.insert(place, 35);
/// assert_eq!(runs.page(3, 3), [30, 35, 40]);
/// ```
#[derive(Debug)]
pub struct Runs<T, const RUN_MAX: usize> {
    runs: Vec<Vec<T>>,
    len: usize,
}

impl<T, const RUN_MAX: usize> Default for Runs<T, RUN_MAX> {
    fn default() -> Runs<T, RUN_MAX> {
        Runs {
            runs: Vec::new(),
            len: 0,
        }
    }
}

/// A position before an item, or at the end. Valid until the next change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    run: usize,
    at: usize,
}

impl<T: Copy, const RUN_MAX: usize> Runs<T, RUN_MAX> {
    /// Two neighbouring runs are joined if they hold at most this many items together.
    const JOIN_MAX: usize = RUN_MAX / 2;

    /// The length of runs at first, so that an item that is added rarely splits one.
    const RUN_FIRST: usize = RUN_MAX - RUN_MAX / 16;

    /// Items that are in order already.
    #[must_use]
    pub fn of_sorted(sorted: impl ExactSizeIterator<Item = T>) -> Runs<T, RUN_MAX> {
        let len = sorted.len();
        let mut runs: Vec<Vec<T>> = Vec::with_capacity(len.div_ceil(Self::RUN_FIRST));
        for (index, item) in sorted.enumerate() {
            match runs.last_mut() {
                Some(run) if index % Self::RUN_FIRST != 0 => run.push(item),
                _ => {
                    let mut run = Vec::with_capacity(Self::RUN_FIRST.min(len - index));
                    run.push(item);
                    runs.push(run);
                }
            }
        }
        Runs { runs, len }
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// `take` items after the first `skip`.
    #[must_use]
    pub fn page(&self, skip: usize, take: usize) -> Vec<T> {
        let mut skip = skip;
        let mut page = Vec::with_capacity(take.min(self.len.saturating_sub(skip)));
        for run in &self.runs {
            if page.len() == take {
                break;
            }
            match run.get(skip..) {
                Some(rest) => {
                    page.extend(rest.iter().take(take - page.len()));
                    skip = 0;
                }
                None => skip -= run.len(),
            }
        }
        page
    }

    /// The position of the first item for which `is_before` is false. `is_before` must be true up
    /// to some position and false from there on.
    pub fn position(&self, mut is_before: impl FnMut(T) -> bool) -> Position {
        let run = self
            .runs
            .partition_point(|run| run.last().is_some_and(|&last| is_before(last)));
        let at = self
            .runs
            .get(run)
            .map_or(0, |run| run.partition_point(|&item| is_before(item)));
        Position { run, at }
    }

    /// The item at a position.
    #[must_use]
    pub fn get(&self, place: Position) -> Option<T> {
        self.runs.get(place.run)?.get(place.at).copied()
    }

    /// The next position.
    #[must_use]
    pub fn next(&self, place: Position) -> Position {
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

    /// Items from one position to another, or to the end; empty if `to` is before `from`.
    pub fn iter(&self, from: Position, to: Option<Position>) -> impl Iterator<Item = T> + '_ {
        let to = to.unwrap_or(Position {
            run: self.runs.len(),
            at: 0,
        });
        let part = move |run: usize| {
            let items = self.runs.get(run).map(Vec::as_slice).unwrap_or_default();
            let start = if run == from.run { from.at } else { 0 };
            let end = if run == to.run { to.at } else { items.len() };
            items.get(start..end).unwrap_or_default()
        };
        (from.run..=to.run).flat_map(part).copied()
    }

    /// Inserts an item at a position that [`Runs::position`] returned.
    pub fn insert(&mut self, place: Position, item: T) {
        self.len += 1;
        // A position past the last run is the end of the last run.
        let place = match self.runs.len().checked_sub(1) {
            Some(last) if place.run > last => Position {
                run: last,
                at: self.runs[last].len(),
            },
            Some(_) => place,
            None => {
                self.runs.push(vec![item]);
                return;
            }
        };
        let run = &mut self.runs[place.run];
        run.insert(place.at, item);
        if run.len() > RUN_MAX {
            // Items often arrive in order, so a full last run is left full instead of half empty.
            let is_appended = place.at + 1 == run.len() && place.run + 1 == self.runs.len();
            let run = &mut self.runs[place.run];
            let half = run.split_off(if is_appended { RUN_MAX } else { RUN_MAX / 2 });
            self.runs.insert(place.run + 1, half);
        }
    }

    /// Removes the item at a position, if there is one.
    pub fn remove(&mut self, place: Position) {
        let Some(run) = self.runs.get_mut(place.run) else {
            return;
        };
        if place.at >= run.len() {
            return;
        }
        run.remove(place.at);
        self.len -= 1;
        let len = run.len();
        let next = self.runs.get(place.run + 1).map(Vec::len);
        if len == 0 {
            self.runs.remove(place.run);
        } else if next.is_some_and(|next| len + next <= Self::JOIN_MAX) {
            let next = self.runs.remove(place.run + 1);
            self.runs[place.run].extend(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN_MAX: usize = 256;

    /// Compares runs with a sorted list while items come and go.
    fn compare(runs: &mut Runs<u32, RUN_MAX>, list: &mut Vec<u32>) {
        let mut state = 7_u32;
        for step in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (state >> 8) % 3000;
            let place = runs.position(|other| other < number);
            let at = list.partition_point(|&other| other < number);
            assert_eq!(runs.get(place), list.get(at).copied());
            let is_growing = step % 10_000 < 6000;
            if is_growing {
                runs.insert(place, number);
                list.insert(at, number);
            } else if list.get(at) == Some(&number) {
                runs.remove(place);
                list.remove(at);
            }
            assert_eq!(runs.len(), list.len());
        }
        let fits = |run: &Vec<u32>| (1..=RUN_MAX).contains(&run.len());
        assert!(runs.runs.iter().all(fits));
    }

    #[test]
    fn runs_hold_what_a_sorted_list_holds() {
        let (mut runs, mut list) = (Runs::default(), Vec::new());
        compare(&mut runs, &mut list);
        let all = runs.iter(Position::default(), None);
        assert!(all.eq(list.iter().copied()));
        for (from, to) in [(0, 3000), (700, 1900), (1500, 1500), (1900, 700)] {
            let [start, end] = [from, to].map(|bound| runs.position(|number| number < bound));
            let inside = list.iter().filter(|&&number| number >= from && number < to);
            assert!(runs.iter(start, Some(end)).eq(inside.copied()));
        }
        let mut place = runs.position(|number| number < 1500);
        for &number in &list[list.partition_point(|&number| number < 1500)..] {
            assert_eq!(runs.get(place), Some(number));
            place = runs.next(place);
        }
        assert_eq!(runs.get(place), None);
        // Nothing is removed at the end.
        runs.remove(place);
        assert_eq!(runs.len(), list.len());
    }

    #[test]
    fn runs_of_sorted_items_have_pages() {
        let mut list: Vec<u32> = (0..3000).step_by(3).collect();
        let mut runs = Runs::of_sorted(list.iter().copied());
        compare(&mut runs, &mut list);
        for skip in [0, 1, 239, 240, 700, list.len(), list.len() + 5] {
            let expected: Vec<u32> = list.iter().skip(skip).take(600).copied().collect();
            assert_eq!(runs.page(skip, 600), expected, "{skip}");
        }
    }

    #[test]
    fn items_that_come_in_order_fill_their_runs() {
        let mut runs = Runs::<u32, RUN_MAX>::default();
        for number in 0..10_000 {
            runs.insert(runs.position(|other| other < number), number);
        }
        assert_eq!(runs.runs.len(), 10_000_usize.div_ceil(RUN_MAX));
    }
}
