//! The client for tokio.

use std::ops::ControlFlow;
use std::time::Duration;

use corvid_data::{Atom, Datum};
use corvid_driver::tokio::Client;
use corvid_driver::{Error, HistoryQuestion};
use corvid_idl::{FetchOutcome, Misuse};
use corvid_tests::server::Implementation;

use crate::fixture::{TIMEOUT, class, column, names, on_each, remote, server, string};
use crate::history::{SELECT, wait_for_no_reading};

async fn connected(remote: String) -> Client {
    let mut client = Client::connect(class(), &remote).expect("a client");
    client.wait_for_contents().await.expect("contents");
    client
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let limit = TIMEOUT.expect("some");
    runtime
        .block_on(async { tokio::time::timeout(limit, future).await })
        .expect("in time")
}

#[test]
fn tasks_of_one_runtime_are_clients_of_one_server() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let remote = remote(&server);
        block_on(async {
            let mut watcher = connected(remote.clone()).await;
            let counter = tokio::spawn(count(remote.clone()));
            let other = count(remote).await;
            let first = counter.await.expect("no panic");
            assert_eq!(first.min(other), 1, "one of them was the first");
            let age = column(&watcher, "age");
            watcher
                .wait_until(|idl| {
                    let row = idl.rows(age.table).next();
                    let age = row.and_then(|row| idl.read(row, age)?.as_integer());
                    age == Some(10)
                })
                .await
                .expect("told");
            assert_eq!(names(&watcher), ["counter"]);
            // The client continues after a dropped wait.
            let seqno = watcher.change_seqno();
            let soon = Duration::from_millis(10);
            let nothing = tokio::time::timeout(soon, watcher.wait_for_change(seqno)).await;
            assert!(nothing.is_err());
            let secret = column(&watcher, "secret");
            let fetch = watcher.idl_mut().fetch_column(secret).expect("on demand");
            let outcome = watcher.finish_fetch(fetch).await;
            assert!(matches!(outcome, Ok(FetchOutcome::Success)));
        });
    });
}

#[test]
fn the_past_is_read_by_a_task() {
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let remote = remote(&server);
        block_on(async {
            let mut client = connected(remote).await;
            let log = HistoryQuestion::log();
            if implementation == Implementation::Reference {
                let refused = client
                    .read_history(&log, |_| ControlFlow::Continue(()))
                    .await;
                let is_refused = matches!(refused, Err(Error::HistoryUnsupported));
                assert!(is_refused, "{refused:?}");
                let refused = client.select_at("HEAD", SELECT).await;
                let is_refused = matches!(refused, Err(Error::HistoryUnsupported));
                assert!(is_refused, "{refused:?}");
                return;
            }
            let name = column(&client, "name");
            // Long enough for several pages.
            let long = "x".repeat(200 * 1024);
            for number in 0..3 {
                let text = format!("{number}{long}");
                let insert = client.transact(|idl| -> Result<_, Misuse> {
                    let row = idl.insert_new(name.table)?;
                    idl.write(row, name, string(&text))
                });
                insert.await.expect("a row");
            }
            let mut names = Vec::new();
            let read = client.read_history(&log, |line| {
                let line = String::from_utf8_lossy(line);
                let new = line
                    .split_once(r#""name":{"new":""#)
                    .expect("an insertion")
                    .1;
                names.push(new[..1].to_owned());
                ControlFlow::Continue(())
            });
            read.await.expect("a log");
            assert_eq!(names, ["0", "1", "2"]);
            let then = client.select_at("HEAD~2", SELECT).await.expect("rows");
            assert_eq!(
                String::from_utf8_lossy(&then),
                format!(r#"[{{"rows":[{{"name":"0{long}"}}]}}]"#)
            );
            let refused = client.select_at("HEAD~9", SELECT).await;
            let is_refused = matches!(&refused, Err(Error::HistoryRefused(error))
                if error.contains("is before the history"));
            assert!(is_refused, "{refused:?}");

            // More readings are dropped than a server does at a time.
            for _ in 0..6 {
                let soon = Duration::from_millis(1);
                let read = client.read_history(&log, |_| ControlFlow::Continue(()));
                let _ = tokio::time::timeout(soon, read).await;
            }
            let mut count = 0;
            let read = client.read_history(&log, |_| {
                count += 1;
                ControlFlow::Break(())
            });
            read.await.expect("the beginning");
            assert_eq!(count, 1);
            wait_for_no_reading(&server);
            assert!(client.session().is_synced, "the session goes on");
        });
    });
}

/// Adds five to a counter, one at a time, creating the counter if it is missing. Returns its value
/// after the first addition.
async fn count(remote: String) -> i64 {
    let mut client = connected(remote).await;
    let (name, age) = (column(&client, "name"), column(&client, "age"));
    let mut first = None;
    for _ in 0..5 {
        // Two tasks may create the counter at once. Its name is unique, so the server refuses one
        // of them, and that task looks again.
        let sum = loop {
            let made = client
                .transact(|idl| -> Result<_, Misuse> {
                    let there = idl.rows(name.table).next();
                    let row = match there {
                        Some(row) => row,
                        None => {
                            let row = idl.insert_new(name.table)?;
                            idl.write(row, name, string("counter"))?;
                            row
                        }
                    };
                    idl.verify(row, age)?;
                    let now = idl.read(row, age).and_then(|age| age.as_integer());
                    let sum = now.unwrap_or(0) + 1;
                    idl.write(row, age, Datum::one(Atom::Integer(sum)))?;
                    Ok(sum)
                })
                .await;
            match made {
                Ok(made) => break made.value,
                Err(corvid_driver::Error::Refused(_)) => {}
                Err(error) => panic!("{error}"),
            }
        };
        first.get_or_insert(sum);
    }
    first.unwrap_or(0)
}
