//! Prints a daemon's answer on standard output or standard error.

use std::io::Write;

use corvid_json::Value;
use corvid_shell::output::{self, Output};
use corvid_shell::program;
use corvid_shell::unixctl::Format;

use crate::appctl::options::Options;

/// The reason for the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The daemon executed the command.
    Answered,
    /// The daemon answered with an error, or with a value that this format cannot show.
    Refused,
}

/// Prints a result.
pub(crate) fn print(result: &Value, options: &Options) -> Ending {
    let Some(text) = text(result, options.format, options.is_pretty) else {
        let kind = kind(result);
        output::error_line(format_args!(
            "{}: Unexpected reply type in JSON rpc reply: {kind}",
            program::name()
        ));
        return Ending::Refused;
    };
    // An error stays recorded, and the exit reports it.
    let _ = Output.write_all(&text);
    Ending::Answered
}

/// Prints the error that `target` returned.
pub(crate) fn print_error(error: &Value, target: &str) -> Ending {
    let text = match error.as_str() {
        Some(text) => line(text),
        None => line(error.to_string()),
    };
    output::error_text(String::from_utf8_lossy(&text));
    output::error_line(format_args!(
        "{}: {target}: server returned an error",
        program::name()
    ));
    Ending::Refused
}

/// Whether the daemon does not know the command.
pub(crate) fn is_unknown_command(error: &Value) -> bool {
    let text = error.as_str().map(ToString::to_string);
    text.is_some_and(|text| text.contains("is not a valid command"))
}

/// The text of an answer: the answer itself, or its `reply` if the connection has been switched to
/// JSON.
pub(crate) fn plain_text(answer: &Result<Value, Value>) -> Option<String> {
    let answer = answer.as_ref().ok()?;
    let text = answer.get("reply").unwrap_or(answer).as_str()?;
    Some(text.to_string())
}

/// The bytes to print; `None` if the format is text and the result is not a string.
fn text(result: &Value, format: Format, is_pretty: bool) -> Option<Vec<u8>> {
    match (format, result) {
        (Format::Text, Value::String(text)) => Some(line(text)),
        (Format::Text, _) => None,
        (Format::Json, _) => {
            let mut text = Vec::new();
            if is_pretty {
                result.write_pretty(&mut text);
            } else {
                result.write(&mut text);
            }
            Some(line(&text))
        }
    }
}

/// Adds a newline at the end if there is none: newer daemons omit it. An empty text stays empty.
fn line(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut text = text.as_ref().to_vec();
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(false) => "false",
        Value::Bool(true) => "true",
        Value::Integer(_) => "integer",
        Value::Real(_) => "real",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str, format: Format, is_pretty: bool) -> Option<String> {
        let value = Value::parse(json.as_bytes()).unwrap();
        text(&value, format, is_pretty).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn texts_end_in_one_newline_unless_empty() {
        for (json, expected) in [(r#""ok""#, "ok\n"), (r#""ok\n""#, "ok\n"), (r#""""#, "")] {
            assert_eq!(shown(json, Format::Text, false).as_deref(), Some(expected));
        }
        assert_eq!(shown("{}", Format::Text, false), None);
    }

    #[test]
    fn json_has_sorted_members() {
        let json = r#"{"reply-format":"plain","reply":"x"}"#;
        let expected = "{\"reply\":\"x\",\"reply-format\":\"plain\"}\n";
        assert_eq!(shown(json, Format::Json, false).as_deref(), Some(expected));
        let pretty = shown(json, Format::Json, true).unwrap();
        assert!(pretty.starts_with("{\n  \"reply\""), "{pretty}");
    }
}
