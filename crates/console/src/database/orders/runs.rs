//! UUIDs of rows in an order that the caller defines.
//!
//! The UUIDs are stored in runs of up to [`RUN_MAX`], each run before the next. Locating a position
//! takes two binary searches. Adding or removing a UUID moves the rest of its run, at most eight
//! kilobytes. A page at any offset adds up the lengths of the runs before it: two thousand for a
//! million rows.
//!
//! Invariant: no run is empty.

use corvid::data::Uuid;

/// The longest run; one more UUID splits it.
const RUN_MAX: usize = 512;

/// The length of runs at first, so that a row that is added rarely splits one.
const RUN_FIRST: usize = 480;

/// Two neighbouring runs are joined if they hold at most this many UUIDs together.
const JOIN_MAX: usize = 256;

/// A position before a UUID, or at the end. Valid until the next change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    run: usize,
    at: usize,
}

/// UUIDs in order.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Vec<Vec<Uuid>>,
    len: usize,
}

impl Runs {
    /// UUIDs that are in order already.
    pub(super) fn of_sorted(sorted: impl ExactSizeIterator<Item = Uuid>) -> Runs {
        let len = sorted.len();
        let mut runs: Vec<Vec<Uuid>> = Vec::with_capacity(len.div_ceil(RUN_FIRST));
        for (index, uuid) in sorted.enumerate() {
            match runs.last_mut() {
                Some(run) if index % RUN_FIRST != 0 => run.push(uuid),
                _ => {
                    let mut run = Vec::with_capacity(RUN_FIRST.min(len - index));
                    run.push(uuid);
                    runs.push(run);
                }
            }
        }
        Runs { runs, len }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// `take` UUIDs after the first `skip`.
    pub(super) fn page(&self, skip: usize, take: usize) -> Vec<Uuid> {
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

    /// The position of the first UUID for which `is_before` is false. `is_before` must be true up
    /// to some position and false from there on.
    pub(super) fn position(&self, mut is_before: impl FnMut(Uuid) -> bool) -> Position {
        let run = self
            .runs
            .partition_point(|run| run.last().is_some_and(|&last| is_before(last)));
        let at = self
            .runs
            .get(run)
            .map_or(0, |run| run.partition_point(|&uuid| is_before(uuid)));
        Position { run, at }
    }

    /// The UUID at a position.
    pub(super) fn get(&self, place: Position) -> Option<Uuid> {
        self.runs.get(place.run)?.get(place.at).copied()
    }

    /// Inserts a UUID at a position.
    pub(super) fn insert(&mut self, place: Position, uuid: Uuid) {
        self.len += 1;
        // A position past the last run is the end of the last run.
        let place = match self.runs.len().checked_sub(1) {
            Some(last) if place.run > last => Position {
                run: last,
                at: self.runs[last].len(),
            },
            Some(_) => place,
            None => {
                self.runs.push(vec![uuid]);
                return;
            }
        };
        let run = &mut self.runs[place.run];
        run.insert(place.at, uuid);
        if run.len() > RUN_MAX {
            let half = run.split_off(RUN_MAX / 2);
            self.runs.insert(place.run + 1, half);
        }
    }

    /// Removes the UUID at a position, if there is one.
    pub(super) fn remove(&mut self, place: Position) {
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
        } else if next.is_some_and(|next| len + next <= JOIN_MAX) {
            let next = self.runs.remove(place.run + 1);
            self.runs[place.run].extend(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(number: u32) -> Uuid {
        Uuid(u128::from(number).to_be_bytes())
    }

    #[test]
    fn runs_hold_what_a_sorted_list_holds() {
        let mut list: Vec<Uuid> = (0..3000).step_by(3).map(uuid).collect();
        let mut runs = Runs::of_sorted(list.iter().copied());
        let mut state = 7_u32;
        for step in 0..20_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let wanted = uuid((state >> 8) % 3000);
            let place = runs.position(|other| other < wanted);
            let at = list.partition_point(|other| *other < wanted);
            assert_eq!(runs.get(place), list.get(at).copied());
            let is_growing = step % 10_000 < 5000;
            match (list.get(at) == Some(&wanted), is_growing) {
                (false, true) => {
                    runs.insert(place, wanted);
                    list.insert(at, wanted);
                }
                (true, false) => {
                    runs.remove(place);
                    list.remove(at);
                }
                _ => {}
            }
            assert_eq!(runs.len(), list.len());
        }
        for skip in [0, 1, 479, 480, 700, list.len(), list.len() + 5] {
            let expected: Vec<Uuid> = list.iter().skip(skip).take(600).copied().collect();
            assert_eq!(runs.page(skip, 600), expected, "{skip}");
        }
        assert!(
            runs.runs
                .iter()
                .all(|run| (1..=RUN_MAX).contains(&run.len()))
        );
    }
}
