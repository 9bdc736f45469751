//! The parameters of `monitor`, `monitor_cond` and `monitor_cond_since` (docs/spec/protocol.md
//! 4.5.2, 4.5.3, 4.9).
//!
//! Invariant: checks come in the order of docs/spec/protocol.md 4.5.2, and a request that fails
//! changes nothing. Called by `Monitors`. This file knows schemas and the ids in use, but no rows.

use std::sync::Arc as StdArc;

use corvid_data::{
    ColumnId, HashSeed, Kinds, Members, Schema, Subject, TableId, TableSchema, Tag, Uuid,
    WireError, members,
};
use corvid_engine::Condition;

use crate::Version;
use crate::condition::TableCondition;
use crate::params;
use crate::subscription::{Event, Select, SubscribedColumn, Subscription, TableSubscription};

/// A request to start a monitor.
#[derive(Debug)]
pub(crate) struct MonitorRequest {
    /// Canonical JSON.
    pub(crate) id: StdArc<[u8]>,
    /// The monitor's subscription.
    pub(crate) subscription: Subscription,
    /// The newest transaction that the client has; all zeros for none.
    pub(crate) last_txn: Uuid,
}

impl MonitorRequest {
    /// Parses the `params` of a request of `version`.
    ///
    /// # Errors
    /// Those of docs/spec/protocol.md 4.5.2, 4.5.3 and 4.9.
    pub(crate) fn parse(
        schema: &Schema,
        seed: HashSeed,
        version: Version,
        raw: &[u8],
        id_in_use: &dyn Fn(&[u8]) -> bool,
    ) -> Result<MonitorRequest, WireError> {
        let elements = params::elements(raw)?;
        let (id, requests, last_txn) = match (version, &*elements) {
            (Version::V1, [_, id, requests, ..]) | (Version::V2, [_, id, requests]) => {
                (*id, *requests, None)
            }
            (Version::V3, [_, id, requests, last_txn]) => (*id, *requests, Some(*last_txn)),
            _ => return Err(params::invalid(raw)),
        };
        let Some(by_table) = params::members(requests) else {
            return Err(WireError::syntax(
                requests,
                "monitor-requests must be object",
            ));
        };
        let id = params::canonical_id(id)?;
        if id_in_use(&id) {
            return Err(params::duplicate_id(&id));
        }
        let mut tables = Vec::with_capacity(by_table.len());
        for (name, raw) in by_table {
            let Some(table) = find_table(schema, &name) else {
                return Err(params::no_table(&name));
            };
            let requests = TableRequests::parse(schema.table(table), seed, version, raw)?;
            tables.push(requests.finish(table));
        }
        Ok(MonitorRequest {
            id,
            subscription: Subscription::new(tables),
            last_txn: last_txn.map_or(Ok(Uuid::ZERO), parse_txn)?,
        })
    }
}

/// Looks up a table by its name in a request.
pub(crate) fn find_table(schema: &Schema, name: &[u8]) -> Option<TableId> {
    schema.table_id(std::str::from_utf8(name).ok()?)
}

fn parse_txn(raw: &[u8]) -> Result<Uuid, WireError> {
    let Some(text) = members::string(raw) else {
        return Err(WireError::syntax(raw, "last-txn-id must be string"));
    };
    Uuid::parse(&text).ok_or_else(|| WireError::syntax(raw, "last-txn-id must be UUID format."))
}

/// The requests for one table that have been parsed so far.
#[derive(Debug)]
struct TableRequests {
    seed: HashSeed,
    select: Select,
    columns: Vec<SubscribedColumn>,
    conditions: Vec<Option<Condition>>,
}

impl TableRequests {
    /// Parses an array of requests, or a single one.
    fn parse(
        table: &TableSchema,
        seed: HashSeed,
        version: Version,
        raw: &[u8],
    ) -> Result<TableRequests, WireError> {
        let mut requests = TableRequests {
            seed,
            select: Select::default(),
            columns: Vec::new(),
            conditions: Vec::new(),
        };
        if params::is_array(raw) {
            for request in params::elements(raw)? {
                requests.add(table, version, request)?;
            }
        } else {
            requests.add(table, version, raw)?;
        }
        Ok(requests)
    }

    fn add(&mut self, table: &TableSchema, version: Version, raw: &[u8]) -> Result<(), WireError> {
        let mut members = Members::parse(Subject::Table(&table.name), raw)?;
        let condition = match version {
            Version::V1 => None,
            Version::V2 | Version::V3 => members.optional("where", Kinds::ARRAY)?,
        };
        let columns = members.optional("columns", Kinds::ARRAY)?;
        let select = members.optional("select", Kinds::OBJECT)?;
        members.finish()?;

        let select = select.map_or(Ok(Select::ALL), |raw| parse_select(table, raw))?;
        self.select = self.select.union(select);
        match columns {
            Some(raw) => self.add_named_columns(table, select, raw)?,
            None => self.add_all_columns(table, select)?,
        }
        let condition = condition.map(|raw| Condition::parse(table, raw, None, self.seed));
        self.conditions.push(condition.transpose()?);
        Ok(())
    }

    fn add_named_columns(
        &mut self,
        table: &TableSchema,
        select: Select,
        raw: &[u8],
    ) -> Result<(), WireError> {
        for element in params::elements(raw)? {
            let Some(name) = members::string(element) else {
                return Err(WireError::syntax(raw, "array of column names expected"));
            };
            let column = std::str::from_utf8(&name)
                .ok()
                .and_then(|name| table.column_id(name));
            let Some(column) = column else {
                let name = String::from_utf8_lossy(&name);
                let details = format!("{name} is not a valid column name");
                return Err(WireError::syntax(raw, details));
            };
            self.add_column(table, column, select)
                .map_err(|error| error.with_fragment(raw))?;
        }
        Ok(())
    }

    /// Adds the columns of a request without `columns`: all except `_uuid`.
    fn add_all_columns(&mut self, table: &TableSchema, select: Select) -> Result<(), WireError> {
        for (column, _) in table.iter() {
            self.add_column(table, column, select)?;
        }
        self.add_column(table, ColumnId::VERSION, select)
    }

    fn add_column(
        &mut self,
        table: &TableSchema,
        column: ColumnId,
        select: Select,
    ) -> Result<(), WireError> {
        if self.columns.iter().any(|known| known.column == column) {
            let name = &table.column(column).name;
            let details = format!("column {name} mentioned more than once");
            return Err(WireError::new(Tag::SyntaxError, details));
        }
        self.columns.push(SubscribedColumn { column, select });
        Ok(())
    }

    fn finish(self, table: TableId) -> TableSubscription {
        let condition = TableCondition::of_requests(self.conditions);
        TableSubscription::new(table, self.select, self.columns, condition)
    }
}

fn parse_select(table: &TableSchema, raw: &[u8]) -> Result<Select, WireError> {
    let mut members = Members::parse(Subject::TableSelect(&table.name), raw)?;
    let mut select = Select::ALL;
    for (name, event) in [
        ("initial", Event::Initial),
        ("insert", Event::Insert),
        ("delete", Event::Delete),
        ("modify", Event::Modify),
    ] {
        if let Some(raw) = members.optional(name, Kinds::BOOLEAN)? {
            select = select.with(event, members::boolean(raw).unwrap_or(true));
        }
    }
    members.finish()?;
    Ok(select)
}
