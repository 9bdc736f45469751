//! The last events of a reading, which are known at its end only.

use std::collections::VecDeque;

use super::NEWEST_BYTES_MAX;

/// Keeps the lines of the last events.
#[derive(Debug)]
pub struct Newest {
    count_max: usize,
    events: VecDeque<Vec<Vec<u8>>>,
    bytes: usize,
    /// Events were dropped because of their length.
    is_cut: bool,
}

impl Newest {
    /// Keeps at most `count_max` events.
    #[must_use]
    pub fn new(count_max: usize) -> Newest {
        Newest {
            count_max,
            events: VecDeque::new(),
            bytes: 0,
            is_cut: false,
        }
    }

    /// Adds a line, which may continue the event of the line before it.
    pub fn push(&mut self, line: Vec<u8>, is_continued: bool) {
        self.bytes += line.len();
        match self.events.back_mut().filter(|_| is_continued) {
            Some(event) => event.push(line),
            None => self.events.push_back(vec![line]),
        }
        while self.events.len() > self.count_max {
            self.drop_oldest();
        }
        // The last event stays, however long it is.
        while self.bytes > NEWEST_BYTES_MAX && self.events.len() > 1 {
            self.drop_oldest();
            self.is_cut = true;
        }
    }

    fn drop_oldest(&mut self) {
        let lines = self.events.pop_front().unwrap_or_default();
        self.bytes -= lines.iter().map(Vec::len).sum::<usize>();
    }

    /// A warning for people if fewer events are here than were asked for, although there were more.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let count = self.events.len();
        (self.is_cut && count < self.count_max).then(|| {
            format!(
                "only the last {count} changes are shown: more do not fit into {} MiB; ask for a range instead",
                NEWEST_BYTES_MAX >> 20
            )
        })
    }

    /// The lines, oldest first.
    pub fn into_lines(self) -> impl Iterator<Item = Vec<u8>> {
        self.events.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(newest: Newest) -> Vec<Vec<u8>> {
        newest.into_lines().collect()
    }

    #[test]
    fn events_are_counted_and_not_their_lines() {
        let mut newest = Newest::new(2);
        for (line, is_continued) in [(b"1", false), (b"2", false), (b"3", true), (b"4", false)] {
            newest.push(line.to_vec(), is_continued);
        }
        assert_eq!(newest.warning(), None);
        assert_eq!(lines(newest), [b"2", b"3", b"4"]);
    }

    #[test]
    fn long_events_are_dropped_with_a_warning() {
        let mut newest = Newest::new(100);
        for _ in 0..5 {
            newest.push(vec![b' '; NEWEST_BYTES_MAX / 2], false);
        }
        assert!(newest.warning().unwrap().contains("the last 2 changes"));
        assert_eq!(lines(newest).len(), 2);
        let mut newest = Newest::new(1);
        newest.push(vec![b' '; 2 * NEWEST_BYTES_MAX], false);
        assert_eq!((newest.warning(), lines(newest).len()), (None, 1));
    }
}
