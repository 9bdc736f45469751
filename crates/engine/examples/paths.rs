//! Runs one path through the engine repeatedly, to profile instruction counts: the cost of
//! `execute()` for each kind of transaction that the benchmark sends, in memory, without a server.
//!
//! `cargo build --release -p corvid-engine --example paths`, then `valgrind --tool=callgrind
//! --toggle-collect='corvid_engine::database::Database::execute' paths PATH SIZE
//! COUNT`. PATH is `ports`, `balancers`, `remove`, `insert`, `update`, `set`, `map` or `rows`. SIZE
//! is the initial contents: ports, rows or elements; for `rows`, how many rows one transaction
//! inserts. COUNT is the number of transactions to measure. Only these go through `measured`.

use std::hint::black_box;
use std::time::Instant;

use corvid_data::{Arc, HashSeed, Schema, Uuid, UuidSource};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;
use corvid_json::splitmix::SplitMix64;

/// The part of OVN's northbound tables that ports and load balancers need.
const NORTHBOUND: &str = r#"{"name":"Northbound","tables":{
    "Logical_Switch":{"isRoot":true,"columns":{
        "name":{"type":"string"},
        "ports":{"type":{"key":{"type":"uuid","refTable":"Logical_Switch_Port"},"min":0,"max":"unlimited"}},
        "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
    "Logical_Switch_Port":{"isRoot":false,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "type":{"type":"string"},
        "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "parent_name":{"type":{"key":"string","min":0,"max":1}},
        "tag":{"type":{"key":"integer","min":0,"max":1}},
        "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "dynamic_addresses":{"type":{"key":"string","min":0,"max":1}},
        "port_security":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "up":{"type":{"key":"boolean","min":0,"max":1}},
        "enabled":{"type":{"key":"boolean","min":0,"max":1}},
        "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
    "Address_Set":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
    "Load_Balancer":{"isRoot":true,"columns":{
        "name":{"type":"string"},
        "vips":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "protocol":{"type":{"key":{"type":"string","enum":["set",["tcp","udp","sctp"]]},"min":0,"max":1}},
        "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
    "Load_Balancer_Group":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "load_balancer":{"type":{"key":{"type":"uuid","refTable":"Load_Balancer","refType":"weak"},"min":0,"max":"unlimited"}}}}}}"#;

/// The table of the single-row workloads.
const BENCH: &str = r#"{"name":"Bench","tables":{"Item":{"isRoot":true,"indexes":[["name"]],"columns":{
    "name":{"type":"string"},
    "number":{"type":"integer"},
    "up":{"type":{"key":"boolean","min":0,"max":1}},
    "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
    "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;

const SWITCHES: u64 = 100;

struct Uuids(SplitMix64);

impl UuidSource for Uuids {
    fn fresh(&mut self) -> Uuid {
        let mut bytes = [0; 16];
        for half in bytes.chunks_mut(8) {
            half.copy_from_slice(&self.0.draw().to_le_bytes());
        }
        Uuid::from_random(bytes)
    }
}

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _: &str) -> bool {
        false
    }
}

struct Bench {
    database: Database,
    uuids: Uuids,
}

impl Bench {
    fn new(schema: &str) -> Bench {
        let json = Value::parse(schema.as_bytes()).expect("JSON");
        let schema = Schema::from_json(&json).expect("a schema");
        Bench {
            database: Database::new(Arc::new(schema), HashSeed::FIXED),
            uuids: Uuids(SplitMix64::new(7)),
        }
    }

    fn execute(&mut self, operations: &str) -> Vec<u8> {
        let params = format!("[\"\",{operations}]");
        let outcome = self.database.execute(
            params.as_bytes(),
            &mut Context {
                elapsed_ms: 0,
                read_only: false,
                identities: &[],
                can_wait: false,
                uuids: &mut self.uuids,
                locks: &NoLocks,
            },
        );
        let Outcome::Done { result, delta, .. } = outcome else {
            panic!("nothing here waits");
        };
        assert!(delta.is_some(), "{}", String::from_utf8_lossy(&result));
        // As the server does between batches.
        if self.database.is_indexing() {
            self.database.index(4096);
        }
        result
    }
}

/// A function of its own, so that a profile can separate the measured transactions from the
/// preparation.
#[inline(never)]
fn measured(bench: &mut Bench, requests: &[String]) {
    for request in requests {
        black_box(bench.execute(black_box(request)));
    }
}

fn addresses(n: u64) -> (String, String) {
    let (a, b, c) = (n >> 16 & 255, n >> 8 & 255, n & 255);
    (
        format!("0a:00:00:{a:02x}:{b:02x}:{c:02x}"),
        format!("10.{a}.{b}.{c}"),
    )
}

