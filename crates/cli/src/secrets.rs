//! Leaves secrets out of what goes into a bundle: passwords, private keys, values with names like
//! those, credentials within URLs.
//!
//! Functions of texts and JSON. They judge by names and forms, so they may miss some: the
//! bundle says what it contains, and its owner looks before sending it.

use corvid_json::Value;
use regex_lite::{Captures, Regex};

/// Stands for a secret.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// Parts of names whose values are secrets, in lower case and with `_` for `-`.
const NAMES: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "private_key",
    "privatekey",
    "api_key",
    "psk",
];

/// Whether values with this name are secrets.
#[must_use]
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    NAMES.iter().any(|part| name.contains(part))
}

/// Removes secrets, and counts them.
pub(crate) struct Remover {
    keys: Regex,
    urls: Regex,
    values: Regex,
    /// Members with these names are left out too.
    also: Vec<&'static str>,
    /// The number of secrets so far.
    pub count: usize,
}

impl Remover {
    /// A remover that also leaves out members with these names.
    pub(crate) fn new(also: &[&'static str]) -> Remover {
        let names = NAMES.map(|name| name.replace('_', "[_-]?")).join("|");
        // The expressions are constants, which a test compiles.
        let regex = |text: &str| Regex::new(text).expect("a valid expression");
        Remover {
            keys: regex(
                r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|$)",
            ),
            urls: regex(r#"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@"'<>]+@"#),
            // A name, its separator and its value, which may be quoted and cut off; or an option
            // and the next word.
            values: regex(&format!(
                r#"(?i)([\w.-]*(?:{names})[\w.-]*(?:\\?["']\s*[=:,]\s*|\s*[=:]\s*)|--[\w-]*(?:{names})[\w-]*\s+)(\\"[^"\\]*(?:\\")?|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;}}\]"'\\]+)"#
            )),
            also: also.to_vec(),
            count: 0,
        }
    }

    /// The text without secrets.
    pub(crate) fn text(&mut self, text: &str) -> String {
        let mut count = 0;
        let mut left = |found: &Captures<'_>, end: &str| {
            count += 1;
            format!(
                "{}{LEFT_OUT}{end}",
                found.get(1).map_or("", |it| it.as_str())
            )
        };
        let text = self.keys.replace_all(text, |found: &Captures<'_>| {
            let end = found.get(2).map_or("", |it| it.as_str()).to_owned();
            left(found, &end)
        });
        let text = self
            .urls
            .replace_all(&text, |found: &Captures<'_>| left(found, "@"));
        let text = self
            .values
            .replace_all(&text, |found: &Captures<'_>| left(found, ""));
        let text = text.into_owned();
        self.count += count;
        text
    }

    /// The value without secrets, with maps in the notation of the protocol.
    pub(crate) fn json(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| {
                        let value = self.named(&name.to_string(), value);
                        (name.clone(), value)
                    })
                    .collect(),
            ),
            Value::Array(elements) => match elements.as_slice() {
                // A pair of a map.
                [Value::String(name), value] if is_secret(&name.to_string()) => {
                    let value = self.named(&name.to_string(), value);
                    Value::Array(vec![elements[0].clone(), value])
                }
                elements => Value::Array(elements.iter().map(|it| self.json(it)).collect()),
            },
            Value::String(text) => Value::string(self.text(&text.to_string())),
            other => other.clone(),
        }
    }

    /// The value of a member.
    fn named(&mut self, name: &str, value: &Value) -> Value {
        let is_empty = match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !is_empty && (is_secret(name) || self.also.contains(&name)) {
            self.count += 1;
            return Value::string(LEFT_OUT);
        }
        self.json(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_lose_their_secrets_and_nothing_else() {
        for (text, expected) in [
            ("nothing here: a=b", "nothing here: a=b"),
            ("remote ptcp:6641:127.0.0.1", "remote ptcp:6641:127.0.0.1"),
            ("password=hunter2 n=1", "password=(left out) n=1"),
            ("Password: hunter2", "Password: (left out)"),
            (
                r#"{"db_password": "a b", "n":1}"#,
                r#"{"db_password": (left out), "n":1}"#,
            ),
            (
                r#"set X y=\"psk=\"abc\"\""#,
                r#"set X y=\"psk=(left out)\""#,
            ),
            (r#"set psk "abc"#, r#"set psk "abc"#),
            (r#"psk="abc"#, "psk=(left out)"),
            (
                r#"["map",[["psk","abc"],["n","1"]]]"#,
                r#"["map",[["psk",(left out)],["n","1"]]]"#,
            ),
            ("x --password abc y", "x --password (left out) y"),
            ("api-key='x y' z", "api-key=(left out) z"),
            ("--private-key=/etc/k.pem", "--private-key=(left out)"),
            (
                "see https://me:hunter2@192.0.2.1/x and http://tok@h",
                "see https://(left out)@192.0.2.1/x and http://(left out)@h",
            ),
            ("mail me@example.org", "mail me@example.org"),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
                "a\n-----BEGIN RSA PRIVATE KEY-----(left out)-----END RSA PRIVATE KEY-----\nb",
            ),
            (
                "-----BEGIN PRIVATE KEY-----\ncut",
                "-----BEGIN PRIVATE KEY-----(left out)",
            ),
        ] {
            let mut remover = Remover::new(&[]);
            assert_eq!(remover.text(text), expected);
            assert_eq!(remover.count > 0, text != expected, "{text}");
        }
    }

    #[test]
    fn values_with_secret_names_are_left_out_of_json() {
        let json = br#"{"rows":[{"name":"a","ipsec_psk":"x","empty_password":"",
            "options":["map",[["remote_ip","192.0.2.1"],["psk","y"],["url","ftp://u:p@h"]]],"comment":"c"}]}"#;
        let mut remover = Remover::new(&["comment"]);
        let shown = remover.json(&Value::parse_text(json).unwrap()).to_string();
        let expected = r#"{"rows":[{"comment":"(left out)","empty_password":"","ipsec_psk":"(left out)","name":"a","options":["map",[["remote_ip","192.0.2.1"],["psk","(left out)"],["url","ftp://(left out)@h"]]]}]}"#;
        assert_eq!(shown, expected);
        assert_eq!(remover.count, 4);
    }
}
