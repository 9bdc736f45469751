//! Records of a log.

use corvid_data::uuid::UuidSource;
use corvid_data::{HashSeed, Uuid};
use corvid_engine::Database;
use corvid_json::frame::whole_texts;
use corvid_log::{Load, Magic, Record};

/// Generates row versions in sequence. The row UUIDs come from the log.
struct Versions(u8);

impl UuidSource for Versions {
    fn fresh(&mut self) -> Uuid {
        self.0 = self.0.wrapping_add(1);
        Uuid::from_random([self.0; 16])
    }
}

/// Reads log files. Loading ends at the first damage, and reports it again if it is called again.
/// The contents that were loaded before the damage are consistent. An input that does not begin
/// like a file is taken as a sequence of record bodies, which get headers with the right hashes.
///
/// # Panics
/// If one of these invariants is broken.
pub fn log_records(input: &[u8]) {
    if input.starts_with(b"OVSDB") {
        return load(input);
    }
    let mut file = Vec::new();
    for text in whole_texts(input) {
        let mut record = Record::begin(&mut file, Magic::Standalone);
        record.body().extend_from_slice(text);
        record.finish();
    }
    load(&file);
}

fn load(file: &[u8]) {
    let Ok(mut load) = Load::open(file) else {
        return;
    };
    let mut database = Database::new(load.schema().clone(), HashSeed::FIXED);
    let mut versions = Versions(0);
    loop {
        match load.next_transaction() {
            Ok(None) => break,
            Ok(Some(recorded)) => {
                if let Err(error) = database.apply_recorded(recorded, &mut versions) {
                    let damage = load.reject(error);
                    assert_eq!(load.next_transaction().err(), Some(damage));
                    break;
                }
            }
            Err(damage) => {
                assert_eq!(
                    load.next_transaction().err(),
                    Some(damage),
                    "damage is final"
                );
                break;
            }
        }
    }
    assert!(load.good_end() <= file.len() as u64);
    if let Err(difference) = database.check_invariants() {
        panic!("the database is inconsistent: {difference}");
    }
}
