//! A small cloud in OVN's databases: switches with ports and ACLs, and one router that connects
//! them. OVN's compiler, `ovn-northd`, translates the northbound into the southbound database.
//!
//! This file builds requests and reads counters from updates. It does not use connections or
//! processes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use corvid_data::Schema;
use corvid_json::Value;
use memchr::memmem;

use crate::error::Error;

/// The schemas of the system's packages. The compiler comes with the same packages, so schemas of
/// our own would be unusable without them.
pub(crate) const NORTHBOUND: &str = "/usr/share/ovn/ovn-nb.ovsschema";
pub(crate) const SOUTHBOUND: &str = "/usr/share/ovn/ovn-sb.ovsschema";

/// The number of logical switches.
pub(crate) const SWITCHES: u32 = 60;
/// The number of ports of each switch before single ports are added.
pub(crate) const PORTS: u32 = 40;
/// The number of ACLs of each switch. Half of them are for each direction.
const ACLS: u32 = 10;

/// Reads a schema of the system's packages.
pub(crate) fn schema(path: &str) -> Result<Schema, Error> {
    let bad = |reason: String| Error::File {
        path: Path::new(path).to_owned(),
        reason,
    };
    let text = fs::read(path).map_err(|error| bad(error.to_string()))?;
    Schema::from_json(&Value::parse(&text)?).map_err(|error| bad(error.to_string()))
}

/// Inserts the row of global settings and the router.
pub(crate) fn globals() -> Arc<[u8]> {
    transact(
        r#"{"op":"insert","table":"NB_Global","row":{"options":["map",[["mac_prefix","0a:00:01"],["northd_probe_interval","0"]]]}},{"op":"insert","table":"Logical_Router","row":{"name":"router"}}"#,
    )
}

