//! The blocking client.

use std::time::Duration;

use corvid_cs::{Clause, Condition, Function};
use corvid_data::{Atom, Datum};
use corvid_driver::Error;
use corvid_driver::blocking::Client;
use corvid_idl::{FetchOutcome, Misuse, Status};

use crate::bed::{PATIENCE, class, column, names, on_each, remote, server, string};

/// A client that has its contents.
fn connected(remote: &str) -> Client {
    let mut client = Client::connect(class(), remote).expect("a client");
    client.wait_for_contents(PATIENCE).expect("contents");
    client
}

#[test]
fn transactions_are_made_again_until_they_fit() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let (mut ann, mut bob) = (connected(&remote(&server)), connected(&remote(&server)));
        let (name, age) = (column(&ann, "name"), column(&ann, "age"));
        let inserted = ann
            .transact(PATIENCE, |idl| {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string("ann"))?;
                Ok(row)
            })
            .expect("it fits");
        let inserted = inserted.inserted(inserted.value).expect("told");
        bob.wait_until(PATIENCE, |idl| idl.row_count(name.table) == 1)
            .expect("told");
        let row = ann
            .row(name.table, inserted.uuid)
            .expect("shown before the answer");
        // Somebody else is faster, once.
        let mut tries = 0;
        ann.transact(PATIENCE, |idl| {
            tries += 1;
            idl.verify(row, age)?;
            let now = idl
                .read(row, age)
                .and_then(|age| age.as_integer())
                .unwrap_or(0);
            if tries == 1 {
                let other = bob.transact(PATIENCE, |idl| {
                    idl.write(row, age, Datum::one(Atom::Integer(40)))
                });
                assert!(other.is_ok());
            }
            idl.write(row, age, Datum::one(Atom::Integer(now + 1)))
        })
        .expect("in the end");
        assert_eq!(tries, 2);
        assert_eq!(
            ann.read(row, age).and_then(|age| age.as_integer()),
            Some(41)
        );
        let same = bob
            .transact(PATIENCE, |idl| {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string("ann"))
            })
            .expect_err("a name twice");
        assert!(matches!(&same, Error::Refused(json) if json.contains("constraint violation")));
        let misused = bob.transact(PATIENCE, |idl| idl.write(row, name, Datum::empty()));
        assert!(matches!(misused, Err(Error::Misuse(Misuse::Constraint(_)))));
        let nothing = bob.transact(PATIENCE, |_| Ok(7)).map(|done| done.value);
        assert!(matches!(nothing, Ok(7)));
    });
}

#[test]
fn waits_end_in_time() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = connected(&remote(&server));
        let seqno = client.change_seqno();
        let soon = Some(Duration::from_millis(20));
        let outcome = client.wait_for_change(seqno, soon);
        assert!(matches!(outcome, Err(Error::TimedOut)));
        let outcome = client.commit(soon);
        assert!(matches!(outcome, Err(Error::Misuse(Misuse::NoTransaction))));
        client.idl_mut().begin().unwrap();
        let outcome = client.wait_for_change(seqno, soon);
        assert!(matches!(
            outcome,
            Err(Error::Misuse(Misuse::TransactionOpen))
        ));
        assert!(matches!(client.commit(soon), Ok(Status::Unchanged)));
    });
}

#[test]
fn long_texts_arrive_in_pieces_and_intact() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let (mut ann, mut bob) = (connected(&remote(&server)), connected(&remote(&server)));
        let (name, tags) = (column(&ann, "name"), column(&ann, "tags"));
        let long = "Grüße, 世界 🌍 ".repeat(20_000);
        ann.transact(PATIENCE, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string(&long))?;
            idl.add_value(row, tags, Atom::String("ü\"\\\u{1}".into()))
        })
        .expect("it fits");
        bob.wait_until(PATIENCE, |idl| idl.row_count(name.table) == 1)
            .expect("told");
        assert_eq!(names(&bob), [long]);
    });
}

#[test]
fn fetches_and_conditions_are_waited_for() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = connected(&remote(&server));
        let (name, secret) = (column(&client, "name"), column(&client, "secret"));
        client
            .transact(PATIENCE, |idl| {
                for text in ["a", "b"] {
                    let row = idl.insert_new(name.table)?;
                    idl.write(row, name, string(text))?;
                    idl.write(row, secret, string("xyzzy"))?;
                }
                Ok(())
            })
            .expect("it fits");
        let fetch = client.idl_mut().fetch_column(secret).expect("on demand");
        let outcome = client.finish_fetch(fetch, PATIENCE);
        assert!(matches!(outcome, Ok(FetchOutcome::Success)));
        let row = client.rows(name.table).next().expect("two");
        assert_eq!(client.read(row, secret), Some(string("xyzzy")));
        let mut wanted = Condition::none();
        wanted.add(Clause::new("name", Function::Equal, &string("b"), false));
        client
            .set_condition(name.table, wanted, PATIENCE)
            .expect("in force");
        assert_eq!(names(&client), ["b"]);
    });
}
