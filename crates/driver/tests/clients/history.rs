//! The history of the database, read from the server.

use std::fs;
use std::ops::ControlFlow;
use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::{Duration, Instant};

use corvid_driver::blocking::Client;
use corvid_driver::{Error, HistoryPage, HistoryQuestion, HistoryReading, SessionState};
use corvid_driver::{polled, shared};
use corvid_session::Outcome;
use corvid_tests::server::{Implementation, Server};

use crate::fixture::{TIMEOUT, class, insert, on_each, remote, server};

pub(crate) const SELECT: &str =
    r#"[{"op":"select","table":"keeper","where":[],"columns":["name"]}]"#;

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
        let wrong = lines(&mut client, &HistoryQuestion::files().since("-2h"));
        let Err(Error::HistoryQuestion(wrong)) = wrong else {
            panic!("{wrong:?}");
        };
        let text = r#"a reading of "files" takes no "since""#;
        assert_eq!(wrong.to_string(), text);
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

/// Fills the table with rows whose log does not fit into one page.
fn fill(client: &mut Client) {
    for number in 0..3 {
        insert(client, &format!("{number}{}", "x".repeat(200 * 1024)));
    }
}

fn readings(server: &Server) -> usize {
    let tasks = format!("/proc/{}/task", server.pid());
    let tasks = fs::read_dir(tasks).expect("the server's threads");
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names
        .filter(|name| name.starts_with("history-read"))
        .count()
}

/// Waits until the server does nothing of this kind.
pub(crate) fn wait_for_no_reading(server: &Server) {
    let begun = Instant::now();
    while readings(server) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "a reading stays");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_reading_that_is_not_wanted_any_more_ends_at_the_server() {
    let server = server(Implementation::Corvid, &[]);
    let remote = remote(&server);
    let mut client = Client::connect(class(), &remote).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    fill(&mut client);
    // More than a server does at a time.
    for _ in 0..6 {
        let mut count = 0;
        let read = client.read_history(&HistoryQuestion::log(), TIMEOUT, |_| {
            count += 1;
            ControlFlow::Break(())
        });
        read.expect("the beginning");
        assert_eq!(count, 1, "{}", readings(&server));
    }
    wait_for_no_reading(&server);

    let shared = shared::Client::connect(class(), &remote).expect("a client");
    shared.wait_for_contents(TIMEOUT).expect("contents");
    let panic = panic::catch_unwind(AssertUnwindSafe(|| {
        shared.read_history(&HistoryQuestion::log(), TIMEOUT, |_| panic!("a mistake"))
    }));
    assert!(panic.is_err());
    wait_for_no_reading(&server);
}

#[test]
fn a_reading_ends_with_its_connection() {
    let server = server(Implementation::Corvid, &[]);
    let remote = remote(&server);
    let mut client = Client::connect(class(), &remote).expect("a client");
    client.wait_for_contents(TIMEOUT).expect("contents");
    fill(&mut client);
    let log = HistoryQuestion::log();
    let mut reading = polled::Client::read_history(&client, &log).expect("a question");
    let mut lines = 0;
    while lines == 0 {
        lines = next_page(&mut client, &mut reading)
            .expect("a page")
            .lines
            .len();
    }
    assert!(lines < 3 && !reading.is_over(), "{lines}");
    // The second page comes, but is not taken before the connection is lost.
    assert_eq!(reading.take(&mut client).expect("a request"), None);
    while !reading.is_ready(&client) {
        client.run().expect("no transaction");
        thread::sleep(Duration::from_millis(1));
    }
    let before = client.session().seqno;
    client.reconnect();
    let is_new = |session: &SessionState| session.seqno > before + 1 && session.is_synced;
    client.wait_for_session(TIMEOUT, is_new).expect("again");
    next_page(&mut client, &mut reading).expect("the second page");
    assert!(!reading.is_over());
    let lost = next_page(&mut client, &mut reading);
    assert!(matches!(lost, Err(Error::HistoryLost)), "{lost:?}");
    assert!(reading.is_over());

    let mut reading = polled::Client::read_history(&client, &log).expect("a question");
    let mut lines = 0;
    while !reading.is_over() {
        let page = next_page(&mut client, &mut reading).expect("a page");
        lines += page.lines.len();
        assert!((0.0..=1.0).contains(&page.done));
    }
    assert_eq!(lines, 3);
}

/// Waits for the next page, as a program with a loop of its own does.
fn next_page(client: &mut Client, reading: &mut HistoryReading) -> Result<HistoryPage, Error> {
    let begun = Instant::now();
    loop {
        client.run().expect("no transaction");
        if let Some(page) = reading.take(client)? {
            return Ok(page);
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "no page comes");
        let _ = client.wait();
        thread::sleep(Duration::from_millis(1));
    }
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
