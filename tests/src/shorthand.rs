//! The short forms in which a request can be written in a script. They are expanded to the params
//! that are sent.
//!
//! In `METHOD WORD OR JSON …`, each word becomes a param. `do DB OPERATION ; OPERATION …` is a
//! `transact` whose operations may be written by position:
//!
//! ```text
//! insert TABLE ROW [#7] [NAME]                   #7: with "uuid":"<#7>"; NAME: with "uuid-name"
//! select TABLE WHERE [COLUMNS [SORT]]
//! update TABLE WHERE ROW
//! mutate TABLE WHERE MUTATIONS
//! delete TABLE WHERE
//! wait TABLE WHERE COLUMNS ==|!= ROWS [TIMEOUT]
//! comment TEXT · commit BOOLEAN · assert LOCK · abort
//! {"op":…}                                       as it is
//! ```
//!
//! Invariant: JSON keeps its spelling, so a case determines every byte that matters. Called by
//! [`crate::stage`].

use serde_json::Value;

/// Returns the method and the params of a request in short form. The params are JSON text.
///
/// # Errors
///
/// If a JSON text has no end, an operation is unknown, or an operation has too few words.
pub fn request(text: &str) -> Result<(&str, String), String> {
    let (method, rest) = text.split_once(' ').unwrap_or((text, ""));
    let words = words(rest)?;
    if method != "do" {
        return Ok((method, array(words.iter().map(|word| json_of(word)))));
    }
    let (database, operations) = words.split_first().ok_or("do: no database")?;
    let mut params = vec![json_of(database)];
    for operation in operations
        .split(|word| *word == ";")
        .filter(|operation| !operation.is_empty())
    {
        params.push(expand(operation)?);
    }
    Ok(("transact", array(params)))
}

/// Returns an operation in short form as JSON text.
fn expand(words: &[&str]) -> Result<String, String> {
    let op = words[0];
    let short = |form: &str| format!("{op}: expected {form}, got {words:?}");
    let members: Vec<(&str, String)> = match (op, &words[1..]) {
        (json, []) if json.starts_with('{') => return Ok(json.to_owned()),
        ("insert", [table, row, options @ ..]) => {
            let mut members = vec![("table", json_of(table)), ("row", json_of(row))];
            members.extend(options.iter().map(|option| match option.strip_prefix('#') {
                Some(_) => ("uuid", format!("\"<{option}>\"")),
                None => ("uuid-name", json_of(option)),
            }));
            members
        }
        ("select", [table, condition, options @ ..]) if options.len() <= 2 => {
            let mut members = vec![("table", json_of(table)), ("where", json_of(condition))];
            members.extend(
                ["columns", "sort"]
                    .into_iter()
                    .zip(options.iter().map(|option| json_of(option))),
            );
            members
        }
        ("update", [table, condition, row]) => {
            vec![
                ("table", json_of(table)),
                ("where", json_of(condition)),
                ("row", json_of(row)),
            ]
        }
        ("mutate", [table, condition, mutations]) => {
            vec![
                ("table", json_of(table)),
                ("where", json_of(condition)),
                ("mutations", json_of(mutations)),
            ]
        }
        ("delete", [table, condition]) => {
            vec![("table", json_of(table)), ("where", json_of(condition))]
        }
        ("wait", [table, condition, columns, until, rows, timeout @ ..]) if timeout.len() <= 1 => {
            let mut members = vec![
                ("table", json_of(table)),
                ("where", json_of(condition)),
                ("columns", json_of(columns)),
                ("until", json_of(until)),
                ("rows", json_of(rows)),
            ];
            members.extend(timeout.iter().map(|timeout| ("timeout", json_of(timeout))));
            members
        }
        ("comment", [text]) => vec![("comment", json_of(text))],
        ("commit", [durable]) => vec![("durable", json_of(durable))],
        ("assert", [lock]) => vec![("lock", json_of(lock))],
        ("abort", []) => Vec::new(),
        _ => return Err(short("one of the forms of this module")),
    };
    let members: String = members
        .iter()
        .map(|(name, value)| format!(",\"{name}\":{value}"))
        .collect();
    Ok(format!("{{\"op\":\"{op}\"{members}}}"))
}

/// Returns the words and JSON texts of a line as they are written.
fn words(mut text: &str) -> Result<Vec<&str>, String> {
    let mut words = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else {
            return Ok(words);
        };
        let end = match first {
            '{' | '[' | '"' => end_of_json(text).ok_or_else(|| format!("no end: {text}"))?,
            _ => text.find(char::is_whitespace).unwrap_or(text.len()),
        };
        let (word, rest) = text.split_at(end);
        words.push(word);
        text = rest;
    }
}

/// Returns a word as JSON text: unchanged if it is JSON already, otherwise as a string.
fn json_of(word: &str) -> String {
    let is_json = end_of_json(word).is_some() || serde_json::from_str::<Value>(word).is_ok();
    if is_json {
        word.to_owned()
    } else {
        Value::from(word).to_string()
    }
}

fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

/// Returns where the string, array or object at the beginning of the text ends.
fn end_of_json(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 && !in_string && !escaped {
            return matches!(byte, b'"' | b']' | b'}').then_some(index + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_become_strings_and_json_keeps_its_spelling() {
        let (method, params) = request(r#"transact Zoo {"a": [1.0, "b c"]} null 1e3 x; "#).unwrap();
        assert_eq!(
            (method, params.as_str()),
            ("transact", r#"["Zoo",{"a": [1.0, "b c"]},null,1e3,"x;"]"#)
        );
        assert_eq!(request("list_dbs").unwrap(), ("list_dbs", "[]".to_owned()));
        assert!(request("echo [1").is_err());
    }

    #[test]
    fn operations_by_position() {
        let (method, params) =
            request(r#"do Zoo insert T {"i": 1.0} #7 x ; select T [] ["i"] ; abort"#).unwrap();
        assert_eq!(method, "transact");
        let expected = concat!(
            r#"["Zoo",{"op":"insert","table":"T","row":{"i": 1.0},"uuid":"<#7>","uuid-name":"x"},"#,
            r#"{"op":"select","table":"T","where":[],"columns":["i"]},{"op":"abort"}]"#
        );
        assert_eq!(params, expected);
        let (_, params) =
            request(r#"do Zoo wait T [] ["i"] == [{"i":2}] 0 ; commit true"#).unwrap();
        assert!(
            params.contains(r#""until":"==","rows":[{"i":2}],"timeout":0}"#),
            "{params}"
        );
        assert!(request("do Zoo insert T").is_err());
    }
}
