//! `wait` (docs/spec/protocol.md 5.7).

use corvid_data::members::{self, Kinds};
use corvid_data::{ColumnId, Datum, HashSeed, Row, TableId, Tag, Uuid, WireError};
use corvid_json::{Kind, Reader};

use super::{Executable, Source};
use crate::column_list::ColumnList;
use crate::distinct::Distinct;
use crate::execution::{Execution, Failure};
use crate::lookup;
use crate::row_input::{Given, read_row};

/// The members of a `wait`.
pub(crate) struct Wait<'a> {
    timeout: Option<&'a [u8]>,
    condition: &'a [u8],
    columns: Option<&'a [u8]>,
    until: &'a [u8],
    rows: &'a [u8],
    table: TableId,
}

impl<'a> Executable<'a> for Wait<'a> {
    fn parse(source: &mut Source<'a, '_>) -> Result<Wait<'a>, WireError> {
        Ok(Wait {
            timeout: source.optional("timeout", Kinds::INTEGER)?,
            condition: source.condition()?,
            columns: source.optional("columns", Kinds::ARRAY)?,
            until: source.required("until", Kinds::STRING)?,
            rows: source.required("rows", Kinds::ARRAY)?,
            table: source.table()?,
        })
    }

    fn execute(self, execution: &mut Execution<'_, '_>) -> Result<(), Failure> {
        let condition = execution.read_condition(self.table, self.condition)?;
        let schema = execution.txn.table_schema(self.table);
        let columns = match self.columns {
            Some(raw) => ColumnList::parse(schema, raw)?,
            None => ColumnList::all(schema),
        };
        let timeout_ms = self.timeout_ms()?;
        let wants_equal = self.wants_equal()?;
        let expected = self.expected(execution)?;
        let seed = execution.txn.database.seed;
        let table = execution.txn.table(self.table);
        let is_equal = if lookup::is_walk(table, &condition) {
            let steps = table.len() as u64;
            execution.txn.budget.spend(steps)?;
            execution.txn.database.count_walk(self.table, &condition);
            // Rows are compared during the walk and not collected first: the comparison ends at the
            // first row that is not expected.
            let rows = execution.txn.table(self.table).rows();
            let matching = rows.filter(|row| condition.holds_for(row));
            are_same_set(&columns, seed, &expected, matching.map(|row| &**row))
        } else {
            let slots = execution.matching(self.table, &condition)?;
            execution.spend_on(self.table, &slots, 0)?;
            are_same_set(
                &columns,
                seed,
                &expected,
                execution.rows(self.table, &slots),
            )
        };
        // Recorded even if this wait is satisfied: a later one may block, and then both are waited
        // for.
        execution.reads.add(self.table, Some(condition));
        if let Some(timeout_ms) = timeout_ms {
            let earliest_ms = execution.deadline_ms.unwrap_or(timeout_ms);
            execution.deadline_ms = Some(earliest_ms.min(timeout_ms));
        }
        if is_equal != wants_equal {
            return Err(unsatisfied(execution, timeout_ms));
        }
        execution.out.extend_from_slice(b"{}");
        Ok(())
    }
}

impl Wait<'_> {
    fn timeout_ms(&self) -> Result<Option<u64>, WireError> {
        let Some(raw) = self.timeout else {
            return Ok(None);
        };
        match members::integer(raw).map(u64::try_from) {
            Some(Ok(timeout_ms)) => Ok(Some(timeout_ms)),
            _ => Err(WireError::syntax(raw, "timeout must be nonnegative")),
        }
    }

    fn wants_equal(&self) -> Result<bool, WireError> {
        match members::string(self.until).as_deref() {
            Some(b"==") => Ok(true),
            Some(b"!=") => Ok(false),
            _ => Err(WireError::syntax(
                self.until,
                "\"until\" must be \"==\" or \"!=\"",
            )),
        }
    }

    fn expected(&self, execution: &mut Execution<'_, '_>) -> Result<Vec<Row>, WireError> {
        let broken = |_| WireError::syntax(self.rows, "row must be JSON object");
        let schema = execution.txn.database.schema.table(self.table);
        let mut rows = Vec::new();
        let mut reader = Reader::trusted(self.rows);
        reader.begin_array().map_err(broken)?;
        while reader.next_element().map_err(broken)? {
            let is_object = matches!(reader.peek(), Ok(Kind::Object));
            let raw = reader.skip().map_err(broken)?;
            if !is_object {
                return Err(WireError::syntax(raw, "row must be JSON object"));
            }
            let given = read_row(schema, raw, &mut execution.names)?;
            rows.push(complete(&execution.txn.layout(self.table).defaults, given));
        }
        Ok(rows)
    }
}

/// A row with these columns, and the defaults of the others.
fn complete(defaults: &[Datum], given: Given) -> Row {
    let mut row = Row {
        uuid: Uuid::ZERO,
        version: Uuid::ZERO,
        columns: defaults.into(),
    };
    for (column, datum) in given {
        match column {
            ColumnId::UUID => row.uuid = datum.as_uuid().unwrap_or_default(),
            ColumnId::VERSION => row.version = datum.as_uuid().unwrap_or_default(),
            own => row.columns[usize::from(own.0)] = datum,
        }
    }
    row
}

/// Whether both are the same set of rows, compared by `columns`. Stops at the first row that is not
/// expected.
fn are_same_set<'r>(
    columns: &'r ColumnList,
    seed: HashSeed,
    expected: &'r [Row],
    actual: impl Iterator<Item = &'r Row>,
) -> bool {
    let mut wanted = Distinct::new(columns, seed);
    for row in expected {
        wanted.insert(row);
    }
    let mut is_found = vec![false; wanted.len()];
    for row in actual {
        match wanted.find(row) {
            Some(position) => is_found[position] = true,
            None => return false,
        }
    }
    is_found.into_iter().all(|is_found| is_found)
}

fn unsatisfied(execution: &Execution<'_, '_>, timeout_ms: Option<u64>) -> Failure {
    let elapsed_ms = execution.requester.elapsed_ms;
    if timeout_ms.is_some_and(|timeout_ms| elapsed_ms >= timeout_ms) {
        let details = match elapsed_ms {
            0 => "\"where\" clause test failed".to_owned(),
            _ => format!("\"wait\" timed out after {elapsed_ms} ms"),
        };
        return WireError::new(Tag::TimedOut, details).into();
    }
    if !execution.requester.can_wait {
        return WireError::new(Tag::NotSupported, "triggers not supported").into();
    }
    Failure::Blocked
}
