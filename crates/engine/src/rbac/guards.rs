//! Guards: `wait` operations that make a transaction fail wherever a role does not allow it, on a
//! server that does not check the role.
//!
//! A relay checks its clients' roles on its own rows. Its source executes the transaction on newer
//! rows, and a source of another implementation checks only the relay's session. So the transaction
//! itself states what it relies on. Guards precede each operation that a role restricts. They are
//! waits with a time limit of zero, and read what the operation is about to change:
//!
//! | Guard | Fails if |
//! |---|---|
//! | the role's entry for the table, once per table | the entry names other permissions now |
//! | the row of permissions, once per table | the permissions have changed |
//! | no row matches `where` that the client is not authorized for | such a row exists |
//!
//! The last guard is not for `insert`, whose new row is the same everywhere.
//!
//! Invariant: the role allows every transaction that passes its guards. A transaction that the role
//! allows may fail if its own operations change the rules.

use std::collections::BTreeSet;

use corvid_data::wire::write_datum;
use corvid_data::{AtomType, ColumnType, Datum, TableId, Tag, WireError};
use corvid_json::{Reader, write};

use super::{Permission, denial, own_column};
use crate::context::Identity;
use crate::database::Database;
use crate::operation::OperationKind;
use crate::transaction::Transaction;

/// A transaction with its guards.
#[derive(Debug)]
pub struct GuardedTransaction {
    /// The `params` array.
    pub params: Vec<u8>,
    /// The guards, in the order of the operations.
    pub guards: Vec<OperationGuard>,
}

/// A guard.
#[derive(Debug)]
pub struct OperationGuard {
    /// The guard's position among all operations, guards included, from zero.
    pub at: usize,
    /// The error of the operation that follows, to report if the guard fails.
    pub error: WireError,
}

impl Database {
    /// Returns the transaction with guards for all of these roles, made from the rules in this
    /// database. `None` if it needs no guards. The caller must have executed the transaction on
    /// this database under the same roles, without an error of an operation.
    ///
    /// # Errors
    /// An operation that a role does not allow, or that cannot be guarded.
    pub fn guarded(
        &mut self,
        params: &[u8],
        identities: &[Identity<'_>],
    ) -> Result<Option<GuardedTransaction>, WireError> {
        let txn = Transaction::begin(self);
        let guarding = Guarding {
            txn: &txn,
            out: b"[".to_vec(),
            written: 0,
            guards: Vec::new(),
            rules: BTreeSet::new(),
        };
        let guarded = guarding.guard(params, identities);
        txn.rollback();
        guarded
    }
}

struct Guarding<'t, 'd> {
    txn: &'t Transaction<'d>,
    out: Vec<u8>,
    /// Number of operations in `out`.
    written: usize,
    guards: Vec<OperationGuard>,
    /// The roles and tables whose rules have guards.
    rules: BTreeSet<(String, TableId)>,
}

/// The members of an operation that a guard needs.
#[derive(Default)]
struct Restricted<'a> {
    operation: Vec<u8>,
    table: Option<String>,
    condition: Option<&'a [u8]>,
}

