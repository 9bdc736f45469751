//! Spells of work of a server: what CPU time each takes, and which of the server's threads spend it.
//!
//! A workload begins a spell before what it measures and ends it after. All spells of a server with a workload add up in its
//! [`Busy`], from which reports say which thread does what and how busy it is. Of a server that is an address nothing is known.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::Error;
use crate::usage;

/// What the threads of a server did while it was measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy {
    wall_us: f64,
    /// CPU time by the thread's name, us. Threads of one name count as one.
    threads: BTreeMap<String, f64>,
}

/// What threads that ended meanwhile are called together.
const ENDED: &str = "(ended)";

/// Busy threads below this part of a core are not worth a word.
const WORTH_SAYING: f64 = 0.01;

impl Busy {
    /// Whether there was a spell of a process of ours.
    pub(crate) fn is_known(&self) -> bool {
        self.wall_us > 0.0
    }

    /// How long all spells were together, us.
    pub(crate) fn wall_us(&self) -> f64 {
        self.wall_us
    }

    /// Names of threads and how much of a core each used, the busiest first.
    pub(crate) fn shares(&self) -> Vec<(&str, f64)> {
        let share = |(name, cpu_us): (_, &f64)| (name, cpu_us / self.wall_us);
        let names = self
            .threads
            .iter()
            .map(|(name, cpu_us)| (name.as_str(), cpu_us));
        let mut shares: Vec<_> = names
            .map(share)
            .filter(|(_, share)| *share >= WORTH_SAYING)
            .collect();
        shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        shares
    }
}

/// Where the spells of a server are added up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book(Arc<Mutex<Busy>>);

impl Book {
    /// What has been added up so far.
    pub(crate) fn busy(&self) -> Busy {
        let busy = self.0.lock();
        busy.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One spell, see the head of this file.
#[derive(Debug)]
pub(crate) struct Spell {
    /// Of the server, if it is ours.
    pid: Option<u32>,
    book: Book,
    began: Instant,
    cpu_us: f64,
    threads: Vec<usage::Thread>,
}

impl Spell {
    /// Begins one of the server with that process.
    pub(crate) fn begin(pid: Option<u32>, book: &Book) -> Result<Spell, Error> {
        let threads = pid.map_or(Ok(Vec::new()), usage::threads)?;
        Ok(Spell {
            pid,
            book: book.clone(),
            cpu_us: pid.map_or(Ok(f64::NAN), usage::cpu_us)?,
            threads,
            began: Instant::now(),
        })
    }

    /// The one that began when the process did.
    pub(crate) fn since_start(pid: Option<u32>, book: &Book, began: Instant) -> Spell {
        Spell {
            pid,
            book: book.clone(),
            began,
            cpu_us: pid.map_or(f64::NAN, |_| 0.0),
            threads: Vec::new(),
        }
    }

    /// Ends it: CPU time of all threads, microseconds; not a number where there is no process of ours.
    pub(crate) fn end(self) -> Result<f64, Error> {
        let wall_us = self.began.elapsed().as_secs_f64() * 1e6;
        let Some(pid) = self.pid else {
            return Ok(f64::NAN);
        };
        let cpu_us = usage::cpu_us(pid)?;
        let mut busy = self.book.0.lock().unwrap_or_else(PoisonError::into_inner);
        busy.wall_us += wall_us;
        let mut left_us = cpu_us - self.cpu_us;
        for thread in usage::threads(pid)? {
            let before = self.threads.iter().find(|before| before.id == thread.id);
            let spent_us = thread.cpu_us - before.map_or(0.0, |before| before.cpu_us);
            *busy.threads.entry(thread.name).or_default() += spent_us;
            left_us -= spent_us;
        }
        // Only the whole process has counted those, and coarsely.
        if left_us > usage::COARSE_US {
            *busy.threads.entry(ENDED.to_owned()).or_default() += left_us;
        }
        Ok(cpu_us - self.cpu_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_of_our_own_has_our_threads() {
        let book = Book::default();
        let spell = Spell::begin(Some(std::process::id()), &book).expect("a spell");
        let began = Instant::now();
        while began.elapsed().as_millis() < 30 {}
        assert!(spell.end().expect("CPU time") > 0.0);
        let busy = book.busy();
        let all: f64 = busy.shares().iter().map(|(_, share)| share).sum();
        assert!(all > 0.0, "{busy:?}");
    }

    #[test]
    fn of_an_address_nothing_is_known() {
        let book = Book::default();
        let spell = Spell::begin(None, &book).expect("a spell");
        assert!(spell.end().expect("no error").is_nan());
        assert!(book.busy().shares().is_empty());
    }
}
