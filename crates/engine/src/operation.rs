//! Operations: the single table of their kinds, and how their members are parsed
//! (docs/spec/protocol.md 5.1). A file for each kind executes it; `control.rs` has those that touch
//! no row.
//!
//! An operation is parsed completely, including unexpected members, before it is executed: errors
//! of its members have precedence over errors of its execution.

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

use control::{Abort, Assert, Comment, Commit};
use delete::Delete;
use insert::Insert;
use mutate::Mutate;
use select::Select;
use update::Update;
use wait::Wait;

/// Members of an operation, raw.
pub(crate) type OperationMembers<'a> = Members<'a, &'a [u8]>;

/// The effect that an operation may have. Every rule that distinguishes operations uses it:
/// read-only sessions, roles, followers and relays, the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The operation changes rows. The text names the change in the error of a role:
    /// `prohibit TEXT table "T"`.
    Changes(&'static str),
    /// The operation has the record synced before the reply. It changes no row, but read-only
    /// sessions refuse it.
    Commits,
    /// The operation only reads rows.
    Reads,
    /// The operation may block until rows change.
    Waits,
    /// The operation depends on the owner of a lock.
    Asserts,
    /// The operation touches neither rows nor locks.
    Nothing,
}

/// Generates the kinds of operations, and the operations with their members, from one table.
macro_rules! operations {
    ($($kind:ident($name:literal, $effect:expr, $members:ty);)*) => {
        /// A kind of operation. Its number is its index in [`OperationKind::ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum OperationKind {
            $(#[doc = concat!("`", $name, "`")] $kind,)*
        }

        impl OperationKind {
            /// All kinds, in the order in which counters and metrics list them.
            pub const ALL: &'static [OperationKind] = &[$(OperationKind::$kind),*];

            /// The kind with this name on the wire.
            #[must_use]
            pub fn of(name: &[u8]) -> Option<OperationKind> {
                $(if name == $name.as_bytes() {
                    return Some(OperationKind::$kind);
                })*
                None
            }

            /// The kind's name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(OperationKind::$kind => $name,)*
                }
            }

            /// The effect that operations of this kind may have.
            #[must_use]
            pub const fn effect(self) -> Effect {
                match self {
                    $(OperationKind::$kind => $effect,)*
                }
            }
        }

        /// One operation, with its members checked for presence and kind. Values are still raw
        /// text.
        pub(crate) enum Operation<'a> {
            $($kind($members),)*
        }

        impl<'a> Operation<'a> {
            /// Parses the members of an operation of this kind, except `op`.
            fn read(kind: OperationKind, source: &mut Source<'a, '_>) -> Result<Self, WireError> {
                Ok(match kind {
                    $(OperationKind::$kind => Operation::$kind(<$members>::parse(source)?),)*
                })
            }

            /// The operation's kind.
            pub(crate) fn kind(&self) -> OperationKind {
                match self {
                    $(Operation::$kind(_) => OperationKind::$kind,)*
                }
            }

            /// The table whose rows decide whether the operation succeeds. `None` for `select`,
            /// which always succeeds, and for `wait`, which records its rows itself.
            pub(crate) fn depends_on(&self) -> Option<TableId> {
                match self {
                    $(Operation::$kind(operation) => operation.depends_on(),)*
                }
            }

            /// Executes the operation and appends its result.
            pub(crate) fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
                match self {
                    $(Operation::$kind(operation) => operation.execute(execution),)*
                }
            }
        }
    };
}

operations! {
    Insert("insert", Effect::Changes("row insertion into"), Insert<'a>);
    Select("select", Effect::Reads, Select<'a>);
    Update("update", Effect::Changes("modification of"), Update<'a>);
    Mutate("mutate", Effect::Changes("mutate operation on"), Mutate<'a>);
    Delete("delete", Effect::Changes("row deletion from"), Delete<'a>);
    Wait("wait", Effect::Waits, Wait<'a>);
    Commit("commit", Effect::Commits, Commit);
    Abort("abort", Effect::Nothing, Abort);
    Comment("comment", Effect::Nothing, Comment<'a>);
    Assert("assert", Effect::Asserts, Assert<'a>);
}

/// The members of one kind of operation, parsed and not yet executed.
trait Executable<'a>: Sized {
    /// Parses the members.
    ///
    /// # Errors
    /// The first fault in the order of the table in docs/spec/protocol.md 5.1.
    fn parse(source: &mut Source<'a, '_>) -> Result<Self, WireError>;

    /// See [`Operation::depends_on`].
    fn depends_on(&self) -> Option<TableId> {
        None
    }

    /// Executes the operation and appends its result.
    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure>;
}

/// Reads the members that several kinds share.
struct Source<'a, 's> {
    schema: &'s Schema,
    what: Subject<'a>,
    members: OperationMembers<'a>,
}

impl OperationKind {
    /// The number of kinds.
    pub const COUNT: usize = OperationKind::ALL.len();

    /// The text for the kind's change of rows in the error of a role; `None` if it changes no rows.
    #[must_use]
    pub const fn action(self) -> Option<&'static str> {
        match self.effect() {
            Effect::Changes(action) => Some(action),
            _ => None,
        }
    }

    /// Whether operations of this kind can change rows. `commit` cannot: a transaction of it alone
    /// reads nothing and writes nothing.
    #[must_use]
    pub const fn changes_rows(self) -> bool {
        matches!(self.effect(), Effect::Changes(_))
    }

    /// Whether read-only sessions and databases refuse operations of this kind, even those that
    /// would change nothing, and relays leave them to their source. `commit` is one of them
    /// (docs/spec/protocol.md 5.1, the column "writing kind").
    #[must_use]
    pub const fn is_writing(self) -> bool {
        matches!(self.effect(), Effect::Changes(_) | Effect::Commits)
    }
}

impl<'a> Operation<'a> {
    /// Parses the members of the operation.
    ///
    /// # Errors
    /// The first fault in the order of the table in docs/spec/protocol.md 5.1; unexpected members
    /// last.
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
        let Some(kind) = OperationKind::of(&op) else {
            let op = String::from_utf8_lossy(&op);
            return Err(source.error(&format!("No operation \"{op}\"")));
        };
        let operation = Operation::read(kind, &mut source)?;
        source.members.finish()?;
        Ok(operation)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name_and_counted_in_its_own_place() {
        for (index, kind) in OperationKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert_eq!(OperationKind::of(kind.name().as_bytes()), Some(*kind));
        }
        assert_eq!(OperationKind::of(b"Insert"), None);
        assert_eq!(OperationKind::of(b""), None);
    }

    #[test]
    fn read_only_sessions_refuse_changes_and_durability_only() {
        let writing = OperationKind::ALL.iter().filter(|kind| kind.is_writing());
        let names: Vec<&str> = writing.map(|kind| kind.name()).collect();
        assert_eq!(names, ["insert", "update", "mutate", "delete", "commit"]);
        let changing = OperationKind::ALL.iter().filter(|kind| kind.changes_rows());
        let names: Vec<&str> = changing.map(|kind| kind.name()).collect();
        assert_eq!(names, ["insert", "update", "mutate", "delete"]);
    }
}