impl Guarding<'_, '_> {
    fn guard(
        mut self,
        params: &[u8],
        identities: &[Identity<'_>],
    ) -> Result<Option<GuardedTransaction>, WireError> {
        let Some(roles) = self.txn.schema().table_id("RBAC_Role") else {
            return Ok(None);
        };
        let unreadable = |_| unguarded("the transaction cannot be read");
        let mut reader = Reader::trusted(params);
        reader.begin_array().map_err(unreadable)?;
        // The first element is the name of the database.
        let mut is_name = true;
        while reader.next_element().map_err(unreadable)? {
            let element = reader.skip().map_err(unreadable)?;
            if std::mem::take(&mut is_name) {
                self.out.extend_from_slice(element);
                continue;
            }
            let operation = Restricted::of(element)?;
            for identity in identities.iter().filter(|it| !it.role.is_empty()) {
                self.guard_operation(roles, &operation, *identity)?;
            }
            self.push(element);
        }
        self.out.push(b']');
        Ok((!self.guards.is_empty()).then_some(GuardedTransaction {
            params: self.out,
            guards: self.guards,
        }))
    }

    fn guard_operation(
        &mut self,
        roles: TableId,
        operation: &Restricted<'_>,
        identity: Identity<'_>,
    ) -> Result<(), WireError> {
        let kind = OperationKind::of(&operation.operation);
        let Some(kind) = kind.filter(|kind| kind.action().is_some()) else {
            return Ok(());
        };
        let name = operation.table.as_deref().unwrap_or_default();
        let table = self.txn.schema().table_id(name);
        let table = table.ok_or_else(|| unguarded("the table is not known"))?;
        let error = denial(self.txn, identity, kind, table);
        let permission = Permission::find(self.txn, roles, identity.role, table);
        let (Some(permission), Some(client_id)) = (permission, identity.client_id) else {
            return Err(error);
        };
        // The rules are guarded once: the following operations rely on the same guards.
        if self.rules.insert((identity.role.to_owned(), table)) {
            self.push_guard(&role_guard(identity.role, &permission), &error);
            self.push_guard(&permission_guard(&permission), &error);
        }
        if kind != OperationKind::Insert
            && let Some(foreign) = foreign_rows(&permission, client_id)
        {
            let condition = operation.condition.unwrap_or(b"[]");
            let guard = rows_guard(name, condition, &foreign);
            self.push_guard(&guard, &error);
        }
        Ok(())
    }

    fn push_guard(&mut self, guard: &[u8], error: &WireError) {
        self.guards.push(OperationGuard {
            at: self.written,
            error: error.clone(),
        });
        self.push(guard);
    }

    fn push(&mut self, operation: &[u8]) {
        self.out.push(b',');
        self.out.extend_from_slice(operation);
        self.written += 1;
    }
}

impl<'a> Restricted<'a> {
    /// Parses an operation. An operation that repeats a member is refused: servers differ in which
    /// one counts, and a guard must read what the operation reads.
    fn of(element: &'a [u8]) -> Result<Restricted<'a>, WireError> {
        let unreadable = |_| unguarded("an operation cannot be read");
        let mut operation = Restricted::default();
        let mut names = BTreeSet::new();
        let mut reader = Reader::trusted(element);
        reader.begin_object().map_err(unreadable)?;
        while let Some(name) = reader.next_member().map_err(unreadable)? {
            let value = reader.skip().map_err(unreadable)?;
            let text = || Reader::trusted(value).string().ok();
            match &*name {
                b"op" => operation.operation = text().unwrap_or_default().into_owned(),
                b"table" => {
                    let table = text().unwrap_or_default().into_owned();
                    operation.table = String::from_utf8(table).ok();
                }
                b"where" => operation.condition = Some(value),
                _ => {}
            }
            if !names.insert(name.into_owned()) {
                return Err(unguarded("an operation names a member twice"));
            }
        }
        Ok(operation)
    }
}

/// The error of a transaction that cannot be guarded.
fn unguarded(why: &str) -> WireError {
    let details = format!("access control at a relay: {why}");
    WireError::new(Tag::NotSupported, details)
}

/// Begins a `wait` on a table, up to its conditions.
fn begin(table: &str) -> Vec<u8> {
    let mut out = br#"{"op":"wait","timeout":0,"until":"==","table":"#.to_vec();
    write::string(&mut out, table.as_bytes());
    out.extend_from_slice(br#","where":["#);
    out
}

/// Guard: the role's entry for the table names this row of permissions.
fn role_guard(role: &str, permission: &Permission<'_>) -> Vec<u8> {
    let mut out = begin("RBAC_Role");
    out.extend_from_slice(br#"["name","==","#);
    write::string(&mut out, role.as_bytes());
    out.extend_from_slice(br#"],["permissions","includes",["map",[["#);
    write::string(&mut out, permission.target.name.as_bytes());
    out.extend_from_slice(br#",["uuid",""#);
    out.extend_from_slice(&permission.row.uuid.to_text());
    out.extend_from_slice(br#""]]]]]],"columns":["name"],"rows":[{"name":"#);
    write::string(&mut out, role.as_bytes());
    out.extend_from_slice(b"}]}");
    out
}

/// Guard: the row of permissions is unchanged.
fn permission_guard(permission: &Permission<'_>) -> Vec<u8> {
    let mut out = begin(&permission.schema.name);
    out.extend_from_slice(br#"["_uuid","==",["uuid",""#);
    out.extend_from_slice(&permission.row.uuid.to_text());
    out.extend_from_slice(br#""]]],"columns":["#);
    let mut row = Vec::new();
    for name in ["authorization", "insert_delete", "update"] {
        let Some(column) = permission.schema.column_id(name) else {
            continue;
        };
        let Some(datum) = own_column(permission.row, column) else {
            continue;
        };
        if !row.is_empty() {
            out.push(b',');
            row.push(b',');
        }
        write::string(&mut out, name.as_bytes());
        write::string(&mut row, name.as_bytes());
        row.push(b':');
        let is_map = permission.schema.column(column).column_type.is_map();
        write_datum(&mut row, datum, is_map);
    }
    out.extend_from_slice(br#"],"rows":[{"#);
    out.extend_from_slice(&row);
    out.extend_from_slice(b"}]}");
    out
}

/// Guard: no row matches the condition and these clauses.
fn rows_guard(table: &str, condition: &[u8], clauses: &[u8]) -> Vec<u8> {
    let mut out = begin(table);
    let inner = condition.trim_ascii();
    let inner = inner
        .strip_prefix(b"[")
        .and_then(|it| it.strip_suffix(b"]"));
    let inner = inner.unwrap_or_default().trim_ascii();
    out.extend_from_slice(inner);
    if !inner.is_empty() && !clauses.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(clauses);
    out.extend_from_slice(br#"],"columns":["_uuid"],"rows":[]}"#);
    out
}

/// Clauses that match the rows for which the client is not authorized; `None` if it is authorized
/// for all.
fn foreign_rows(permission: &Permission<'_>, client_id: &str) -> Option<Vec<u8>> {
    // One rule that fits is enough to authorize, so a row is foreign only if no rule fits. The
    // clauses of a `where` are joined in the same way: all of them must hold.
    let mut out = Vec::new();
    let rules = permission.strings("authorization");
    for rule in rules.into_iter().flat_map(Datum::keys) {
        let rule = rule.as_string().unwrap_or_default();
        if rule.is_empty() {
            return None;
        }
        let (name, key) = match rule.split_once(':') {
            Some((name, key)) => (name, Some(key)),
            None => (rule, None),
        };
        // A rule that fits no column authorizes no row.
        let Some(column) = permission.target.column_id(name) else {
            continue;
        };
        let column_type = &permission.target.column(column).column_type;
        let value = column_type.value.as_ref().map(|value| value.atom);
        let is_text = column_type.key.atom == AtomType::String;
        let mut clause = b"[".to_vec();
        write::string(&mut clause, name.as_bytes());
        match (key, value) {
            (None, None) if is_text && column_type.max == 1 => {
                clause.extend_from_slice(br#","!=","#);
                write::string(&mut clause, client_id.as_bytes());
                clause.push(b']');
            }
            (Some(key), Some(AtomType::String))
                if is_text && column_type.max == ColumnType::UNLIMITED =>
            {
                clause.extend_from_slice(br#","excludes",["map",[["#);
                write::string(&mut clause, key.as_bytes());
                clause.push(b',');
                write::string(&mut clause, client_id.as_bytes());
                clause.extend_from_slice(b"]]]]");
            }
            _ => continue,
        }
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(&clause);
    }
    Some(out)
}
