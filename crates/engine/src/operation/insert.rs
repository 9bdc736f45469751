//! `insert` (docs/spec/protocol.md 5.2).

use corvid_data::members::{self, Kinds};
use corvid_data::{Row, TableId, Tag, Uuid, WireError};

use super::{Executable, OperationKind, Source};
use crate::execution::{Execution, Failure};
use crate::rbac::{self, Access};
use crate::row_input::{Given, read_row};
use crate::work_budget;

/// The members of an `insert`.
pub(crate) struct Insert<'a> {
    table: TableId,
    uuid: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
    row: &'a [u8],
}

impl<'a> Executable<'a> for Insert<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Insert<'a>, WireError> {
        Ok(Insert {
            table: source.table()?,
            uuid: source.optional("uuid", Kinds::STRING)?,
            name: source.optional("uuid-name", Kinds::ID)?,
            row: source.required("row", Kinds::OBJECT)?,
        })
    }

    fn depends_on(&self) -> Option<TableId> {
        Some(self.table)
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let uuid = self.identity(execution)?;
        let schema = execution.txn.database.schema.table(self.table);
        let given = read_row(schema, self.row, &mut execution.names)?;
        let row = self.complete(execution, uuid, given)?;
        rbac::check(
            execution,
            OperationKind::Insert,
            &Access::Rows,
            self.table,
            std::iter::once(&row),
        )?;
        execution.txn.budget.spend(work_budget::CHANGE)?;
        execution.txn.insert(self.table, row);
        execution.out.extend_from_slice(b"{\"uuid\":[\"uuid\",\"");
        execution.out.extend_from_slice(&uuid.to_text());
        execution.out.extend_from_slice(b"\"]}");
        Ok(())
    }
}

impl Insert<'_> {
    /// The UUID of the new row: given, bound to its name by an earlier mention, or fresh.
    fn identity(&self, execution: &mut Execution<'_, '_>) -> Result<Uuid, WireError> {
        let given = match self.uuid {
            Some(raw) => Some(self.given_identity(execution, raw)?),
            None => None,
        };
        let Some(raw) = self.name else {
            return Ok(given.unwrap_or_else(|| execution.names.fresh()));
        };
        let name = members::text(raw).unwrap_or_default();
        execution.names.insert(&name, given).ok_or_else(|| {
            WireError::new(
                Tag::DuplicateUuidName,
                "This \"uuid-name\" appeared on an earlier \"insert\" operation.",
            )
            .with_fragment(raw)
        })
    }

    fn given_identity(&self, execution: &Execution<'_, '_>, raw: &[u8]) -> Result<Uuid, WireError> {
        let uuid = members::string(raw).and_then(|text| Uuid::parse(&text));
        let uuid = uuid.ok_or_else(|| WireError::syntax(raw, "bad uuid"))?;
        if execution.txn.is_uuid_used(self.table, uuid) {
            let details = format!(
                "This UUID would duplicate a UUID already present within the \"{}\" table or deleted from this table \
                 within the same transaction.",
                execution.txn.table_schema(self.table).name
            );
            return Err(WireError::new(Tag::DuplicateUuid, details).with_fragment(raw));
        }
        Ok(uuid)
    }

    /// Adds the defaults of columns that were not given. A default that violates its column's
    /// constraints is an error.
    fn complete(
        &self,
        execution: &mut Execution<'_, '_>,
        uuid: Uuid,
        given: Given,
    ) -> Result<Row, WireError> {
        let layout = execution.txn.layout(self.table);
        for (column, error) in &*layout.required {
            if !given.iter().any(|(id, _)| id == column) {
                return Err(error.clone());
            }
        }
        // The required columns were given, so each default that is used satisfies its constraints.
        let mut columns = layout.defaults.clone();
        for (column, datum) in given {
            // Standard columns in a request are checked and then ignored.
            if !column.is_standard() {
                columns[usize::from(column.0)] = datum;
            }
        }
        Ok(Row {
            uuid,
            version: execution.names.fresh(),
            columns,
        })
    }
}
