//! `herd`: many clients fetch the whole table at once (a thundering herd): when they connect, when
//! a schema conversion has ended their monitors, and when they reconnect with their last
//! transaction id. A minimal program that delivers the same amount shows the limit.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use corvid_json::Value;
use memchr::memmem;

use crate::client_pool::{Action, ClientPool, Kind};
use crate::database_file::{self, History};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::limit;
use crate::requests;
use crate::workload::{Run, Scale, Workload};

pub(crate) struct Herd;

/// A transaction id that no server has.
pub(super) const NONE: &str = "00000000-0000-0000-0000-000000000000";

impl Workload for Herd {
    fn name(&self) -> &'static str {
        "herd"
    }

    fn about(&self) -> &'static str {
        "20 clients (full: 500) fetch 20,000 rows (full: 100,000) at once; after a conversion; reconnecting with a transaction id"
    }

    fn history(&self, scale: Scale) -> History {
        History::of_rows(rows(scale))
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let count = run.pick(20, 500);
        let mut pool = ClientPool::new()?;
        let admin = pool.connect(server.address())?;
        let clients = pool.connect_many(server.address(), count)?;
        let aware: Arc<[u8]> =
            Arc::from(br#"{"method":"set_db_change_aware","params":[true],"id":"a"}"#.as_slice());
        // A conversion disconnects clients that have not sent `set_db_change_aware`.
        pool.call_all(admin..clients.end, |_| aware.clone(), |_, _| {})?;

        run.show("first");
        let interval = server.measure_cpu()?;
        let first = fetch(&mut pool, clients.clone(), NONE)?;
        let cpu_us = interval.end()?;

        run.show("after a conversion");
        let converted = convert(&mut pool, admin, &clients)?;
        let peak_mib = server.memory()?.peak_mib;

        run.show("with a transaction id");
        drop(pool);
        let mut pool = ClientPool::new()?;
        let admin = pool.connect(server.address())?;
        // A change that the reconnecting clients have missed.
        pool.call(admin, [requests::marker().get(0).into()], |_| {})?;
        let clients = pool.connect_many(server.address(), count)?;
        let known = fetch(&mut pool, clients, &converted.txn_id)?;
        drop((pool, server));

        run.show("limit");
        let limit = limit::broadcast(count, &dump(rows(run.scale)), 1)?;
        Ok(vec![
            Figure::higher("delivered", "MB/s", first.rate()).aim(Aim::RatioAtLeast(100.0)),
            Figure::plain("limit program", "MB/s", limit.rate).digits(0),
            Figure::higher("delivered / limit", "", first.rate() / limit.rate)
                .digits(2)
                .aim(Aim::AtLeast(0.5)),
            Figure::lower("server CPU", "us/MB", cpu_us / first.megabytes).digits(0),
            Figure::plain("limit program CPU", "us/MB", limit.cpu_us).digits(0),
            Figure::lower("until all have it", "s", first.seconds).digits(3),
            Figure::lower(
                "until all have it after a conversion",
                "s",
                converted.seconds,
            )
            .digits(3),
            Figure::higher("delivered after a conversion", "MB/s", converted.rate()),
            Figure::lower("until all that come back have it", "s", known.seconds).digits(3),
            Figure::lower(
                "received by each that comes back",
                "kB",
                known.megabytes * 1e3 / count as f64,
            ),
            Figure::lower("peak memory", "MiB", peak_mib),
        ])
    }
}

fn rows(scale: Scale) -> u32 {
    scale.pick(20_000, 100_000)
}

/// The cost until all clients have all contents.
pub(super) struct Fetched {
    pub(super) seconds: f64,
    pub(super) megabytes: f64,
    /// The id of the last transaction that they have.
    pub(super) txn_id: String,
}

impl Fetched {
    fn rate(&self) -> f64 {
        self.megabytes / self.seconds
    }
}

