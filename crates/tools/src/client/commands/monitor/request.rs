//! The monitor request for one table, built from the column groups on the command line.

use std::rc::Rc;

use bstr::BString;
use corvid_data::{AtomType, ColumnType, TableSchema};
use corvid_json::{Object, Value};

/// The kinds of rows that a group can exclude with `!KIND`.
const KINDS: [&str; 4] = ["initial", "insert", "delete", "modify"];

/// A monitored table.
#[derive(Debug)]
pub(crate) struct MonitoredTable {
    /// The table's name.
    pub name: String,
    /// The columns of all groups, in print order.
    pub columns: Vec<(String, Rc<ColumnType>)>,
    /// The array of monitor requests, one per group.
    pub requests: Value,
}

/// An error in the columns of a command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The column is not in the table.
    Unknown {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The column is named twice, or is named and also implied by a group without columns.
    Repeated(String),
}

impl Problem {
    /// The message, without the server's name.
    #[must_use]
    pub(crate) fn text(&self, database: &str) -> String {
        match self {
            Problem::Unknown { table, column } => {
                format!("table \"{table}\" in {database} does not have a column named \"{column}\"")
            }
            Problem::Repeated(column) => format!("column \"{column}\" mentioned multiple times"),
        }
    }
}

impl MonitoredTable {
    /// Parses the groups of a table. Each group is a comma-separated list; no group means one group
    /// of all columns. `condition` applies to every group.
    ///
    /// # Errors
    /// A column is unknown or repeated.
    pub(crate) fn new(
        table: &TableSchema,
        groups: &[String],
        condition: Option<&Value>,
    ) -> Result<MonitoredTable, Problem> {
        let mut monitored = MonitoredTable {
            name: table.name.to_string(),
            columns: Vec::new(),
            requests: Value::Null,
        };
        let every = [String::new()];
        let groups = if groups.is_empty() { &every } else { groups };
        let requests = groups
            .iter()
            .map(|group| monitored.group(table, group, condition))
            .collect::<Result<_, _>>()?;
        monitored.requests = Value::Array(requests);
        Ok(monitored)
    }

    fn group(
        &mut self,
        table: &TableSchema,
        group: &str,
        condition: Option<&Value>,
    ) -> Result<Value, Problem> {
        let mut selected = KINDS.map(|_| true);
        let first = self.columns.len();
        for word in group.split(',').filter(|word| !word.is_empty()) {
            let kind = word
                .strip_prefix('!')
                .and_then(|word| KINDS.iter().position(|kind| *kind == word));
            match kind {
                Some(kind) => selected[kind] = false,
                None => self.add(word, column_type(table, word)?)?,
            }
        }
        if self.columns.len() == first {
            for column in table.columns() {
                self.add(&column.name, Rc::new(column.column_type.clone()))?;
            }
            self.add("_version", Rc::new(ColumnType::scalar(AtomType::Uuid)))?;
        }
        let columns = self.columns[first..]
            .iter()
            .map(|(name, _)| Value::string(name))
            .collect();
        let mut request = Object::from([(BString::from("columns"), Value::Array(columns))]);
        if selected.contains(&false) {
            let select = KINDS
                .iter()
                .zip(selected)
                .map(|(kind, on)| (BString::from(*kind), Value::Bool(on)))
                .collect();
            request.insert("select".into(), Value::Object(select));
        }
        if let Some(condition) = condition {
            request.insert("where".into(), condition.clone());
        }
        Ok(Value::Object(request))
    }

    fn add(&mut self, name: &str, column_type: Rc<ColumnType>) -> Result<(), Problem> {
        if self.columns.iter().any(|(known, _)| known == name) {
            return Err(Problem::Repeated(name.to_owned()));
        }
        self.columns.push((name.to_owned(), column_type));
        Ok(())
    }
}

fn column_type(table: &TableSchema, name: &str) -> Result<Rc<ColumnType>, Problem> {
    let unknown = || Problem::Unknown {
        table: table.name.to_string(),
        column: name.to_owned(),
    };
    let id = table.column_id(name).ok_or_else(unknown)?;
    Ok(Rc::new(if id.is_standard() {
        ColumnType::scalar(AtomType::Uuid)
    } else {
        table.column(id).column_type.clone()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Schema;

    fn read(groups: &[&str], condition: Option<&str>) -> Result<(String, Vec<String>), Problem> {
        let schema = br#"{"name":"D","tables":{"T":{"columns":{"b":{"type":"integer"},"a":{"type":"string"}}}}}"#;
        let schema = Schema::from_json(&Value::parse(schema).unwrap()).unwrap();
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let condition = condition.map(|text| Value::parse(text.as_bytes()).unwrap());
        let table = MonitoredTable::new(&schema.tables()[0], &groups, condition.as_ref())?;
        Ok((
            table.requests.to_string(),
            table.columns.into_iter().map(|(name, _)| name).collect(),
        ))
    }

    #[test]
    fn no_group_means_all_columns_and_the_version_last() {
        let (requests, columns) = read(&[], Some("[true]")).unwrap();
        assert_eq!(
            requests,
            r#"[{"columns":["a","b","_version"],"where":[true]}]"#
        );
        assert_eq!(columns, ["a", "b", "_version"]);
        assert_eq!(read(&["!modify"], None).unwrap().1, ["a", "b", "_version"]);
    }

    #[test]
    fn each_group_selects_its_own_kinds() {
        let (requests, columns) = read(&["b,!initial", "_uuid,,a"], None).unwrap();
        let select = r#""select":{"delete":true,"initial":false,"insert":true,"modify":true}"#;
        assert_eq!(
            requests,
            format!(r#"[{{"columns":["b"],{select}}},{{"columns":["_uuid","a"]}}]"#)
        );
        assert_eq!(columns, ["b", "_uuid", "a"]);
    }

    #[test]
    fn unknown_and_repeated_columns_are_refused() {
        let problem = |groups: &[&str]| read(groups, None).unwrap_err().text("D");
        assert_eq!(
            problem(&["!x"]),
            "table \"T\" in D does not have a column named \"!x\""
        );
        assert_eq!(
            problem(&["a", "!delete"]),
            "column \"a\" mentioned multiple times"
        );
    }
}
