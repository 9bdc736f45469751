//! JSON-RPC 1.0 messages of the control channel, in both directions.
//!
//! The channel has its own small codec: it must work even if the rest of the program does not, and
//! its messages are small.

use corvid_json::{Object, Value};

use corvid_rpc::wire_log::{Direction, LoggedMessage};

use super::Format;
use crate::vlog::{self, Module};

/// Logs a message at level DBG of `jsonrpc`. Costs one atomic load while the level is off.
pub(super) fn log_message(name: &str, direction: Direction, text: &[u8]) {
    // Formatted only if the level is shown.
    let message = LoggedMessage::new(direction, text);
    vlog::dbg(Module::Jsonrpc, format_args!("{name}: {message}"));
}

/// A request received by a server.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: Vec<Value>,
}

/// Why a message ends the connection, in the words of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A well-formed message of the wrong kind.
    Unexpected(&'static str),
    /// Not a JSON-RPC message.
    Bad(String),
    /// Not JSON.
    Syntax(String),
}

fn member(object: &Object, name: &str) -> Option<Value> {
    object
        .get(bstr::BStr::new(name))
        .filter(|value| **value != Value::Null)
        .cloned()
}

/// Parses a client's message.
pub(super) fn request(text: &[u8]) -> Result<Request, Refusal> {
    let bad = |what: &str| Refusal::Bad(what.to_owned());
    let value = Value::parse(text).map_err(|error| Refusal::Syntax(error.to_string()))?;
    let Some(object) = value.as_object() else {
        return Err(bad("message is not a JSON object"));
    };
    let known = ["method", "params", "result", "error", "id"];
    if let Some(name) = object.keys().find(|name| {
        !known
            .iter()
            .any(|known| name.as_slice() == known.as_bytes())
    }) {
        return Err(Refusal::Bad(format!(
            "message has unexpected member \"{name}\""
        )));
    }
    let id = member(object, "id");
    if member(object, "result").is_some() {
        return Err(Refusal::Unexpected("reply"));
    }
    if member(object, "error").is_some() {
        return Err(Refusal::Unexpected("error"));
    }
    let method = match object.get(bstr::BStr::new("method")) {
        Some(method) => method
            .as_str()
            .ok_or_else(|| bad("method is not a JSON string"))?
            .to_owned(),
        None => {
            return Err(bad(if id.is_some() {
                "request must have \"method\""
            } else {
                "notification must have \"method\""
            }));
        }
    };
    let params = match member(object, "params") {
        Some(Value::Array(params)) => params,
        Some(_) => return Err(bad("\"params\" must be JSON array")),
        None => {
            return Err(bad(if id.is_some() {
                "request must have \"params\""
            } else {
                "notification must have \"params\""
            }));
        }
    };
    let id = id.ok_or(Refusal::Unexpected("notification"))?;
    Ok(Request { id, method, params })
}

/// Encodes a client's request.
pub(super) fn encode_request(id: i64, method: &str, params: &[String]) -> Vec<u8> {
    let params = params.iter().map(Value::string).collect();
    object([
        ("id", Value::Integer(id)),
        ("method", Value::string(method)),
        ("params", Value::Array(params)),
    ])
}

/// A handler's reply: a text or, if the command has a JSON form, JSON.
#[derive(Debug, PartialEq)]
pub(super) enum Reply {
    Text(String),
    Json(Value),
    Error(String),
}

/// Encodes a reply.
///
/// In text mode the newline is added here: clients of releases before 3.4 print what they receive,
/// later ones tolerate it.
pub(super) fn encode_reply(id: Value, reply: Reply, format: Format) -> Vec<u8> {
    let line = |mut text: String| {
        if format == Format::Text && !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        Value::string(text)
    };
    let result = match (reply, format) {
        (Reply::Text(text), Format::Json) => {
            let text = [
                ("reply", Value::string(text)),
                ("reply-format", Value::string("plain")),
            ];
            Value::Object(
                text.into_iter()
                    .map(|(name, value)| (name.into(), value))
                    .collect(),
            )
        }
        (Reply::Text(text), Format::Text) => line(text),
        (Reply::Json(value), _) => value,
        // An error has no result, not even null (docs/spec/cli.md 2.1).
        (Reply::Error(text), _) => return object([("error", line(text)), ("id", id)]),
    };
    object([("error", Value::Null), ("id", id), ("result", result)])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Vec<u8> {
    Value::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect(),
    )
    .to_bytes()
}

/// Parses a server's reply to request `id`: its result, or its error.
pub(super) fn reply(text: &[u8], id: i64) -> Result<Result<Value, Value>, String> {
    let value = Value::parse(text).map_err(|error| error.to_string())?;
    let object = value.as_object().ok_or("message is not a JSON object")?;
    if object.get(bstr::BStr::new("id")) != Some(&Value::Integer(id)) {
        return Err("reply has unexpected id".to_owned());
    }
    match (member(object, "error"), member(object, "result")) {
        (Some(error), _) => Ok(Err(error)),
        (None, Some(result)) => Ok(Ok(result)),
        (None, None) => Err("reply has neither result nor error".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_end_in_a_newline_in_text_mode_only() {
        let text = |reply, format| {
            String::from_utf8(encode_reply(Value::Integer(1), reply, format)).unwrap()
        };
        assert_eq!(
            text(Reply::Text("ok".into()), Format::Text),
            r#"{"error":null,"id":1,"result":"ok\n"}"#
        );
        assert_eq!(
            text(Reply::Text(String::new()), Format::Text),
            r#"{"error":null,"id":1,"result":""}"#
        );
        assert_eq!(
            text(Reply::Error("no".into()), Format::Text),
            r#"{"error":"no\n","id":1}"#
        );
        let wrapped = r#"{"error":null,"id":1,"result":{"reply":"ok","reply-format":"plain"}}"#;
        assert_eq!(text(Reply::Text("ok".into()), Format::Json), wrapped);
    }

    #[test]
    fn messages_that_are_not_requests_are_refused() {
        let refusal = |text: &str| request(text.as_bytes()).unwrap_err();
        assert_eq!(
            refusal(r#"{"id":null,"method":"x","params":[]}"#),
            Refusal::Unexpected("notification")
        );
        assert_eq!(
            refusal(r#"{"id":1,"result":"x","error":null}"#),
            Refusal::Unexpected("reply")
        );
        let params = Refusal::Bad("\"params\" must be JSON array".into());
        assert_eq!(refusal(r#"{"id":1,"method":"x","params":{}}"#), params);
    }
}
