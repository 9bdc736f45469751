//! Operations of the model, one function each (docs/spec/protocol.md 5.1 to 5.11).

use std::collections::{BTreeMap, BTreeSet};

use corvid_data::Uuid;
use corvid_json::{Object, Value};

use super::atom::Atom;
use super::condition::{self, Clause};
use super::datum::{Datum, is_id};
use super::fault::{Fault, Faults};
use super::members::{Members, Shape};
use super::mutation::Mutation;
use super::schema::{Schema, Table};
use super::{Model, Request, Row, Tables};

/// The reason why an operation has no result.
pub(super) enum Failure {
    Faults(Faults),
    Blocked,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Failure {
        Failure::Faults(vec![fault])
    }
}

impl From<Faults> for Failure {
    fn from(faults: Faults) -> Failure {
        Failure::Faults(faults)
    }
}

/// A transaction in progress.
pub(super) struct Execution<'e> {
    schema: Schema,
    before: Tables,
    /// The rows after the operations so far.
    pub(super) tables: Tables,
    request: &'e Request<'e>,
    names: BTreeMap<String, Uuid>,
    /// For each operation, the UUID of the row that it inserts if it is an `insert`.
    identities: Vec<Uuid>,
    inserted_names: BTreeSet<String>,
    versions: Vec<Datum>,
    invented: u32,
    /// The smallest time-out of the waits so far, in milliseconds.
    pub(super) deadline_ms: Option<u64>,
}

