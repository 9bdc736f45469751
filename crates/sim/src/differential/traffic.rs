//! Chooses the next request, and records its effects.

use corvid_json::Value;

use super::{CONNECTIONS, Differential};

/// A request in which names stand for rows.
#[derive(Clone, Debug)]
pub struct Request {
    /// The connection on which the request is sent.
    pub connection: usize,
    /// The request's method.
    pub method: String,
    /// The request's params.
    pub params: Value,
    /// The reply must be awaited: it arrives a little later, without another request.
    pub is_awaited: bool,
}

/// A monitor that both servers have accepted.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    connection: usize,
    id: Value,
    requests: Value,
}

impl Request {
    pub(super) fn new(connection: usize, method: &str, params: Value) -> Request {
        Request {
            connection,
            method: method.to_owned(),
            is_awaited: times_out(&params),
            params,
        }
    }
}

/// Whether every wait of a transaction ends by itself, and one of them not at once. Damage gives
/// waits such timeouts.
fn times_out(params: &Value) -> bool {
    let operations = params.as_array().unwrap_or_default().iter();
    let waits = operations.filter(|operation| {
        let op = operation.get("op").and_then(Value::as_str);
        op == Some("wait")
    });
    let timeouts: Option<Vec<i64>> = waits
        .map(|wait| wait.get("timeout").and_then(Value::as_integer))
        .collect();
    timeouts.is_some_and(|all| all.iter().any(|timeout| *timeout > 0))
}

fn parse(text: &str) -> Value {
    Value::parse(text.as_bytes()).expect("valid JSON")
}

/// Texts that are not messages, or that a client may not send (docs/spec/protocol.md 1.2, 1.5).
const UNACCEPTABLE: [&str; 14] = [
    r#"{"method":"echo","params":[],"id":1,"jsonrpc":"2.0"}"#,
    r#"{"method":"echo","params":{},"id":1}"#,
    r#"{"method":"echo","id":1}"#,
    r#"{"method":null,"params":[],"id":1}"#,
    r#"{"result":null,"error":null,"id":5}"#,
    r#"{"result":{},"error":null,"id":5}"#,
    r#"{"result":null,"error":"x","id":5}"#,
    r#"[]"#,
    r#""abc""#,
    r#"{"method":"echo","params":[01],"id":1}"#,
    r#"{"method":"echo","params":["\u0000"],"id":1}"#,
    r#"{"method":"echo","params":[1,],"id":1}"#,
    r#"{"method":7,"params":[],"id":1}"#,
    r#"{"method":"echo","params":[NaN],"id":1}"#,
];

