//! Records of every kind, encoded and decoded; the reference's words about malformed ones; the
//! rules of a log.

use corvid_data::Uuid;

use super::*;
use crate::{Magic, Record as Framed};

const S1: &str = "aaaa0000-0000-4000-8000-000000000001";
const S2: &str = "bbbb0000-0000-4000-8000-000000000002";
const E: &str = "eeee0000-0000-4000-8000-000000000001";
const C: &str = "cccc0000-0000-4000-8000-000000000003";

fn sid(text: &str) -> Sid {
    Sid(Uuid::parse(text.as_bytes()).expect("a UUID"))
}

/// Replaces `S1`, `S2`, `E#` and `C#` by the ids for which they stand.
fn spelled(json: &str) -> String {
    json.replace("S1", S1)
        .replace("S2", S2)
        .replace("E#", E)
        .replace("C#", C)
}

const HEADER: &str = r#"{"server_id":"S1","name":"D","local_address":"tcp:127.0.0.1:1","cluster_id":"C#","prev_servers":{"S1":"tcp:127.0.0.1:1","S2":"ssl:[::1]:2"},"prev_index":1,"prev_term":1,"prev_eid":"E#","prev_data":[{},{"t":null}]}"#;

fn header() -> Header {
    Header::decode(spelled(HEADER).as_bytes()).expect("a header")
}

fn record(json: &str) -> Record {
    Record::decode(spelled(json).as_bytes()).expect("a record")
}

#[test]
fn headers_survive_a_round_trip() {
    for json in [
        HEADER,
        r#"{"server_id":"S1","name":"D","local_address":"unix:a","cluster_id":"C#","prev_servers":{"S2":"tcp:127.0.0.1:1"}}"#,
        r#"{"server_id":"S1","name":"D","local_address":"unix:a","cluster_id":"C#","prev_servers":{"S2":"tcp:127.0.0.1:1"},"prev_index":9,"prev_term":3,"prev_eid":"E#","prev_election_timer":500,"prev_data":[{},null]}"#,
        r#"{"server_id":"S1","name":"D","local_address":"unix:a","remote_addresses":["unix:b","tcp:h:1"]}"#,
        r#"{"server_id":"S1","name":"D","local_address":"unix:a","cluster_id":"C#","remote_addresses":["unix:b"]}"#,
    ] {
        let json = spelled(json);
        let header = Header::decode(json.as_bytes()).expect("a header");
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), json);
    }
}

#[test]
fn records_survive_a_round_trip() {
    for json in [
        r#"{"term":3,"index":7}"#,
        r#"{"term":3,"index":7,"servers":{"S1":"unix:a"},"election_timer":4000}"#,
        r#"{"comment":"c","term":3,"index":-1,"eid":"E#","data":[null,{"t":{"x":[1,2]}}]}"#,
        r#"{"term":9}"#,
        r#"{"term":-2}"#,
        r#"{"term":9,"vote":"S2"}"#,
        r#"{"term":9,"leader":"S2"}"#,
        r#"{"commit_index":5}"#,
        r#"{"note":"left"}"#,
        r#"{"comment":"why","note":"transfer leadership"}"#,
    ] {
        let json = spelled(json);
        let record = Record::decode(json.as_bytes()).expect("a record");
        let mut out = Vec::new();
        record.encode(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), json);
    }
    assert_eq!(
        record(r#"{"term":-1,"index":0}"#).kind,
        Kind::Term(Term(u64::MAX))
    );
}

