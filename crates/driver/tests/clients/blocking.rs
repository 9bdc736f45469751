//! The blocking client.

use std::time::Duration;

use corvid_data::{Atom, Datum, Tag};
use corvid_driver::blocking::Client;
use corvid_driver::{Error, Refused};
use corvid_idl::{FetchOutcome, Idl, Misuse, Status};
use corvid_json::Value;
use corvid_session::{Clause, Condition, Function};

use crate::fixture::{TIMEOUT, class, column, names, on_each, remote, server, string};

/// A client that has its contents.
fn connected(remote: &str) -> Client {
    let mut client = Client::connect(class(), remote).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    client
}

#[test]
fn transactions_are_made_again_until_they_fit() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let (mut ann, mut bob) = (connected(&remote(&server)), connected(&remote(&server)));
        let (name, age) = (column(&ann, "name"), column(&ann, "age"));
        let inserted = ann
            .transact(TIMEOUT, |idl| -> Result<_, Misuse> {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string("ann"))?;
                Ok(row)
            })
            .expect("it fits");
        let inserted = inserted.inserted(inserted.value).expect("told");
        bob.wait_until(TIMEOUT, |idl| idl.row_count(name.table) == 1)
            .expect("told");
        let row = ann
            .row(name.table, inserted.uuid)
            .expect("shown before the answer");
        // Another client commits first, once.
        let mut tries = 0;
        ann.transact(TIMEOUT, |idl| {
            tries += 1;
            idl.verify(row, age)?;
            let now = idl
                .read(row, age)
                .and_then(|age| age.as_integer())
                .unwrap_or(0);
            if tries == 1 {
                let other = bob.transact(TIMEOUT, |idl| {
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
            .transact(TIMEOUT, |idl| {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string("ann"))
            })
            .expect_err("a name twice");
        let Error::Refused(Refused::Commit { tag, details }) = &same else {
            panic!("{same}");
        };
        assert_eq!(*tag, Tag::ConstraintViolation);
        assert!(details.contains("\"keeper\""), "{details}");
        assert!(same.to_string().contains("constraint violation: "));
        let misused = bob.transact(TIMEOUT, |idl| idl.write(row, name, Datum::empty()));
        assert!(matches!(misused, Err(Error::Misuse(Misuse::Constraint(_)))));
        let nothing = bob.transact(TIMEOUT, |_| Ok::<_, Misuse>(7));
        assert!(matches!(nothing.map(|done| done.value), Ok(7)));
    });
}

/// A program's own errors.
#[derive(Debug)]
enum Problem {
    TooOld(i64),
    Database(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::Database(error)
    }
}

impl From<Misuse> for Problem {
    fn from(misuse: Misuse) -> Problem {
        Problem::Database(misuse.into())
    }
}

#[test]
fn a_programs_own_error_comes_out_as_it_went_in() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = connected(&remote(&server));
        let (name, age) = (column(&client, "name"), column(&client, "age"));
        let insert = |idl: &mut Idl, years: i64| -> Result<(), Problem> {
            let row = idl.insert_new(name.table)?;
            idl.write(row, age, Datum::one(Atom::Integer(years)))?;
            if years > 150 {
                return Err(Problem::TooOld(years));
            }
            Ok(())
        };
        let outcome = client.transact(TIMEOUT, |idl| insert(idl, 200));
        assert!(matches!(outcome, Err(Problem::TooOld(200))));
        assert_eq!(client.open_txn(), None, "it is given up");
        assert_eq!(client.row_count(name.table), 0);
        client
            .transact(TIMEOUT, |idl| insert(idl, 20))
            .expect("it fits");
        let outcome = client.transact(TIMEOUT, |idl| insert(idl, 30));
        assert!(
            matches!(&outcome, Err(Problem::Database(Error::Refused(why))) if why.operation().is_none()),
            "the same name twice: {outcome:?}"
        );
        // So do types that hold any error.
        let outcome = client.transact(TIMEOUT, |_| -> Result<(), Box<dyn std::error::Error>> {
            Err("no number".parse::<i64>().unwrap_err())?
        });
        assert!(outcome.unwrap_err().is::<std::num::ParseIntError>());
    });
}

#[test]
fn an_operation_that_fails_is_told_by_its_place() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let mut client = connected(&remote(&server));
        let name = column(&client, "name");
        let operation = br#"{"op":"insert","table":"keeper","row":{"age":"old"}}"#;
        let operation = Value::parse(operation).expect("JSON");
        let outcome = client.transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string("ann"))?;
            idl.add_operation(&operation)
        });
        let Err(Error::Refused(refused)) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(refused.operation(), Some(1), "{refused}");
        assert_eq!(refused.tag(), Some(Tag::SyntaxError), "{refused}");
        assert!(!refused.details().is_empty());
        assert!(
            refused
                .to_string()
                .starts_with("operation 1: syntax error: ")
        );
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
        assert!(matches!(outcome, Err(Error::TimedOut(None))));
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
        ann.transact(TIMEOUT, |idl| {
            let row = idl.insert_new(name.table)?;
            idl.write(row, name, string(&long))?;
            idl.add_value(row, tags, Atom::String("ü\"\\\u{1}".into()))
        })
        .expect("it fits");
        bob.wait_until(TIMEOUT, |idl| idl.row_count(name.table) == 1)
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
            .transact(TIMEOUT, |idl| -> Result<_, Misuse> {
                for text in ["a", "b"] {
                    let row = idl.insert_new(name.table)?;
                    idl.write(row, name, string(text))?;
                    idl.write(row, secret, string("xyzzy"))?;
                }
                Ok(())
            })
            .expect("it fits");
        let fetch = client.idl_mut().fetch_column(secret).expect("on demand");
        let outcome = client.finish_fetch(fetch, TIMEOUT);
        assert!(matches!(outcome, Ok(FetchOutcome::Success)));
        let row = client.rows(name.table).next().expect("two");
        assert_eq!(client.read(row, secret), Some(string("xyzzy")));
        let mut wanted = Condition::none();
        wanted.add(Clause::new("name", Function::Equal, &string("b"), false));
        client
            .set_condition((name.table, wanted), TIMEOUT)
            .expect("in force");
        assert_eq!(names(&client), ["b"]);
    });
}
