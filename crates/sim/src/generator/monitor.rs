//! Random monitor requests and changes of their conditions, all of them valid.

use corvid_json::{Object, Value};

use super::Generator;

fn strings(names: &[String]) -> Value {
    Value::Array(names.iter().map(Value::string).collect())
}

/// Returns requests for some tables, with conditions if the version of the method supports them.
pub(super) fn requests(generator: &mut Generator, is_v1: bool) -> Value {
    let names: Vec<String> = generator.schema.tables.keys().cloned().collect();
    let mut tables = Object::new();
    for (position, name) in names.iter().enumerate() {
        if position > 0 && !generator.dice.chance(70) {
            continue;
        }
        tables.insert(name.as_str().into(), generator.table_requests(name, is_v1));
    }
    Value::Object(tables)
}

/// Returns new conditions for some tables of a monitor.
pub(super) fn change(generator: &mut Generator, requests: &Value) -> Value {
    let mut tables = Object::new();
    for (name, requests) in requests.as_object().expect("an object") {
        let is_empty = requests.as_array().is_some_and(<[Value]>::is_empty);
        if generator.dice.chance(60) && !is_empty {
            let table = name.to_string();
            let columns = monitored(requests);
            let clauses = generator.clauses(&table, &columns);
            let request = Object::from([("where".into(), clauses)]);
            tables.insert(name.clone(), Value::Array(vec![Value::Object(request)]));
        }
    }
    Value::Object(tables)
}

/// Returns the columns that requests for a table name.
fn monitored(requests: &Value) -> Vec<String> {
    let lone = std::slice::from_ref(requests);
    let requests = requests.as_array().unwrap_or(lone);
    let columns = requests
        .iter()
        .filter_map(|request| request.get("columns")?.as_array())
        .flatten();
    columns
        .filter_map(|column| column.as_str().map(str::to_owned))
        .collect()
}

impl Generator {
    /// Returns one or several requests for a table, each with its own columns.
    fn table_requests(&mut self, name: &str, is_v1: bool) -> Value {
        if self.dice.chance(4) {
            return Value::Array(Vec::new());
        }
        let suits_reference = self.profile.suits_reference;
        let mut columns = self.schema.tables[name].column_names();
        // The reference confuses a monitor of version 1 with a monitor that has equal columns and a
        // condition on another column.
        columns.retain(|column| match column.as_str() {
            "_version" => is_v1 || !suits_reference,
            _ => true,
        });
        let count = if self.dice.chance(25) { 2 } else { 1 };
        let mut requests = vec![Vec::new(); count];
        for column in columns {
            let is_kept = suits_reference && is_v1 && column == "_version";
            if is_kept || self.dice.chance(75) {
                let request = self.dice.below(count);
                requests[request].push(column);
            }
        }
        let may_condition = !is_v1 && (count == 1 || !suits_reference);
        let requests: Vec<Value> = requests
            .into_iter()
            .map(|columns| self.request(name, &columns, may_condition, count == 1))
            .collect();
        if count == 1 && self.dice.chance(50) {
            requests[0].clone()
        } else {
            Value::Array(requests)
        }
    }

    fn request(
        &mut self,
        table: &str,
        columns: &[String],
        may_condition: bool,
        may_imply: bool,
    ) -> Value {
        let mut request = Object::new();
        if may_condition && self.dice.chance(60) {
            request.insert("where".into(), self.clauses(table, columns));
        }
        if !may_imply || self.profile.suits_reference || self.dice.chance(80) {
            request.insert("columns".into(), strings(columns));
        }
        if self.dice.chance(25) {
            let mut select = Object::new();
            for event in ["initial", "insert", "delete", "modify"] {
                if self.dice.chance(50) {
                    select.insert(event.into(), Value::Bool(self.dice.chance(50)));
                }
            }
            request.insert("select".into(), Value::Object(select));
        }
        Value::Object(request)
    }

    /// Returns valid clauses of a disjunction, without named rows.
    fn clauses(&mut self, table: &str, columns: &[String]) -> Value {
        let own: Vec<String> = columns
            .iter()
            .filter(|column| !column.starts_with('_'))
            .cloned()
            .collect();
        let mut clauses = Vec::new();
        let mut has_constant = false;
        for _ in 0..self.dice.below(4) {
            let column = if self.profile.suits_reference && !own.is_empty() {
                self.dice.pick(&own).clone()
            } else {
                self.column(table)
            };
            let clause = match self.dice.below(10) {
                0 => Value::Bool(self.dice.chance(30)),
                1 | 2
                    if !self.profile.suits_reference
                        || columns.iter().any(|column| column == "_uuid") =>
                {
                    let uuid = Value::Array(vec![
                        Value::string("uuid"),
                        Value::string(self.known_uuid(table)),
                    ]);
                    Value::Array(vec![Value::string("_uuid"), Value::string("=="), uuid])
                }
                _ if self.profile.suits_reference && own.is_empty() => Value::Bool(true),
                _ => self.clause_on(table, &column),
            };
            // More than one constant triggers an error in the reference.
            let is_constant = matches!(clause, Value::Bool(_));
            if is_constant && has_constant && self.profile.suits_reference {
                continue;
            }
            has_constant |= is_constant;
            let is_valid = {
                let mut names = corvid_model::datum::no_names;
                let table_schema = &self.schema.tables[table];
                let alone = Value::Array(vec![clause.clone()]);
                corvid_model::condition::read(table, table_schema, &alone, &mut names).is_ok()
            };
            if is_valid {
                clauses.push(clause);
            }
        }
        Value::Array(clauses)
    }
}
