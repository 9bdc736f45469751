//! The condition that selects a table's rows for a client: a disjunction of clauses
//! (docs/spec/protocol.md 4.7, docs/spec/idl.md 1.13).
//!
//! Invariant: clauses are sorted and distinct, so equal conditions compare equal whatever the order
//! of their clauses. Here, no clauses select no rows; on the wire, an empty list selects all rows.

use std::borrow::Cow;
use std::collections::BTreeSet;

pub use corvid_data::Function;
use corvid_data::{ColumnSchema, Datum, Str, TableSchema, wire};
use corvid_json::{ArrayWriter, Reader, Value, write};

use crate::refused_clause::RefusedClause;

/// One clause: a column, a function and an argument.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clause {
    column: Str,
    /// `["COLUMN","FUNCTION",ARGUMENT]`; clauses are ordered by it.
    text: Box<[u8]>,
}

impl Clause {
    /// A clause. `is_map` decides whether an empty argument is written as a map or as a set.
    #[must_use]
    pub fn new(column: &str, function: Function, argument: &Datum, is_map: bool) -> Clause {
        let mut text = Vec::new();
        let mut array = ArrayWriter::new(&mut text);
        write::string(array.element(), column.as_bytes());
        write::string(array.element(), function.name().as_bytes());
        wire::write_datum(array.element(), argument, is_map);
        array.end();
        Clause {
            column: Str::new(column),
            text: text.into(),
        }
    }

    /// A clause from JSON; `None` if it is not an array of a column, a function and an argument.
    /// Whether a server would accept it is checked when the condition is set.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Clause> {
        let [column, Value::String(_), _] = json.as_array()? else {
            return None;
        };
        Some(Clause {
            column: Str::new(column.as_str()?),
            text: json.to_bytes().into(),
        })
    }

    /// The column that the clause tests.
    #[must_use]
    pub fn column(&self) -> &str {
        &self.column
    }

    /// The clause's column in a table; `None` if the table lacks it.
    fn column_in<'a>(&self, table: &'a TableSchema) -> Option<&'a ColumnSchema> {
        let id = table.column_id(&self.column)?;
        Some(table.column(id))
    }

    /// Judges the clause as a server does whose table has this column.
    fn judge(&self, column: &ColumnSchema) -> Result<(), RefusedClause> {
        let (name, argument) = self.parts().ok_or(RefusedClause::Malformed)?;
        let function =
            Function::from_name(&name).ok_or_else(|| RefusedClause::UnknownFunction {
                column: column.name.clone(),
                function: String::from_utf8_lossy(&name).into_owned(),
            })?;
        if !function.is_defined_for(&column.column_type) {
            return Err(RefusedClause::unordered(column, function.name()));
        }
        let argument = function.read_argument(&column.column_type, argument, None);
        argument.map(drop).map_err(|error| RefusedClause::Argument {
            column: column.name.clone(),
            error,
        })
    }

    /// The name of the function and the text of the argument.
    fn parts(&self) -> Option<(Cow<'_, [u8]>, &[u8])> {
        let mut reader = Reader::trusted(&self.text);
        reader.begin_array().ok()?;
        reader.next_element().ok()?.then_some(())?;
        reader.skip().ok()?;
        reader.next_element().ok()?.then_some(())?;
        let function = reader.string().ok()?;
        reader.next_element().ok()?.then_some(())?;
        Some((function, reader.skip().ok()?))
    }
}

/// The rows of a table that a client wants.
///
/// ```
/// use corvid_session::condition::{Clause, Condition, Function};
/// use corvid_data::{Atom, Datum};
///
/// let mut wanted = Condition::none();
/// assert_eq!(wanted.to_json(), b"[false]");
/// let one = Datum::one(Atom::Integer(1));
/// wanted.add(Clause::new("age", Function::GreaterOrEqual, &one, false));
/// assert_eq!(wanted.to_json(), br#"[["age",">=",1]]"#);
/// assert_eq!(Condition::all().to_json(), b"[true]");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// All rows.
    True,
    /// The rows for which at least one clause holds; none without clauses.
    AnyOf(BTreeSet<Clause>),
}