#[test]
fn malformed_headers_are_explained() {
    let parsing = |problem: &str| format!("Parsing raft header failed: {problem}");
    let change = |from: &str, to: &str| {
        let json = HEADER.replacen(from, to, 1);
        assert_ne!(json, HEADER, "{from}");
        let error = Header::decode(spelled(&json).as_bytes()).expect_err("no header");
        error.details
    };
    for (from, to, details) in [
        (
            r#""name":"D","#,
            "",
            parsing("Required 'name' member is missing."),
        ),
        (
            r#""server_id":"S1""#,
            r#""server_id":5"#,
            parsing("Type mismatch for member 'server_id'."),
        ),
        (
            r#""server_id":"S1""#,
            r#""server_id":"x""#,
            parsing("server_id is not a valid UUID"),
        ),
        (
            r#""cluster_id":"C#","#,
            "",
            parsing("Required 'cluster_id' member is missing."),
        ),
        (
            r#""name""#,
            r#""foo":1,"name""#,
            parsing("Member 'foo' is present but not allowed here."),
        ),
        (
            r#""prev_index":1,"#,
            "",
            parsing("Member 'prev_data' and 2 other members are present but not allowed here."),
        ),
        (
            r#""prev_eid":"E#","#,
            "",
            parsing("Required 'prev_eid' member is missing."),
        ),
        (
            r#"{"S1":"tcp:127.0.0.1:1","S2":"ssl:[::1]:2"}"#,
            "{}",
            "must have at least one server".to_owned(),
        ),
        (
            r#"{"S1":"tcp"#,
            r#"{"x":"tcp"#,
            "x is not a UUID".to_owned(),
        ),
        (
            r#"{"S1":"tcp:127.0.0.1:1""#,
            r#"{"S1":"tcp:127.0.0.1""#,
            "tcp:127.0.0.1: syntax error in address".to_owned(),
        ),
        (
            r#"{"S1":"tcp:127.0.0.1:1""#,
            r#"{"S1":3"#,
            "server address is not string".to_owned(),
        ),
    ] {
        assert_eq!(change(from, to), details, "{to}");
    }
    let joining = |addresses: &str| {
        let json = format!(
            r#"{{"server_id":"{S1}","name":"D","local_address":"unix:a","remote_addresses":{addresses}}}"#
        );
        Header::decode(json.as_bytes())
            .expect_err("no header")
            .details
    };
    assert_eq!(joining("[]"), "at least one remote address is required");
    assert_eq!(
        joining(r#"["unix:a"]"#),
        parsing("at least one remote address (other than the local address) is required")
    );
    assert_eq!(
        joining(r#"["x"]"#),
        "x: expected \"tcp\" or \"ssl\" address"
    );
}

#[test]
fn malformed_records_are_explained() {
    for (json, problem) in [
        ("{}", "Required 'term' member is missing."),
        (
            r#"{"comment":1,"note":1}"#,
            "Type mismatch for member 'comment'.",
        ),
        (
            r#"{"note":"left","term":1}"#,
            "Member 'term' is present but not allowed here.",
        ),
        (
            r#"{"commit_index":0}"#,
            "Required 'term' member is missing.",
        ),
        (
            r#"{"commit_index":1,"term":1}"#,
            "Member 'term' is present but not allowed here.",
        ),
        (r#"{"term":1.5}"#, "Type mismatch for member 'term'."),
        (
            r#"{"term":1,"vote":"00000000-0000-0000-0000-000000000000"}"#,
            "record votes for all-zeros SID",
        ),
        (
            r#"{"term":1,"leader":"00000000-0000-0000-0000-000000000000"}"#,
            "record says leader is all-zeros SID",
        ),
        (
            r#"{"term":1,"vote":"S1","leader":"S1"}"#,
            "Member 'vote' is present but not allowed here.",
        ),
        (r#"{"term":1,"vote":"x"}"#, "vote is not a valid UUID"),
        (
            r#"{"term":1,"index":2,"data":[null,{}]}"#,
            "Required 'eid' member is missing.",
        ),
        (
            r#"{"term":1,"index":2,"eid":"E#"}"#,
            "Member 'eid' is present but not allowed here.",
        ),
        (
            r#"{"term":1,"index":2,"data":null,"eid":"E#"}"#,
            "Type mismatch for member 'data'.",
        ),
    ] {
        let error = Record::decode(spelled(json).as_bytes()).expect_err("no record");
        assert_eq!(
            error.details,
            format!("Parsing raft log record failed: {problem}"),
            "{json}"
        );
    }
}

#[test]
fn a_file_is_read_to_its_damage() {
    let mut file = Vec::new();
    for body in [
        HEADER,
        r#"{"term":1,"index":2}"#,
        r#"{"what":1}"#,
        r#"{"commit_index":2}"#,
    ] {
        let mut framed = Framed::begin(&mut file, Magic::Clustered);
        framed.body().extend_from_slice(spelled(body).as_bytes());
        framed.finish();
    }
    let good = file.len() as u64;
    file.extend_from_slice(b"OVSDB CLUSTER 5");
    let mut reader = ClusterReader::new(&file[..]);
    assert_eq!(
        reader.header().expect("sound").expect("there"),
        Ok(header())
    );
    assert!(reader.next().expect("sound").expect("there").is_ok());
    assert_eq!(reader.number(), 1);
    assert!(reader.next().expect("sound").expect("there").is_err());
    assert!(reader.next().expect("sound").expect("there").is_ok());
    assert_eq!(reader.number(), 3);
    let damage = reader.next().expect_err("a torn record");
    assert_eq!(reader.next().expect_err("for good"), damage);
    assert_eq!(reader.good_end(), good);
}

/// The steps that the records cause, and the state after them.
fn replayed(records: &[&str]) -> (Replay, Vec<Result<Step, Violation>>) {
    let mut replay = Replay::new(&header()).expect("a member");
    let steps = records
        .iter()
        .map(|json| replay.apply(&record(json)))
        .collect();
    (replay, steps)
}

fn last(records: &[&str]) -> Result<Step, Violation> {
    replayed(records).1.pop().expect("a step")
}

fn truncated(from: u64, to: u64, by_leader: bool) -> Result<Step, Violation> {
    Ok(Step::Appended {
        truncated: Some(Truncation {
            from: Index(from),
            to: Index(to),
            by_leader,
        }),
    })
}

#[test]
fn ordinary_log_is_replayed() {
    let (replay, steps) = replayed(&[
        r#"{"term":1,"vote":"S1"}"#,
        r#"{"term":1,"leader":"S1"}"#,
        r#"{"term":1,"index":2}"#,
        r#"{"commit_index":2}"#,
        r#"{"term":1,"index":3,"election_timer":2000}"#,
        r#"{"term":2,"vote":"S2"}"#,
        r#"{"term":2,"index":4,"servers":{"S2":"unix:b"}}"#,
        r#"{"commit_index":4}"#,
    ]);
    assert!(steps.iter().all(Result::is_ok), "{steps:?}");
    assert_eq!((replay.start(), replay.end()), (Index(2), Index(5)));
    assert_eq!(replay.commit_index(), Index(4));
    assert_eq!((replay.term(), replay.last_term()), (Term(2), Term(2)));
    assert_eq!(replay.vote_cast(), Some(sid(S2)));
    assert_eq!(replay.leader(), None);
    assert_eq!(replay.election_timer_ms(), 2000);
    assert!(!replay.has_left());
    assert!(!replay.servers().expect("a list").contains(sid(S1)));
}

#[test]
fn entry_cuts_off_those_that_it_supersedes() {
    let (replay, steps) = replayed(&[
        r#"{"term":1,"index":2,"servers":{"S2":"unix:b"}}"#,
        r#"{"term":1,"index":3,"election_timer":500}"#,
        r#"{"term":2,"index":2}"#,
    ]);
    assert_eq!(steps[2], truncated(4, 2, false));
    assert_eq!(replay.end(), Index(3));
    assert_eq!(replay.election_timer_ms(), ELECTION_TIMER_DEFAULT_MS);
    assert!(replay.servers().expect("a list").contains(sid(S1)));
    assert_eq!(
        last(&[
            r#"{"term":1,"leader":"S1"}"#,
            r#"{"term":1,"index":2}"#,
            r#"{"term":1,"index":2}"#
        ]),
        truncated(3, 2, true)
    );
    // The entry's term is older than that of the entry before it that stays.
    assert_eq!(
        last(&[
            r#"{"term":1,"index":2}"#,
            r#"{"term":4,"index":3}"#,
            r#"{"term":5,"index":4}"#,
            r#"{"term":3,"index":4}"#,
        ]),
        Err(Violation::TermRegresses {
            index: Index(4),
            term: Term(3),
            previous: Term(4)
        })
    );
}

#[test]
fn violations_are_explained() {
    let e2 = r#"{"term":1,"index":2}"#;
    let e3 = r#"{"term":1,"index":3}"#;
    let text = |records: &[&str]| {
        let number = records.len() as u64;
        last(records)
            .expect_err("a violation")
            .text(number, |sid| sid.to_string())
    };
    assert_eq!(
        text(&[e3]),
        "record 1 with index 3 skips past expected index 2"
    );
    assert_eq!(
        text(&[e2, e3, r#"{"commit_index":3}"#, e2]),
        "record 4 attempts to truncate log from 4 to 2 entries, but commit index is already 3"
    );
    assert_eq!(
        text(&[r#"{"term":1,"index":1}"#]),
        "record 1 attempts to truncate log from 2 to 1 entries, but commit index is already 1"
    );
    assert_eq!(
        text(&[r#"{"term":0,"index":2}"#]),
        "record 1 with index 2 term 0 precedes previous entry's term 1"
    );
    assert_eq!(
        text(&[r#"{"term":4}"#, r#"{"term":3,"vote":"S1"}"#]),
        "record 2 votes for term 3 but current term is 4"
    );
    assert_eq!(
        text(&[r#"{"term":3,"vote":"S1"}"#, r#"{"term":3,"vote":"S2"}"#]),
        "record 2 votes for bbbb in term 3 but a previous record for the same term voted for aaaa"
    );
    assert_eq!(
        text(&[e2, e3, r#"{"commit_index":3}"#, r#"{"commit_index":2}"#]),
        "record 4 regresses commit index from 3 to 2"
    );
    assert_eq!(
        text(&[e2, r#"{"commit_index":3}"#]),
        "record 2 advances commit index to 3 but last log index is 2"
    );
    assert_eq!(last(&[r#"{"note":"left"}"#]), Ok(Step::Left));
    assert_eq!(last(&[r#"{"note":"other"}"#]), Ok(Step::Unchanged));
}
