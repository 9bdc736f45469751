//! Programs can match the reasons of failures through names that this crate alone exports.

use std::io::ErrorKind;
use std::time::Duration;

use corvid::blocking::Client;
use corvid::{
    Abort, Class, Error, Failure, Reason, Refused, RemoteError, Schema, ServerFailure, Tag,
};

fn class() -> Class {
    let text = include_bytes!("../../doc/inventory.ovsschema");
    let json = corvid::json::Value::parse(text).expect("JSON");
    let schema = Schema::from_json(&json).expect("a schema");
    Class::everything(corvid::data::Arc::new(schema))
}

/// Stands for a program's own error handling.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::Remote(RemoteError::UnknownScheme { .. }) => "look at the spelling",
        Error::Remote(_) => "look at the configuration",
        Error::TimedOut(Some(Failure { reason, .. })) => match reason {
            Reason::Connection {
                kind: ErrorKind::ConnectionRefused | ErrorKind::NotFound,
                ..
            } => "start the server",
            Reason::Server(ServerFailure::NoSuchDatabase) => "create the database",
            Reason::Tls(_) => "look at the certificates",
            _ => "look at the network",
        },
        Error::Refused(Refused::Commit {
            tag: Tag::ConstraintViolation,
            ..
        }) => "look at the data",
        _ => "ask for help",
    }
}

#[test]
fn reasons_can_be_matched() {
    let error = Client::connect(class(), "unixx:/a").expect_err("no scheme");
    assert_eq!(advice(&error), "look at the spelling");
    let error = Client::connect(class(), "").expect_err("nothing");
    assert_eq!(advice(&error), "look at the configuration");
    let mut client = Client::connect(class(), "unix:/nowhere/at/all").expect("well formed");
    let limit = Some(Duration::from_secs(60));
    client
        .wait_for_session(limit, |session| session.last_failure.is_some())
        .expect("no such socket");
    let soon = Some(Duration::from_millis(20));
    let error = client.wait_for_contents(soon).expect_err("nobody is there");
    assert_eq!(advice(&error), "start the server");
    let refused = Refused::Commit {
        tag: Tag::ConstraintViolation,
        details: "two of one name".to_owned(),
    };
    assert_eq!(advice(&Error::Refused(refused)), "look at the data");
}

/// `transact` returns these error types of programs unchanged.
#[test]
fn common_types_of_errors_may_end_a_transaction() {
    fn is_abort<E: Abort>() {}
    is_abort::<corvid::Misuse>();
    is_abort::<Error>();
    is_abort::<Box<dyn std::error::Error>>();
    is_abort::<Box<dyn std::error::Error + Send + Sync>>();
}
