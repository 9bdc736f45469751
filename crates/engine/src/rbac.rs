//! Role-based access control: whether a client's role lets it change given rows
//! (docs/spec/protocol.md 7.2).
//!
//! The rules are rows of the database itself, and are read as the transaction sees them. Costs one
//! row look-up and the named columns per operation, and nothing for sessions without a role.

mod guards;

use corvid_data::{
    AtomRef, AtomType, ColumnId, Datum, Row, Str, TableId, TableSchema, Tag, WireError,
};
use smallvec::SmallVec;

use crate::condition::{Clause, Condition, Function};
use crate::context::Identity;
use crate::execution::Execution;
use crate::lookup;
use crate::operation::OperationKind;
use crate::transaction::Transaction;
use crate::work_budget::WorkBudget;

pub use guards::{GuardedTransaction, OperationGuard};

/// Columns that an operation writes.
pub(crate) type Columns = SmallVec<[ColumnId; 8]>;

/// The part of the rows that an operation changes.
pub(crate) enum Access {
    /// Whole rows, which the operation inserts or deletes.
    Rows,
    /// These columns.
    Columns(Columns),
}

/// Checks an operation on `rows`: the new row for an insert, otherwise the rows before the
/// operation. Each role of the requester must allow it.
///
/// # Errors
/// `permission error`, for the first role that does not allow the operation.
pub(crate) fn check<'r>(
    execution: &Execution<'_, '_>,
    kind: OperationKind,
    access: &Access,
    table: TableId,
    rows: impl Iterator<Item = &'r Row> + Clone,
) -> Result<(), WireError> {
    let Some((last, others)) = execution.requester.identities.split_last() else {
        return Ok(());
    };
    for identity in others {
        check_identity(&execution.txn, *identity, kind, access, table, rows.clone())?;
    }
    check_identity(&execution.txn, *last, kind, access, table, rows)
}

fn check_identity<'r>(
    txn: &Transaction<'_>,
    Identity { role, client_id }: Identity<'_>,
    kind: OperationKind,
    access: &Access,
    table: TableId,
    rows: impl Iterator<Item = &'r Row>,
) -> Result<(), WireError> {
    if role.is_empty() {
        return Ok(());
    }
    // A schema without this table has no rules, so roles restrict nothing.
    let Some(roles) = txn.schema().table_id("RBAC_Role") else {
        return Ok(());
    };
    let is_allowed = client_id.is_some_and(|client_id| {
        Permission::find(txn, roles, role, table)
            .is_some_and(|permission| permission.allows(access, client_id, rows))
    });
    if is_allowed {
        return Ok(());
    }
    Err(denial(txn, Identity { role, client_id }, kind, table))
}

/// The error of an operation that a role does not allow.
fn denial(
    txn: &Transaction<'_>,
    Identity { role, client_id }: Identity<'_>,
    kind: OperationKind,
    table: TableId,
) -> WireError {
    let action = kind.action().unwrap_or(kind.name());
    let client_id = client_id.unwrap_or("(null)");
    let table = &txn.table_schema(table).name;
    WireError::new(
        Tag::PermissionError,
        format!(
            "RBAC rules for client \"{client_id}\" role \"{role}\" prohibit {action} table \"{table}\"."
        ),
    )
}

/// The row with a role's permissions for a table.
struct Permission<'t> {
    schema: &'t TableSchema,
    row: &'t Row,
    /// The table that the permissions apply to.
    target: &'t TableSchema,
}

