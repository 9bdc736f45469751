//! `conditions`: many clients, each with a condition of its own, as hypervisors have; what a transaction costs the server when
//! it concerns one of them, and what it costs when each changes its condition.

use std::ops::Range;
use std::sync::Arc;

use crate::crowd::{Act, Crowd, Kind};
use crate::error::Error;
use crate::figure::{Aim, Figure};
use crate::requests;
use crate::workload::{Run, Workload};

/// See the module.
pub(crate) struct Conditions;

/// The numbers of clients that are compared, each with the aim of its ratio of CPU time.
const CLIENTS: [(usize, Aim); 3] = [
    (100, Aim::None),
    (500, Aim::RatioAtMost(0.05)),
    (1000, Aim::None),
];
/// Hosts that rows belong to, at least as many as clients.
const HOSTS: usize = 1000;
/// Connections that update, one request in flight each.
const WRITERS: usize = 10;
/// Rows that one transaction of the preparation inserts.
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
        let mut filler = Crowd::new()?;
        filler.connect(server.address())?;
        let uuids = fill(&mut filler, 50_000, HOSTS)?;
        drop(filler);

        let mut figures = Vec::new();
        let mut costs_us = Vec::new();
        for (count, aim) in CLIENTS {
            run.say(&format!("{count} clients"));
            let mut crowd = Crowd::new()?;
            let writers = crowd.connect_many(server.address(), WRITERS)?;
            let clients = crowd.connect_many(server.address(), count)?;
            let first = clients.start;
            crowd.call_all(clients.clone(), |client| monitor(client - first), |_, _| {})?;

            let spell = server.spell()?;
            update(&mut crowd, writers, &clients, &uuids, transactions)?;
            let cost_us = spell.end()? / transactions as f64;
            costs_us.push(cost_us);

            let changing = first..clients.end.min(first + changes);
            let spell = server.spell()?;
            crowd.call_all(
                changing.clone(),
                |client| change((client - first + count / 2) % HOSTS),
                |_, _| {},
            )?;
            let change_us = spell.end()? / changing.len() as f64;
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

/// Inserts so many rows, which belong to so many hosts in turn, with the first client: their identities.
pub(super) fn fill(crowd: &mut Crowd, rows: usize, hosts: usize) -> Result<Vec<String>, Error> {
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
    crowd.call(0, texts, |reply| {
        uuids.extend(requests::inserted_uuids(reply));
    })?;
    Ok(uuids)
}

/// Sends so many updates of rows of which each belongs to one of `clients`, and waits until all have seen theirs.
fn update(
    crowd: &mut Crowd,
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
        // Row after row of host after host, so that neither meets its last update again soon.
        let host = number % count;
        let row = number / count * HOSTS + host;
        update_text(&uuids[row % uuids.len()], number)
    };
    for writer in writers.clone() {
        crowd.send(writer, next())?;
    }
    let (mut answered, mut begun) = (0, writers.len());
    crowd.run(|arrival| {
        if arrival.kind != Kind::Reply || !writers.contains(&arrival.client) {
            return Act::Wait;
        }
        answered += 1;
        if begun < transactions {
            begun += 1;
            return Act::Send(next());
        }
        if answered == transactions {
            Act::Stop
        } else {
            Act::Wait
        }
    })?;
    // A reply comes after the updates that were due on its connection before.
    let echo: Arc<[u8]> = requests::echo(0).into_bytes().into();
    crowd.call_all(clients.clone(), |_| echo.clone(), |_, _| {})
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

/// Monitors those of another host instead.
fn change(host: usize) -> Arc<[u8]> {
    format!(
        r#"{{"method":"monitor_cond_change","params":["m","m",{{"Item":[{{"where":[["number","==",{host}]]}}]}}],"id":"c"}}"#
    )
    .into_bytes()
    .into()
}
