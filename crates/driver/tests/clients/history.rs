//! The history of the database, read from the server.

use std::ops::ControlFlow;

use corvid_driver::blocking::Client;
use corvid_driver::{Error, HistoryQuestion, shared};
use corvid_session::Outcome;
use corvid_tests::server::Implementation;

use crate::fixture::{TIMEOUT, class, insert, on_each, remote, server};

const SELECT: &str = r#"[{"op":"select","table":"keeper","where":[],"columns":["name"]}]"#;

fn lines(client: &mut Client, question: &HistoryQuestion) -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    client.read_history(question, TIMEOUT, |line| {
        lines.push(String::from_utf8_lossy(line).into_owned());
        ControlFlow::Continue(())
    })?;
    Ok(lines)
}

#[test]
fn history_is_read_from_servers_that_offer_it() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let remote = remote(&server);
        let mut client = Client::connect(class(), &remote).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        if implementation == Implementation::Reference {
            let refused = lines(&mut client, &HistoryQuestion::log());
            assert!(
                matches!(refused, Err(Error::HistoryUnsupported)),
                "{refused:?}"
            );
            let refused = client.select_at("HEAD", SELECT, TIMEOUT);
            assert!(
                matches!(refused, Err(Error::HistoryUnsupported)),
                "{refused:?}"
            );
            return;
        }
        for name in ["ann", "bob", "cid"] {
            insert(&mut client, name);
        }
        let log = lines(&mut client, &HistoryQuestion::log()).expect("a log");
        assert_eq!(log.len(), 3, "{log:?}");
        assert!(log[2].contains(r#""name":{"new":"cid"}"#), "{log:?}");
        let last = lines(&mut client, &HistoryQuestion::log().newest(1)).expect("a log");
        assert_eq!(last, log[2..]);
        let schema = lines(&mut client, &HistoryQuestion::schema("HEAD")).expect("a schema");
        assert!(schema[0].contains(r#""name":"zoo""#), "{schema:?}");
        let wrong = client.select_at("HEAD", "{},", TIMEOUT);
        assert!(matches!(wrong, Err(Error::NotOperations)), "{wrong:?}");
        let then = client.select_at("HEAD~2", SELECT, TIMEOUT).expect("rows");
        assert_eq!(then, br#"[{"rows":[{"name":"ann"}]}]"#);

        // The program ends a reading early.
        let mut count = 0;
        let read = client.read_history(&HistoryQuestion::log(), TIMEOUT, |_| {
            count += 1;
            ControlFlow::Break(())
        });
        read.expect("the beginning");
        assert_eq!(count, 1);

        let refused = lines(&mut client, &HistoryQuestion::log().since("HEAD~9"));
        let Err(Error::HistoryRefused(error)) = refused else {
            panic!("{refused:?}");
        };
        assert!(error.contains("is before the history"), "{error}");

        let shared = shared::Client::connect(class(), &remote).expect("a client");
        let mut count = 0;
        let read = shared.read_history(&HistoryQuestion::log(), TIMEOUT, |_| {
            count += 1;
            ControlFlow::Continue(())
        });
        read.expect("a log");
        assert_eq!(count, 3);
        let now = shared.select_at("HEAD", SELECT, TIMEOUT).expect("rows");
        assert_eq!(
            now.windows(5).filter(|window| window == b"\"name").count(),
            3
        );
    });
}

#[test]
fn answers_that_nobody_takes_are_dropped() {
    let server = server(Implementation::Corvid, &[]);
    let mut client = Client::connect(class(), &remote(&server)).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    let ask = |_| client.idl_mut().ask("list_dbs", b"[]").expect("connected");
    let asked: Vec<_> = (0..corvid_idl::idl::ASKED_MAX + 2).map(ask).collect();
    let last = asked[asked.len() - 1];
    client
        .wait_until(TIMEOUT, |idl| idl.is_answered(last))
        .expect("an answer");
    assert!(client.is_answered(asked[0]), "it is forgotten");
    assert_eq!(client.idl_mut().take_answer(asked[1]), Outcome::Lost);
    for request in &asked[2..] {
        let answer = client.idl_mut().take_answer(*request);
        assert!(matches!(answer, Outcome::Result(_)), "{answer:?}");
        assert_eq!(client.idl_mut().take_answer(*request), Outcome::Lost);
    }
}