impl<'t> Permission<'t> {
    fn find(
        txn: &'t Transaction<'_>,
        roles: TableId,
        role: &str,
        table: TableId,
    ) -> Option<Permission<'t>> {
        let target = txn.table_schema(table);
        let schema = txn.table_schema(roles);
        let row = find_role(txn, roles, role)?;
        let column = schema.column_id("permissions")?;
        let reference = {
            let column_type = &schema.column(column).column_type;
            let value = column_type.value.as_ref()?;
            value.reference.as_ref()?
        };
        let uuid = own_column(row, column)?
            .get(AtomRef::String(&target.name))?
            .as_uuid()?;
        Some(Permission {
            schema: txn.table_schema(reference.table),
            row: txn.table(reference.table).get(uuid)?,
            target,
        })
    }

    fn allows<'r>(
        &self,
        access: &Access,
        client_id: &str,
        mut rows: impl Iterator<Item = &'r Row>,
    ) -> bool {
        match access {
            // Checks that do not depend on rows are made even if no row matches: an operation that
            // the role lacks is always refused.
            Access::Rows => {
                self.may_insert_and_delete() && rows.all(|row| self.authorizes(row, client_id))
            }
            Access::Columns(columns) => {
                let Some(listed) = self.strings("update") else {
                    return false;
                };
                let is_listed = |column: &ColumnId| {
                    listed.contains(AtomRef::String(&self.target.column(*column).name))
                };
                columns.iter().all(is_listed) && rows.all(|row| self.authorizes(row, client_id))
            }
        }
    }

    /// Whether some element of `authorization` authorizes the client: the empty string, a string
    /// column that holds the client's id, or `COLUMN:KEY`.
    fn authorizes(&self, row: &Row, client_id: &str) -> bool {
        let Some(rules) = self.strings("authorization") else {
            return false;
        };
        rules.keys().any(|rule| match rule.as_string() {
            Some("") => true,
            Some(rule) => self.rule_fits(rule, row, client_id).unwrap_or(false),
            None => false,
        })
    }

    fn rule_fits(&self, rule: &str, row: &Row, client_id: &str) -> Option<bool> {
        let (name, key) = match rule.split_once(':') {
            Some((name, key)) => (name, Some(key)),
            None => (rule, None),
        };
        let column = self.target.column_id(name)?;
        let column_type = &self.target.column(column).column_type;
        if column_type.key.atom != AtomType::String {
            return None;
        }
        let value_type = column_type.value.as_ref().map(|value| value.atom);
        let datum = own_column(row, column)?;
        let found = match (key, value_type) {
            (None, None) if column_type.max == 1 => datum.first(),
            (Some(key), Some(AtomType::String))
                if column_type.max == corvid_data::ColumnType::UNLIMITED =>
            {
                datum.get(AtomRef::String(&Str::new(key)))
            }
            _ => None,
        };
        Some(found?.as_string() == Some(client_id))
    }

    fn may_insert_and_delete(&self) -> bool {
        let Some(column) = self.schema.column_id("insert_delete") else {
            return false;
        };
        let column_type = &self.schema.column(column).column_type;
        !column_type.is_map()
            && column_type.max == 1
            && own_column(self.row, column)
                .and_then(Datum::as_boolean)
                .unwrap_or(false)
    }

    /// A column of the permission row, if it is a set of any number of strings.
    fn strings(&self, name: &str) -> Option<&'t Datum> {
        let column = self.schema.column_id(name)?;
        let column_type = &self.schema.column(column).column_type;
        let is_fit = !column_type.is_map()
            && column_type.key.atom == AtomType::String
            && column_type.max == corvid_data::ColumnType::UNLIMITED;
        is_fit.then(|| own_column(self.row, column))?
    }
}

fn find_role<'t>(txn: &'t Transaction<'_>, roles: TableId, role: &str) -> Option<&'t Row> {
    let schema = txn.table_schema(roles);
    let column = schema.column_id("name")?;
    if schema.column(column).column_type.key.atom != AtomType::String {
        return None;
    }
    let is_role = Clause::Compare {
        column,
        function: Function::Equal,
        argument: Datum::one(corvid_data::Atom::String(Str::new(role))),
    };
    let condition = Condition::new(vec![is_role], txn.database.seed);
    let table = txn.table(roles);
    // There are few roles.
    let found = lookup::matching_all(table, &condition, &mut WorkBudget::unlimited());
    let slot = *found.ok()?.first()?;
    Some(table.at(slot))
}

/// A column that is not a standard one.
fn own_column(row: &Row, column: ColumnId) -> Option<&Datum> {
    row.columns.get(usize::from(column.0))
}