impl Default for Condition {
    /// All rows: the condition of a table for which none has been set.
    fn default() -> Condition {
        Condition::True
    }
}

impl Condition {
    /// All rows.
    #[must_use]
    pub fn all() -> Condition {
        Condition::True
    }

    /// No rows; start with this and add clauses.
    #[must_use]
    pub fn none() -> Condition {
        Condition::AnyOf(BTreeSet::new())
    }

    /// Whether all rows are selected.
    #[must_use]
    pub fn is_true(&self) -> bool {
        *self == Condition::True
    }

    /// Adds the rows for which `clause` holds; a no-op for a condition that selects all rows.
    pub fn add(&mut self, clause: Clause) {
        if let Condition::AnyOf(clauses) = self {
            clauses.insert(clause);
        }
    }

    /// A condition from JSON: an array of clauses and booleans. `false` adds nothing, `true`
    /// selects all rows, an empty array selects none. `None` for anything else.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Condition> {
        let mut condition = Condition::none();
        for element in json.as_array()? {
            match element {
                Value::Bool(true) => condition = Condition::True,
                Value::Bool(false) => {}
                clause => condition.add(Clause::from_json(clause)?),
            }
        }
        Some(condition)
    }

    /// The condition as a monitor request contains it.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Condition::True => out.extend_from_slice(b"[true]"),
            Condition::AnyOf(clauses) if clauses.is_empty() => out.extend_from_slice(b"[false]"),
            Condition::AnyOf(clauses) => {
                let mut array = ArrayWriter::new(&mut out);
                for clause in clauses {
                    array.element().extend_from_slice(&clause.text);
                }
                array.end();
            }
        }
        out
    }

    /// The part of the condition that a server with this table accepts. Drops clauses on columns
    /// that the table lacks or has with another type. If no clause is left, the condition selects
    /// no rows.
    #[must_use]
    pub fn restricted(&self, table: &TableSchema) -> Condition {
        let is_accepted = |clause: &Clause| {
            let column = clause.column_in(table);
            column.is_some_and(|column| clause.judge(column).is_ok())
        };
        match self {
            Condition::True => Condition::True,
            Condition::AnyOf(clauses) => {
                let accepted = clauses.iter().filter(|clause| is_accepted(clause));
                Condition::AnyOf(accepted.cloned().collect())
            }
        }
    }

    /// Judges the clauses as a server with this table does.
    ///
    /// # Errors
    /// The server would refuse a clause.
    pub fn check(&self, table: &TableSchema) -> Result<(), RefusedClause> {
        self.judged(Some(table), Some(table)).map(drop)
    }

    /// Judges each clause by the server's table if that has the column, otherwise by the client's
    /// own. Returns the part that the server can apply: all clauses if `server` is unknown,
    /// otherwise those on columns that it has.
    ///
    /// # Errors
    /// A server would refuse a clause; or neither the known server nor the client has its column.
    pub(crate) fn judged(
        &self,
        own: Option<&TableSchema>,
        server: Option<&TableSchema>,
    ) -> Result<Condition, RefusedClause> {
        let Condition::AnyOf(clauses) = self else {
            return Ok(Condition::True);
        };
        let mut kept = BTreeSet::new();
        for clause in clauses {
            let of_server = server.and_then(|table| clause.column_in(table));
            let of_own = own.and_then(|table| clause.column_in(table));
            match (of_server.or(of_own), server) {
                (Some(column), _) => clause.judge(column)?,
                (None, Some(table)) if own.is_some() => {
                    return Err(RefusedClause::UnknownColumn {
                        table: table.name.clone(),
                        column: clause.column.clone(),
                    });
                }
                // A later schema may have the column.
                (None, _) => {}
            }
            if of_server.is_some() || server.is_none() {
                kept.insert(clause.clone());
            }
        }
        Ok(Condition::AnyOf(kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corvid_data::Schema;

    fn condition(text: &str) -> Option<Condition> {
        Condition::from_json(&Value::parse(text.as_bytes()).unwrap())
    }

    #[test]
    fn order_and_repetition_do_not_matter() {
        let one = condition(r#"[["a","==",1],["b","<",2],["a","==",1]]"#).unwrap();
        let other = condition(r#"[["b","<",2],false,["a","==",1.0]]"#).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.to_json(), br#"[["a","==",1],["b","<",2]]"#);
    }

    #[test]
    fn true_swallows_clauses_and_nothing_means_no_rows() {
        assert_eq!(condition(r#"[["a","==",1],true]"#), Some(Condition::True));
        assert_eq!(condition("[]"), Some(Condition::none()));
        let mut all = Condition::all();
        all.add(Clause::new("a", Function::Equal, &Datum::empty(), false));
        assert!(all.is_true());
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for text in ["true", r#"["a"]"#, r#"[["a","=="]]"#, r#"[[1,"==",2]]"#] {
            assert_eq!(condition(text), None, "{text}");
        }
    }

    fn table(column_type: &str) -> TableSchema {
        let text = format!(
            r#"{{"name":"D","version":"1.0.0","tables":{{"T":{{"columns":{{"a":{{"type":{column_type}}}}}}}}}}}"#
        );
        let schema = Schema::from_json(&Value::parse(text.as_bytes()).unwrap()).unwrap();
        schema.tables()[0].clone()
    }

    #[test]
    fn clauses_are_judged_as_a_server_judges_them() {
        let (integer, string) = (table(r#""integer""#), table(r#""string""#));
        let optional = table(r#"{"key":"real","min":0,"max":1}"#);
        let set = table(r#"{"key":{"type":"string","enum":["set",["x","y"]]},"min":0,"max":2}"#);
        let map = table(r#"{"key":"string","value":"string","min":0,"max":"unlimited"}"#);
        let judged = |text: &str, table: &TableSchema| {
            let wanted = condition(text).unwrap().judged(Some(table), None);
            wanted.map(drop).map_err(|error| error.to_string())
        };
        for (text, table) in [
            (r#"[["a","<",1]]"#, &integer),
            (r#"[["a",">=",1.5]]"#, &optional),
            (r#"[["a","==",["set",[]]]]"#, &optional),
            (r#"[["a","excludes",["set",["x","y"]]]]"#, &set),
            (r#"[["a","includes",["map",[["k","v"]]]]]"#, &map),
            (
                r#"[["_uuid","==",["uuid","550e8400-e29b-41d4-a716-446655440000"]]]"#,
                &map,
            ),
        ] {
            assert_eq!(judged(text, table), Ok(()), "{text}");
        }
        let not_ordered =
            "Type mismatch: \"<\" operator may not be applied to column a of type string.";
        assert_eq!(
            judged(r#"[["a","<","x"]]"#, &string),
            Err(not_ordered.to_owned())
        );
        assert_eq!(
            judged(r#"[["a","like","x"]]"#, &string),
            Err("No function named like.".to_owned())
        );
        for (text, table) in [
            (r#"[["a","==","x"]]"#, &integer),
            (r#"[["a",">",["set",[]]]]"#, &optional),
            (r#"[["a","includes","z"]]"#, &set),
            (r#"[["a","includes","k"]]"#, &map),
            (r#"[["_uuid","==",["named-uuid","row"]]]"#, &map),
        ] {
            assert!(judged(text, table).is_err(), "{text}");
        }
    }

    #[test]
    fn the_servers_schema_decides_where_it_is_known() {
        let (own, server) = (table(r#""integer""#), table(r#""string""#));
        let wanted = condition(r#"[["a","==","x"]]"#).unwrap();
        assert!(wanted.judged(Some(&own), None).is_err());
        assert_eq!(wanted.judged(Some(&own), Some(&server)), Ok(wanted.clone()));
        assert_eq!(wanted.restricted(&own), Condition::none());
        let unknown = condition(r#"[["b","==","x"]]"#).unwrap();
        assert_eq!(unknown.judged(Some(&own), None), Ok(unknown.clone()));
        let error = unknown.judged(Some(&own), Some(&server)).unwrap_err();
        assert_eq!(error.to_string(), "No column b in table T.");
    }
}
