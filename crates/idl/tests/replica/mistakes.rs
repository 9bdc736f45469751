//! Mistakes of programs: panics of strict classes, notes otherwise; and how many notes wait when nobody takes them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use corvid_data::{Arc, Str};
use corvid_idl::note::NOTES_MAX;
use corvid_idl::{Class, Column, Idl, IdlNote, Mistake};
use corvid_session::Output;

use crate::bed::{Bed, integer, schema};

/// The text of the panic that this is.
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

fn mistakes(notes: &[String]) -> Vec<&String> {
    let mistakes = notes.iter().filter(|note| note.contains("column s"));
    mistakes.collect()
}

/// A client that holds `i` of the only row, and not `s`.
fn holding_one_column(is_strict: bool) -> (Bed, Column, Column) {
    let (mut class, i, s) = class(is_strict);
    class.add_column(i);
    let mut bed = Bed::new(false);
    bed.add(class);
    bed.server
        .transact(r#"{"op":"insert","table":"simple","row":{"s":"a","i":1}}"#);
    bed.run();
    (bed, i, s)
}

#[test]
fn reading_a_column_that_is_not_replicated_panics_where_classes_are_strict() {
    let (mut bed, i, s) = holding_one_column(true);
    let row = bed.idl().rows(i.table).next().expect("one");
    assert_eq!(bed.idl().read(row, i), Some(integer(1)));
    let text = panic_text(|| drop(bed.idl().read(row, s)));
    assert!(
        text.starts_with("column s of table simple is read but not replicated"),
        "{text}"
    );
    // Of a row that this client inserts it is known what the column holds.
    bed.idl().begin().expect("none is open");
    let new = bed.idl().insert_new(i.table).expect("new");
    assert!(bed.idl().read(new, s).is_some());
}

#[test]
fn reading_a_column_that_is_not_replicated_is_noted_once_otherwise() {
    let (mut bed, i, s) = holding_one_column(false);
    let row = bed.idl().rows(i.table).next().expect("one");
    for _ in 0..3 {
        let value = bed.idl().read(row, s).expect("a row");
        assert_eq!(value.as_string().map(Str::as_str), Some(""));
        bed.run();
    }
    let notes = mistakes(&bed.peers[0].notes);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("is read but not replicated"), "{notes:?}");
}

#[test]
fn tracking_before_adding_panics_where_classes_are_strict_and_is_noted_otherwise() {
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
        idl.poll_note(),
        Some(IdlNote::Mistake(Mistake::NothingToTrack))
    );
    let replaced = Mistake::TrackingReplaced {
        table: "simple".to_owned(),
        column: "s".to_owned(),
    };
    assert_eq!(idl.poll_note(), Some(IdlNote::Mistake(replaced)));
    assert_eq!(idl.poll_note(), None);
}

#[test]
fn notes_that_nobody_takes_are_bounded_and_counted() {
    let mut bed = Bed::with_client();
    while bed.idl().poll_note().is_some() {}
    let refusals = NOTES_MAX + 100;
    let error = format!(
        r#"{{"details":"{}","error":"constraint violation"}}"#,
        "x".repeat(100_000)
    );
    for _ in 0..refusals {
        bed.idl().begin().expect("none is open");
        bed.insert("simple", &[]);
        let txn = bed.commit_unheard();
        // The bed takes notes when it runs; what follows is heard without it.
        bed.answer_last(&format!(r#""result":[{error}],"error":null"#));
        bed.idl().finish(txn).expect("remembered");
        bed.forget_sent();
        bed.peers[0].notes.clear();
    }
    while bed.idl().poll_note().is_some() {}
    assert_eq!(bed.idl().notes_dropped(), 0, "the bed takes them");
    for number in 0..refusals as u64 {
        bed.idl().begin().expect("none is open");
        bed.insert("simple", &[]);
        bed.idl().commit().expect("it is open");
        let sent = loop {
            let output = bed.idl().poll_output().expect("a transaction");
            if let Output::Send(bytes) = output {
                break String::from_utf8(bytes).expect("UTF-8");
            }
        };
        let id = sent.split([':', ',']).nth(1).expect("an id");
        bed.hear(&format!(r#"{{"id":{id},"result":[{error}],"error":null}}"#));
        assert_eq!(
            bed.idl().notes_dropped(),
            (number + 1).saturating_sub(NOTES_MAX as u64)
        );
    }
    let kept: Vec<IdlNote> = std::iter::from_fn(|| bed.idl().poll_note()).collect();
    assert_eq!(kept.len(), NOTES_MAX);
    let bytes: usize = kept.iter().map(|note| note.to_string().len()).sum();
    assert!(bytes < NOTES_MAX * 5000, "{bytes} bytes of text are kept");
}
