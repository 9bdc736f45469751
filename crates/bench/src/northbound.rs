//! OVN's northbound database: its schema, and the requests of a cloud system that creates and
//! removes ports and load balancers.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use corvid_data::Schema;
use corvid_json::Value;

use crate::database_file;
use crate::error::Error;
use crate::requests::{self, Requests};

/// The schema of the system's packages.
const PACKAGED: &str = "/usr/share/ovn/ovn-nb.ovsschema";

/// The tables that are used here, with the names and types of the packaged schema, for machines
/// without the package.
const TRIMMED: &str = include_str!("northbound.ovsschema");

/// The number of logical switches, over which the ports are spread.
pub(crate) const SWITCHES: u32 = 100;

/// Writes an empty database.
pub(crate) fn create(file: &Path) -> Result<(), Error> {
    Ok(database_file::create_with(file, &schema()?)?)
}

/// Returns the packaged schema, or the trimmed one if the package is not installed.
pub(crate) fn schema() -> Result<Schema, Error> {
    let text = fs::read_to_string(PACKAGED).unwrap_or_else(|_| TRIMMED.to_owned());
    let bad = |reason: String| Error::File {
        path: PACKAGED.into(),
        reason,
    };
    let json = Value::parse(text.as_bytes())?;
    Schema::from_json(&json).map_err(|error| bad(error.to_string()))
}

/// Inserts the switches, the address set and the group of load balancers.
pub(crate) fn topology() -> Requests {
    let mut text = r#"{"id":0,"method":"transact","params":["OVN_Northbound",{"op":"insert","table":"Address_Set","row":{"name":"all_ports"}},{"op":"insert","table":"Load_Balancer_Group","uuid-name":"g","row":{"name":"all"}}"#.to_owned();
    for switch in 0..SWITCHES {
        let _ = write!(
            text,
            r#",{{"op":"insert","table":"Logical_Switch","row":{{"name":"switch-{switch}","load_balancer_group":["named-uuid","g"]}}}}"#
        );
    }
    text.push_str("]}");
    Requests::one(&text)
}

/// Monitors the changing tables, as current clients do.
pub(crate) fn monitor() -> Requests {
    Requests::one(
        r#"{"id":0,"method":"monitor_cond_since","params":["OVN_Northbound","northbound",{"Logical_Switch":[{"columns":["name","ports"]}],"Logical_Switch_Port":[{"columns":["name","type","options","addresses","port_security","up","enabled","external_ids"]}],"Address_Set":[{"columns":["name","addresses"]}],"Load_Balancer":[{"columns":["name","vips","protocol","external_ids"]}],"Load_Balancer_Group":[{"columns":["name","load_balancer"]}]},"00000000-0000-0000-0000-000000000000"]}"#,
    )
}

/// Inserts a row whose name contains the marker. `phase` makes the name unique.
pub(crate) fn marker(phase: u32) -> Requests {
    let marker = String::from_utf8_lossy(requests::MARKER);
    Requests::one(&format!(
        r#"{{"id":0,"method":"transact","params":["OVN_Northbound",{{"op":"insert","table":"Address_Set","row":{{"name":"{marker}-{phase}"}}}}]}}"#
    ))
}

fn addresses(number: u32) -> (String, String) {
    let [_, a, b, c] = number.to_be_bytes();
    (
        format!("0a:00:00:{a:02x}:{b:02x}:{c:02x}"),
        format!("10.{a}.{b}.{c}"),
    )
}

/// Returns the operations that create port `number`: they insert the row, its reference in a switch
/// and its address in the set.
pub(crate) fn port_operations(number: u32) -> String {
    let (mac, ip) = addresses(number);
    let switch = number % SWITCHES;
    format!(
        r#"{{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p","row":{{"name":"port-{number:06}","addresses":"{mac} {ip}","port_security":"{mac} {ip}","options":["map",[["requested-chassis","host-{switch}"]]],"external_ids":["map",[["namespace","ns-{switch}"],["pod","true"]]]}}}},{{"op":"mutate","table":"Logical_Switch","where":[["name","==","switch-{switch}"]],"mutations":[["ports","insert",["set",[["named-uuid","p"]]]]]}},{{"op":"mutate","table":"Address_Set","where":[["name","==","all_ports"]],"mutations":[["addresses","insert",["set",["{ip}"]]]]}}"#
    )
}

