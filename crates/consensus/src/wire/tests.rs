//! Texts of messages: every message survives a round trip, and every refusal has its words.

use bytes::Bytes;
use corvid_data::Uuid;
use corvid_log::cluster::{Cid, Eid, Index, Sid, Term};

use super::generate::Random;
use super::*;
use crate::entry::EntryBody;

const A: Sid = Sid(Uuid([0xaa; 16]));
const B: Sid = Sid(Uuid([0xbb; 16]));
const A_TEXT: &str = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
const B_TEXT: &str = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb";
const C_TEXT: &str = "cccccccc-cccc-cccc-cccc-cccccccccccc";

/// The seed of a randomised test: `CORVID_SEED`, or a fixed one.
fn seed() -> u64 {
    let seed = std::env::var("CORVID_SEED").ok();
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("CORVID_SEED={seed}");
    seed
}

fn cid() -> Cid {
    Cid::new(Uuid([0xcc; 16])).expect("not zero")
}

fn envelope() -> Envelope {
    Envelope {
        cluster: Some(cid()),
        to: Some(B),
        from: A,
    }
}

fn receiver() -> Receiver {
    Receiver {
        sid: B,
        cid: Some(cid()),
    }
}

fn refusal(text: &str) -> String {
    let text = Bytes::copy_from_slice(text.as_bytes());
    match decode(&text, &receiver()) {
        Ok(incoming) => panic!("accepted: {incoming:?}"),
        Err(error) => error.to_string(),
    }
}

/// A message from A to B with these members after the common ones.
fn text(method: &str, members: &str) -> String {
    let common = format!(r#""cluster":"{C_TEXT}","to":"{B_TEXT}","from":"{A_TEXT}""#);
    format!(r#"{{"id":null,"method":"{method}","params":[{{{common}{members}}}]}}"#)
}

/// The fragment of an error about such a message, with sorted members.
fn fragment(members: &[(&str, &str)]) -> String {
    let (cluster, to, from) = (quote(C_TEXT), quote(B_TEXT), quote(A_TEXT));
    let mut all: Vec<(&str, &str)> = vec![("cluster", &cluster), ("to", &to), ("from", &from)];
    all.extend_from_slice(members);
    all.sort_unstable();
    let members: Vec<String> = all
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn quote(text: &str) -> String {
    format!("\"{text}\"")
}

#[test]
fn every_message_comes_back() {
    let mut random = Random::new(seed());
    let count = if cfg!(miri) { 200 } else { 20_000 };
    for number in 0..count {
        let message = random.message();
        let text = encode(&envelope(), &message);
        assert!(corvid_json::Reader::new(&text).skip().is_ok());
        let is_fast = decode::decode_own_form(&text, &receiver()).is_some();
        assert!(is_fast, "message {number} took the slow way: {message:?}");
        match decode(&text, &receiver()) {
            Ok(Incoming::Message {
                from, message: got, ..
            }) => {
                assert_eq!((from, &got), (A, &message), "message {number}");
            }
            other => panic!("message {number}: {message:?} became {other:?}"),
        }
    }
}

#[test]
fn messages_in_other_spellings_mean_the_same() {
    let spaced = format!(
        r#" {{ "params" : [ {{ "from":"{A_TEXT}", "entries":[ {{"data":[null,{{}}],"eid":"{B_TEXT}", "term":2}} ],
            "comment":"x", "commit":1, "prev_term":0,"prev_index":0,"term":-1,"to":"{B_TEXT}","cluster":"{C_TEXT}"}} ] ,
            "method":"append_\u0065ntries" }}"#
    );
    let text = Bytes::from(spaced.into_bytes());
    let Ok(Incoming::Message { from, message, .. }) = decode(&text, &receiver()) else {
        panic!("refused");
    };
    assert_eq!(from, A);
    assert_eq!(
        message,
        PeerMessage::Append {
            term: Term(u64::MAX),
            prev_index: Index(0),
            prev_term: Term(0),
            commit: Index(1),
            entries: vec![(Term(2), EntryBody::commit(Eid(B.0), b"[null,{}]"))],
        }
    );
}

