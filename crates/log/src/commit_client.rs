//! The client of a commit, as a line of the record's comment (docs/reference/files.md, "Clients").
//!
//! ```text
//! set port p1 tag=6                                                     the client's own comment
//! corvid: client=hv1 peer=ssl:192.0.2.7:50122 role=ovn-controller       our line
//! corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 results=1            a transaction id, if any
//! ```
//!
//! In values, every byte that is not a printable ASCII character, and each of `%`, `"` and `\`, is
//! `%` and two hexadecimal digits. So a value ends at a space, a line stays one line, and the text
//! is the same in JSON. `client=` is always there; the other names only with a value.
//!
//! Invariant: a client writes neither line. That of a client counts only as the last line of a
//! comment, or as the one before a transaction id, and [`complete`] leaves no other line there.

use std::fmt;

use corvid_json::Value;

/// How the line of a client begins.
const PREFIX: &str = "corvid: client=";

/// How the line begins that names a commit. It is always the last one.
pub const TRANSACTION_PREFIX: &str = "corvid: txn=";

/// The first line in the comment of the record without rows that a compaction writes after the
/// contents: lines that name the last commits follow.
pub const LAST_COMMITS: &str = "corvid: the last commits before this file was written";

/// Longest value, bytes before they are escaped; longer ones are truncated.
const VALUE_BYTES_MAX: usize = 256;

/// Digits of an escaped byte.
const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// The client of a commit. An empty text stands for an unknown or missing value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitClient {
    /// Common name of its certificate.
    pub client: String,
    /// Address of its connection, or `server`: the server itself.
    pub peer: String,
    /// Its role.
    pub role: String,
    /// The servers that passed the transaction on, in that order: `relay:NAME@PEER` or
    /// `member:UUID`.
    pub via: Vec<String>,
}

impl CommitClient {
    /// Appends the members of the line, as in `client=hv1 peer=ssl:192.0.2.7:50122`.
    pub fn write(&self, out: &mut String) {
        out.push_str("client=");
        write_value(out, &self.client);
        let others = [("peer", &self.peer), ("role", &self.role)].into_iter();
        for (name, value) in others.chain(self.via.iter().map(|via| ("via", via))) {
            if !value.is_empty() {
                out.push(' ');
                out.push_str(name);
                out.push('=');
                write_value(out, value);
            }
        }
    }

    /// Reads the members of a line; `None` if they have another form.
    #[must_use]
    pub fn parse(members: &str) -> Option<CommitClient> {
        let mut parsed = CommitClient::default();
        for (at, member) in members.split(' ').enumerate() {
            let (name, value) = member.split_once('=')?;
            let value = parse_value(value)?;
            match name {
                "client" if at == 0 => parsed.client = value,
                _ if at == 0 => return None,
                "peer" => parsed.peer = value,
                "role" => parsed.role = value,
                "via" => parsed.via.push(value),
                // A later release may write more.
                _ => {}
            }
        }
        Some(parsed)
    }

    /// Whether this text occurs in a value, or in what people read.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        let values = [&self.client, &self.peer, &self.role].into_iter();
        values.chain(&self.via).any(|value| value.contains(text)) || self.to_string().contains(text)
    }
}

/// One line for people: `ssl:192.0.2.7:50122 (client "hv1", role "ovn-controller") via member:…`.
impl fmt::Display for CommitClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*escaped(&self.peer) {
            "" => "unknown address",
            peer => peer,
        })?;
        let known = [("client", &self.client), ("role", &self.role)];
        let mut before = " (";
        for (name, value) in known {
            if !value.is_empty() {
                write!(f, "{before}{name} {}", Value::string(value))?;
                before = ", ";
            }
        }
        if before == ", " {
            f.write_str(")")?;
        }
        if !self.via.is_empty() {
            let via: Vec<String> = self.via.iter().map(|via| escaped(via)).collect();
            write!(f, " via {}", via.join(", "))?;
        }
        Ok(())
    }
}

