//! Transactions, and the log to which they are written.

use corvid_data::uuid::UuidSource;
use corvid_data::{AtomType, ColumnSchema, HashSeed, Schema, Uuid, wire};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::frame::whole_texts;
use corvid_json::{Reader, Value};
use corvid_log::{Load, write_schema, write_transaction};

use super::data::fixture;

/// Generates UUIDs in sequence.
struct Counter(u64);

impl UuidSource for Counter {
    fn fresh(&mut self) -> Uuid {
        self.0 += 1;
        let mut bytes = [0; 16];
        bytes[8..].copy_from_slice(&self.0.to_be_bytes());
        Uuid::from_random(bytes)
    }
}

/// Owns every lock whose name is short.
struct ShortLocks;

impl LockOwner for ShortLocks {
    fn owns(&self, lock: &str) -> bool {
        lock.len() < 4
    }
}

/// Executes each JSON array of the input as the `params` of a transaction. The database stays
/// consistent, every result is a JSON array, undoing a commit restores the contents before it, and
/// replaying the log gives the same contents.
///
/// # Panics
/// If one of these invariants is broken.
pub fn operations(input: &[u8]) {
    commits(input);
}

/// Executes the input. Returns the number of transactions that changed something.
fn commits(input: &[u8]) -> usize {
    let mut count = 0;
    let schema = fixture();
    let mut database = Database::new(schema.clone(), HashSeed::FIXED);
    let mut uuids = Counter(0);
    let mut log = Vec::new();
    write_schema(&mut log, &schema);
    for params in arrays(input) {
        let before = contents(&database);
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: true,
            uuids: &mut uuids,
            locks: &ShortLocks,
        };
        let outcome = database.execute(params, &mut context);
        audit(&database);
        let Outcome::Done { result, delta, .. } = outcome else {
            assert_eq!(
                contents(&database),
                before,
                "a blocked transaction leaves no trace"
            );
            continue;
        };
        assert!(
            matches!(Value::parse(&result), Ok(Value::Array(_))),
            "{}",
            result.escape_ascii()
        );
        let Some(delta) = delta else {
            assert_eq!(contents(&database), before, "no delta, no change");
            continue;
        };
        count += 1;
        let after = contents(&database);
        write_transaction(&mut log, &schema, &delta, 1, true);
        let mut undone = Database::new(schema.clone(), HashSeed::FIXED);
        std::mem::swap(&mut undone, &mut database);
        undone.undo(&delta);
        audit(&undone);
        assert_eq!(contents(&undone), before, "undone");
        database = replay(&log);
        audit(&database);
        assert_eq!(contents(&database), after, "replayed from the log");
    }
    count
}

/// Returns the valid JSON arrays at the beginning of an input.
fn arrays(input: &[u8]) -> Vec<&[u8]> {
    whole_texts(input)
        .filter(|text| text[0] == b'[' && Reader::new(text).skip().is_ok())
        .collect()
}

fn audit(database: &Database) {
    if let Err(difference) = database.check_invariants() {
        panic!("the database is inconsistent: {difference}");
    }
}

fn replay(log: &[u8]) -> Database {
    let mut load = Load::open(log).expect("own log");
    let mut database = Database::new(load.schema().clone(), HashSeed::FIXED);
    let mut uuids = Counter(1 << 32);
    while let Some(recorded) = load.next_transaction().expect("own log") {
        database
            .apply_recorded(recorded, &mut uuids)
            .expect("own transaction");
    }
    database
}

/// Returns all rows as sorted text, without the data that a log does not keep: ephemeral columns,
/// and digits of reals after the 15th.
fn contents(database: &Database) -> Vec<String> {
    let schema: &Schema = database.schema();
    let mut rows = Vec::new();
    for (id, table) in schema.iter() {
        for row in database.rows(id) {
            let mut text = format!("{} {}", table.name, row.uuid).into_bytes();
            for (column, datum) in table.columns().iter().zip(&row.columns) {
                if is_exact(column) {
                    text.push(b' ');
                    wire::write_datum(&mut text, datum, column.column_type.is_map());
                }
            }
            rows.push(String::from_utf8(text).expect("data are UTF-8"));
        }
    }
    rows.sort_unstable();
    rows
}

fn is_exact(column: &ColumnSchema) -> bool {
    let is_real = |atom| atom == AtomType::Real;
    let column_type = &column.column_type;
    column.persistent
        && !is_real(column_type.key.atom)
        && !column_type
            .value
            .as_ref()
            .is_some_and(|value| is_real(value.atom))
}

#[cfg(test)]
mod tests {
    use super::commits;

    #[test]
    fn seeds_commit() {
        assert_eq!(
            commits(include_bytes!("../../corpus/operations/references")),
            4
        );
        assert_eq!(
            commits(include_bytes!("../../corpus/operations/arithmetic")),
            3
        );
        assert_eq!(commits(include_bytes!("../../corpus/operations/limits")), 2);
    }
}