/// Inserts a switch with its ACLs, and connects it to the router.
pub(crate) fn add_switch(switch: u32) -> Arc<[u8]> {
    let (mut operations, mut acls) = (String::new(), String::new());
    for number in 0..ACLS {
        let comma = if number == 0 { "" } else { "," };
        let (direction, field) = if number % 2 == 0 {
            ("to-lport", "outport")
        } else {
            ("from-lport", "inport")
        };
        let port = number * PORTS / ACLS;
        let _ = write!(
            operations,
            r#"{{"op":"insert","table":"ACL","uuid-name":"a{number}","row":{{"direction":"{direction}","priority":{},"match":"{field} == \"vm{switch}-{port}\" && ip4 && tcp.dst == {}","action":"allow-related"}}}},"#,
            1_000 + number,
            8_000 + number
        );
        let _ = write!(acls, r#"{comma}["named-uuid","a{number}"]"#);
    }
    let _ = write!(
        operations,
        r#"{{"op":"insert","table":"Logical_Switch_Port","uuid-name":"up","row":{{"name":"switch{switch}-router","type":"router","addresses":"router","options":["map",[["router-port","router-switch{switch}"]]]}}}},{{"op":"insert","table":"Logical_Router_Port","uuid-name":"down","row":{{"name":"router-switch{switch}","mac":"0a:01:00:00:{switch:02x}:01","networks":"10.{switch}.0.1/16"}}}},{{"op":"mutate","table":"Logical_Router","where":[["name","==","router"]],"mutations":[["ports","insert",["named-uuid","down"]]]}},{{"op":"insert","table":"Logical_Switch","row":{{"name":"switch{switch}","ports":["named-uuid","up"],"acls":["set",[{acls}]]}}}}"#
    );
    transact(&operations)
}

/// Inserts port `number` of a switch in its own transaction, as a cloud system does.
pub(crate) fn add_port(switch: u32, number: u32) -> Arc<[u8]> {
    transact(&port_operations(switch, number))
}

/// Like [`add_port`], but also increments the number of the configuration, as `--wait=sb` does.
pub(crate) fn add_port_and_wait(switch: u32, number: u32) -> Arc<[u8]> {
    let operations = port_operations(switch, number);
    transact(&format!("{operations},{NEXT_CONFIGURATION}"))
}

fn port_operations(switch: u32, number: u32) -> String {
    let (high, low) = (number / 256, number % 256);
    let address = format!(
        "0a:00:00:{switch:02x}:{high:02x}:{low:02x} 10.{switch}.{}.{low}",
        high + 1
    );
    format!(
        r#"{{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p","row":{{"name":"vm{switch}-{number}","addresses":"{address}","port_security":"{address}"}}}},{{"op":"mutate","table":"Logical_Switch","where":[["name","==","switch{switch}"]],"mutations":[["ports","insert",["named-uuid","p"]]]}}"#
    )
}

/// Increments the number of the configuration, and changes nothing else.
pub(crate) fn next_configuration() -> Arc<[u8]> {
    transact(NEXT_CONFIGURATION)
}

const NEXT_CONFIGURATION: &str =
    r#"{"op":"mutate","table":"NB_Global","where":[],"mutations":[["nb_cfg","+=",1]]}"#;

fn transact(operations: &str) -> Arc<[u8]> {
    let text =
        format!(r#"{{"id":0,"method":"transact","params":["OVN_Northbound",{operations}]}}"#);
    text.into_bytes().into()
}

/// Monitors the number of the configuration that the compiler has translated last.
pub(crate) fn monitor_translated() -> Arc<[u8]> {
    let text = br#"{"id":0,"method":"monitor_cond","params":["OVN_Northbound","translated",{"NB_Global":[{"columns":["sb_cfg"]}]}]}"#;
    Arc::from(&text[..])
}

/// Returns the number of the last translated configuration in an update, if there is one.
pub(crate) fn translated(update: &[u8]) -> Option<u64> {
    let member = br#""sb_cfg":"#;
    let at = memmem::rfind(update, member)? + member.len();
    let digits = update[at..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number: Option<u64>, digit| {
        Some(number.unwrap_or(0) * 10 + u64::from(digit - b'0'))
    })
}

/// Monitors all tables of a database, as a hypervisor does that monitors the whole southbound
/// database.
pub(crate) fn monitor_everything(schema: &Schema) -> Arc<[u8]> {
    let mut text = format!(
        r#"{{"id":0,"method":"monitor_cond_since","params":["{}","all",{{"#,
        schema.name
    );
    for (number, table) in schema.tables().iter().enumerate() {
        let comma = if number == 0 { "" } else { "," };
        let columns: Vec<_> = table
            .columns()
            .iter()
            .map(|column| format!("\"{}\"", column.name))
            .collect();
        let _ = write!(
            text,
            r#"{comma}"{}":[{{"columns":[{}]}}]"#,
            table.name,
            columns.join(",")
        );
    }
    text.push_str(r#"},"00000000-0000-0000-0000-000000000000"]}"#);
    text.into_bytes().into()
}

/// Inserts the marker row that ends a measurement, in a table that the compiler does not change. A
/// client that has received this row has received all earlier changes.
pub(crate) fn southbound_marker() -> Arc<[u8]> {
    let marker = String::from_utf8_lossy(crate::requests::MARKER);
    let text = format!(
        r#"{{"id":0,"method":"transact","params":["OVN_Southbound",{{"op":"insert","table":"Encap","uuid-name":"e","row":{{"type":"geneve","ip":"192.0.2.1","chassis_name":"{marker}"}}}},{{"op":"insert","table":"Chassis","row":{{"name":"{marker}","hostname":"{marker}","encaps":["named-uuid","e"]}}}}]}}"#
    );
    text.into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_json() {
        for text in [
            globals(),
            add_switch(1),
            add_port(2, 300),
            add_port_and_wait(2, 300),
            next_configuration(),
            monitor_translated(),
            southbound_marker(),
        ] {
            Value::parse(&text).expect("JSON");
        }
    }

    #[test]
    fn last_number_of_an_update_is_read() {
        let update = br#"{"id":null,"method":"update","params":["t",{"NB_Global":{"u":{"old":{"sb_cfg":4},"new":{"sb_cfg":15}}}}]}"#;
        assert_eq!(translated(update), Some(15));
        assert_eq!(translated(br#"{"id":null}"#), None);
        assert_eq!(translated(br#"{"sb_cfg":"#), None);
    }
}
