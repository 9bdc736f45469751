//! The console: what its pages show is what the server has, and nobody reads or changes anything
//! who may not. `browser` has the tests in a browser.

mod accessible;
mod agrees;
mod answers;
mod beyond;
mod browser;
mod counted;
mod flood;
mod followed;
mod forgotten;
mod helps;
mod live;
mod load;
mod moments;
mod ovn;
mod pages;
mod pictures;
mod reference;
mod safety;
mod servers;
mod stalled;
mod streams;
mod visible;

use corvid_tests::client::Client;
use corvid_tests::console::Console;
use corvid_tests::server::{Implementation, Server, Setup};
use serde_json::{Value, json};

/// A name that would do harm if a page contained it as it is.
const HOSTILE: &str = "<script>document.title='harmed'</script>\"'><img src=x onerror=alert(1)>";

/// A small network: switches with ports.
fn schema() -> Value {
    let string = json!({"type": "string"});
    let names = json!({"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}});
    let ports = json!({"type": {"key": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": "unlimited"}});
    let up = json!({"type": {"key": "boolean", "min": 0, "max": 1}});
    json!({"name": "Net", "version": "1.2.3", "tables": {
        "Switch": {"isRoot": true, "indexes": [["name"]],
            "columns": {"name": string, "ports": ports, "labels": names}},
        "Port": {"columns": {"name": string, "up": up, "tag": {"type": "integer"}}},
        "Unused": {"isRoot": true, "columns": {"name": string}}
    }})
}

/// A server with the database, and a console that shows it as `net`.
struct Shown {
    console: Console,
    server: Server,
    client: Client,
}

impl Shown {
    fn start(options: &[&str]) -> Shown {
        Shown::of(Implementation::Corvid, options)
    }

    fn of(implementation: Implementation, options: &[&str]) -> Shown {
        let setup = Setup {
            databases: vec![schema()],
            ..Setup::default()
        };
        let server = Server::start(implementation, &setup).expect("a server");
        let client = server.connect().expect("a connection");
        let mut arguments = vec![format!("net=unix:{}", server.socket().display())];
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let console = Console::start(&arguments).expect("a console");
        Shown {
            console,
            server,
            client,
        }
    }

    /// Executes operations, none of which fails.
    fn transact(&mut self, operations: &[Value]) -> Value {
        let mut params = vec![json!("Net")];
        params.extend(operations.iter().cloned());
        let reply = self
            .client
            .call("transact", &json!(params))
            .expect("a reply");
        let results = reply["result"].as_array().expect("results");
        assert!(
            results.iter().all(|result| result.get("error").is_none()),
            "{reply}"
        );
        reply["result"].clone()
    }

    /// Adds a switch with ports. Returns the UUIDs of the switch and the ports.
    fn add_switch(&mut self, name: &str, ports: &[&str]) -> (String, Vec<String>) {
        let mut operations: Vec<Value> = (ports.iter().enumerate())
            .map(|(index, port)| {
                json!({"op": "insert", "table": "Port", "uuid-name": format!("p{index}"),
                    "row": {"name": port, "tag": index}})
            })
            .collect();
        let named: Vec<Value> = (0..ports.len())
            .map(|index| json!(["named-uuid", format!("p{index}")]))
            .collect();
        operations.push(json!({"op": "insert", "table": "Switch",
            "row": {"name": name, "ports": ["set", named]}}));
        let results = self.transact(&operations);
        let uuid = |result: &Value| result["uuid"][1].as_str().expect("a UUID").to_owned();
        let mut uuids: Vec<String> = results
            .as_array()
            .expect("results")
            .iter()
            .map(uuid)
            .collect();
        (uuids.pop().expect("a switch"), uuids)
    }

    /// A page, which must exist, as soon as its contents are current.
    fn page(&self, path: &str) -> String {
        current_page(&self.console, path)
    }
}

/// A page of a console, which must exist, as soon as its contents are current.
fn current_page(console: &Console, path: &str) -> String {
    let answer = console.get_until(path, |answer| {
        answer.status != 503 && !answer.body.contains("Not current: ")
    });
    let answer = answer.expect("an answer");
    assert_eq!(answer.status, 200, "{path}\n{}", answer.body);
    answer.body
}

/// The texts of a page between tags, with references to characters replaced.
fn text_of(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text.push_str(before);
        rest = after.split_once('>').map_or("", |(_, after)| after);
        text.push(' ');
    }
    text.push_str(rest);
    for (reference, letter) in [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#38;", "&"),
    ] {
        text = text.replace(reference, letter);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The part of a page between two texts.
fn between<'p>(page: &'p str, begin: &str, end: &str) -> &'p str {
    let (_, after) = page
        .split_once(begin)
        .unwrap_or_else(|| panic!("no {begin}:\n{page}"));
    after.split_once(end).map_or(after, |(inner, _)| inner)
}
