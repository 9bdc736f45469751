//! Everything a page shows is what `ovsdb-client` says: every page, for each kind of schema that
//! has a picture of its own, and for another one.
//!
//! The contents are those that the tests of pictures draw. Their schemas are made of the values, so
//! no package of Open vSwitch or OVN is needed. The client is the reference's where it is
//! installed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use corvid_tests::console::Console;
use corvid_tests::server::{Implementation, Server, Setup};
use corvid_tests::{binary, limited};
use serde_json::{Map, Value, json};

use super::servers::{LOCAL, part_until};
use super::{between, current_page, text_of};

/// A kind of database: the file with its contents, the name of its schema, and the tables of whose
/// rows each has a card in the picture, with the column of the name on it.
type Kind = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const KINDS: [Kind; 5] = [
    (
        "northbound",
        "OVN_Northbound",
        &[("Logical_Switch", "name"), ("Logical_Router", "name")],
    ),
    ("southbound", "OVN_Southbound", &[("Chassis", "hostname")]),
    ("vswitch", "Open_vSwitch", &[("Bridge", "name")]),
    (
        "vtep",
        "hardware_vtep",
        &[
            ("Physical_Switch", "name"),
            ("Logical_Switch", "name"),
            ("Logical_Router", "name"),
        ],
    ),
    // The tables of any other schema have a card each.
    ("vtep", "Elsewhere", &[]),
];

/// The rows of tables, by UUID.
type Rows = BTreeMap<String, BTreeMap<String, Map<String, Value>>>;

/// The written contents, in which `@NAME` stands for a row.
fn contents(file: &str) -> Map<String, Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../crates/picture/tests/picture/databases")
        .join(format!("{file}.json"));
    let text = std::fs::read_to_string(path).expect("the contents");
    let mut out = String::new();
    let mut is_quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        is_quoted ^= letter == '"';
        if letter != '@' || is_quoted {
            out.push(letter);
            continue;
        }
        let mut name = String::new();
        while let Some(letter) =
            letters.next_if(|letter| letter.is_alphanumeric() || *letter == '-')
        {
            name.push(if letter == '-' { '_' } else { letter });
        }
        out.push_str(&format!("[\"named-uuid\", \"r_{name}\"]"));
    }
    serde_json::from_str(&out).expect("JSON")
}

/// The elements of a value: keys, with values if it is a map.
fn elements(value: &Value) -> Vec<(Value, Option<Value>)> {
    match value.as_array().map(Vec::as_slice) {
        Some([Value::String(kind), Value::Array(list)]) if kind == "set" => {
            list.iter().map(|key| (key.clone(), None)).collect()
        }
        Some([Value::String(kind), Value::Array(list)]) if kind == "map" => {
            let pair = |pair: &Value| (pair[0].clone(), Some(pair[1].clone()));
            list.iter().map(pair).collect()
        }
        _ => vec![(value.clone(), None)],
    }
}