/// Requests that fail, or have a constant reply.
const ODD: [(&str, &str); 22] = [
    ("nosuch", "[]"),
    (
        "echo",
        r#"[1.50,{"b":1,"a":[]},"é\u00e9\n",1e3,12345678901234567890]"#,
    ),
    ("get_schema", r#"["Gen"]"#),
    ("get_schema", r#"["Nope"]"#),
    ("get_schema", r#"["_Server"]"#),
    ("get_schema", "[7]"),
    ("get_schema", "[]"),
    ("transact", "[]"),
    ("transact", r#"["Nope"]"#),
    ("transact", r#"["Gen"]"#),
    ("transact", r#"["Gen",7]"#),
    ("transact", r#"["Gen",null,null]"#),
    (
        "transact",
        r#"["_Server",{"op":"select","table":"Database","where":[],"columns":["name","model","connected","leader","cid","sid","index"]}]"#,
    ),
    ("monitor", r#"["Gen","x",[]]"#),
    ("monitor_cond", r#"["Gen","x",{},1]"#),
    ("monitor_cond_since", r#"["Gen","x",{}]"#),
    ("monitor_cond_since", r#"["Gen","x",{},"y"]"#),
    ("monitor_cond_since", r#"["Gen","x",{},7]"#),
    ("monitor_cond_change", r#"["x"]"#),
    ("monitor_cond_change", r#"["nosuch","y",{}]"#),
    ("set_db_change_aware", "[1]"),
    ("lock", "[]"),
];

impl Differential {
    /// Returns the next request.
    pub(super) fn generate(&mut self) -> Request {
        let connection = self.generator.dice.below(CONNECTIONS);
        match self.generator.dice.below(100) {
            0..5 => self.start_monitor(connection),
            5..11 if !self.monitors.is_empty() => self.change_monitor(),
            11..14 => self.stop_monitor(connection),
            14..22 => {
                let method = *self
                    .generator
                    .dice
                    .pick(&["lock", "steal", "unlock", "unlock"]);
                let name = *self.generator.dice.pick(&[
                    "[\"mine\"]",
                    "[\"mine\"]",
                    "[\"other\"]",
                    "[\"1x\"]",
                    "[\"mine\",1]",
                ]);
                Request::new(connection, method, parse(name))
            }
            22..26 if self.open.len() < 4 => self.blocked_wait(connection),
            26..28 => self.short_wait(connection),
            28..30 => self.cancel(connection),
            30..36 => {
                let (method, params) = *self.generator.dice.pick(&ODD);
                Request::new(connection, method, parse(params))
            }
            _ => {
                let mut params = vec![Value::string("Gen")];
                params.extend(self.generator.transaction());
                Request::new(connection, "transact", Value::Array(params))
            }
        }
    }

    /// Returns a request that every server refuses.
    pub(super) fn unacceptable(&mut self) -> String {
        (*self.generator.dice.pick(&UNACCEPTABLE)).to_owned()
    }

    fn start_monitor(&mut self, connection: usize) -> Request {
        let method = *self
            .generator
            .dice
            .pick(&["monitor", "monitor_cond", "monitor_cond_since"]);
        let mut requests = self.generator.monitor(method == "monitor");
        if self.generator.dice.chance(15) {
            requests = self.generator.damaged(&requests);
        }
        let number = self.generator.dice.below(12);
        let id = match number {
            0 => Value::Null,
            1..4 => parse(&format!(r#"{{"id":{number},"db":"Gen"}}"#)),
            4..7 => parse(&format!(r#"["monid",{number}]"#)),
            _ => Value::Integer(number as i64),
        };
        let mut params = vec![Value::string("Gen"), id, requests];
        if method == "monitor_cond_since" {
            let id = *self.generator.dice.pick(&[
                "00000000-0000-0000-0000-000000000000",
                "00000000-1111-1111-1111-111111111111",
            ]);
            params.push(Value::string(id));
        }
        Request::new(connection, method, Value::Array(params))
    }

    fn change_monitor(&mut self) -> Request {
        let monitor = self.generator.dice.pick(&self.monitors).clone();
        let mut change = self.generator.condition_change(&monitor.requests);
        // If a change fails at a later table, the reference has already applied the earlier part.
        let is_lone = change.as_object().is_some_and(|tables| tables.len() == 1);
        if is_lone && self.generator.dice.chance(40) {
            let damaged = self.generator.damaged(&change);
            if damaged.as_object().is_none_or(|tables| tables.len() == 1) && is_bearable(&damaged) {
                change = damaged;
            }
        }
        let new_id = if self.generator.dice.chance(50) {
            monitor.id.clone()
        } else {
            Value::Integer(self.generator.dice.between(7, 40))
        };
        let params = Value::Array(vec![monitor.id, new_id, change]);
        Request::new(monitor.connection, "monitor_cond_change", params)
    }

    fn stop_monitor(&mut self, connection: usize) -> Request {
        let (connection, id) = match self.monitors.last() {
            Some(monitor) if self.generator.dice.chance(70) => {
                (monitor.connection, monitor.id.clone())
            }
            _ => (connection, Value::string("nosuch")),
        };
        let mut params = vec![id];
        if self.generator.dice.chance(10) {
            params.push(Value::Null);
        }
        Request::new(connection, "monitor_cancel", Value::Array(params))
    }

    /// Returns a transaction that waits until a row with a certain `id` exists, then changes it.
    fn blocked_wait(&mut self, connection: usize) -> Request {
        let table = self.generator.table();
        let number = self.generator.dice.between(0, 300);
        let text = format!(
            r#"["Gen",{{"op":"comment","comment":"w"}},{{"op":"wait","table":"{table}","where":[["id",">=",{number}]],"columns":[],"until":"==","rows":[{{}}]}},
            {{"op":"mutate","table":"{table}","where":[["id",">=",{number}]],"mutations":[["id","-=",{number}]]}}]"#
        );
        Request::new(connection, "transact", parse(&text))
    }

    /// Returns a transaction that waits a moment, for a condition that never holds.
    fn short_wait(&mut self, connection: usize) -> Request {
        let table = self.generator.table();
        let timeout = self.generator.dice.between(1, 8);
        let text = format!(
            r#"["Gen",{{"op":"wait","timeout":{timeout},"table":"{table}","where":[["id","==",-12345]],"columns":["id"],"until":"==","rows":[{{"id":1}}]}}]"#
        );
        Request::new(connection, "transact", parse(&text))
    }

    fn cancel(&mut self, connection: usize) -> Request {
        let (connection, id) = match self.open.iter().next() {
            Some((id, request)) => (request.connection, *id),
            None => (connection, 1),
        };
        Request::new(connection, "cancel", parse(&format!("[{id}]")))
    }

    /// Records the effects of a successful request.
    pub(super) fn record(&mut self, request: &Request, reply: &Value) {
        let Some(result) = reply.get("result") else {
            return;
        };
        let params = request.params.as_array().unwrap_or_default();
        let connection = request.connection;
        let is_same =
            |monitor: &Monitor, id: &Value| monitor.connection == connection && monitor.id == *id;
        match (request.method.as_str(), params) {
            ("monitor" | "monitor_cond" | "monitor_cond_since", [_, id, requests, ..]) => {
                self.monitors.push(Monitor {
                    connection,
                    id: id.clone(),
                    requests: requests.clone(),
                });
            }
            ("monitor_cond_change", [id, new_id, _]) => {
                if let Some(monitor) = self
                    .monitors
                    .iter_mut()
                    .find(|monitor| is_same(monitor, id))
                {
                    monitor.id = new_id.clone();
                }
            }
            ("monitor_cancel", [id]) => self.monitors.retain(|monitor| !is_same(monitor, id)),
            ("lock" | "steal", _) if result.get("locked") == Some(&Value::Bool(true)) => {
                self.ours.set_owner(&request.params, connection);
                self.theirs.set_owner(&request.params, connection);
            }
            _ => {}
        }
    }
}

/// Whether every element of a condition change has a `where`. The reference crashes at an element
/// without one.
fn is_bearable(change: &Value) -> bool {
    let tables = change.as_object().into_iter().flatten();
    tables.into_iter().all(|(_, elements)| {
        elements
            .as_array()
            .unwrap_or_default()
            .iter()
            .all(|element| element.get("where").is_some())
    })
}