impl<'e> Execution<'e> {
    /// Starts a transaction. All names of inserts are bound at once, so that an operation may name
    /// a row that a later operation inserts.
    pub(super) fn new(model: &mut Model, request: &'e Request<'e>) -> Execution<'e> {
        let mut names = BTreeMap::new();
        let mut identities = Vec::new();
        for (position, operation) in request.operations.iter().enumerate() {
            let known = request.identities.get(position).copied().flatten();
            let given = operation.get("uuid").and_then(Value::as_str);
            let given = given.and_then(|text| Uuid::parse(text.as_bytes()));
            let identity = given.or(known).unwrap_or(stand_in(position));
            let name = operation.get("uuid-name").and_then(Value::as_str);
            if let Some(name) = name.filter(|name| is_id(name)) {
                names.entry(name.to_owned()).or_insert(identity);
            }
            identities.push(identity);
        }
        Execution {
            schema: model.schema.clone(),
            before: model.tables.clone(),
            tables: model.tables.clone(),
            names,
            identities,
            inserted_names: BTreeSet::new(),
            versions: request
                .operations
                .iter()
                .map(|_| model.fresh_version())
                .collect(),
            invented: 0,
            request,
            deadline_ms: None,
        }
    }

    pub(super) fn run(&mut self, position: usize, operation: &Value) -> Result<Value, Failure> {
        let count = self.request.operations.len();
        let what = format!("ovsdb operation {} of {count}", position + 1);
        let mut members = Members::new(what, operation)?;
        let op = members.required("op", Shape::Id)?.as_str().expect("an id");
        let result = match op {
            "insert" => self.insert(position, &mut members),
            "select" => self.select(&mut members),
            "update" => self.update(&mut members),
            "mutate" => self.mutate(&mut members),
            "delete" => self.delete(&mut members),
            "wait" => self.wait(&mut members),
            _ => self.without_table(op, &mut members),
        }?;
        let is_writing = matches!(op, "insert" | "update" | "mutate" | "delete" | "commit");
        if is_writing && self.request.is_read_only {
            let details =
                format!("{op} operation not allowed when database server is in read only mode");
            return Err(Fault::new("not allowed", details).into());
        }
        Ok(result)
    }

    fn table(&self, members: &mut Members<'_>) -> Result<(String, Table), Fault> {
        let name = members
            .required("table", Shape::Id)?
            .as_str()
            .expect("an id");
        match self.schema.tables.get(name) {
            Some(table) => Ok((name.to_owned(), table.clone())),
            None => Err(members.fault(&format!("No table named {name}."))),
        }
    }

    /// Returns the UUID of a name. A name that no operation inserts gets an unused UUID.
    fn resolve(&mut self, name: &str) -> Uuid {
        self.invented += 1;
        let mut invented = [0xee; 16];
        invented[..4].copy_from_slice(&self.invented.to_be_bytes());
        *self.names.entry(name.to_owned()).or_insert(Uuid(invented))
    }

    fn read_condition(
        &mut self,
        name: &str,
        table: &Table,
        json: &Value,
    ) -> Result<Vec<Clause>, Fault> {
        condition::read(name, table, json, &mut |name| Some(self.resolve(name)))
    }

    fn matching(&self, table: &str, clauses: &[Clause]) -> Vec<Uuid> {
        let rows = self.tables[table].iter();
        let rows = rows.filter(|(_, row)| clauses.iter().all(|clause| clause.holds(row)));
        rows.map(|(uuid, _)| *uuid).collect()
    }

    /// Parses a row object. Returns the error of every faulty member, because any one may be
    /// reported.
    fn read_row(&mut self, name: &str, table: &Table, json: &Value) -> Result<Row, Faults> {
        let mut row = Row::new();
        let mut faults = Faults::new();
        for (column, value) in json.as_object().expect("an object, as was checked") {
            let column = column.to_string();
            let Some(ty) = table.ty(&column) else {
                let details = format!("No column {column} in table {name}.");
                faults.push(Fault::new("unknown column", details).about(json));
                continue;
            };
            match Datum::read(&ty, value, &mut |name| Some(self.resolve(name))) {
                Ok(datum) => drop(row.insert(column, datum)),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() {
            Ok(row)
        } else {
            Err(faults)
        }
    }

    fn insert(&mut self, position: usize, members: &mut Members<'_>) -> Result<Value, Failure> {
        let (name, table) = self.table(members)?;
        let uuid = members.optional("uuid", Shape::String)?;
        let uuid_name = members.optional("uuid-name", Shape::Id)?;
        let row = members.required("row", Shape::Object)?;
        members.finish()?;

        if let Some(json) = uuid {
            let Some(uuid) = json.as_str().and_then(|text| Uuid::parse(text.as_bytes())) else {
                return Err(Fault::syntax(json, "bad uuid").into());
            };
            if self.tables[&name].contains_key(&uuid) || self.before[&name].contains_key(&uuid) {
                let details = format!(
                    "This UUID would duplicate a UUID already present within the \"{name}\" table or deleted from this table within the same transaction."
                );
                return Err(Fault::new("duplicate uuid", details).about(json).into());
            }
        }
        if let Some(json) = uuid_name {
            let text = json.as_str().expect("an id");
            if !self.inserted_names.insert(text.to_owned()) {
                let details = "This \"uuid-name\" appeared on an earlier \"insert\" operation.";
                return Err(Fault::new("duplicate uuid-name", details)
                    .about(json)
                    .into());
            }
        }
        let identity = self.identities[position];
        let given = self.read_row(&name, &table, row)?;
        let mut row: Row = table
            .columns
            .iter()
            .map(|(name, column)| (name.clone(), column.ty.default()))
            .collect();
        row.extend(given);
        let mut faults = Faults::new();
        for (name, column) in &table.columns {
            if row[name].len() == 1 {
                faults.extend(row[name].check(&column.ty).err());
            }
        }
        if !faults.is_empty() {
            return Err(faults.into());
        }
        row.insert("_uuid".to_owned(), Datum::scalar(Atom::Uuid(identity)));
        row.insert("_version".to_owned(), self.versions[position].clone());
        self.tables
            .get_mut(&name)
            .expect("its table")
            .insert(identity, row);
        Ok(object("uuid", Atom::Uuid(identity).to_json()))
    }

    /// Parses an array of column names; without one, all columns are meant.
    fn read_columns(table: &Table, json: Option<&Value>) -> Result<Vec<String>, Fault> {
        let Some(json) = json else {
            return Ok(table.column_names());
        };
        let mut columns = Vec::new();
        for element in json.as_array().expect("an array, as was checked") {
            let distinct = || Fault::syntax(json, "array of distinct column names expected");
            let name = element.as_str().ok_or_else(distinct)?;
            if table.ty(name).is_none() {
                return Err(Fault::syntax(
                    json,
                    format!("{name} is not a valid column name"),
                ));
            }
            if columns.iter().any(|column| column == name) {
                return Err(distinct());
            }
            columns.push(name.to_owned());
        }
        Ok(columns)
    }

    fn select(&mut self, members: &mut Members<'_>) -> Result<Value, Failure> {
        let (name, table) = self.table(members)?;
        let clauses = members.required("where", Shape::Array)?;
        let columns = members.optional("columns", Shape::Array)?;
        let sort = members.optional("sort", Shape::Array)?;
        members.finish()?;
        let clauses = self.read_condition(&name, &table, clauses)?;
        let columns = Execution::read_columns(&table, columns)?;
        let sort = match sort {
            Some(_) => Execution::read_columns(&table, sort)?,
            None => Vec::new(),
        };
        let uuids = self.matching(&name, &clauses);
        let mut rows: Vec<&Row> = uuids.iter().map(|uuid| &self.tables[&name][uuid]).collect();
        rows.sort_by_key(|row| sort.iter().map(|column| &row[column]).collect::<Vec<_>>());
        let mut seen = BTreeSet::new();
        if !columns.iter().any(|column| column == "_uuid") {
            rows.retain(|row| {
                seen.insert(
                    columns
                        .iter()
                        .map(|column| &row[column])
                        .collect::<Vec<_>>(),
                )
            });
        }
        let rows = rows
            .into_iter()
            .map(|row| row_json(&table, row, &columns))
            .collect();
        Ok(object("rows", Value::Array(rows)))
    }

    fn update(&mut self, members: &mut Members<'_>) -> Result<Value, Failure> {
        let (name, table) = self.table(members)?;
        let clauses = members.required("where", Shape::Array)?;
        let row = members.required("row", Shape::Object)?;
        members.finish()?;
        let given = self.read_row(&name, &table, row)?;
        let immutable: Faults = given
            .keys()
            .filter(|column| !table.is_mutable(column))
            .map(|column| {
                let details = format!("Cannot update immutable column {column} in table {name}.");
                Fault::constraint(details).about(members.whole)
            })
            .collect();
        if !immutable.is_empty() {
            return Err(immutable.into());
        }
        let clauses = self.read_condition(&name, &table, clauses)?;
        let uuids = self.matching(&name, &clauses);
        for uuid in &uuids {
            self.row_mut(&name, *uuid).extend(given.clone());
        }
        Ok(count(uuids.len()))
    }

    fn row_mut(&mut self, table: &str, uuid: Uuid) -> &mut Row {
        let rows = self.tables.get_mut(table).expect("its table");
        rows.get_mut(&uuid).expect("its row")
    }

    fn mutate(&mut self, members: &mut Members<'_>) -> Result<Value, Failure> {
        let (name, table) = self.table(members)?;
        let clauses = members.required("where", Shape::Array)?;
        let mutations = members.required("mutations", Shape::Array)?;
        members.finish()?;
        let mut read = Vec::new();
        for json in mutations.as_array().expect("an array") {
            read.push(Mutation::read(&name, &table, json, &mut |name| {
                Some(self.resolve(name))
            })?);
        }
        let clauses = self.read_condition(&name, &table, clauses)?;
        let uuids = self.matching(&name, &clauses);
        let mut faults = Faults::new();
        for uuid in &uuids {
            let row = self.row_mut(&name, *uuid);
            for mutation in &read {
                match mutation.apply(&row[&mutation.column]) {
                    Ok(datum) => drop(row.insert(mutation.column.clone(), datum)),
                    Err(fault) => {
                        faults.push(fault);
                        break;
                    }
                }
            }
        }
        if !faults.is_empty() {
            return Err(faults.into());
        }
        Ok(count(uuids.len()))
    }

    fn delete(&mut self, members: &mut Members<'_>) -> Result<Value, Failure> {
        let clauses = members.required("where", Shape::Array)?;
        let (name, table) = self.table(members)?;
        members.finish()?;
        let clauses = self.read_condition(&name, &table, clauses)?;
        let uuids = self.matching(&name, &clauses);
        let rows = self.tables.get_mut(&name).expect("its table");
        for uuid in &uuids {
            rows.remove(uuid);
        }
        Ok(count(uuids.len()))
    }

    fn wait(&mut self, members: &mut Members<'_>) -> Result<Value, Failure> {
        let timeout = members.optional("timeout", Shape::Integer)?;
        let clauses = members.required("where", Shape::Array)?;
        let columns = members.optional("columns", Shape::Array)?;
        let until = members.required("until", Shape::String)?;
        let rows = members.required("rows", Shape::Array)?;
        let (name, table) = self.table(members)?;
        members.finish()?;
        let clauses = self.read_condition(&name, &table, clauses)?;
        let columns = Execution::read_columns(&table, columns)?;
        let timeout_ms = match timeout {
            None => None,
            Some(json) => {
                let timeout = u64::try_from(json.as_integer().expect("an integer"));
                Some(timeout.map_err(|_| Fault::syntax(json, "timeout must be nonnegative"))?)
            }
        };
        let wants_equal = match until.as_str() {
            Some("==") => true,
            Some("!=") => false,
            _ => return Err(Fault::syntax(until, "\"until\" must be \"==\" or \"!=\"").into()),
        };
        let mut expected = BTreeSet::new();
        for json in rows.as_array().expect("an array") {
            if json.as_object().is_none() {
                return Err(Fault::syntax(json, "row must be JSON object").into());
            }
            let row = self.read_row(&name, &table, json)?;
            let datum = |column: &String| {
                let default = || table.ty(column).expect("a column").default();
                row.get(column).cloned().unwrap_or_else(default)
            };
            expected.insert(columns.iter().map(datum).collect::<Vec<_>>());
        }
        let actual = self.matching(&name, &clauses).into_iter().map(|uuid| {
            let row = &self.tables[&name][&uuid];
            columns
                .iter()
                .map(|column| row[column].clone())
                .collect::<Vec<_>>()
        });
        let actual: BTreeSet<_> = actual.collect();
        if let Some(timeout_ms) = timeout_ms {
            self.deadline_ms = Some(
                self.deadline_ms
                    .map_or(timeout_ms, |known| known.min(timeout_ms)),
            );
        }
        match ((actual == expected) == wants_equal, timeout_ms) {
            (true, _) => Ok(Value::Object(Object::new())),
            (false, Some(0)) => Err(Fault::new("timed out", "\"where\" clause test failed").into()),
            (false, _) => Err(Failure::Blocked),
        }
    }

    fn without_table(&mut self, op: &str, members: &mut Members<'_>) -> Result<Value, Failure> {
        let mut fault = None;
        match op {
            "commit" => drop(members.required("durable", Shape::Boolean)?),
            "abort" => fault = Some(Fault::new("aborted", "aborted by request")),
            "comment" => drop(members.required("comment", Shape::String)?),
            "assert" => {
                let lock = members
                    .required("lock", Shape::Id)?
                    .as_str()
                    .expect("an id");
                if !self.request.locks.contains(&lock) {
                    fault = Some(Fault::new(
                        "not owner",
                        format!("Asserted lock {lock} not held."),
                    ));
                }
            }
            _ => return Err(members.fault(&format!("No operation \"{op}\"")).into()),
        }
        members.finish()?;
        match fault {
            Some(fault) => Err(fault.into()),
            None => Ok(Value::Object(Object::new())),
        }
    }
}

/// Returns the UUID of a row that no result reports, because the transaction fails or waits.
fn stand_in(position: usize) -> Uuid {
    let mut bytes = [0xdd; 16];
    bytes[0] = position as u8;
    Uuid(bytes)
}

/// Returns the given columns of a row as a JSON object.
pub(super) fn row_json(table: &Table, row: &Row, columns: &[String]) -> Value {
    let member = |column: &String| {
        let ty = table.ty(column).expect("a column");
        (column.as_str().into(), row[column].to_json(&ty))
    };
    Value::Object(columns.iter().map(member).collect())
}

fn object(name: &str, value: Value) -> Value {
    Value::Object(Object::from([(name.into(), value)]))
}

fn count(count: usize) -> Value {
    object("count", Value::Integer(count as i64))
}
