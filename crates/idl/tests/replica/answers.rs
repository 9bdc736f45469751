//! The outcome of a transaction for every possible reply of a server, in every order of replies.

use corvid_data::Tag;
use corvid_idl::{Refused, Status, TxnId};

use crate::fixture::{Fixture, integer};

/// The outcome of a transaction that inserts a row and increments a counter, for this reply.
fn judged(members: &str) -> (Status, Option<String>) {
    let mut fixture = Fixture::with_client();
    let i = fixture.column("simple", "i");
    fixture.idl().begin().expect("none is open");
    let row = fixture.insert("simple", &[]);
    fixture.idl().increment(row, i, false).expect("a number");
    let txn = fixture.commit_unheard();
    fixture.answer_last(members);
    let status = fixture.idl().status(txn).expect("remembered");
    let error = fixture.idl().txn_error(txn).map(str::to_owned);
    (status, error)
}

#[test]
fn the_gravest_of_several_faults_counts() {
    let uuid = r#"{"uuid":["uuid","00000000-0000-0000-0000-000000000001"]}"#;
    let (count, rows) = (r#"{"count":1}"#, r#"{"rows":[{"i":1}]}"#);
    let good = format!("{uuid},{count},{rows}");
    let odd = |results: &str| (Status::Error, Some(format!("[{results}]")));
    let one = |result: &str| (Status::Error, Some(result.to_owned()));
    let soft = || (Status::TryAgain, None);
    let hard = r#"{"details":"why","error":"constraint violation"}"#;
    for (results, expected) in [
        (good.clone(), (Status::Success, None)),
        (r#"{"error":"timed out"},null,null"#.to_owned(), soft()),
        (format!("{uuid},null,null"), soft()),
        (r#"{"error":"unknown database"},null"#.to_owned(), soft()),
        (
            r#"{"error":"not owner"},null"#.to_owned(),
            (Status::NotLocked, None),
        ),
        (format!(r#"null,{hard}"#), one(hard)),
        (format!("{good},{hard}"), one(hard)),
        (format!(r#"{{"error":"not owner"}},{hard}"#), one(hard)),
        (
            r#"{"error":"not allowed"}"#.to_owned(),
            one(r#"{"error":"not allowed"}"#),
        ),
        (r#"{"error":7}"#.to_owned(), one(r#"{"error":7}"#)),
        ("7".to_owned(), one("7")),
        // The requested result is missing.
        (
            format!("{{}},{count},{rows}"),
            odd(&format!("{{}},{count},{rows}")),
        ),
        (
            format!(r#"{uuid},{{"count":2}},{rows}"#),
            odd(&format!(r#"{uuid},{{"count":2}},{rows}"#)),
        ),
        (
            format!(r#"{uuid},{count},{{"rows":[]}}"#),
            odd(&format!(r#"{uuid},{count},{{"rows":[]}}"#)),
        ),
    ] {
        let members = format!(r#""result":[{results}],"error":null"#);
        assert_eq!(judged(&members), expected, "{results}");
    }
}

#[test]
fn an_error_in_place_of_results_is_one() {
    for (error, expected) in [
        (r#""canceled""#, (Status::TryAgain, None)),
        (
            r#"{"error":"unknown database","details":"x"}"#,
            (Status::TryAgain, None),
        ),
        (
            r#"{"error":"syntax error","details":"x"}"#,
            (
                Status::Error,
                Some(r#"{"details":"x","error":"syntax error"}"#.to_owned()),
            ),
        ),
    ] {
        let members = format!(r#""result":null,"error":{error}"#);
        assert_eq!(judged(&members), expected, "{error}");
    }
    let (status, error) = judged(r#""result":{"odd":1},"error":null"#);
    assert_eq!(
        (status, error.as_deref()),
        (Status::Error, Some(r#"{"odd":1}"#))
    );
}

#[test]
fn a_server_that_does_not_know_the_database_is_left() {
    let mut fixture = Fixture::with_client();
    fixture.idl().begin().unwrap();
    fixture.insert("simple", &[]);
    fixture.commit_unheard();
    fixture.answer_last(r#""result":[{"error":"unknown database"}],"error":null"#);
    assert!(fixture.idl().session_state().last_failure().is_some());
    let sent = fixture.peers[0].sent.len();
    fixture.peers[0].is_deaf = false;
    fixture.run();
    fixture.run_until_connected();
    let again = fixture.peers[0].sent[sent..].join("\n");
    let zero = "00000000-0000-0000-0000-000000000000";
    assert!(again.contains("monitor_cond_since") && again.contains(zero));
}

#[test]
fn answers_come_in_any_order() {
    for first in 0..2 {
        let mut fixture = Fixture::with_client();
        let mut txns: Vec<TxnId> = Vec::new();
        for number in 0..2 {
            fixture.idl().begin().unwrap();
            fixture.insert("simple", &[("i", integer(number))]);
            txns.push(fixture.commit_unheard());
        }
        assert_eq!(fixture.idl().outstanding_count(), 2);
        let transacts = fixture.peers[0].sent.iter();
        let transacts = transacts.filter(|text| text.contains("\"transact\""));
        let ids: Vec<String> = transacts
            .map(|text| text.split([':', ',']).nth(1).expect("an id").to_owned())
            .collect();
        let uuid = r#"{"uuid":["uuid","00000000-0000-0000-0000-000000000001"]}"#;
        for (turn, at) in [(0, first), (1, 1 - first)] {
            let id = &ids[at];
            fixture.hear(&format!(r#"{{"id":{id},"result":[{uuid}],"error":null}}"#));
            assert_eq!(fixture.idl().status(txns[at]), Some(Status::Success));
            let other = fixture.idl().status(txns[1 - at]);
            let is_waiting = other == Some(Status::Incomplete);
            assert_eq!(is_waiting, turn == 0);
        }
    }
}

/// Why this reply refuses a transaction of three operations, an insert and an increment.
fn refusal(members: &str) -> Refused {
    let mut fixture = Fixture::with_client();
    let i = fixture.column("simple", "i");
    fixture.idl().begin().expect("none is open");
    let row = fixture.insert("simple", &[]);
    fixture.idl().increment(row, i, false).expect("a number");
    let txn = fixture.commit_unheard();
    fixture.answer_last(members);
    let refused = fixture.idl().txn_refused(txn).cloned();
    let finished = fixture.idl().finish(txn).expect("remembered");
    assert_eq!(finished.refused, refused);
    refused.expect("refused")
}

#[test]
fn a_refusal_names_the_part_that_was_refused() {
    let uuid = r#"{"uuid":["uuid","00000000-0000-0000-0000-000000000001"]}"#;
    let good = format!(r#"{uuid},{{"count":1}},{{"rows":[{{"i":1}}]}}"#);
    let hard = r#"{"details":"why","error":"constraint violation"}"#;
    let (tag, details) = (Tag::ConstraintViolation, "why".to_owned());
    for (results, expected, text) in [
        (
            format!("{uuid},{hard},null"),
            Refused::Operation {
                index: 1,
                tag,
                details: details.clone(),
            },
            "operation 1: constraint violation: why",
        ),
        (
            format!("{good},{hard}"),
            Refused::Commit { tag, details },
            "constraint violation: why",
        ),
        (
            r#"{"error":"not allowed"}"#.to_owned(),
            Refused::Operation {
                index: 0,
                tag: Tag::NotAllowed,
                details: String::new(),
            },
            "operation 0: not allowed",
        ),
        (
            r#"{"error":"of tomorrow"}"#.to_owned(),
            Refused::Other {
                json: r#"{"error":"of tomorrow"}"#.to_owned(),
            },
            r#"{"error":"of tomorrow"}"#,
        ),
    ] {
        let refused = refusal(&format!(r#""result":[{results}],"error":null"#));
        assert_eq!(refused, expected);
        assert_eq!(refused.to_string(), text);
    }
    let refused = refusal(r#""result":null,"error":{"details":"x","error":"permission error"}"#);
    assert_eq!(
        (refused.tag(), refused.details(), refused.operation()),
        (Some(Tag::PermissionError), "x", None)
    );
    assert!(matches!(refused, Refused::Request { .. }));
    // Some errors are a bare tag.
    let refused = refusal(r#""result":null,"error":"resources exhausted""#);
    assert_eq!(refused.tag(), Some(Tag::ResourcesExhausted));
}
