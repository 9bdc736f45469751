//! Main loops that write what should be, turn by turn.

use corvid_idl::{Class, Idl, Status, Turn, Turns};

use crate::bed::{Bed, integer, schema, string};

#[test]
fn a_turn_waits_for_what_its_predecessor_needs() {
    let mut turns = Turns::new();
    let mut unconnected = Idl::new(Class::new(corvid_data::Arc::new(schema())), 1);
    assert_eq!(
        turns.begin(&mut unconnected, ""),
        None,
        "nothing to look at"
    );
    assert_eq!(turns.end(&mut unconnected), Turn::Idle);

    let mut bed = Bed::with_client();
    let (i, s) = (bed.column("simple", "i"), bed.column("simple", "s"));
    assert!(turns.begin(bed.idl(), "test").is_some());
    let row = bed.insert("simple", &[("i", integer(1))]);
    assert_eq!(turns.end(bed.idl()), Turn::InProgress);
    assert_eq!(turns.begin(bed.idl(), "test"), None, "one at a time");
    bed.run();
    assert_eq!(turns.end(bed.idl()), Turn::Committed);
    assert!(bed.last_operations().contains(r#""comment":"test""#));
    // A turn that changes nothing.
    assert!(turns.begin(bed.idl(), "test").is_some());
    assert_eq!(turns.end(bed.idl()), Turn::Idle);
    // One that is too late is not tried again before it can see what was faster.
    assert!(turns.begin(bed.idl(), "test").is_some());
    bed.idl().verify(row, i).unwrap();
    bed.idl().write(row, s, string("x")).unwrap();
    bed.server
        .transact(r#"{"op":"update","table":"simple","where":[],"row":{"i":2}}"#);
    assert_eq!(turns.end(bed.idl()), Turn::InProgress);
    bed.run();
    let status = Status::TryAgain;
    assert_eq!(
        turns.end(bed.idl()),
        Turn::Failed {
            status,
            is_due: true
        }
    );
    assert!(turns.begin(bed.idl(), "test").is_some());
    bed.idl().verify(row, i).unwrap();
    bed.idl().write(row, s, string("x")).unwrap();
    bed.peers[0].is_deaf = true;
    assert_eq!(turns.end(bed.idl()), Turn::InProgress);
    bed.cut(0);
    assert_eq!(
        turns.end(bed.idl()),
        Turn::Failed {
            status,
            is_due: false
        }
    );
    assert_eq!(
        turns.begin(bed.idl(), "test"),
        None,
        "nothing has changed since"
    );
    bed.peers[0].is_deaf = false;
    bed.run_until_connected();
    assert!(turns.begin(bed.idl(), "test").is_some());
    assert_eq!(turns.end(bed.idl()), Turn::Idle);
}

#[test]
fn what_failed_in_between_is_told_once() {
    let mut bed = Bed::with_client();
    let mut turns = Turns::new();
    turns.begin(bed.idl(), "").expect("contents are there");
    bed.insert("unique", &[("i", integer(1))]);
    bed.insert("unique", &[("i", integer(1))]);
    assert_eq!(turns.end(bed.idl()), Turn::InProgress);
    bed.run();
    let status = Status::Error;
    assert_eq!(
        turns.end(bed.idl()),
        Turn::Failed {
            status,
            is_due: false
        }
    );
    assert_eq!(turns.end(bed.idl()), Turn::Idle);
    assert!(
        turns.begin(bed.idl(), "").is_some(),
        "an error needs other writes, not other contents"
    );
}
