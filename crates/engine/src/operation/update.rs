//! `update` (docs/spec/protocol.md 5.6).

use corvid_data::members::Kinds;
use corvid_data::{TableId, TableSchema, Tag, WireError};

use super::{Executable, OperationKind, Source};
use crate::execution::{Execution, Failure};
use crate::rbac::{self, Access};
use crate::row_input::{Given, read_row};
use crate::transaction::Written;

/// The members of an `update`.
pub(crate) struct Update<'a> {
    table: TableId,
    condition: &'a [u8],
    row: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Executable<'a> for Update<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Update<'a>, WireError> {
        Ok(Update {
            table: source.table()?,
            condition: source.condition()?,
            row: source.required("row", Kinds::OBJECT)?,
            whole: source.members.whole(),
        })
    }

    fn depends_on(&self) -> Option<TableId> {
        Some(self.table)
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let schema = execution.txn.database.schema.table(self.table);
        let given = read_row(schema, self.row, &mut execution.names)?;
        self.refuse_immutable(schema, &given)?;
        let condition = execution.read_condition(self.table, self.condition)?;
        let slots = execution.matching(self.table, &condition)?;
        let written = given.iter().map(|(column, _)| *column);
        execution.spend_on_columns(self.table, &slots, &written)?;
        let columns = given.iter().map(|(column, _)| *column).collect();
        rbac::check(
            execution,
            OperationKind::Update,
            &Access::Columns(columns),
            self.table,
            execution.rows(self.table, &slots),
        )?;
        if !given.is_empty() {
            for slot in &slots {
                let written = given.iter().cloned().map(Written::from);
                execution.txn.write(self.table, *slot, written);
            }
        }
        execution.write_count(slots.len());
        Ok(())
    }
}

impl Update<'_> {
    fn refuse_immutable(&self, schema: &TableSchema, given: &Given) -> Result<(), WireError> {
        let mut columns = given.iter().map(|(column, _)| schema.column(*column));
        let Some(column) = columns.find(|column| !column.mutable) else {
            return Ok(());
        };
        Err(WireError::new(
            Tag::ConstraintViolation,
            format!(
                "Cannot update immutable column {} in table {}.",
                column.name, schema.name
            ),
        )
        .with_fragment(self.whole))
    }
}