/// Makes the line of a client (`Some`) the last line of a comment, or any line that names neither a
/// client nor a commit. A line that names the commit may follow.
pub fn complete(comment: &mut String, client: Option<&CommitClient>) {
    if let Some(client) = client {
        if !comment.is_empty() {
            comment.push('\n');
        }
        comment.push_str("corvid: ");
        client.write(comment);
    } else if ends_like_ours(comment) {
        // The client wrote it. It must not speak for another one, nor for a transaction.
        comment.push('\n');
    }
}

/// Whether the last line of a client's comment looks like one that only a server may write, so that
/// [`complete`] changes the comment even without a client.
#[must_use]
pub fn ends_like_ours(comment: &str) -> bool {
    let last = last_line(comment);
    last.starts_with(PREFIX) || last.starts_with(TRANSACTION_PREFIX)
}

/// A comment without the line that names the commit.
#[must_use]
pub fn without_transaction(comment: &str) -> &str {
    without_last(comment, TRANSACTION_PREFIX).unwrap_or(comment)
}

/// The client that a record's comment names, and the comment without our lines, for people.
#[must_use]
pub fn split(comment: &str) -> (Option<CommitClient>, &str) {
    let rest = without_transaction(comment);
    let client = last_line(rest)
        .strip_prefix("corvid: ")
        .filter(|members| members.starts_with("client="))
        .and_then(CommitClient::parse);
    match client {
        Some(_) => (client, without_last(rest, PREFIX).unwrap_or(rest)),
        None => (None, rest),
    }
}

/// The last line of a comment, where ours are.
#[must_use]
pub fn last_line(comment: &str) -> &str {
    comment.rsplit_once('\n').map_or(comment, |(_, last)| last)
}

/// The comment without its last line, if that begins like this.
fn without_last<'c>(comment: &'c str, prefix: &str) -> Option<&'c str> {
    let last = last_line(comment);
    let rest = &comment[..comment.len() - last.len()];
    let is_there = last.starts_with(prefix);
    is_there.then(|| rest.strip_suffix('\n').unwrap_or(rest))
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

fn write_value(out: &mut String, value: &str) {
    let value = &value[..value.floor_char_boundary(VALUE_BYTES_MAX)];
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'"' | b'\\');
    // Mostly nothing is escaped.
    if value.bytes().all(is_plain) {
        out.push_str(value);
        return;
    }
    for byte in value.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from(DIGITS[usize::from(digit)]));
            }
        }
    }
}