/// The schema in which the contents have a place: a column is a set or a map, unless every row has
/// one value that is not a reference. References are weak and name the table of their row.
fn schema(name: &str, contents: &Map<String, Value>) -> Value {
    let mut table_of = BTreeMap::new();
    for (table, rows) in contents {
        for row in rows.as_array().expect("rows") {
            table_of.insert(row["_uuid"][1].to_string(), table);
        }
    }
    // A reference may lead to no row, and tells no table then.
    let base = |atom: &Value| match atom {
        Value::Bool(_) => Some(json!("boolean")),
        Value::Number(number) if number.is_i64() => Some(json!("integer")),
        Value::Number(_) => Some(json!("real")),
        Value::String(_) => Some(json!("string")),
        _ => {
            let table = table_of.get(&atom[1].to_string())?;
            Some(json!({"type": "uuid", "refTable": table, "refType": "weak"}))
        }
    };
    let kind = |(key, value): &(Value, Option<Value>)| {
        let mut kind = json!({"key": base(key)?, "min": 0, "max": "unlimited"});
        if let Some(value) = value {
            kind["value"] = base(value)?;
        }
        Some(kind)
    };
    let mut tables = Map::new();
    for (table, rows) in contents {
        let mut columns = Map::new();
        for row in rows.as_array().expect("rows") {
            for (column, value) in row.as_object().expect("a row") {
                if column == "_uuid" {
                    continue;
                }
                // An empty set tells no type; another row may.
                let known = elements(value).iter().find_map(kind);
                let Some(mut kind) = known else {
                    continue;
                };
                let of_rows = rows.as_array().expect("rows").iter();
                if of_rows
                    .filter_map(|row| row.get(column))
                    .all(|value| !value.is_array())
                {
                    kind = kind["key"].clone();
                }
                columns.insert(column.clone(), json!({"type": kind}));
            }
        }
        tables.insert(table.clone(), json!({"isRoot": true, "columns": columns}));
    }
    let empty = json!({"isRoot": true, "columns": {"name": {"type": "string"}}});
    tables.insert("Nobody".to_owned(), empty);
    json!({"name": name, "version": "1.0.0", "tables": tables})
}

/// Gives references to rows that the contents do not have a UUID that no row has.
fn drop_unnamed(value: &mut Value, named: &BTreeSet<String>) {
    if value[0] == "named-uuid" {
        if !named.contains(&value.to_string()) {
            *value = json!(["uuid", "00000000-0000-4000-8000-00000000dead"]);
        }
    } else if let Some(elements) = value.as_array_mut() {
        for element in elements {
            drop_unnamed(element, named);
        }
    }
}

struct Fixture {
    server: Server,
    console: Console,
    database: &'static str,
}

impl Fixture {
    fn of(file: &str, database: &'static str) -> Fixture {
        let contents = contents(file);
        let schema = schema(database, &contents);
        let setup = Setup {
            databases: vec![schema.clone()],
            ..Setup::default()
        };
        let server = Server::start(Implementation::Corvid, &setup).expect("a server");
        let mut params = vec![json!(database)];
        let named: BTreeSet<String> = contents
            .values()
            .flat_map(|rows| rows.as_array().expect("rows"))
            .map(|row| row["_uuid"].to_string())
            .collect();
        for (table, rows) in &contents {
            for row in rows.as_array().expect("rows") {
                let mut row = row.as_object().expect("a row").clone();
                // The server drops a weak reference that leads to no row.
                for value in row.values_mut() {
                    drop_unnamed(value, &named);
                }
                let name = row.remove("_uuid").expect("a name");
                let known = &schema["tables"][table]["columns"];
                row.retain(|column, _| known.get(column).is_some());
                params.push(
                    json!({"op": "insert", "table": table, "uuid-name": name[1], "row": row}),
                );
            }
        }
        let mut client = server.connect().expect("a connection");
        let reply = client.call("transact", &json!(params)).expect("a reply");
        assert!(!reply.to_string().contains("\"error\":\""), "{reply}");
        let word = format!("net=unix:{}", server.socket().display());
        let console = Console::start(&[word]).expect("a console");
        Fixture {
            server,
            console,
            database,
        }
    }