#[test]
fn appends_are_spliced_and_cut_without_copies() {
    let bodies: Vec<EntryBody> = (0..50)
        .map(|number| {
            EntryBody::commit(
                Eid(Uuid([number; 16])),
                &[b"[\"".as_slice(), &[b'x'; 500], b"\"]"].concat(),
            )
        })
        .collect();
    let message = PeerMessage::Append {
        term: Term(4),
        prev_index: Index(10),
        prev_term: Term(4),
        commit: Index(10),
        entries: bodies.iter().map(|body| (Term(4), body.clone())).collect(),
    };
    let text = encode(&envelope(), &message);
    let text = Vec::from(text);
    assert!(
        text.capacity() - text.len() <= 50 * 32 + 512,
        "sized before"
    );
    let text = Bytes::from(text);
    let within = text.as_ptr_range();
    let Ok(Incoming::Message {
        message: PeerMessage::Append { entries, .. },
        ..
    }) = decode(&text, &receiver())
    else {
        panic!("refused");
    };
    for ((_, got), body) in entries.iter().zip(&bodies) {
        assert_eq!(got, body);
        assert!(within.contains(&got.text().as_ptr()), "shares the text");
    }
}

#[test]
fn hello_announces_the_codec() {
    let own = Envelope {
        to: None,
        ..envelope()
    };
    let text = Bytes::from(encode_hello(&own, "tcp:10.0.0.1:6644"));
    assert_eq!(
        text,
        format!(
            r#"{{"id":null,"method":"hello_request","params":[{{"cluster":"{C_TEXT}","from":"{A_TEXT}","address":"tcp:10.0.0.1:6644","comment":"corvid 1"}}]}}"#
        )
    );
    let hello = Incoming::Hello {
        from: A,
        cluster: Some(cid()),
        address: "tcp:10.0.0.1:6644".to_owned(),
        codec: Some(CODEC.to_owned()),
    };
    assert_eq!(decode(&text, &receiver()), Ok(hello));
}

#[test]
fn echo_is_passed_on() {
    for text in [
        r#"{"id":"echo","method":"echo","params":[]}"#,
        r#"{"id":"echo","result":[],"error":null}"#,
    ] {
        let text = Bytes::copy_from_slice(text.as_bytes());
        assert!(matches!(decode(&text, &receiver()), Ok(Incoming::Echo(_))));
    }
}

#[test]
fn envelopes_are_refused_in_the_words_of_the_reference() {
    for (text, words) in [
        (
            r#"{"id":1,"method":"heartbeat","params":[]}"#,
            "ovsdb error: expecting notify RPC but received request",
        ),
        (
            r#"{"id":1,"result":[],"error":null}"#,
            "ovsdb error: expecting notify RPC but received reply",
        ),
        (
            r#"{"id":1,"result":null,"error":"x"}"#,
            "ovsdb error: expecting notify RPC but received error",
        ),
        (
            r#"{"id":null,"method":"xyzzy","params":[1]}"#,
            "ovsdb error: unknown method xyzzy",
        ),
        (
            r#"{"id":null,"method":"append_request","params":[1]}"#,
            "ovsdb error: unknown method append_request",
        ),
        (
            r#"{"id":null,"method":"heartbeat","params":[]}"#,
            "ovsdb error: heartbeat RPC has 0 parameters (expected 1)",
        ),
        (
            r#"{"id":null,"method":"append_entries","params":[{},{}]}"#,
            "ovsdb error: append_entries RPC has 2 parameters (expected 1)",
        ),
        (
            r#"{"id":null,"method":"heartbeat","params":[3]}"#,
            "syntax error: Parsing raft heartbeat RPC failed: Object expected.",
        ),
        (
            r#"{"id":null,"method":"append_entries","params":[[]]}"#,
            "syntax error: Parsing raft append_entries RPC failed: Object expected.",
        ),
        (
            r#"{"id":null,"method":"heartbeat","params":[{"a":tru}]}"#,
            "error parsing stream: line 0, column 50, byte 50: invalid keyword 'tru'",
        ),
        (
            r#"{"id":null,"method":"heartbeat","params":{}}"#,
            r#"received bad JSON-RPC message: "params" must be JSON array"#,
        ),
    ] {
        assert_eq!(refusal(text), words);
    }
}

