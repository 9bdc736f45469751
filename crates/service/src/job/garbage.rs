//! Memory that takes long to free, on its way to the reaper, with an estimate of its size.
//!
//! Invariant: finding the size takes a time that does not depend on it: a length that is known, or one number for each text in a short queue.
//! The estimate errs upwards: what is still shared counts in full. Made by a database, freed by the thread or the step that drops it; it
//! must not be looked into.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};

use corvid_data::{Arc, Delta, Recorded};
use corvid_engine::Database;

use crate::message::ToDatabase;

/// What an atom of a row takes on average with its share of the row, bytes.
const ATOM_BYTES: usize = 32;

/// What a row of an unfinished text takes: the references that are counted down, and sometimes the row itself, bytes.
const ROW_BYTES: usize = 256;

/// Something to be dropped.
pub struct Garbage {
    bytes: usize,
    _held: Box<dyn Any + Send>,
}

impl Garbage {
    /// Of something that takes about so many bytes.
    pub fn new(bytes: usize, held: impl Any + Send) -> Garbage {
        Garbage {
            bytes,
            _held: Box::new(held),
        }
    }

    /// Of a commit whose rows have so many atoms, old and new.
    #[must_use]
    pub fn commit(delta: Arc<Delta>, atoms: u64) -> Garbage {
        Garbage::new(bytes_of(atoms, ATOM_BYTES), delta)
    }

    /// Of a whole database.
    #[must_use]
    pub fn database(database: Database) -> Garbage {
        Garbage::new(bytes_of(database.atom_count(), ATOM_BYTES), database)
    }

    /// Of what a source is found to differ in.
    #[must_use]
    pub fn recorded(recorded: Recorded) -> Garbage {
        Garbage::new(rows(recorded.rows.len()), recorded)
    }

    /// Of what a session sent that is gone; there are as many as it may have under way.
    #[must_use]
    pub fn inputs(inputs: VecDeque<ToDatabase>) -> Garbage {
        let bytes = inputs.iter().map(|input| match input {
            ToDatabase::Request(request) => request.frame.len(),
            _ => 0,
        });
        Garbage::new(bytes.sum(), inputs)
    }

    /// About how much memory it holds, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// What so many rows of a text take, bytes.
pub(crate) fn rows(rows: usize) -> usize {
    rows.saturating_mul(ROW_BYTES)
}

fn bytes_of(atoms: u64, each: usize) -> usize {
    usize::try_from(atoms)
        .unwrap_or(usize::MAX)
        .saturating_mul(each)
}

impl Debug for Garbage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Garbage")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
