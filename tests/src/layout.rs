//! Writes messages as a person would write them in a script: in the short form, and long messages
//! on several lines.
//!
//! Used when expectations are rewritten. The function that reads the short form is also in this
//! module, so that the two remain inverse to each other.

use serde::Deserialize;
use serde_json::{Value, json};

/// The maximum width of a line.
const WIDTH: usize = 118;

/// Reads a JSON text of any depth. The protocol allows a thousand nested brackets, which is more
/// than `serde_json` allows by default.
///
/// # Errors
///
/// If the text is anything other than one JSON text.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Deserialize::deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(value)
}

/// Returns the short form of a received message, see [`crate::script`]. `newest` is the id of the
/// newest request.
pub fn written(message: &Value, newest: u64) -> String {
    let member = |name: &str| message.get(name).unwrap_or(&Value::Null);
    let count = message.as_object().map_or(0, serde_json::Map::len);
    let prefix = match member("id").as_u64() {
        Some(id) if id == newest => String::new(),
        Some(id) => format!("{id}: "),
        None if member("id").is_null() && count == 3 && member("method").is_string() => {
            return format!(
                "notify {} {}",
                member("method").as_str().unwrap_or_default(),
                member("params")
            );
        }
        None => return message.to_string(),
    };
    if count == 3 && message.get("error") == Some(&Value::Null) && !member("result").is_null() {
        format!("{prefix}result {}", member("result"))
    } else if count == 2 && !member("error").is_null() {
        format!("{prefix}error {}", member("error"))
    } else {
        message.to_string()
    }
}

/// Returns the message that a written expectation stands for. This is the inverse of [`written`].
///
/// # Errors
///
/// If the text has another form, or contains bad JSON.
pub fn read(text: &str, newest: u64) -> Result<Value, String> {
    if text.starts_with('{') {
        return parse(text);
    }
    let (id, text) = match text.split_once(": ") {
        Some((digits, rest)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => (
            digits
                .parse()
                .map_err(|_| "bad request number".to_owned())?,
            rest,
        ),
        _ => (newest, text),
    };
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    match word {
        "result" => Ok(json!({"id": id, "result": parse(rest)?, "error": null})),
        "error" => Ok(json!({"id": id, "error": parse(rest)?})),
        "notify" => match rest.trim().split_once(' ') {
            Some((method, params)) => {
                Ok(json!({"id": null, "method": method, "params": parse(params)?}))
            }
            None => Err("a notification needs a method and params".to_owned()),
        },
        "" => Err("nothing is written here".to_owned()),
        _ => Err(format!("unknown word {word:?}")),
    }
}

/// Returns the lines of a step: `head` (such as `A<`) and its text. A text that is too long is
/// divided at commas of its JSON.
pub fn lines(head: &str, text: &str) -> Vec<String> {
    let whole = format!("{head} {text}");
    if whole.chars().count() <= WIDTH {
        return vec![whole];
    }
    let Some(start) = text.find(['{', '[']) else {
        return vec![whole];
    };
    let Ok(value) = serde_json::from_str::<Value>(&text[start..]) else {
        return vec![whole];
    };
    let mut lines = vec![format!("{head} {}", text[..start].trim_end())];
    break_value(&value, "", "", 4, &mut lines);
    // The first line has room for the opening bracket, so the bracket is moved there.
    if let Some(opening) = (lines.len() > 1).then(|| lines.remove(1)) {
        lines[0] = format!("{} {}", lines[0].trim_end(), opening.trim_start());
    }
    lines
}

fn break_value(value: &Value, before: &str, after: &str, indent: usize, lines: &mut Vec<String>) {
    let margin = " ".repeat(indent);
    let flat = format!("{margin}{before}{value}{after}");
    let inner: Vec<(String, &Value)> = match value {
        Value::Array(items) if !items.is_empty() => {
            items.iter().map(|item| (String::new(), item)).collect()
        }
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .map(|(name, item)| (format!("{}:", Value::from(name.as_str())), item))
            .collect(),
        _ => return lines.push(flat),
    };
    // A container that contains no other containers is easiest to read on one line, however long
    // its texts are.
    let is_plain = !inner
        .iter()
        .any(|(_, item)| item.is_array() || item.is_object());
    if is_plain || flat.chars().count() <= WIDTH {
        return lines.push(flat);
    }
    let (open, close) = if value.is_array() {
        ('[', ']')
    } else {
        ('{', '}')
    };
    lines.push(format!("{margin}{before}{open}"));
    let last = inner.len() - 1;
    for (index, (name, item)) in inner.into_iter().enumerate() {
        let after = if index == last {
            format!("{close}{after}")
        } else {
            ",".to_owned()
        };
        break_value(item, &name, &after, indent + 2, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_read_back_as_the_same_message() {
        for text in [
            r#"{"error":null,"id":3,"result":[1]}"#,
            r#"{"error":null,"id":2,"result":[1]}"#,
            r#"{"error":"canceled","id":3}"#,
            r#"{"id":null,"method":"update","params":["m",{}]}"#,
            r#"{"error":null,"id":"x","result":[]}"#,
            r#"{"error":"e","id":3,"result":null}"#,
        ] {
            let message: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                read(&written(&message, 3), 3).unwrap(),
                message,
                "{}",
                written(&message, 3)
            );
        }
        assert_eq!(
            written(&json!({"id": 2, "error": null, "result": {}}), 3),
            "2: result {}"
        );
    }

    #[test]
    fn long_expectations_break_into_continuations() {
        let value = json!([{"a": "x".repeat(80)}, {"b": ["y".repeat(80)]}]);
        let text = format!("result {value}");
        let broken = lines("A<", &text);
        assert!(
            broken.len() > 2 && broken[1..].iter().all(|line| line.starts_with("    ")),
            "{broken:#?}"
        );
        let joined: Vec<&str> = broken.iter().map(|line| line.trim()).collect();
        let read_back = read(joined.join(" ").strip_prefix("A< ").unwrap(), 1).unwrap();
        assert_eq!(read_back["result"], value);
    }
}
