//! X.509 names: the shown form of a subject, and the common name that identifies a peer for
//! role-based access control.

use std::fmt::Write;

use crate::der::{BadDer, Reader, dotted, tag};

/// The parts of a name that are used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Name {
    /// The first commonName.
    pub(crate) common_name: Option<String>,
    /// All attributes on one line: `/C=US/O=Open vSwitch/CN=...`.
    pub(crate) line: String,
}

/// id-at-commonName
const COMMON_NAME: &[u8] = &[0x55, 4, 3];

/// Attribute types of X.520 (the arc 2.5.4), by their number in it.
const X520: [(u8, &str); 24] = [
    (0, "objectClass"),
    (1, "aliasedEntryName"),
    (2, "knowledgeInformation"),
    (3, "CN"),
    (4, "surname"),
    (5, "serialNumber"),
    (6, "C"),
    (7, "L"),
    (8, "ST"),
    (9, "streetAddress"),
    (10, "O"),
    (11, "OU"),
    (12, "title"),
    (13, "description"),
    (14, "searchGuide"),
    (15, "businessCategory"),
    (16, "postalAddress"),
    (17, "postalCode"),
    (41, "name"),
    (42, "givenName"),
    (43, "initials"),
    (44, "generationQualifier"),
    (45, "uniqueIdentifier"),
    (46, "dnQualifier"),
];

/// Attribute types of other arcs.
const OTHERS: [(&[u8], &str); 4] = [
    // 0.9.2342.19200300.100.1.1
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1],
        "uid",
    ),
    // 0.9.2342.19200300.100.1.25
    (
        &[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25],
        "DC",
    ),
    // 1.2.840.113549.1.9.1
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1], "Email"),
    // 1.2.840.113549.1.9.2
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 2],
        "unstructuredName",
    ),
];

impl Name {
    /// Parses a Name (RFC 5280 4.1.2.4) whose outer sequence is already entered.
    pub(crate) fn read(mut names: Reader<'_>) -> Result<Name, BadDer> {
        let mut name = Name::default();
        while !names.is_empty() {
            let mut attributes = names.enter(tag::SET)?;
            while !attributes.is_empty() {
                let mut attribute = attributes.enter(tag::SEQUENCE)?;
                let oid = attribute.oid()?;
                let value = attribute.value()?.content;
                attribute.end()?;
                name.add(oid, value);
            }
        }
        Ok(name)
    }

    fn add(&mut self, oid: &[u8], value: &[u8]) {
        if oid == COMMON_NAME && self.common_name.is_none() {
            self.common_name = Some(readable(value));
        }
        let value = String::from_utf8_lossy(value);
        let written = match short(oid) {
            Some(short) => write!(self.line, "/{short}={value}"),
            None => write!(self.line, "/{}={value}", dotted(oid)),
        };
        debug_assert!(written.is_ok(), "memory cannot fail");
    }
}

/// The short name of an attribute type.
fn short(oid: &[u8]) -> Option<&'static str> {
    if let [0x55, 4, number] = oid {
        let known = X520.iter().find(|(known, _)| known == number)?;
        return Some(known.1);
    }
    let known = OTHERS.iter().find(|(known, _)| *known == oid)?;
    Some(known.1)
}

/// A text of a certificate in a form that JSON carries to every parser: bytes that are not UTF-8,
/// and NULs, become U+FFFD. If a name ended at a NUL, one client could get the name of another.
fn readable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_texts_that_every_parser_takes() {
        assert_eq!(readable(b"client\0.example"), "client\u{fffd}.example");
        assert_eq!(readable(b"\xffclient"), "\u{fffd}client");
        assert_eq!(readable("Zo\u{eb}".as_bytes()), "Zo\u{eb}");
    }

    #[test]
    fn attributes_without_a_short_name_are_dotted() {
        let mut name = Name::default();
        name.add(&[0x55, 4, 6], b"US");
        name.add(COMMON_NAME, b"first");
        name.add(COMMON_NAME, b"second");
        name.add(&[0x55, 4, 99], b"x");
        assert_eq!(name.line, "/C=US/CN=first/CN=second/2.5.4.99=x");
        assert_eq!(name.common_name.as_deref(), Some("first"));
    }
}