/// Creates port `number`.
pub(crate) fn add_port(number: u32) -> String {
    transact(number, &port_operations(number))
}

/// Removes a port from its switch and from the set. The row is garbage collected when its last
/// reference is removed.
pub(crate) fn remove_port(number: u32, uuid: &str) -> String {
    let (_, ip) = addresses(number);
    let switch = number % SWITCHES;
    transact(
        number,
        &format!(
            r#"{{"op":"mutate","table":"Logical_Switch","where":[["name","==","switch-{switch}"]],"mutations":[["ports","delete",["set",[["uuid","{uuid}"]]]]]}},{{"op":"mutate","table":"Address_Set","where":[["name","==","all_ports"]],"mutations":[["addresses","delete",["set",["{ip}"]]]]}}"#
        ),
    )
}

/// Creates load balancer `number` in the group.
pub(crate) fn add_balancer(number: u32) -> String {
    let (_, ip) = addresses(number);
    transact(
        number,
        &format!(
            r#"{{"op":"insert","table":"Load_Balancer","uuid-name":"b","row":{{"name":"balancer-{number:06}","protocol":"tcp","vips":["map",[["{ip}:80","{ip}:8080,{ip}:8081"]]],"external_ids":["map",[["service","service-{number}"]]]}}}},{{"op":"mutate","table":"Load_Balancer_Group","where":[["name","==","all"]],"mutations":[["load_balancer","insert",["set",[["named-uuid","b"]]]]]}}"#
        ),
    )
}

/// Removes a load balancer. The group's weak reference to it is removed automatically.
pub(crate) fn remove_balancer(number: u32, uuid: &str) -> String {
    transact(
        number,
        &format!(
            r#"{{"op":"delete","table":"Load_Balancer","where":[["_uuid","==",["uuid","{uuid}"]]]}}"#
        ),
    )
}

fn transact(id: u32, operations: &str) -> String {
    format!(r#"{{"id":{id},"method":"transact","params":["OVN_Northbound",{operations}]}}"#)
}

/// Selects the UUIDs and names of all rows of a table.
pub(crate) fn select_all(table: &str) -> Requests {
    Requests::one(&format!(
        r#"{{"id":0,"method":"transact","params":["OVN_Northbound",{{"op":"select","table":"{table}","where":[],"columns":["_uuid","name"]}}]}}"#
    ))
}

/// Reads the reply to [`select_all`]: the UUIDs, with the numbers in the rows' names.
pub(crate) fn identities(reply: &[u8]) -> Result<Vec<(u32, String)>, Error> {
    let reply = Value::parse(reply)?;
    let rows = reply
        .get("result")
        .and_then(|result| result.as_array()?.first()?.get("rows")?.as_array());
    let read = |row: &Value| -> Option<(u32, String)> {
        let name = row.get("name")?.as_str()?.to_string();
        let number = name.rsplit('-').next()?.parse().ok()?;
        let uuid = row.get("_uuid")?.as_array()?.get(1)?.as_str()?.to_string();
        Some((number, uuid))
    };
    let mut rows: Vec<_> = rows.into_iter().flatten().filter_map(read).collect();
    rows.sort_unstable();
    Ok(rows)
}

/// Deals texts out to the writers in turn.
pub(crate) fn deal(texts: impl Iterator<Item = String>, writers: usize) -> Vec<Requests> {
    let mut dealt = vec![Requests::default(); writers];
    for (number, text) in texts.enumerate() {
        dealt[number % writers].push(&text);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimmed_schema_is_valid() {
        let json = Value::parse(TRIMMED.as_bytes()).expect("JSON");
        assert_eq!(
            Schema::from_json(&json).expect("a schema").tables().len(),
            5
        );
    }

    #[test]
    fn requests_are_json() {
        let uuid = "00000000-0000-4000-8000-000000000000";
        let texts = [
            add_port(1),
            remove_port(1, uuid),
            add_balancer(1),
            remove_balancer(1, uuid),
        ];
        for text in texts {
            Value::parse(text.as_bytes()).expect("JSON");
        }
        for requests in [
            topology(),
            monitor(),
            marker(1),
            select_all("Load_Balancer"),
        ] {
            Value::parse(requests.get(0)).expect("JSON");
        }
    }
}