fn topology() -> String {
    let switches: String = (0..SWITCHES)
        .map(|n| {
            format!(r#",{{"op":"insert","table":"Logical_Switch","row":{{"name":"switch-{n}"}}}}"#)
        })
        .collect();
    format!(
        r#"{{"op":"insert","table":"Address_Set","row":{{"name":"all_ports"}}}},{{"op":"insert","table":"Load_Balancer_Group","row":{{"name":"all"}}}}{switches}"#
    )
}

fn port_uuid(n: u64) -> String {
    format!(
        "{:08x}-0000-4000-8000-000000000000",
        n * 2_654_435_761 % 4_294_967_296
    )
}

fn add_port(n: u64) -> String {
    let (mac, ip) = addresses(n);
    let (switch, uuid) = (n % SWITCHES, port_uuid(n));
    format!(
        r#"{{"op":"insert","table":"Logical_Switch_Port","uuid":"{uuid}","uuid-name":"p","row":{{"name":"port-{n:06}","addresses":"{mac} {ip}","port_security":"{mac} {ip}","options":["map",[["requested-chassis","host-{switch}"]]],"external_ids":["map",[["namespace","ns-{switch}"],["pod","true"]]]}}}},{{"op":"mutate","table":"Logical_Switch","where":[["name","==","switch-{switch}"]],"mutations":[["ports","insert",["set",[["named-uuid","p"]]]]]}},{{"op":"mutate","table":"Address_Set","where":[["name","==","all_ports"]],"mutations":[["addresses","insert",["set",["{ip}"]]]]}}"#
    )
}

fn remove_port(n: u64) -> String {
    let (_, ip) = addresses(n);
    let (switch, uuid) = (n % SWITCHES, port_uuid(n));
    format!(
        r#"{{"op":"mutate","table":"Logical_Switch","where":[["name","==","switch-{switch}"]],"mutations":[["ports","delete",["set",[["uuid","{uuid}"]]]]]}},{{"op":"mutate","table":"Address_Set","where":[["name","==","all_ports"]],"mutations":[["addresses","delete",["set",["{ip}"]]]]}}"#
    )
}

fn add_balancer(n: u64) -> String {
    let (_, ip) = addresses(n);
    format!(
        r#"{{"op":"insert","table":"Load_Balancer","uuid-name":"b","row":{{"name":"balancer-{n:06}","protocol":"tcp","vips":["map",[["{ip}:80","{ip}:8080,{ip}:8081"]]],"external_ids":["map",[["service","service-{n}"]]]}}}},{{"op":"mutate","table":"Load_Balancer_Group","where":[["name","==","all"]],"mutations":[["load_balancer","insert",["set",[["named-uuid","b"]]]]]}}"#
    )
}

fn insert_row(n: u64) -> String {
    let (high, low, uuid) = (n / 256 % 256, n % 256, port_uuid(n));
    format!(
        r#"{{"op":"insert","table":"Item","uuid":"{uuid}","row":{{"name":"port-{n:08}","number":{n},"up":true,"addresses":["set",["0a:00:00:00:{high:02x}:{low:02x}","10.0.{high}.{low}"]],"options":["map",[["requested-chassis","host-{low}"],["mcast_flood","true"]]]}}}}"#
    )
}

fn update_row(n: u64, change: u64) -> String {
    let uuid = port_uuid(n);
    format!(
        r#"{{"op":"update","table":"Item","where":[["_uuid","==",["uuid","{uuid}"]]],"row":{{"number":{change},"options":["map",[["requested-chassis","host-{}"],["mcast_flood","true"]]]}}}}"#,
        change % 512
    )
}

/// One element for the large column of the only row.
fn element(column: &str, n: u64) -> String {
    match column {
        "addresses" => format!(r#""element-{n:08}""#),
        _ => format!(r#"["key-{n:08}","value-{n}"]"#),
    }
}

fn large(column: &str, size: u64, count: u64) -> (Bench, Vec<String>) {
    let class = if column == "addresses" { "set" } else { "map" };
    // Every other number, so that added elements are spread between them.
    let elements: Vec<String> = (0..size).map(|n| element(column, 2 * n)).collect();
    let elements = elements.join(",");
    let mut bench = Bench::new(BENCH);
    bench.execute(&format!(
        r#"{{"op":"insert","table":"Item","row":{{"name":"large","{column}":["{class}",[{elements}]]}}}}"#
    ));
    let requests = (0..count)
        .map(|n| {
            let added = element(column, 2 * (n * 7919 % size) + 1);
            format!(
                r#"{{"op":"mutate","table":"Item","where":[["name","==","large"]],"mutations":[["{column}","insert",["{class}",[{added}]]]]}}"#
            )
        })
        .collect();
    (bench, requests)
}

fn prepare(path: &str, size: u64, count: u64) -> (Bench, Vec<String>) {
    let filled = |schema, first: Option<String>, row: &dyn Fn(u64) -> String| {
        let mut bench = Bench::new(schema);
        let rows = first.into_iter().chain((0..size).map(row));
        rows.for_each(|request| drop(bench.execute(&request)));
        bench
    };
    let next = size..size + count;
    match path {
        "ports" => (
            filled(NORTHBOUND, Some(topology()), &add_port),
            next.map(add_port).collect(),
        ),
        "balancers" => (
            filled(NORTHBOUND, Some(topology()), &add_balancer),
            next.map(add_balancer).collect(),
        ),
        "remove" => (
            filled(NORTHBOUND, Some(topology()), &add_port),
            (size - count..size).map(remove_port).collect(),
        ),
        "insert" => (
            filled(BENCH, None, &insert_row),
            next.map(insert_row).collect(),
        ),
        "update" => (
            filled(BENCH, None, &insert_row),
            (0..count)
                .map(|n| update_row(n * 7919 % size, n + 1))
                .collect(),
        ),
        "set" => large("addresses", size, count),
        "map" => large("options", size, count),
        "rows" => {
            let rows = |n| (n * size..(n + 1) * size).map(insert_row);
            let requests = (0..count).map(|n| rows(n).collect::<Vec<_>>().join(","));
            (Bench::new(BENCH), requests.collect())
        }
        other => panic!("no path {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, size, count] = &arguments[..] else {
        panic!("PATH SIZE COUNT");
    };
    let number = |text: &String| text.parse().expect("a number");
    let (mut bench, requests) = prepare(path, number(size), number(count));
    let start = Instant::now();
    measured(&mut bench, &requests);
    let each_ns = start.elapsed().as_nanos() as f64 / requests.len() as f64;
    println!("{path} {size}: {each_ns:.0} ns each");
    bench.database.check_invariants().expect("audit");
}
