//! Errors that the server answers, as words for people.

use corvid::json::Value;

/// An error as `TAG: DETAILS`, with the text that is malformed, if the server names it. An error of
/// another shape is shown as it is.
pub(crate) fn words(error: &Value) -> String {
    let text = |member: &str| error.get(member).and_then(Value::as_str);
    let Some(tag) = text("error") else {
        return error
            .as_str()
            .map_or_else(|| error.to_string(), str::to_owned);
    };
    let mut words = tag.to_owned();
    if let Some(details) = text("details") {
        words = format!("{words}: {details}");
    }
    if let Some(syntax) = text("syntax") {
        words = format!("{words} (in {syntax})");
    }
    words
}

/// The same of an error as it came, also if it is not JSON.
pub(crate) fn of_reply(error: &[u8]) -> String {
    match Value::parse(error) {
        Ok(error) => words(&error),
        Err(_) => String::from_utf8_lossy(error).into_owned(),
    }
}

/// The error in the results of a transaction, if it failed.
pub(crate) fn of_results(results: &Value) -> Option<String> {
    let mut results = results.as_array().unwrap_or_default().iter();
    results
        .find(|result| result.get("error").is_some())
        .map(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_words() {
        for (json, expected) in [
            (
                r#"{"details":"role \"x\" prohibits it","error":"permission error"}"#,
                "permission error: role \"x\" prohibits it",
            ),
            (
                r#"{"syntax":"{\"op\":1}","details":"no table","error":"syntax error"}"#,
                "syntax error: no table (in {\"op\":1})",
            ),
            (r#"{"error":"unknown database"}"#, "unknown database"),
            (r#""canceled""#, "canceled"),
            (r#"{"code":7}"#, r#"{"code":7}"#),
        ] {
            assert_eq!(of_reply(json.as_bytes()), expected);
        }
        assert_eq!(of_reply(b"not json"), "not json");
    }

    #[test]
    fn a_failed_transaction_names_its_error() {
        let found = |json: &str| of_results(&Value::parse(json.as_bytes()).unwrap());
        let failed = r#"[{"rows":[]},{"error":"timed out","details":"x"},null]"#;
        assert_eq!(found(failed).as_deref(), Some("timed out: x"));
        assert_eq!(found(r#"[{"rows":[]},{}]"#), None);
    }
}
