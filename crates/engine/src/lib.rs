//! The transaction engine: tables in copy-on-write pages, operations, references, commit. A commit
//! yields a [`corvid_data::Delta`], its only output.
//!
//! Its files, in the order in which a request flows through them:
//!
//! ```text
//! database       owns the tables; the entry of every call
//!                context: inputs and outcome; work_budget: limit
//! execution      one attempt: operations split off one by one, then the commit
//! operation      one file per kind; row_input, condition, mutation (both by triple) and names
//!                read its members, rbac checks it
//! lookup         finds the rows of a condition
//! transaction    changes tables in place; the journal keeps the old rows
//! table          page (rows), slot_table (by UUID), index (of the schema),
//!                column_index (slot_chains), backrefs
//! commit         the ordered checks, garbage, weak references => delta; undo reverts one
//! selection      results of `select`: column_list, distinct; long_result in slices
//!                (slice, merge_sort)
//! snapshot       a commit, frozen, for other threads
//! ```
//!
//! Logs enter through `apply_recorded` (prepared by `row_builder`) and new schemas through
//! `convert` (`mapping`); both end in the same commit. `bulk_load` fills an empty database and
//! checks the same rules on the whole. `row_slots` serves recordings, and `invariants` serves
//! tests. The cost of a commit is proportional to the rows and elements that it touches, not to the
//! size of a table or a set.
//!
//! This crate knows no sessions, monitors, files, sockets, clocks or random sources. The caller
//! provides their inputs through [`Context`].

mod apply_recorded;
mod backrefs;
mod bulk_load;
mod column_index;
mod column_list;
mod commit;
pub mod condition;
pub mod context;
mod convert;
pub mod database;
mod distinct;
mod execution;
mod hash;
mod index;
mod invariants;
mod journal;
mod layout;
mod long_result;
mod lookup;
mod mapping;
mod merge_sort;
mod mutation;
mod names;
mod operation;
mod operations;
mod own_reference;
mod page;
mod rbac;
mod reference;
mod row_builder;
mod row_id;
mod row_input;
mod row_slots;
mod selection;
mod slice;
mod slot_chains;
mod slot_table;
pub mod snapshot;
mod table;
mod tally;
mod transaction;
mod triple;
mod undo;
mod work_budget;

pub use bulk_load::{BulkLoad, Irregular};
pub use condition::Condition;
pub use context::{Context, Identity, LockOwner, Outcome, ReadSet, RowsRead};
pub use convert::{Converted, Misfit};
pub use database::Database;
pub use long_result::{LongResult, Meter};
pub use operation::{Effect, OperationKind};
pub use own_reference::OwnReference;
pub use rbac::{GuardedTransaction, OperationGuard};
pub use row_builder::{Prepared, RowBuilder};
pub use row_slots::RowSlots;
pub use selection::{DeferredSelection, Selection};
pub use slice::{Resumable, Slice};
pub use snapshot::Snapshot;
pub use tally::Tally;
pub use work_budget::{TooLong, WorkBudget};