#[test]
fn members_are_refused_in_the_words_of_the_reference() {
    let other = format!(
        r#"{{"id":null,"method":"heartbeat","params":[{{"cluster":"{A_TEXT}","to":"{A_TEXT}"}}]}}"#
    );
    assert_eq!(
        refusal(&other),
        format!(
            r#"syntax "{{"cluster":"{A_TEXT}","to":"{A_TEXT}"}}": syntax error: Parsing raft heartbeat RPC failed: wrong cluster aaaa (expected cccc)"#
        )
    );
    let other = format!(
        r#"{{"id":null,"method":"heartbeat","params":[{{"cluster":"{C_TEXT}","to":"{A_TEXT}"}}]}}"#
    );
    assert_eq!(
        refusal(&other),
        format!(
            r#"syntax "{{"cluster":"{C_TEXT}","to":"{A_TEXT}"}}": syntax error: Parsing raft heartbeat RPC failed: misrouted message (addressed to aaaa but we're bbbb)"#
        )
    );
    for (members, sorted, problem) in [
        (
            r#","commit":1"#,
            vec![("commit", "1")],
            "Required 'term' member is missing.",
        ),
        (
            r#","term":"1","commit":1"#,
            vec![("term", "\"1\""), ("commit", "1")],
            "Type mismatch for member 'term'.",
        ),
        (
            r#","term":null,"commit":1"#,
            vec![("term", "null"), ("commit", "1")],
            "Type mismatch for member 'term'.",
        ),
        (
            r#","term":1.5,"commit":1"#,
            vec![("term", "1.5"), ("commit", "1")],
            "Type mismatch for member 'term'.",
        ),
        (
            r#","term":1,"commit":1,"comment":2"#,
            vec![("term", "1"), ("commit", "1"), ("comment", "2")],
            "Type mismatch for member 'comment'.",
        ),
        (
            r#","term":1,"commit":1,"prevote":true"#,
            vec![("term", "1"), ("commit", "1"), ("prevote", "true")],
            "Member 'prevote' is present but not allowed here.",
        ),
        (
            r#","term":1,"commit":1,"x":1,"y":2"#,
            vec![("term", "1"), ("commit", "1"), ("x", "1"), ("y", "2")],
            "Member 'x' and 1 other member are present but not allowed here.",
        ),
    ] {
        assert_eq!(
            refusal(&text("heartbeat", members)),
            format!(
                r#"syntax "{}": syntax error: Parsing raft heartbeat RPC failed: {problem}"#,
                fragment(&sorted)
            )
        );
    }
    for (name, problem) in [
        ("cluster", "Required 'cluster' member is missing."),
        ("to", "Required 'to' member is missing."),
        ("from", "Required 'from' member is missing."),
    ] {
        let whole = text("timeout_now", r#","term":1"#);
        let whole = whole.replace(&format!("\"{name}\":"), "\"comment\":");
        assert!(
            refusal(&whole).ends_with(&format!("raft timeout_now RPC failed: {problem}")),
            "{name}"
        );
    }
    let whole = text("timeout_now", r#","term":1"#).replace(A_TEXT, "aaaa");
    assert!(refusal(&whole).ends_with("failed: from is not a valid UUID"));
    let zero = text(
        "request_vote",
        r#","term":1,"last_index":1,"last_term":1,"commit":0,"commit_term":0,"transfer":0"#,
    );
    assert!(refusal(&zero).ends_with("failed: Type mismatch for member 'transfer'."));
    let id = "0".repeat(8);
    let outcome =
        format!(r#","term":1,"outcomes":[{{"number":1,"id":"{A_TEXT}","status":"{id}"}}]"#);
    assert!(
        refusal(&text("forward_outcomes", &outcome)).ends_with(&format!("unknown status \"{id}\""))
    );
}

#[test]
fn entries_are_refused_in_the_words_of_the_reference() {
    for (entry, problem) in [
        ("{}", "Required 'term' member is missing."),
        (r#"{"term":null}"#, "Type mismatch for member 'term'."),
        (
            r#"{"eid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","term":1}"#,
            "Member 'eid' is present but not allowed here.",
        ),
        (
            r#"{"data":[],"term":1}"#,
            "Required 'eid' member is missing.",
        ),
        (
            r#"{"data":null,"term":1}"#,
            "Type mismatch for member 'data'.",
        ),
        (
            r#"{"data":[],"eid":"a","term":1}"#,
            "eid is not a valid UUID",
        ),
        (
            r#"{"index":3,"term":1}"#,
            "Member 'index' is present but not allowed here.",
        ),
        (
            r#"{"election_timer":"x","term":1}"#,
            "Type mismatch for member 'election_timer'.",
        ),
    ] {
        let members = format!(
            r#","term":2,"prev_index":1,"prev_term":1,"commit":1,"entries":[{{"term":2}},{entry}]"#
        );
        assert_eq!(
            refusal(&text("append_entries", &members)),
            format!(r#"syntax "{entry}": syntax error: Parsing raft log entry failed: {problem}"#)
        );
    }
    // The same in the order of Corvid's own form.
    for (entry, problem) in [
        (
            r#"{"term":1,"eid":"a","data":[]}"#,
            "eid is not a valid UUID",
        ),
        (
            r#"{"term":1,"eid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","data":null}"#,
            "Type mismatch for member 'data'.",
        ),
        (
            r#"{"term":1,"eid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"}"#,
            "Member 'eid' is present but not allowed here.",
        ),
        (
            r#"{"term":1,"servers":{"S":"tcp:1.2.3.4:5"}}"#,
            "S is not a UUID",
        ),
        (
            r#"{"term":1,"election_timer":1.5}"#,
            "Type mismatch for member 'election_timer'.",
        ),
        (r#"{"term":1.5}"#, "Type mismatch for member 'term'."),
    ] {
        let members =
            format!(r#","term":2,"prev_index":1,"prev_term":1,"commit":1,"entries":[{entry}]"#);
        let refused = refusal(&text("append_entries", &members));
        assert!(refused.ends_with(problem), "{entry}: {refused}");
    }
    for (entries, words) in [
        (
            "[4]",
            "syntax error: Parsing raft log entry failed: Object expected.",
        ),
        (
            r#"[{"term":2,"servers":{}}]"#,
            r#"syntax "{}": syntax error: must have at least one server"#,
        ),
        (
            r#"[{"term":2,"servers":{"S":"tcp:1.2.3.4:5"}}]"#,
            r#"syntax "{"S":"tcp:1.2.3.4:5"}": syntax error: S is not a UUID"#,
        ),
        (
            r#"[{"term":2,"servers":{"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa":3}}]"#,
            r#"syntax "3": syntax error: server address is not string"#,
        ),
    ] {
        let members =
            format!(r#","term":2,"prev_index":1,"prev_term":1,"commit":1,"entries":{entries}"#);
        assert_eq!(refusal(&text("append_entries", &members)), words);
    }
    for (members, problem) in [
        (
            r#","term":2,"prev_index":1,"prev_term":1,"commit":1,"entries":{}"#,
            "Type mismatch for member 'entries'.",
        ),
        (
            r#","term":2,"prev_index":1,"prev_term":1,"commit":1"#,
            "Required 'entries' member is missing.",
        ),
    ] {
        assert!(refusal(&text("append_entries", members)).ends_with(problem));
    }
}

#[test]
fn lists_of_addresses_are_refused_in_the_words_of_the_reference() {
    let reply = |addresses| {
        text(
            "join_cluster_result",
            &format!(r#","success":false,"comment":"x","remote_addresses":{addresses}"#),
        )
    };
    assert_eq!(
        refusal(&reply("[]")),
        r#"syntax "[]": syntax error: at least one remote address is required"#
    );
    assert_eq!(
        refusal(&reply(r#"["xyz"]"#)),
        r#"ovsdb error: xyz: expected "tcp" or "ssl" address"#
    );
}

/// An entry's body goes into the file after the record's own term and index, so it must not contain
/// others.
#[test]
fn bodies_never_hold_a_term_or_an_index() {
    for entry in [
        r#"{"term":2,"term":3}"#,
        r#"{"term":2,"eid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","data":[],"term":3}"#,
        r#"{"term":2,"eid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","data":[],"servers":{"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa":"tcp:1.2.3.4:5"}}"#,
        r#"{"term":2, "eid":"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa","data":[] }"#,
    ] {
        let members =
            format!(r#","term":2,"prev_index":1,"prev_term":1,"commit":1,"entries":[{entry}]"#);
        let whole = Bytes::from(text("append_entries", &members));
        let Ok(Incoming::Message {
            message: PeerMessage::Append { entries, .. },
            ..
        }) = decode(&whole, &receiver())
        else {
            panic!("refused: {entry}");
        };
        let (term, body) = &entries[0];
        let read = body.parse(Term(9), Index(7)).expect("an entry");
        assert_eq!((read.term, read.index), (Term(9), Index(7)), "{entry}");
        assert!(term.0 >= 2);
        if let Some((_, data)) = body.as_commit() {
            assert_eq!(data, "[]", "{entry}");
        }
    }
}

/// The result of a transaction travels with its entry but is not part of it.
#[test]
fn results_go_with_entries() {
    let eid = Eid(Uuid([7; 16]));
    let result = Bytes::from_static(br#"[{"uuid":["uuid","x"]}]"#);
    let body = EntryBody::commit(eid, b"[null,{}]").with_result(result.clone());
    let message = PeerMessage::Append {
        term: Term(3),
        prev_index: Index(4),
        prev_term: Term(2),
        commit: Index(4),
        entries: vec![(Term(3), body), (Term(3), EntryBody::empty())],
    };
    let text = encode(&envelope(), &message);
    let Ok(Incoming::Message {
        message: PeerMessage::Append { entries, .. },
        ..
    }) = decode(&text, &receiver())
    else {
        panic!("refused: {text:?}");
    };
    assert_eq!(entries[0].1.result(), &result);
    assert_eq!(
        entries[0].1.text(),
        EntryBody::commit(eid, b"[null,{}]").text()
    );
    assert!(entries[1].1.result().is_empty());
}