/// Sends the monitor requests of all clients at once, and waits for the replies.
pub(super) fn fetch(
    pool: &mut ClientPool,
    clients: Range<usize>,
    since: &str,
) -> Result<Fetched, Error> {
    let (bytes, began) = (pool.received_bytes(), Instant::now());
    let (text, mut known) = (monitor(since), NONE.to_owned());
    pool.call_all(clients, |_| text.clone(), |_, reply| known = txn_id(reply))?;
    Ok(Fetched {
        seconds: began.elapsed().as_secs_f64(),
        megabytes: (pool.received_bytes() - bytes) as f64 / 1e6,
        txn_id: known,
    })
}

/// Converts the database to a schema with one more column. Each client sends its monitor request
/// again when its monitor has ended.
fn convert(pool: &mut ClientPool, admin: usize, clients: &Range<usize>) -> Result<Fetched, Error> {
    let mut schema = String::new();
    let request = br#"{"method":"get_schema","params":["Bench"],"id":"s"}"#;
    pool.call(admin, [Arc::from(request.as_slice())], |reply| {
        schema = Value::parse(reply)
            .ok()
            .and_then(|reply| {
                Some(String::from_utf8_lossy(&reply.get("result")?.to_bytes()).into_owned())
            })
            .unwrap_or_default();
    })?;
    let schema = schema.replacen(
        r#""columns":{"#,
        r#""columns":{"added":{"type":"integer"},"#,
        1,
    );
    let request = format!(r#"{{"method":"convert","params":["Bench",{schema}],"id":"v"}}"#);
    let (bytes, mut began) = (pool.received_bytes(), Instant::now());
    let (text, mut known, mut left) = (monitor(NONE), NONE.to_owned(), clients.len() + 1);
    let mut has_heard = false;
    pool.send(admin, Arc::from(request.into_bytes()))?;
    pool.run(|arrival| {
        match arrival.kind {
            Kind::Notification if clients.contains(&arrival.client) => {
                if !std::mem::replace(&mut has_heard, true) {
                    began = Instant::now();
                }
                return Action::Send(text.clone());
            }
            Kind::Reply => {
                if arrival.client != admin {
                    known = txn_id(arrival.text);
                }
                left -= 1;
            }
            Kind::Notification | Kind::Marker => {}
        }
        if left == 0 {
            Action::Stop
        } else {
            Action::Wait
        }
    })?;
    Ok(Fetched {
        seconds: began.elapsed().as_secs_f64(),
        megabytes: (pool.received_bytes() - bytes) as f64 / 1e6,
        txn_id: known,
    })
}

/// Monitors the whole table, as current clients do.
fn monitor(since: &str) -> Arc<[u8]> {
    format!(
        r#"{{"method":"monitor_cond_since","params":["Bench","m",{{"Item":[{{"columns":["name","number","up","addresses","options"]}}]}},"{since}"],"id":"m"}}"#
    )
    .into_bytes()
    .into()
}

/// Returns the second element of a reply `[found, id, updates]`, which is read from the beginning
/// of the reply.
fn txn_id(reply: &[u8]) -> String {
    let lead = br#""result":["#;
    let id = memmem::find(reply, lead).and_then(|at| {
        let rest = &reply[at + lead.len()..];
        let start = memchr::memchr(b'"', rest)? + 1;
        let id = rest.get(start..start + NONE.len())?;
        Some(String::from_utf8_lossy(id).into_owned())
    });
    id.unwrap_or_else(|| NONE.to_owned())
}

/// Returns a reply that resembles the server's.
fn dump(rows: u32) -> Arc<[u8]> {
    let mut text = format!(r#"{{"id":"m","error":null,"result":[false,"{NONE}",{{"Item":{{"#);
    for row in 0..rows {
        let comma = if row == 0 { "" } else { "," };
        text.push_str(&format!(
            r#"{comma}"{}":{{"initial":"#,
            database_file::uuid(row)
        ));
        requests::row(&mut text, &format!("item-{row:08}"), row);
        text.push('}');
    }
    text.push_str("}}]}");
    text.into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_is_a_reply_and_has_a_transaction_id() {
        let text = dump(3);
        Value::parse(&text).unwrap();
        assert_eq!(txn_id(&text), NONE);
        let other = br#"{"result":[true,"01234567-0000-4000-8000-000000000001",{}],"id":1}"#;
        assert_eq!(txn_id(other), "01234567-0000-4000-8000-000000000001");
    }
}
