//! Records by name: by UUID, as `.` the only row, by a column that names rows, by a row of another
//! table that refers to the record, or by the beginning of a UUID.

use corvid_data::{
    Atom, AtomType, ColumnId, Datum, Function, Schema, TableId, TableSchema, Uuid, text,
};

use crate::contents::{Clause, Contents};
use crate::failure::Failure;

/// Fewer letters of a UUID do not name a record.
const UUID_LETTERS_MIN: usize = 4;

/// A rule that does not follow from a schema: database, table, column that names the row, and the
/// table and column that refer to the record if the names are those of other rows.
type KnownRule = (
    &'static str,
    &'static str,
    &'static str,
    Option<(&'static str, &'static str)>,
);

/// The rules of the programs `ovs-vsctl`, `ovn-nbctl` and `ovn-sbctl`.
const KNOWN: &[KnownRule] = &[
    (
        "Open_vSwitch",
        "AutoAttach",
        "name",
        Some(("Bridge", "auto_attach")),
    ),
    (
        "Open_vSwitch",
        "Controller",
        "name",
        Some(("Bridge", "controller")),
    ),
    ("Open_vSwitch", "IPFIX", "name", Some(("Bridge", "ipfix"))),
    (
        "Open_vSwitch",
        "NetFlow",
        "name",
        Some(("Bridge", "netflow")),
    ),
    ("Open_vSwitch", "QoS", "name", Some(("Port", "qos"))),
    ("Open_vSwitch", "sFlow", "name", Some(("Bridge", "sflow"))),
    ("Open_vSwitch", "Flow_Sample_Collector_Set", "id", None),
    (
        "OVN_Northbound",
        "DHCP_Options",
        "name",
        Some(("Logical_Switch_Port", "dhcpv4_options")),
    ),
    (
        "OVN_Northbound",
        "DHCP_Options",
        "external_ids:neutron:port_name",
        Some(("Logical_Switch_Port", "dhcpv4_options")),
    ),
    (
        "OVN_Northbound",
        "DHCP_Options",
        "name",
        Some(("Logical_Switch_Port", "dhcpv6_options")),
    ),
    (
        "OVN_Northbound",
        "DHCP_Options",
        "external_ids:neutron:port_name",
        Some(("Logical_Switch_Port", "dhcpv6_options")),
    ),
    ("OVN_Northbound", "HA_Chassis", "chassis_name", None),
    ("OVN_Northbound", "Load_Balancer_Health_Check", "vip", None),
    (
        "OVN_Northbound",
        "Logical_Router",
        "external_ids:neutron:router_name",
        None,
    ),
    (
        "OVN_Northbound",
        "Logical_Switch",
        "external_ids:neutron:network_name",
        None,
    ),
    (
        "OVN_Northbound",
        "Logical_Switch_Port",
        "external_ids:neutron:port_name",
        None,
    ),
    ("OVN_Northbound", "NAT", "external_ip", None),
    (
        "OVN_Southbound",
        "Datapath_Binding",
        "external_ids:name",
        None,
    ),
    (
        "OVN_Southbound",
        "Datapath_Binding",
        "external_ids:name2",
        None,
    ),
    (
        "OVN_Southbound",
        "Datapath_Binding",
        "external_ids:logical-switch",
        None,
    ),
    (
        "OVN_Southbound",
        "Datapath_Binding",
        "external_ids:logical-router",
        None,
    ),
    ("OVN_Southbound", "MAC_Binding", "logical_port", None),
    ("OVN_Southbound", "Port_Binding", "logical_port", None),
    ("OVN_Southbound", "Port_Binding", "external_ids:name", None),
    ("OVN_Southbound", "RBAC_Permission", "table", None),
    ("OVN_Southbound", "Service_Monitor", "logical_port", None),
];

/// One way to name the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// The table whose rows have the names.
    table: TableId,
    /// The column that has the name, and the key if it is a map.
    column: ColumnId,
    key: Option<String>,
    /// The column that refers to the record, if it is in another table.
    reference: Option<ColumnId>,
}

/// The record of a table that a word names.
///
/// # Errors
/// Several records have that name, or the source fails.
pub(crate) fn find(
    contents: &mut Contents<'_>,
    table: TableId,
    word: &str,
) -> Result<Option<Uuid>, Failure> {
    if let Some(uuid) = Uuid::parse(word.as_bytes())
        && contents.exists(table, uuid)?
    {
        return Ok(Some(uuid));
    }
    if word == "."
        && let [only] = contents.rows(table, &[], &[])?.as_slice()
    {
        return Ok(Some(*only));
    }
    for rule in rules(contents.schema(), table) {
        if let Some(uuid) = by_rule(contents, table, &rule, word)? {
            return Ok(Some(uuid));
        }
    }
    by_beginning(contents, table, word)
}

