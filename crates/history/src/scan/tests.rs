//! Records, their dates and roles, and the header are found in a text that comes in pieces.

use corvid_data::Uuid;
use corvid_json::Value;
use corvid_log::Record;

use super::*;

fn file(magic: Magic, bodies: &[&str]) -> Vec<u8> {
    let mut text = Vec::new();
    for body in bodies {
        let mut record = Record::begin(&mut text, magic);
        record.body().extend_from_slice(body.as_bytes());
        record.finish();
    }
    text
}

fn scan(text: &[u8], size: usize) -> (Vec<Seen>, Scan) {
    let mut scan = Scan::new();
    let mut seen = Vec::new();
    for piece in text.chunks(size) {
        scan.push(piece, |record| seen.push(record));
    }
    (seen, scan)
}

#[test]
fn records_dates_and_roles_are_found_in_pieces_of_any_size() {
    let long = format!(
        r#"{{"t":{{"x":{{"s":"{}"}}}},"_date":1700000003000}}"#,
        "a".repeat(500)
    );
    let text = file(
        Magic::Standalone,
        &[
            r#"{"name":"Demo","tables":{"version":{"columns":{}}},"version":"1.2.0"}"#,
            r#"{"_comment":"compacting database online","_date":1700000001000}"#,
            r#"{"_comment":"\"_date\":5","_date":1700000002}"#,
            r#"{"t":{"x":null}}"#,
            &long,
        ],
    );
    let expected = [
        (None, Role::Head),
        (Some(1_700_000_001_000), Role::Contents),
        (Some(1_700_000_002_000), Role::Transaction),
        (None, Role::Transaction),
        (Some(1_700_000_003_000), Role::Transaction),
    ];
    for size in [1, 2, 3, 7, 40, 47, 48, 49, 100, 1000, text.len()] {
        let (seen, scan) = scan(&text, size);
        let found: Vec<_> = seen.iter().map(|seen| (seen.date_ms, seen.role)).collect();
        assert_eq!(found, expected, "{size}");
        assert_eq!((scan.records(), scan.good_end()), (5, text.len() as u64));
        for (seen, next) in seen.iter().zip(&seen[1..]) {
            assert_eq!(seen.end, next.start);
            assert_eq!(next.number, seen.number + 1);
        }
        assert_eq!(scan.head().name.as_deref(), Some("Demo"));
        assert_eq!(scan.head().version.as_deref(), Some("1.2.0"));
    }
}

#[test]
fn a_members_header_says_which_cluster_it_is() {
    let cluster = "4529a95d-3aa7-44b7-a9b5-3a4a3b1c7a11";
    let server = "7343a95d-3aa7-44b7-a9b5-3a4a3b1c7a22";
    let data = r#"[{"name":"Zoo","tables":{},"version":"3.4.5"},{"version":{"u":{"name":"x"}}}]"#;
    let before = format!(
        r#"{{"cluster_id":"{cluster}","name":"Zoo","prev_data":{data},"server_id":"{server}"}}"#
    );
    let after = format!(
        r#"{{"server_id":"{server}","name":"Zoo","cluster_id":"{cluster}","prev_data":{data}}}"#
    );
    for header in [before, after] {
        assert!(Value::parse(header.as_bytes()).is_ok());
        let entry = r#"{"term":1,"index":2,"eid":"e","data":[null,{"_date":1700000001000}]}"#;
        let text = file(Magic::Clustered, &[&header, r#"{"term":1}"#, entry]);
        for size in [1, 10, text.len()] {
            let (seen, scan) = scan(&text, size);
            let head = scan.head();
            assert_eq!(head.name.as_deref(), Some("Zoo"));
            assert_eq!(head.version.as_deref(), Some("3.4.5"));
            assert_eq!(head.cluster_id, Uuid::parse(cluster.as_bytes()));
            assert_eq!(head.server_id, Uuid::parse(server.as_bytes()));
            let roles: Vec<_> = seen.iter().map(|seen| seen.role).collect();
            assert_eq!(roles, [Role::Head, Role::Other, Role::Transaction]);
            assert_eq!(seen[2].date_ms, Some(1_700_000_001_000));
        }
    }
}

#[test]
fn a_line_that_is_not_a_header_ends_the_records() {
    let mut text = file(Magic::Standalone, &[r#"{"name":"D","tables":{}}"#, "{}"]);
    let good = text.len() as u64;
    text.extend_from_slice(b"garbage\nand more");
    let (seen, scanned) = scan(&text, 5);
    assert_eq!((seen.len(), scanned.good_end()), (2, good));
    assert!(scanned.is_broken());
    let (seen, scanned) = scan(&[b'x'; 500], 50);
    assert_eq!(
        (seen.len(), scanned.magic(), scanned.is_broken()),
        (0, None, true)
    );
}

#[test]
fn ids_are_those_of_transactions_and_an_ambiguous_one_is_not_told() {
    let text = file(
        Magic::Standalone,
        &[
            "{}",
            r#"{"_comment":"compacting database online"}"#,
            "{\"a\":1}",
        ],
    );
    for size in [1, 5, text.len()] {
        let (seen, _) = scan(&text, size);
        let ids: Vec<_> = seen.iter().map(|seen| seen.id).collect();
        let sha1 = corvid_log::header::Header::of(b"{\"a\":1}\n").sha1;
        assert_eq!(ids, [None, None, sha1.first_chunk().copied()], "{size}");
    }
    let eid = r#""eid":"5db740cf-0000-4000-8000-000000000000""#;
    let text = file(
        Magic::Clustered,
        &[
            "{}",
            &format!(r#"{{"data":[null,{{}}],{eid},"index":2}}"#),
            &format!(r#"{{{eid},"data":[null,{{"T":{{"r":{{"eid":5}}}}}}],"index":3}}"#),
            r#"{"commit_index":3}"#,
            r#"{"eid": "A0B1C2D3-0000-4000-8000-000000000000","data":[null,{}]}"#,
        ],
    );
    for size in [1, 3, 4, 5, 6, 50, text.len()] {
        let (seen, _) = scan(&text, size);
        let ids: Vec<_> = seen.iter().map(|seen| seen.id).collect();
        let expected = [
            None,
            Some([0x5d, 0xb7, 0x40, 0xcf]),
            None,
            None,
            Some([0xa0, 0xb1, 0xc2, 0xd3]),
        ];
        assert_eq!(ids, expected, "{size}");
    }
}
