//! Every kind of damage, with and without whole records after it.

use super::*;
use crate::fixture::{append, schema};
use crate::{Damage, Load, write_schema};

const ROWS: u8 = 6;
/// The number of the transaction that is damaged.
const DAMAGED: u8 = 3;

fn body(row: u8) -> String {
    format!(
        r#"{{"_date":1700000000000,"t":{{"00000000-0000-4000-8000-00000000000{row}":{{"i":{row}}}}}}}"#
    )
}

/// A file, and the offsets at which its records begin; the last offset is its end.
fn file(rows: u8) -> (Vec<u8>, Vec<usize>) {
    let mut file = Vec::new();
    let mut starts = vec![0];
    write_schema(&mut file, &schema());
    for row in 1..=rows {
        starts.push(file.len());
        append(&mut file, &body(row));
    }
    starts.push(file.len());
    (file, starts)
}

/// The damage that ends the log, and the number of whole records after it.
fn damage_of(file: &[u8]) -> (Damage, u64) {
    let mut load = Load::open(file).expect("a schema");
    let damage = loop {
        match load.next_transaction() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the file is damaged"),
            Err(damage) => break damage,
        }
    };
    let behind = records_behind(file, Magic::Standalone, damage.offset).expect("readable");
    (damage, behind)
}

/// Applies `damage` to the third transaction, given its first byte and its end. Does so in two
/// files: in one it is the last transaction, in the other it is not.
fn check(name: &str, damage: impl Fn(&mut Vec<u8>, usize, usize), expected_behind: u64) {
    for (rows, behind) in [(ROWS, expected_behind), (DAMAGED, 0)] {
        let (mut file, starts) = file(rows);
        let (start, end) = (
            starts[usize::from(DAMAGED)],
            starts[usize::from(DAMAGED) + 1],
        );
        damage(&mut file, start, end);
        let (found, count) = damage_of(&file);
        assert_eq!(
            (found.record, found.offset, count),
            (u64::from(DAMAGED), start as u64, behind),
            "{name}, {rows} rows"
        );
    }
}

#[test]
fn records_behind_damage_are_counted() {
    let behind = u64::from(ROWS - DAMAGED);
    let header_bytes =
        |file: &[u8], start: usize| memmem::find(&file[start..], b"\n").expect("a line") + 1;
    check(
        "flipped bit in the sign",
        |file, at, _| file[at] ^= 1,
        behind,
    );
    check(
        "flipped bit in the magic",
        |file, at, _| file[at + 6] ^= 1,
        behind,
    );
    check(
        "flipped bit in the hash",
        |file, at, _| file[at + 30] ^= 1,
        behind,
    );
    check(
        "flipped bit in the body",
        |file, _, end| file[end - 9] ^= 1,
        behind,
    );
    check(
        "another length, shorter",
        |file, at, _| file[at + 11] = b'1',
        behind,
    );
    check(
        "another length, longer",
        |file, at, _| file[at + 11] = b'8',
        behind,
    );
    check(
        "a length beyond the file",
        |file, at, _| drop(file.splice(at + 11..at + 13, *b"99999999")),
        behind,
    );
    check(
        "a length beyond all files",
        |file, at, _| drop(file.splice(at + 11..at + 13, *b"-1")),
        behind,
    );
    check(
        "a header without its line feed",
        |file, at, _| {
            let line = header_bytes(file, at);
            file[at + line - 1] = b' ';
        },
        behind,
    );
    check(
        "a record that was never finished",
        |file, _, end| drop(file.drain(end - 20..end)),
        behind,
    );
    check(
        "a torn header",
        |file, at, end| drop(file.drain(at + 7..end)),
        behind,
    );
    check(
        "a page of zeros",
        |file, at, end| file[at..end].fill(0),
        behind,
    );
    check(
        "a page of zeros across records",
        |file, at, end| {
            let upto = file.len().min(end + 30);
            file[at..upto].fill(0);
        },
        behind - 1,
    );
}

#[test]
fn foreign_text_between_records_damages_none_of_them() {
    let (mut file, starts) = file(ROWS);
    let at = starts[usize::from(DAMAGED)];
    file.splice(at..at, *b"OVSDB OVSDB <<<<<<< HEAD\n");
    let (damage, behind) = damage_of(&file);
    assert_eq!(damage.offset, at as u64);
    assert_eq!(behind, u64::from(ROWS - DAMAGED) + 1);
}

#[test]
fn well_framed_nonsense_is_not_counted() {
    for nonsense in [
        r#"{"x":{}}"#,
        "[]",
        "{",
        r#"{"t":{"00000000-0000-4000-8000-000000000009":{"i":"no"}}}"#,
    ] {
        for later in 0..3 {
            let (mut file, starts) = file(DAMAGED);
            append(&mut file, nonsense);
            for row in 0..later {
                append(&mut file, &body(row));
            }
            let (damage, behind) = damage_of(&file);
            assert_eq!(damage.offset, starts[usize::from(DAMAGED) + 1] as u64);
            assert_eq!(behind, u64::from(later), "{nonsense}");
        }
    }
}

#[test]
fn records_of_another_kind_do_not_count() {
    let (mut file, starts) = file(ROWS);
    file[starts[1]] = b'o';
    let clustered = records_behind(&file[..], Magic::Clustered, starts[1] as u64);
    assert_eq!(clustered, Ok(0));
}

#[test]
fn records_are_found_across_windows() {
    let (mut file, starts) = file(2);
    let at = starts[2];
    file[at] = b'o';
    let far = "x".repeat(2 * WINDOW_BYTES);
    append(&mut file, &format!("{{\"_comment\":\"{far}\"}}"));
    // Place a sign at every offset around the border of a window.
    for shift in 0..8 {
        let mut file = file.clone();
        let border = at + 1 + WINDOW_BYTES;
        let filler = border
            .checked_sub(file.len() % WINDOW_BYTES)
            .expect("a longer file")
            % WINDOW_BYTES;
        file.extend(std::iter::repeat_n(b'.', filler + shift));
        append(&mut file, "{}");
        let behind = records_behind(&file[..], Magic::Standalone, at as u64);
        assert_eq!(behind, Ok(2), "shift {shift}");
    }
}

#[test]
fn unreadable_bytes_are_an_error() {
    struct Broken;
    impl Bytes for Broken {
        fn read_at(&mut self, _: &mut [u8], _: u64) -> Result<usize, String> {
            Err("Input/output error".into())
        }
    }
    assert!(records_behind(Broken, Magic::Standalone, 0).is_err());
}