    /// Runs the client, which must succeed. Returns its output.
    fn client(&self, command: &str, more: &[&str]) -> String {
        let own = || binary::bin("ovsdb-client");
        let path = binary::reference("ovsdb-client").unwrap_or_else(own);
        let mut line = Command::new(path);
        line.args(["-f", "json", command])
            .arg(format!("unix:{}", self.server.socket().display()))
            .args(more);
        let output = limited::output(&mut line).expect("it runs");
        assert!(output.status.success(), "{command} {more:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// All rows, as the client dumps them.
    fn dump(&self) -> Rows {
        let mut all = Rows::new();
        for line in self.client("dump", &[self.database]).lines() {
            let table: Value = serde_json::from_str(line).expect("JSON");
            let caption = table["caption"].as_str().expect("a caption");
            let name = caption.trim_end_matches(" table").to_owned();
            let heads = table["headings"].as_array().expect("headings");
            let rows = all.entry(name).or_default();
            for cells in table["data"].as_array().expect("data") {
                let cells = cells.as_array().expect("cells");
                let pairs = heads.iter().zip(cells);
                let mut row: Map<String, Value> = pairs
                    .map(|(head, cell)| (head.as_str().expect("a name").to_owned(), plain(cell)))
                    .collect();
                let uuid = row.remove("_uuid").expect("a UUID");
                rows.insert(uuid[1].as_str().expect("a UUID").to_owned(), row);
            }
        }
        all
    }

    fn page(&self, path: &str) -> String {
        current_page(&self.console, path)
    }
}

/// A value in one notation: sets in order, a set of one element as that.
fn plain(value: &Value) -> Value {
    let mut all = elements(value);
    all.sort_by_key(|element| format!("{element:?}"));
    match all.as_slice() {
        [(key, None)] => key.clone(),
        [(_, Some(_)), ..] => {
            let pairs = all.iter().map(|(key, value)| json!([key, value]));
            json!(["map", pairs.collect::<Vec<_>>()])
        }
        _ => {
            let keys = all.iter().map(|(key, _)| key).collect::<Vec<_>>();
            json!(["set", keys])
        }
    }
}

fn is_default(value: &Value) -> bool {
    elements(value).is_empty() || [json!(""), json!(0), json!(false), json!(0.0)].contains(value)
}

/// Whether a piece of a cell shows an atom: its text, or the row that it refers to.
fn shows(html: &str, atom: &Value) -> bool {
    match atom {
        Value::String(text) if text.is_empty() => text_of(html) == "\"\"",
        Value::String(text) => text_of(html) == *text,
        Value::Array(reference) => html.contains(reference[1].as_str().expect("a UUID")),
        other => {
            let text = other.to_string();
            text_of(html) == text
        }
    }
}

/// Checks the cell of a value.
fn check_cell(html: &str, value: &Value, place: &str) {
    let mut wanted = elements(value);
    let found: Vec<&str> = html.split("<span class=\"sep\">, </span>").collect();
    if wanted.is_empty() {
        assert_eq!(text_of(html), "–", "{place}");
        return;
    }
    assert_eq!(found.len(), wanted.len(), "{place}: {html}");
    for piece in found {
        let known = wanted.iter().position(|(key, value)| match value {
            None => shows(piece, key),
            Some(value) => {
                let (head, rest) = piece.split_once("</span>").unwrap_or((piece, ""));
                let head = text_of(&format!("{head}</span>"));
                let head = head.trim_end_matches(['=', ' ', ':']);
                let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                head == key && shows(rest, value)
            }
        });
        let known = known.unwrap_or_else(|| panic!("{place}: {piece} is not of {value}"));
        wanted.remove(known);
    }
}

/// The links to rows in a page: tables and UUIDs.
fn linked(html: &str) -> BTreeSet<(String, String)> {
    let links = html.split("/db/net/table/").skip(1);
    let row = |link: &str| {
        let address = link.split(['"', '?', '&', '#', '<']).next()?;
        let (table, uuid) = address.split_once("/row/")?;
        Some((table.to_owned(), uuid.to_owned()))
    };
    links.filter_map(row).collect()
}

fn check_tables(fixture: &Fixture, rows: &Rows) {
    let page = fixture.page("/db/net/tables");
    let (full, empty) = page.split_once("Empty tables").expect("a table is empty");
    for (table, rows) in rows {
        if rows.is_empty() {
            assert!(empty.contains(table.as_str()), "{table}");
            continue;
        }
        let line = between(full, &format!("id=\"table-{table}\""), "</tr>");
        let count = text_of(between(line, "count\">", "</td>"));
        assert_eq!(count, rows.len().to_string(), "{table}");
    }
}

fn check_table(fixture: &Fixture, table: &str, rows: &BTreeMap<String, Map<String, Value>>) {
    let path = format!("/db/net/table/{table}");
    // Columns that have the same in all rows are shown if they are asked for.
    let names = rows.values().next().expect("a row").keys();
    let names: Vec<&str> = names.map(String::as_str).collect();
    let page = fixture.page(&format!("{path}?rows=500&columns={}", names.join(",")));
    let summary = text_of(between(&page, "id=\"summary\"", "</p>"));
    assert!(
        summary.ends_with(&format!("of {}", rows.len())),
        "{summary}"
    );
    let mut found = BTreeSet::new();
    for line in page.split("<tr data-uuid=\"").skip(1) {
        let (uuid, line) = line.split_once('"').expect("a UUID");
        let row = &rows[uuid];
        let line = line.split("</tr>").next().unwrap_or_default();
        let cells = line.split("<td data-label=\"").skip(1);
        let mut columns = 0;
        for cell in cells {
            let (column, rest) = cell.split_once("\">").expect("a name");
            let html = rest.split("</td>").next().unwrap_or_default();
            check_cell(html, &row[column], &format!("{table} {uuid} {column}"));
            columns += 1;
        }
        assert_eq!(columns, row.len(), "{table}: {line}");
        found.insert(uuid.to_owned());
    }
    assert_eq!(found, rows.keys().cloned().collect(), "{table}");
    // The file has the same, in the notation of the protocol.
    let file: Value = serde_json::from_str(&fixture.page(&format!("{path}.json"))).expect("JSON");
    let file: BTreeMap<String, Map<String, Value>> =
        file.as_array().expect("rows").iter().map(of_json).collect();
    assert_eq!(file, *rows, "{table}");
}

/// A row as JSON: its UUID, and its columns in one notation.
fn of_json(row: &Value) -> (String, Map<String, Value>) {
    let mut row = row.as_object().expect("a row").clone();
    let uuid = row.remove("_uuid").expect("a UUID");
    row.remove("_version");
    let columns = row.iter().map(|(name, value)| (name.clone(), plain(value)));
    let uuid = uuid[1].as_str().or(uuid.as_str()).expect("a UUID");
    (uuid.to_owned(), columns.collect())
}

fn check_row(fixture: &Fixture, table: &str, uuid: &str, row: &Map<String, Value>) {
    let page = fixture.page(&format!("/db/net/table/{table}/row/{uuid}"));
    let shown = text_of(between(&page, "id=\"as-json\">", "</pre>"));
    let mut shown: Value = serde_json::from_str(&shown).expect("JSON");
    shown["_uuid"] = json!(uuid);
    // Columns with their default values are left out, as a command would leave them out.
    let (_, mut columns) = of_json(&shown);
    for (name, value) in row {
        columns.entry(name.clone()).or_insert_with(|| {
            assert!(
                is_default(value),
                "{table} {uuid} {name}: {value} is left out"
            );
            value.clone()
        });
    }
    assert_eq!(columns, *row, "{table} {uuid}");
    let labels = page.split("<td data-label=\"").skip(1);
    for cell in labels {
        let (column, rest) = cell.split_once("\">").expect("a name");
        let html = rest.split("</td>").next().unwrap_or_default();
        if let Some(value) = row.get(column) {
            check_cell(html, value, &format!("row of {table} {uuid} {column}"));
        }
    }
}

fn check_network(fixture: &Fixture, rows: &Rows, cards: &[(&str, &str)]) {
    let page = fixture.page("/db/net/network");
    let picture = between(&page, "<svg", "</svg>");
    let links = linked(picture);
    for (table, uuid) in &links {
        let is_there = rows.get(table).is_some_and(|rows| rows.contains_key(uuid));
        assert!(is_there, "{table} {uuid} is in the picture only");
    }
    let text = text_of(&format!("<svg{picture}</svg>"));
    for (table, column) in cards {
        for (uuid, row) in &rows[*table] {
            let place = ((*table).to_owned(), uuid.clone());
            assert!(
                links.contains(&place),
                "{table} {uuid} is not in the picture"
            );
            let name = row[*column].as_str().expect("a name");
            assert!(
                text.contains(name),
                "{table} {name} is not in the picture: {text}"
            );
        }
    }
    if cards.is_empty() {
        for (table, rows) in rows {
            let count = match rows.len() {
                1 => format!("{table} 1 row"),
                count => format!("{table} {count} rows"),
            };
            assert!(text.contains(&count), "{count}: {text}");
        }
    }
}

fn check_query(fixture: &Fixture, table: &str, rows: &BTreeMap<String, Map<String, Value>>) {
    let page = fixture.page("/db/net/query");
    let token = between(&page, "name=\"form_token\" value=\"", "\"");
    let select = json!({"op": "select", "table": table, "where": []}).to_string();
    let encoded: String = select.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let body = format!("form_token={token}&operations={encoded}");
    let answer = fixture
        .console
        .ask("POST", "/db/net/query", &[LOCAL], &body);
    let answer = answer.expect("an answer").body;
    let title = match rows.len() {
        1 => format!("select {table}: 1 row"),
        count => format!("select {table}: {count} rows"),
    };
    assert!(
        text_of(&answer).contains(&title),
        "{title}: {}",
        text_of(&answer)
    );
    let result = between(&answer, "<section class=\"result\">", "</section>");
    let heads: Vec<String> = between(result, "<thead>", "</thead>")
        .split("<th scope=\"col\">")
        .skip(1)
        .map(text_of)
        .collect();
    let lines = between(result, "<tbody>", "</tbody>").split("<tr>").skip(1);
    let mut found = BTreeSet::new();
    for line in lines {
        let cells: Vec<&str> = line.split("<td").skip(1).collect();
        assert_eq!(cells.len(), heads.len(), "{line}");
        let uuid = heads
            .iter()
            .position(|head| head == "_uuid")
            .expect("a UUID");
        let uuid = rows
            .keys()
            .find(|known| cells[uuid].contains(known.as_str()));
        let uuid = uuid.unwrap_or_else(|| panic!("{table}: {line}"));
        for (column, value) in &rows[uuid] {
            let head = heads.iter().position(|head| head == column);
            let cell = cells[head.unwrap_or_else(|| panic!("{column}: {heads:?}"))];
            let text = text_of(&format!("<td{cell}"));
            for (key, value) in elements(value) {
                for atom in [Some(key), value].into_iter().flatten() {
                    let atom = match &atom {
                        Value::String(text) => text.clone(),
                        Value::Array(reference) => {
                            reference[1].as_str().expect("a UUID").to_owned()
                        }
                        other => other.to_string(),
                    };
                    assert!(text.contains(&atom), "{table} {column}: {atom}: {text}");
                }
            }
        }
        found.insert(uuid.clone());
    }
    assert_eq!(found.len(), rows.len(), "{table}");
}

/// Changes a name through the client. The page of changes has the row, the old and the new name.
fn check_changes(fixture: &Fixture, rows: &Rows) {
    let found = rows.iter().find_map(|(table, rows)| {
        let (uuid, row) = rows
            .iter()
            .find(|(_, row)| row.get("name").is_some_and(Value::is_string))?;
        Some((table, uuid, row["name"].as_str()?))
    });
    let (table, uuid, old) = found.expect("a row with a name");
    fixture.page("/db/net/changes");
    fixture.page(&format!("/db/net/table/{table}"));
    let update = json!([fixture.database, {"op": "update", "table": table,
        "where": [["_uuid", "==", ["uuid", uuid]]], "row": {"name": "renamed-by-the-client"}}]);
    fixture.client("transact", &[&update.to_string()]);
    let now = &fixture.dump()[table][uuid]["name"];
    let is_there = |page: &str| {
        let lines = page.split("<tr class=\"change\"").skip(1);
        let mut lines =
            lines.filter(|line| line.contains(&format!("/db/net/table/{table}/row/{uuid}")));
        lines.any(|line| {
            let of = |class: &str| {
                let begin = format!("<span class=\"{class}\">");
                let found = line.split_once(&begin).map(|(_, rest)| rest);
                text_of(&format!(
                    "<b>{}",
                    found
                        .and_then(|rest| rest.split("</span>").next())
                        .unwrap_or_default()
                ))
            };
            line.contains("modify")
                && of("old").trim_matches('"') == old
                && json!(of("new")) == *now
        })
    };
    let page = fixture.console.get_until("/db/net/changes", |answer| {
        answer.status == 200 && is_there(&answer.body)
    });
    page.unwrap_or_else(|error| panic!("{table} {uuid} from {old} to {now}: {error}"));
    // The history has the same.
    let history = fixture.page(&format!("/db/net/changes?table={table}&row={uuid}"));
    let history = text_of(between(&history, "<h2>History</h2>", "</main>"));
    assert!(
        history.contains(&format!("name {old} renamed-by-the-client")),
        "{history}"
    );
}

/// Compares the page of servers, and the first page, with the database `_Server`.
fn check_servers(fixture: &Fixture, rows: &Rows) {
    let told = fixture.client("dump", &["_Server", "Database"]);
    let told: Value = serde_json::from_str(told.lines().next().expect("a table")).expect("JSON");
    let heads = told["headings"].as_array().expect("headings");
    let of = |row: &Value, name: &str| {
        let place = heads.iter().position(|head| head == name);
        row[place.unwrap_or_else(|| panic!("{name}: {heads:?}"))].clone()
    };
    let served = told["data"].as_array().expect("rows");
    let row = served
        .iter()
        .find(|row| of(row, "name") == fixture.database);
    let row = row.expect("the database");
    let page = part_until(&fixture.console, "net", |page| {
        page.contains("id=\"sessions\"")
    });
    let text = text_of(&page);
    let model = of(row, "model");
    let model = format!("Model {}", model.as_str().expect("a model"));
    assert!(text.contains(&model), "{model}: {text}");
    assert_eq!(of(row, "connected"), json!(true));
    assert!(text.contains("Health ready"), "{text}");
    let first = text_of(between(&fixture.page("/"), "id=\"db-net\"", "</tr>"));
    let count: usize = rows.values().map(BTreeMap::len).sum();
    let counted = format!("{} {count} ", rows.len());
    assert!(first.contains(&counted), "{counted}: {first}");
}

fn check((file, database, cards): Kind) {
    let fixture = Fixture::of(file, database);
    let rows = fixture.dump();
    assert!(rows.len() > 3, "{rows:?}");
    check_tables(&fixture, &rows);
    for (table, rows) in rows.iter().filter(|(_, rows)| !rows.is_empty()) {
        check_table(&fixture, table, rows);
        check_query(&fixture, table, rows);
        for (uuid, row) in rows {
            check_row(&fixture, table, uuid, row);
        }
    }
    check_network(&fixture, &rows, cards);
    check_servers(&fixture, &rows);
    check_changes(&fixture, &rows);
}

#[test]
fn pages_of_a_northbound_database_agree_with_the_client() {
    check(KINDS[0]);
}

#[test]
fn pages_of_a_southbound_database_agree_with_the_client() {
    check(KINDS[1]);
}

#[test]
fn pages_of_a_switch_agree_with_the_client() {
    check(KINDS[2]);
}

#[test]
fn pages_of_a_hardware_endpoint_agree_with_the_client() {
    check(KINDS[3]);
}

#[test]
fn pages_of_any_other_database_agree_with_the_client() {
    check(KINDS[4]);
}
