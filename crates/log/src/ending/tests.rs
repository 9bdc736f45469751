//! Every place at which a file can be cut or changed, and the verdict.

use super::*;
use crate::Load;
use crate::fixture::append;

const SCHEMA: &str = r#"{"name":"D","tables":{"t":{"columns":{"i":{"type":"integer"}}}}}"#;

fn row(comment: &str, last: u8) -> String {
    format!(
        r#"{{{comment}"_date":1700000000000,"t":{{"00000000-0000-4000-8000-00000000000{last}":{{"i":{last}}}}}}}"#
    )
}

/// A file with a schema and these records, and the offset of each record.
fn file(bodies: &[String]) -> (Vec<u8>, Vec<usize>) {
    let (mut file, mut starts) = (Vec::new(), Vec::new());
    append(&mut file, SCHEMA);
    for body in bodies {
        starts.push(file.len());
        append(&mut file, body);
    }
    (file, starts)
}

/// A file with contents and two transactions.
fn compacted() -> (Vec<u8>, Vec<usize>) {
    file(&[
        row(r#""_comment":"compacting database online","#, 1),
        row("", 2),
        row("", 3),
    ])
}

/// The verdict; `None` if the file is not damaged.
fn judged_if_damaged(bytes: &[u8]) -> Option<Ending> {
    let mut load = Load::open(bytes).expect("a schema");
    let damage = loop {
        match load.next_transaction() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(damage) => break damage,
        }
    };
    Some(judge(bytes, &damage).expect("in memory"))
}

fn judged(bytes: &[u8]) -> Ending {
    judged_if_damaged(bytes).expect("damage")
}

#[test]
fn an_interrupted_write_is_torn_wherever_it_was_cut() {
    let (bytes, starts) = compacted();
    for end in starts[2] + 1..bytes.len() {
        assert_eq!(judged(&bytes[..end]), Ending::Torn, "{end}");
        let zeros = [&bytes[..end], &vec![0; bytes.len() - end]].concat();
        assert_eq!(judged(&zeros), Ending::Torn, "{end} and zeros");
    }
}

#[test]
fn no_flipped_bit_is_taken_for_an_interrupted_write() {
    let (bytes, starts) = compacted();
    for at in starts[0]..bytes.len() {
        for bit in 0..8 {
            let mut rotten = bytes.clone();
            rotten[at] ^= 1 << bit;
            // The digits of a hash may have either case, so this flip is not damage.
            let Some(ending) = judged_if_damaged(&rotten) else {
                assert!(rotten.eq_ignore_ascii_case(&bytes), "byte {at} bit {bit}");
                continue;
            };
            let place = format!("byte {at} bit {bit}: {ending:?}");
            if at < starts[1] {
                assert_eq!(ending, Ending::Rotten(Rot::Contents), "{place}");
            } else if at < starts[2] {
                assert_eq!(ending, Ending::Rotten(Rot::Middle(1)), "{place}");
            } else {
                assert_eq!(ending, Ending::Doubtful(0), "{place}");
            }
        }
    }
}

#[test]
fn contents_are_known_by_the_comments_of_their_writers() {
    for comment in [
        "compacting database online",
        "compacted by ovsdb-tool 3.1.0",
        "converted by ovsdb-tool 3.1.0",
        "converted by ovsdb-server",
        "salvaged by ovsdb-tool 3.7.0",
        "restored by ovsdb-tool 3.7.0",
        r#"produced by \"ovsdb-client backup\""#,
        r#"produced by \"ovsdb-server/backup\""#,
    ] {
        // Corvid writes the comment first, the reference writes it anywhere.
        let ours = row(&format!(r#""_comment":"{comment}","#), 1);
        let theirs = row("", 1);
        let theirs = format!(
            r#"{},"_comment":"{comment}"}}"#,
            &theirs[..theirs.len() - 1]
        );
        for body in [ours, theirs] {
            let (bytes, starts) = file(&[body]);
            let whole = bytes.len();
            let rot = Ending::Rotten(Rot::Contents);
            assert_eq!(judged(&bytes[..whole - 1]), rot, "{comment}");
            let mut hole = bytes.clone();
            hole[starts[0]..starts[0] + 40].fill(0);
            assert_eq!(judged(&hole), rot, "{comment}");
        }
    }
}

#[test]
fn a_comment_is_found_across_windows() {
    for padding in WINDOW_BYTES - 260..WINDOW_BYTES - 200 {
        let padding = "x".repeat(padding);
        let body = format!(
            r#"{{"t":{{}},"_pad":"{padding}","_comment":"compacting database online","x":{{}}}}"#
        );
        let (bytes, _) = file(&[body]);
        let rot = Ending::Rotten(Rot::Contents);
        assert_eq!(judged(&bytes[..bytes.len() - 1]), rot);
    }
}

#[test]
fn an_ordinary_first_transaction_may_be_torn() {
    let (bytes, starts) = file(&[row("", 1)]);
    assert_eq!(judged(&bytes[..starts[0] + 20]), Ending::Torn);
    // The reference's contents look the same if they were cut off before their comment.
    assert_eq!(judged(&bytes[..bytes.len() - 9]), Ending::Doubtful(0));
    let appended = [&bytes[..starts[0]], b"xxx\n"].concat();
    assert_eq!(judged(&appended), Ending::Doubtful(0));
    // The record is complete, and it is all that the database has.
    let mut rotten = bytes.clone();
    rotten[starts[0] + 70] ^= 1;
    assert_eq!(judged(&rotten), Ending::Rotten(Rot::Contents));
}

#[test]
fn words_that_somebody_appends_are_cut_off_after_a_copy() {
    let (bytes, _) = compacted();
    for tail in [&b"xxx\n"[..], b"OVSDB JSON five\n", b"\n"] {
        assert_eq!(judged(&[&bytes, tail].concat()), Ending::Doubtful(0));
    }
    let mut nonsense = bytes.clone();
    append(&mut nonsense, r#"{"invalid":{}}"#);
    assert_eq!(judged(&nonsense), Ending::Doubtful(0));
    append(&mut nonsense, "{}");
    assert_eq!(judged(&nonsense), Ending::Rotten(Rot::Middle(1)));
}

#[test]
fn records_behind_a_hole_are_copied() {
    let (mut bytes, starts) = compacted();
    bytes[starts[1] + 4..starts[1] + 60].fill(0);
    assert_eq!(judged(&bytes), Ending::Doubtful(1));
}

#[test]
fn a_hole_after_a_complete_record_is_not_its_own() {
    // The next write was interrupted: its blocks never reached the disk.
    let hole = [0; 120];
    let (mut bytes, starts) = file(&[row("", 1)]);
    bytes[starts[0] + 70] ^= 1;
    bytes.extend(hole);
    assert_eq!(judged(&bytes), Ending::Rotten(Rot::Contents));
    let (mut bytes, starts) = compacted();
    let rotten_at = [
        starts[2] + 70,
        // In the header line: then only the record's text shows where it ends.
        starts[2] + 6,
        // In the length: the record would end in the hole.
        starts[2] + 11,
        starts[2] + 12,
        // The record's last line feed.
        bytes.len() - 1,
    ];
    let complete = bytes.clone();
    for at in rotten_at {
        bytes.clone_from(&complete);
        bytes[at] ^= 1;
        bytes.extend(hole);
        assert_eq!(judged(&bytes), Ending::Doubtful(0), "{at}");
    }
}