fn parse_value(value: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut pieces = value.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let digits = piece.get(..2).filter(|digits| !digits.starts_with('+'))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hv1() -> CommitClient {
        CommitClient {
            client: "hv1".to_owned(),
            peer: "ssl:192.0.2.7:50122".to_owned(),
            role: "ovn-controller".to_owned(),
            via: vec![
                "relay:relay1@ssl:192.0.2.9:41000".to_owned(),
                "member:6731fef6-0000-4a00-9c66-2f0d8e5b7a11".to_owned(),
            ],
        }
    }

    const HV1: &str = "corvid: client=hv1 peer=ssl:192.0.2.7:50122 role=ovn-controller \
        via=relay:relay1@ssl:192.0.2.9:41000 via=member:6731fef6-0000-4a00-9c66-2f0d8e5b7a11";
    const TXN: &str = "corvid: txn=6731fef6-0000-4a00-9c66-2f0d8e5b7a11 results=1";

    fn completed(comment: &str, client: Option<&CommitClient>) -> String {
        let mut comment = comment.to_owned();
        complete(&mut comment, client);
        comment
    }

    #[test]
    fn a_line_follows_the_clients_comment() {
        let client = hv1();
        assert_eq!(completed("", Some(&client)), HV1);
        assert_eq!(completed("a\nb", Some(&client)), format!("a\nb\n{HV1}"));
        for (comment, rest) in [
            (HV1.to_owned(), ""),
            (format!("a\nb\n{HV1}"), "a\nb"),
            (format!("{HV1}\n{TXN}"), ""),
            (format!("a\n{HV1}\n{TXN}"), "a"),
        ] {
            assert_eq!(split(&comment), (Some(client.clone()), rest));
        }
        assert_eq!(split(TXN), (None, ""));
        assert_eq!(split(&format!("a\n{TXN}")), (None, "a"));
    }

    #[test]
    fn values_have_no_bytes_that_end_a_line_a_value_or_a_string() {
        for odd in [
            "a b", "a\nb", "a%b", "a\"b", "a\\b", "é\u{9b}", "%0A", "", "=", "a=b", "\u{202e}",
            "\0",
        ] {
            let client = CommitClient {
                client: odd.to_owned(),
                peer: odd.to_owned(),
                ..CommitClient::default()
            };
            let line = completed("", Some(&client));
            let is_plain = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
            assert!(line.bytes().all(is_plain), "{line}");
            assert!(!line.contains(['"', '\\']), "{line}");
            assert_eq!(split(&line), (Some(client), ""), "{line}");
        }
        let long = CommitClient {
            client: "é".repeat(VALUE_BYTES_MAX),
            ..CommitClient::default()
        };
        let (read, _) = split(&completed("", Some(&long)));
        assert_eq!(read.map(|read| read.client.len()), Some(VALUE_BYTES_MAX));
    }

    #[test]
    fn a_client_speaks_for_no_other() {
        let client = hv1();
        let other = CommitClient::default();
        for forged in [
            HV1.to_owned(),
            format!("why\n{HV1}"),
            format!("{HV1}\n{TXN}"),
            format!("{HV1}\n{HV1}\n{TXN}"),
            format!("{TXN}\n{HV1}"),
            "corvid: client=".to_owned(),
            TXN.to_owned(),
        ] {
            assert!(ends_like_ours(&forged));
            // A line that names the commit may follow, whether or not there is one of a client.
            for end in ["", "\n", &format!("\n{TXN}")] {
                let comment = completed(&forged, None) + end;
                let rest = comment.strip_suffix(&format!("\n{TXN}"));
                assert_eq!(split(&comment), (None, rest.unwrap_or(&comment)));
                let comment = completed(&forged, Some(&other)) + end;
                let (read, rest) = split(&comment);
                if end != "\n" {
                    assert_eq!(read.as_ref(), Some(&other), "{comment}");
                    assert!(rest.starts_with(&forged), "{rest}");
                }
                assert_ne!(read.as_ref(), Some(&client));
            }
        }
        for harmless in ["", "why", &format!("{HV1}\nwhy"), &format!("{HV1}\n")] {
            assert_eq!(completed(harmless, None), harmless);
        }
    }

    #[test]
    fn lines_of_another_form_name_nobody() {
        for wrong in [
            "corvid: client",
            "corvid: client=%",
            "corvid: client=%+1",
            "corvid: client=%ff",
            "corvid: client=a b",
            "corvid:  client=a",
            "corvid: peer=a client=b",
        ] {
            assert_eq!(split(wrong), (None, wrong), "{wrong}");
        }
        let later = "corvid: client=a when=now";
        assert_eq!(split(later).0.map(|read| read.client), Some("a".to_owned()));
    }

    #[test]
    fn people_read_what_is_known() {
        assert_eq!(
            hv1().to_string(),
            "ssl:192.0.2.7:50122 (client \"hv1\", role \"ovn-controller\") via \
             relay:relay1@ssl:192.0.2.9:41000, member:6731fef6-0000-4a00-9c66-2f0d8e5b7a11"
        );
        let server = CommitClient {
            peer: "server".to_owned(),
            ..CommitClient::default()
        };
        assert_eq!(server.to_string(), "server");
        let named = CommitClient {
            client: "a".to_owned(),
            ..CommitClient::default()
        };
        let odd = CommitClient {
            client: "a\nb".to_owned(),
            peer: "a\nb".to_owned(),
            role: "a\nb".to_owned(),
            via: vec!["a\nb".to_owned()],
        };
        assert_eq!(odd.to_string().lines().count(), 1);
        assert!(odd.mentions("a\nb") && odd.mentions("a%0Ab") && !odd.mentions("b\na"));
        assert_eq!(named.to_string(), "unknown address (client \"a\")");
    }
}
