//! The northbound database of several paths: 100 switches, an address set and a number of ports.
//! Inputs are texts, as clients send them. Results are checked, because a path that fails would be
//! cheap.

use std::fmt::Write as _;

use corvid_data::{Arc, Delta, HashSeed, Schema};
use corvid_engine::{Context, Database, LockOwner, Outcome};
use corvid_json::Value;

use crate::uuids::Uuids;

const SCHEMA: &str = include_str!("../../bench/src/northbound.ovsschema");

const SWITCHES: usize = 100;

struct NoLocks;

impl LockOwner for NoLocks {
    fn owns(&self, _lock: &str) -> bool {
        false
    }
}

/// A northbound database.
pub(crate) struct Northbound {
    pub(crate) database: Database,
    uuids: Uuids,
}

impl Northbound {
    /// Returns a database without ports, and the delta that inserted the switches.
    pub(crate) fn new() -> (Northbound, Arc<Delta>) {
        let mut northbound = Northbound {
            database: Database::new(schema(), HashSeed::FIXED),
            uuids: Uuids::default(),
        };
        let topology = northbound.execute(topology().as_bytes());
        (northbound, topology)
    }

    /// Returns a database with the ports 0 to `ports - 1`.
    pub(crate) fn with_ports(ports: usize) -> Northbound {
        let (mut northbound, _) = Northbound::new();
        for number in 0..ports {
            northbound.execute(add_port(number).as_bytes());
        }
        northbound
    }

    /// Executes a transaction, which must change something.
    pub(crate) fn execute(&mut self, params: &[u8]) -> Arc<Delta> {
        let mut context = Context {
            elapsed_ms: 0,
            read_only: false,
            identities: &[],
            can_wait: true,
            uuids: &mut self.uuids,
            locks: &NoLocks,
        };
        match self.database.execute(params, &mut context) {
            Outcome::Done {
                delta: Some(delta), ..
            } => delta,
            other => panic!("a transaction that changes something: {other:?}"),
        }
    }
}

pub(crate) fn schema() -> Arc<Schema> {
    let json = Value::parse(SCHEMA.as_bytes()).expect("the schema is a constant");
    Arc::new(Schema::from_json(&json).expect("the schema is a constant"))
}

fn topology() -> String {
    let mut text =
        r#"["OVN_Northbound",{"op":"insert","table":"Address_Set","row":{"name":"all_ports"}}"#
            .to_owned();
    for switch in 0..SWITCHES {
        let _ = write!(
            text,
            r#",{{"op":"insert","table":"Logical_Switch","row":{{"name":"switch-{switch}"}}}}"#
        );
    }
    text.push(']');
    text
}

/// Returns the `params` of the transaction that creates a port: it inserts the row, its reference
/// in a switch and its address in the set.
pub(crate) fn add_port(number: usize) -> String {
    let switch = number % SWITCHES;
    let (high, low) = (number / 256, number % 256);
    let (mac, ip) = (
        format!("0a:00:00:00:{high:02x}:{low:02x}"),
        format!("10.0.{high}.{low}"),
    );
    let row = format!(
        r#"{{"name":"port-{number:06}","addresses":"{mac} {ip}","port_security":"{mac} {ip}","options":["map",[["requested-chassis","host-{switch}"]]],"external_ids":["map",[["namespace","ns-{switch}"],["pod","true"],["neutron:cidrs","{ip}/16"],["neutron:device_owner","compute:nova"],["neutron:network_name","neutron-{switch}"],["neutron:revision","1"]]]}}"#
    );
    format!(
        r#"["OVN_Northbound",{{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p","row":{row}}},{{"op":"mutate","table":"Logical_Switch","where":[["name","==","switch-{switch}"]],"mutations":[["ports","insert",["set",[["named-uuid","p"]]]]]}},{{"op":"mutate","table":"Address_Set","where":[["name","==","all_ports"]],"mutations":[["addresses","insert",["set",["{ip}"]]]]}}]"#
    )
}

/// Returns the transaction of [`add_port`] as a message of about 750 bytes.
pub(crate) fn message(number: usize) -> Vec<u8> {
    let params = add_port(number);
    format!(r#"{{"id":{number},"method":"transact","params":{params}}}"#).into_bytes()
}
