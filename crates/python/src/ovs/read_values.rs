//! The objects that reads of a row's columns have made, for the next reads.
//!
//! ovsdbapp compares a new row with all that its parent has, ten thousand at times, at each
//! transaction. The way of a value through the core, row, columns, text, is memory that is in no
//! cache by then, and a new object costs as much again.
//!
//! Invariant: an object is good as long as the row has the version with which it was read, and it
//! is one that no program can change.

use corvid::{ColumnId, RowVersion};
use pyo3::prelude::*;

/// Columns of a row whose objects are kept. Another one takes the place of the oldest.
const READ_VALUES_MAX: usize = 4;

/// The objects of one row. A row that was never read has none and costs a word.
#[derive(Default)]
pub(crate) struct ReadValues(Option<Box<Values>>);

struct Values {
    version: RowVersion,
    objects: [Option<(ColumnId, Py<PyAny>)>; READ_VALUES_MAX],
    /// The place of the next object.
    next: usize,
}

/// Objects that are not kept any more: dropped when no lock is held.
pub(crate) struct Former {
    _outdated: Option<Box<Values>>,
    _oldest: Option<(ColumnId, Py<PyAny>)>,
}

impl ReadValues {
    /// The object of a column, and the version with which it was read.
    pub(crate) fn get(&self, py: Python<'_>, id: ColumnId) -> Option<(RowVersion, Py<PyAny>)> {
        let values = self.0.as_ref()?;
        let mut objects = values.objects.iter().flatten();
        let (_, object) = objects.find(|(of, _)| *of == id)?;
        Some((values.version, object.clone_ref(py)))
    }

    /// Keeps an object that was read with a version. Returns objects that are dropped for it.
    pub(crate) fn keep(&mut self, version: RowVersion, id: ColumnId, object: Py<PyAny>) -> Former {
        let is_other = |values: &mut Box<Values>| values.version != version;
        let outdated = self.0.take_if(is_other);
        let values = self.0.get_or_insert_with(|| {
            Box::new(Values {
                version,
                objects: Default::default(),
                next: 0,
            })
        });
        let next = values.next;
        values.next = (next + 1) % READ_VALUES_MAX;
        Former {
            _outdated: outdated,
            _oldest: values.objects[next].replace((id, object)),
        }
    }
}
