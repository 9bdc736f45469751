//! Clients log to the program's logger.

use std::sync::{Mutex, Once, PoisonError};

use corvid_driver::LOG_TARGET;
use corvid_driver::blocking::Client;
use log::{LevelFilter, Log, Metadata, Record};

use crate::fixture::{TIMEOUT, class, column, insert, on_each, remote, server, string};

/// A logger that keeps everything as `LEVEL TEXT`, and records of connections as
/// `LEVEL MODULE: TEXT`.
struct Collector(Mutex<Vec<String>>);

static COLLECTOR: Collector = Collector(Mutex::new(Vec::new()));

impl Log for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("corvid::")
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let module = record.target().trim_start_matches("corvid::");
            let line = match record.target() {
                LOG_TARGET => format!("{} {}", record.level(), record.args()),
                _ => format!("{} {module}: {}", record.level(), record.args()),
            };
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            lines.push(line);
        }
    }

    fn flush(&self) {}
}

/// Collects the log from now on.
pub(crate) fn collect() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| {
        log::set_logger(&COLLECTOR).expect("no other");
        log::set_max_level(LevelFilter::Trace);
    });
}

/// The records that contain `part`.
pub(crate) fn records(part: &str) -> Vec<String> {
    let lines = COLLECTOR.0.lock().unwrap_or_else(PoisonError::into_inner);
    let found = lines.iter().filter(|line| line.contains(part));
    found.cloned().collect()
}

#[test]
fn drivers_log_through_the_facade() {
    collect();
    on_each(|implementation| {
        let server = server(implementation, &[]);
        let remote = remote(&server);
        let mut class = class();
        class.set_strict(false);
        let age = class.column("keeper", "age").expect("a column");
        class.omit(age);
        let mut client = Client::connect(class, &remote).expect("a client");
        client.wait_for_contents(TIMEOUT).expect("contents");
        let own = records(&remote);
        assert_eq!(
            own,
            [
                format!("INFO {remote}: connecting..."),
                format!("INFO {remote}: connected")
            ]
        );
        // A refused transaction, with a name that only this test uses.
        let name = column(&client, "name");
        let text = format!("{implementation:?} of logs");
        for _ in 0..2 {
            let outcome = client.transact(TIMEOUT, |idl| {
                let row = idl.insert_new(name.table)?;
                idl.write(row, name, string(&text))
            });
            drop(outcome);
        }
        let refused = records(&text);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(
            refused[0].starts_with("WARN transaction error: {"),
            "{refused:?}"
        );
        assert_eq!(client.idl_mut().poll_log(), None, "it was taken");
        // A programming mistake.
        insert(&mut client, "another");
        let row = client.rows(name.table).next().expect("two");
        assert!(client.read(row, age).is_some());
        client.run().expect("no transaction is open");
        assert!(!records("WARN column age of table keeper is read").is_empty());
    });
}
