//! Mistakes of programs: panics in strict classes, log messages in others. Also the limit of the
//! log queue.

use std::panic::{AssertUnwindSafe, catch_unwind};

use corvid_data::{Arc, Str};
use corvid_idl::log_queue::LOG_MESSAGES_MAX;
use corvid_idl::{Class, Column, Idl, IdlLogMessage, Mistake};
use corvid_session::Output;

use crate::fixture::{Fixture, integer, schema};

/// The text with which `act` panics.
fn panic_text(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("it panics");
    let text = panic.downcast::<String>().expect("a text");
    *text
}

fn class(is_strict: bool) -> (Class, Column, Column) {
    let mut class = Class::new(Arc::new(schema()));
    class.set_strict(is_strict);
    let column = |name| class.column("simple", name).expect("a column");
    let (i, s) = (column("i"), column("s"));
    (class, i, s)
}

fn mistakes(log: &[String]) -> Vec<&String> {
    let mistakes = log.iter().filter(|message| message.contains("column s"));
    mistakes.collect()
}

/// A client that holds `i` of the only row, but not `s`.
fn holding_one_column(is_strict: bool) -> (Fixture, Column, Column) {
    let (mut class, i, s) = class(is_strict);
    class.add_column(i);
    let mut fixture = Fixture::new(false);
    fixture.add(class);
    fixture
        .server
        .transact(r#"{"op":"insert","table":"simple","row":{"s":"a","i":1}}"#);
    fixture.run();
    (fixture, i, s)
}

#[test]
fn reading_a_column_that_is_not_replicated_panics_where_classes_are_strict() {
    let (mut fixture, i, s) = holding_one_column(true);
    let row = fixture.idl().rows(i.table).next().expect("one");
    assert_eq!(fixture.idl().read(row, i), Some(integer(1)));
    let text = panic_text(|| drop(fixture.idl().read(row, s)));
    assert!(
        text.starts_with("column s of table simple is read but not replicated"),
        "{text}"
    );
    // The columns of a row that this client inserts are known.
    fixture.idl().begin().expect("none is open");
    let new = fixture.idl().insert_new(i.table).expect("new");
    assert!(fixture.idl().read(new, s).is_some());
}

#[test]
fn reading_a_column_that_is_not_replicated_is_logged_once_otherwise() {
    let (mut fixture, i, s) = holding_one_column(false);
    let row = fixture.idl().rows(i.table).next().expect("one");
    for _ in 0..3 {
        let value = fixture.idl().read(row, s).expect("a row");
        assert_eq!(value.as_string().map(Str::as_str), Some(""));
        fixture.run();
    }
    let log = mistakes(&fixture.peers[0].log);
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(log[0].contains("is read but not replicated"), "{log:?}");
}

#[test]
fn tracking_before_adding_panics_where_classes_are_strict_and_is_logged_otherwise() {
    let (mut strict, i, s) = class(true);
    strict.add_column(i);
    strict.track(i);
    strict.track(s);
    let text = panic_text(|| strict.add_column(s));
    assert!(
        text.starts_with("column s of table simple was tracked before it was added"),
        "{text}"
    );
    let (mut strict, ..) = class(true);
    let text = panic_text(|| strict.track_all());
    assert!(text.starts_with("`track_all` was called before"), "{text}");

    let (mut lenient, i, s) = class(false);
    lenient.track_all();
    lenient.track(s);
    lenient.add_column(s);
    lenient.add_column(i);
    assert!(!lenient.mode(s).is_tracked, "as it says");
    let mut idl = Idl::new(lenient, 1);
    assert_eq!(
        idl.poll_log(),
        Some(IdlLogMessage::Mistake(Mistake::NothingToTrack))
    );
    let replaced = Mistake::TrackingReplaced {
        table: "simple".to_owned(),
        column: "s".to_owned(),
    };
    assert_eq!(idl.poll_log(), Some(IdlLogMessage::Mistake(replaced)));
    assert_eq!(idl.poll_log(), None);
}

#[test]
fn notes_that_nobody_takes_are_bounded_and_counted() {
    let mut fixture = Fixture::with_client();
    while fixture.idl().poll_log().is_some() {}
    let refusals = LOG_MESSAGES_MAX + 100;
    let error = format!(
        r#"{{"details":"{}","error":"constraint violation"}}"#,
        "x".repeat(100_000)
    );
    for _ in 0..refusals {
        fixture.idl().begin().expect("none is open");
        fixture.insert("simple", &[]);
        let txn = fixture.commit_unheard();
        // The fixture drains the log when it runs; this message is delivered without that.
        fixture.answer_last(&format!(r#""result":[{error}],"error":null"#));
        fixture.idl().finish(txn).expect("remembered");
        fixture.forget_sent();
        fixture.peers[0].log.clear();
    }
    while fixture.idl().poll_log().is_some() {}
    assert_eq!(
        fixture.idl().log_messages_dropped(),
        0,
        "the fixture takes them"
    );
    for number in 0..refusals as u64 {
        fixture.idl().begin().expect("none is open");
        fixture.insert("simple", &[]);
        fixture.idl().commit().expect("it is open");
        let sent = loop {
            let output = fixture.idl().poll_output().expect("a transaction");
            if let Output::Send(bytes) = output {
                break String::from_utf8(bytes).expect("UTF-8");
            }
        };
        let id = sent.split([':', ',']).nth(1).expect("an id");
        fixture.hear(&format!(r#"{{"id":{id},"result":[{error}],"error":null}}"#));
        assert_eq!(
            fixture.idl().log_messages_dropped(),
            (number + 1).saturating_sub(LOG_MESSAGES_MAX as u64)
        );
    }
    let kept: Vec<IdlLogMessage> = std::iter::from_fn(|| fixture.idl().poll_log()).collect();
    assert_eq!(kept.len(), LOG_MESSAGES_MAX);
    let bytes: usize = kept.iter().map(|message| message.to_string().len()).sum();
    assert!(
        bytes < LOG_MESSAGES_MAX * 5000,
        "{bytes} bytes of text are kept"
    );
}
