//! `conditions`: many clients with one condition each, like hypervisors. Measures what a
//! transaction that concerns one of them costs the server, and what a change of each condition
//! costs.

use std::ops::Range;
use std::sync::Arc;

use crate::client_pool::{Action, ClientPool, Kind};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::workload::{Run, Workload};

pub(crate) struct Conditions;

/// The numbers of clients, each with the aim for the ratio of the CPU time.
const CLIENTS: [(usize, Aim); 3] = [
    (100, Aim::None),
    (500, Aim::RatioAtMost(0.05)),
    (1000, Aim::None),
];
/// The number of hosts that rows belong to, which is at least the number of clients.
const HOSTS: usize = 1000;
/// The number of connections that update, each with one request in flight.
const WRITERS: usize = 10;
/// The number of rows in each transaction of the preparation.
const ROWS_PER_FILL: usize = 1000;

impl Workload for Conditions {
    fn name(&self) -> &'static str {
        "conditions"
    }

    fn about(&self) -> &'static str {
        "50,000 rows; 100, 500 and 1,000 clients each monitor the rows of one host; updates that concern one client; new conditions"
    }

    fn drive(&self, run: &Run<'_>) -> Result<Vec<Figure>, Error> {
        let server = run.start()?;
        let transactions = run.pick(5_000, 100_000);
        let changes = run.pick(100, HOSTS);
        let mut filler = ClientPool::new()?;
        filler.connect(server.address())?;
        let uuids = fill(&mut filler, 50_000, HOSTS)?;
        drop(filler);

        let mut figures = Vec::new();
        let mut costs_us = Vec::new();
        for (count, aim) in CLIENTS {
            run.show(&format!("{count} clients"));
            let mut pool = ClientPool::new()?;
            let writers = pool.connect_many(server.address(), WRITERS)?;
            let clients = pool.connect_many(server.address(), count)?;
            let first = clients.start;
            pool.call_all(clients.clone(), |client| monitor(client - first), |_, _| {})?;

            let interval = server.measure_cpu()?;
            update(&mut pool, writers, &clients, &uuids, transactions)?;
            let cost_us = interval.end()? / transactions as f64;
            costs_us.push(cost_us);

            let changing = first..clients.end.min(first + changes);
            let interval = server.measure_cpu()?;
            pool.call_all(
                changing.clone(),
                |client| change((client - first + count / 2) % HOSTS),
                |_, _| {},
            )?;
            let change_us = interval.end()? / changing.len() as f64;
            figures.push(
                Figure::lower("server CPU", "us/txn", cost_us)
                    .aim(aim)
                    .at("clients", count as f64),
            );
            figures.push(
                Figure::lower("server CPU of a change of condition", "us", change_us)
                    .digits(0)
                    .at("clients", count as f64),
            );
        }
        let growth = costs_us[costs_us.len() - 1] / costs_us[0];
        figures.push(
            Figure::lower("cost at 1,000 clients / at 100", "", growth)
                .digits(2)
                .aim(Aim::AtMost(1.3)),
        );
        Ok(figures)
    }
}

/// Inserts `rows` rows, which belong to `hosts` hosts in turn, from the first client. Returns their
/// UUIDs.
pub(super) fn fill(pool: &mut ClientPool, rows: usize, hosts: usize) -> Result<Vec<String>, Error> {
    let mut uuids = Vec::with_capacity(rows);
    let texts = (0..rows).step_by(ROWS_PER_FILL).map(|first| {
        let mut text = r#"{"method":"transact","params":["Bench""#.to_owned();
        for row in first..rows.min(first + ROWS_PER_FILL) {
            text.push_str(r#",{"op":"insert","table":"Item","row":"#);
            let host = u32::try_from(row % hosts).unwrap_or(u32::MAX);
            requests::row(&mut text, &format!("item-{row:08}"), host);
            text.push('}');
        }
        text.push_str(&format!(r#"],"id":{first}}}"#));
        Arc::from(text.into_bytes())
    });
    pool.call(0, texts, |reply| {
        uuids.extend(requests::inserted_uuids(reply));
    })?;
    Ok(uuids)
}

/// Sends updates, each of a row that one of `clients` monitors, and waits until each client has
/// received its updates.
fn update(
    pool: &mut ClientPool,
    writers: Range<usize>,
    clients: &Range<usize>,
    uuids: &[String],
    transactions: usize,
) -> Result<(), Error> {
    let count = clients.len();
    let mut sent = 0;
    let mut next = || {
        let number = sent;
        sent += 1;
        // The updates go over all hosts and all rows in turn, so that as much time as possible
        // passes until a row or host is updated again.
        let host = number % count;
        let row = number / count * HOSTS + host;
        update_text(&uuids[row % uuids.len()], number)
    };
    for writer in writers.clone() {
        pool.send(writer, next())?;
    }
    let (mut answered, mut begun) = (0, writers.len());
    pool.run(|arrival| {
        if arrival.kind != Kind::Reply || !writers.contains(&arrival.client) {
            return Action::Wait;
        }
        answered += 1;
        if begun < transactions {
            begun += 1;
            return Action::Send(next());
        }
        if answered == transactions {
            Action::Stop
        } else {
            Action::Wait
        }
    })?;
    // The reply to an echo comes after all earlier updates on its connection.
    let echo: Arc<[u8]> = requests::echo(0).into_bytes().into();
    pool.call_all(clients.clone(), |_| echo.clone(), |_, _| {})
}

fn update_text(uuid: &str, number: usize) -> Arc<[u8]> {
    format!(
        r#"{{"method":"transact","params":["Bench",{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"options":["map",[["requested-chassis","host-{number}"],["mcast_flood","true"]]]}}}}],"id":{number}}}"#
    )
    .into_bytes()
    .into()
}

/// Monitors the rows of one host.
fn monitor(host: usize) -> Arc<[u8]> {
    format!(
        r#"{{"method":"monitor_cond_since","params":["Bench","m",{{"Item":[{{"columns":["name","number","up","addresses","options"],"where":[["number","==",{host}]]}}]}},"00000000-0000-0000-0000-000000000000"],"id":"m"}}"#
    )
    .into_bytes()
    .into()
}

/// Changes the condition to the rows of another host.
fn change(host: usize) -> Arc<[u8]> {
    format!(
        r#"{{"method":"monitor_cond_change","params":["m","m",{{"Item":[{{"where":[["number","==",{host}]]}}]}}],"id":"c"}}"#
    )
    .into_bytes()
    .into()
}