/// As [`find`]; a record that does not exist is an error, unless `is_optional`.
///
/// # Errors
/// As for [`find`].
pub(crate) fn get(
    contents: &mut Contents<'_>,
    table: TableId,
    word: &str,
    is_optional: bool,
) -> Result<Option<Uuid>, Failure> {
    let found = find(contents, table, word)?;
    if found.is_none() && !is_optional {
        let name = &contents.schema().table(table).name;
        return Err(Failure::no_match(format!(
            "no row \"{word}\" in table {name}"
        )));
    }
    Ok(found)
}

/// The columns whose values name the rows of a table.
pub(crate) fn naming_columns(schema: &Schema, table: TableId) -> Vec<ColumnId> {
    let own = rules(schema, table)
        .into_iter()
        .filter(|rule| rule.table == table && rule.key.is_none() && rule.reference.is_none());
    own.map(|rule| rule.column).collect()
}

/// The rules for a table: the known ones, a column `name` unless there is only one row, and columns
/// that are an index.
fn rules(schema: &Schema, id: TableId) -> Vec<Rule> {
    let table = schema.table(id);
    let mut rules: Vec<Rule> = KNOWN
        .iter()
        .filter(|(database, of, ..)| **database == *schema.name && **of == *table.name)
        .filter_map(|(_, _, name, via)| known(schema, id, name, *via))
        .collect();
    let mut by_column = |column| {
        let rule = Rule {
            table: id,
            column,
            key: None,
            reference: None,
        };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    };
    let names_rows = |column: ColumnId| {
        let column_type = &table.column(column).column_type;
        column_type.key.atom == AtomType::String && !column_type.is_map() && column_type.max == 1
    };
    let name = table.column_id("name").filter(|column| names_rows(*column));
    if let Some(column) = name
        && table.max_rows > 1
    {
        by_column(column);
    }
    for index in &table.indexes {
        if let [column] = index.as_slice()
            && !column.is_standard()
            && names_rows(*column)
        {
            by_column(*column);
        }
    }
    rules
}

/// A known rule, if this version of the schema has its columns.
fn known(schema: &Schema, id: TableId, name: &str, via: Option<(&str, &str)>) -> Option<Rule> {
    let (table, reference) = match via {
        None => (id, None),
        Some((table, column)) => {
            let table = schema.table_id(table)?;
            (table, Some(schema.table(table).column_id(column)?))
        }
    };
    let (column, key) = match name.split_once(':') {
        Some((column, key)) => (column, Some(key.to_owned())),
        None => (name, None),
    };
    Some(Rule {
        table,
        column: schema.table(table).column_id(column)?,
        key,
        reference,
    })
}

fn by_rule(
    contents: &mut Contents<'_>,
    table: TableId,
    rule: &Rule,
    word: &str,
) -> Result<Option<Uuid>, Failure> {
    let named = contents.schema().table(rule.table);
    let Some(wanted) = wanted(named, rule, word) else {
        return Ok(None);
    };
    let columns: Vec<ColumnId> = std::iter::once(rule.column).chain(rule.reference).collect();
    let rows = contents.rows(rule.table, std::slice::from_ref(&wanted), &columns)?;
    let mut found = None;
    for row in rows {
        let value = contents.read(rule.table, row, rule.column)?;
        if !wanted.function.holds(&value, &wanted.argument) {
            continue;
        }
        if found.replace(row).is_some() {
            let name = &named.name;
            return Err(Failure::usage(format!(
                "multiple rows in {name} match \"{word}\""
            )));
        }
    }
    let (Some(row), Some(reference)) = (found, rule.reference) else {
        return Ok(found);
    };
    let referred = contents.read(rule.table, row, reference)?;
    match (referred.len(), referred.as_uuid()) {
        (1, Some(uuid)) if contents.exists(table, uuid)? => Ok(Some(uuid)),
        _ => Ok(None),
    }
}

/// The clause for rows with this name.
fn wanted(table: &TableSchema, rule: &Rule, word: &str) -> Option<Clause> {
    let column_type = &table.column(rule.column).column_type;
    let atom = match column_type.key.atom {
        AtomType::String => Atom::String(word.into()),
        _ => text::read_atom(word, &column_type.key, &mut |_| None).ok()?,
    };
    let (function, argument) = match &rule.key {
        None => (Function::Equal, Datum::one(atom)),
        Some(key) => (
            Function::Includes,
            Datum::pair(Atom::String(key.as_str().into()), Atom::String(word.into())),
        ),
    };
    Some(Clause {
        column: rule.column,
        function,
        argument,
    })
}

/// The only row whose UUID begins with the word.
fn by_beginning(
    contents: &mut Contents<'_>,
    table: TableId,
    word: &str,
) -> Result<Option<Uuid>, Failure> {
    let is_beginning = word.len() >= UUID_LETTERS_MIN
        && word
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if !is_beginning {
        return Ok(None);
    }
    let rows = contents.rows(table, &[], &[])?;
    let mut matching = rows
        .into_iter()
        .filter(|uuid| uuid.to_text().starts_with(word.as_bytes()));
    Ok(match (matching.next(), matching.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    })
}
