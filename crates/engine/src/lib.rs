//! The transaction engine: tables in copy-on-write pages, operations, references, commit. A commit yields a
//! [`corvid_data::Delta`], the only thing that leaves.
//!
//! One request goes `execution` (operations in order, through `operation`) -> `transaction` (tables changed in place, old rows kept in
//! the `journal`) -> `commit` (the ordered checks) -> delta. Logs come in through `replay`, new schemas through `convert`, and both end
//! in the same commit. Costs follow the rows and elements touched, never the size of a table or a set.
//!
//! This crate knows no sessions, monitors, files, sockets, clocks or random sources: those arrive through [`Context`].

mod audit;
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
mod replay;
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
pub use context::{Context, LockOwner, Outcome, ReadSet, RowsRead};
pub use convert::{Converted, Misfit};
pub use database::Database;
pub use long_result::{LongResult, Meter};
pub use own_reference::OwnReference;
pub use row_builder::{Prepared, RowBuilder};
pub use row_slots::RowSlots;
pub use selection::{DeferredSelection, Selection};
pub use slice::{Resumable, Slice};
pub use snapshot::Snapshot;
pub use tally::{OPERATIONS, Tally};
pub use work_budget::{TooLong, WorkBudget};
