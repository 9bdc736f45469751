//! Operations: their kinds, how their members are read, and the file that executes each (docs/spec/protocol.md 5.1).
//!
//! An operation is read completely, unexpected members included, before it is executed, because errors of its members
//! have precedence over errors of its execution.

mod control;
mod delete;
mod insert;
mod mutate;
mod select;
mod update;
mod wait;

use corvid_data::members::{self, Kinds, Members, Subject};
use corvid_data::{Schema, TableId, WireError};
use corvid_json::write;

use crate::execution::{Execution, Failure};
use crate::tally::OPERATIONS;

use control::Control;
use delete::Delete;
use insert::Insert;
use mutate::Mutate;
use select::Select;
use update::Update;
use wait::Wait;

/// Members of an operation, raw.
pub(crate) type OperationMembers<'a> = Members<'a, &'a [u8]>;

/// One operation, its members checked for presence and kind. Values are still raw text.
pub(crate) enum Operation<'a> {
    Insert(Insert<'a>),
    Select(Select<'a>),
    Update(Update<'a>),
    Mutate(Mutate<'a>),
    Delete(Delete<'a>),
    Wait(Wait<'a>),
    Control(Control<'a>),
}

/// Reads the members that name tables.
struct Source<'a, 's> {
    schema: &'s Schema,
    what: Subject<'a>,
    members: OperationMembers<'a>,
}

impl<'a> Operation<'a> {
    /// Reads the members of the operation.
    ///
    /// # Errors
    /// The first fault in the order of the table in docs/spec/protocol.md 5.1; unexpected members last.
    pub(crate) fn parse(
        schema: &Schema,
        what: Subject<'a>,
        members: OperationMembers<'a>,
    ) -> Result<Operation<'a>, WireError> {
        let mut source = Source {
            schema,
            what,
            members,
        };
        let op = source.members.required("op", Kinds::ID)?;
        let op = members::id(op);
        let operation = match &*op {
            b"insert" => Operation::Insert(Insert::parse(&mut source)?),
            b"select" => Operation::Select(Select::parse(&mut source)?),
            b"update" => Operation::Update(Update::parse(&mut source)?),
            b"mutate" => Operation::Mutate(Mutate::parse(&mut source)?),
            b"delete" => Operation::Delete(Delete::parse(&mut source)?),
            b"wait" => Operation::Wait(Wait::parse(&mut source)?),
            other => match Control::parse(other, &mut source)? {
                Some(control) => Operation::Control(control),
                None => {
                    let op = String::from_utf8_lossy(&op);
                    return Err(source.error(&format!("No operation \"{op}\"")));
                }
            },
        };
        source.members.finish()?;
        Ok(operation)
    }

    /// Its index in [`OPERATIONS`].
    pub(crate) fn kind(&self) -> usize {
        match self {
            Operation::Insert(_) => 0,
            Operation::Select(_) => 1,
            Operation::Update(_) => 2,
            Operation::Mutate(_) => 3,
            Operation::Delete(_) => 4,
            Operation::Wait(_) => 5,
            Operation::Control(control) => control.kind(),
        }
    }

    /// Its name on the wire.
    pub(crate) fn name(&self) -> &'static str {
        OPERATIONS[self.kind()]
    }

    /// Whether read-only sessions and databases refuse it, also when it would change nothing.
    pub(crate) fn is_writing(&self) -> bool {
        match self {
            Operation::Insert(_)
            | Operation::Update(_)
            | Operation::Mutate(_)
            | Operation::Delete(_) => true,
            Operation::Select(_) | Operation::Wait(_) => false,
            Operation::Control(control) => control.is_writing(),
        }
    }

    /// The table whose rows decide whether it succeeds. A `select` always succeeds, and a `wait` records its rows
    /// itself.
    pub(crate) fn depends_on(&self) -> Option<TableId> {
        match self {
            Operation::Insert(insert) => Some(insert.table),
            Operation::Update(update) => Some(update.table),
            Operation::Mutate(mutate) => Some(mutate.table),
            Operation::Delete(delete) => Some(delete.table),
            Operation::Select(_) | Operation::Wait(_) | Operation::Control(_) => None,
        }
    }

    /// Whether it depends on the owner of a lock.
    pub(crate) fn depends_on_lock(&self) -> bool {
        matches!(self, Operation::Control(Control::Assert { .. }))
    }

    /// Executes it and appends its result.
    pub(crate) fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        match self {
            Operation::Insert(insert) => insert.execute(execution)?,
            Operation::Select(select) => select.execute(execution)?,
            Operation::Update(update) => update.execute(execution)?,
            Operation::Mutate(mutate) => mutate.execute(execution)?,
            Operation::Delete(delete) => delete.execute(execution)?,
            Operation::Wait(wait) => wait.execute(execution)?,
            Operation::Control(control) => control.execute(execution)?,
        }
        Ok(())
    }
}

impl<'a> Source<'a, '_> {
    fn required(&mut self, name: &str, kinds: Kinds) -> Result<&'a [u8], WireError> {
        self.members.required(name, kinds)
    }

    fn optional(&mut self, name: &str, kinds: Kinds) -> Result<Option<&'a [u8]>, WireError> {
        self.members.optional(name, kinds)
    }

    fn condition(&mut self) -> Result<&'a [u8], WireError> {
        self.required("where", Kinds::ARRAY)
    }

    fn table(&mut self) -> Result<TableId, WireError> {
        let name = self.required("table", Kinds::ID)?;
        let name = members::id(name);
        self.schema.table_named(&name).ok_or_else(|| {
            let name = String::from_utf8_lossy(&name);
            self.error(&format!("No table named {name}."))
        })
    }

    /// A `syntax error` about the whole operation.
    fn error(&self, problem: &str) -> WireError {
        let details = format!("Parsing {} failed: {problem}", self.what);
        WireError::syntax(self.members.whole(), details)
    }
}

/// Appends `{"count":N}`.
pub(crate) fn write_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(b"{\"count\":");
    write::integer(out, i64::try_from(count).unwrap_or(i64::MAX));
    out.push(b'}');
}
