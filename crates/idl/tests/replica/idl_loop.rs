//! Main loops that write the desired state, one iteration at a time.

use corvid_idl::{Class, Idl, IdlLoop, LoopOutcome, Status};

use crate::fixture::{Fixture, integer, schema, string};

#[test]
fn a_turn_waits_for_what_its_predecessor_needs() {
    let mut turns = IdlLoop::new();
    let mut unconnected = Idl::new(Class::new(corvid_data::Arc::new(schema())), 1);
    assert_eq!(
        turns.begin(&mut unconnected, ""),
        None,
        "nothing to look at"
    );
    assert_eq!(turns.end(&mut unconnected), LoopOutcome::Idle);

    let mut fixture = Fixture::with_client();
    let (i, s) = (fixture.column("simple", "i"), fixture.column("simple", "s"));
    assert!(turns.begin(fixture.idl(), "test").is_some());
    let row = fixture.insert("simple", &[("i", integer(1))]);
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::InProgress);
    assert_eq!(turns.begin(fixture.idl(), "test"), None, "one at a time");
    fixture.run();
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::Committed);
    assert!(fixture.last_operations().contains(r#""comment":"test""#));
    // An iteration that changes nothing.
    assert!(turns.begin(fixture.idl(), "test").is_some());
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::Idle);
    // An iteration that loses a race does not retry until it can see the winner's change.
    assert!(turns.begin(fixture.idl(), "test").is_some());
    fixture.idl().verify(row, i).unwrap();
    fixture.idl().write(row, s, string("x")).unwrap();
    fixture
        .server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"i":2}}"#);
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::InProgress);
    fixture.run();
    let status = Status::TryAgain;
    assert_eq!(
        turns.end(fixture.idl()),
        LoopOutcome::Failed {
            status,
            is_due: true
        }
    );
    assert!(turns.begin(fixture.idl(), "test").is_some());
    fixture.idl().verify(row, i).unwrap();
    fixture.idl().write(row, s, string("x")).unwrap();
    fixture.peers[0].is_deaf = true;
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::InProgress);
    fixture.cut(0);
    assert_eq!(
        turns.end(fixture.idl()),
        LoopOutcome::Failed {
            status,
            is_due: false
        }
    );
    assert_eq!(
        turns.begin(fixture.idl(), "test"),
        None,
        "nothing has changed since"
    );
    fixture.peers[0].is_deaf = false;
    fixture.run_until_connected();
    assert!(turns.begin(fixture.idl(), "test").is_some());
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::Idle);
}

#[test]
fn what_failed_in_between_is_told_once() {
    let mut fixture = Fixture::with_client();
    let mut turns = IdlLoop::new();
    turns.begin(fixture.idl(), "").expect("contents are there");
    fixture.insert("unique", &[("i", integer(1))]);
    fixture.insert("unique", &[("i", integer(1))]);
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::InProgress);
    fixture.run();
    let status = Status::Error;
    assert_eq!(
        turns.end(fixture.idl()),
        LoopOutcome::Failed {
            status,
            is_due: false
        }
    );
    assert_eq!(turns.end(fixture.idl()), LoopOutcome::Idle);
    assert!(
        turns.begin(fixture.idl(), "").is_some(),
        "an error needs other writes, not other contents"
    );
}
