//! Names of files and sockets as text, without loss.
//!
//! To the system, a name is bytes. Command lines, connection methods and messages are text here. A
//! byte that is not part of valid UTF-8 becomes one of the last 256 characters of the last private
//! plane, and [`path`] turns it back into the byte. A name that itself contains such a character is
//! treated as bytes. So every name has one text, and no two names share a text.
//!
//! Invariant: `path(&text(name)) == name`. Every text that names a file goes through [`path`] where
//! the file is opened. Code that forgets this finds no file, but never a wrong one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// The character that stands for byte 0; the others follow it.
const FIRST: u32 = 0x0010_ff00;

/// The text of a name.
#[must_use]
pub fn text(name: &OsStr) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.as_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            if byte_of(char).is_some() {
                let mut room = [0; 4];
                let bytes = char.encode_utf8(&mut room).bytes();
                text.extend(bytes.filter_map(char_of));
            } else {
                text.push(char);
            }
        }
        text.extend(chunk.invalid().iter().copied().filter_map(char_of));
    }
    text
}

/// The name that a text stands for.
#[must_use]
pub fn path(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    for char in text.chars() {
        if let Some(byte) = byte_of(char) {
            bytes.push(byte);
        } else {
            bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    OsString::from_vec(bytes).into()
}

fn char_of(byte: u8) -> Option<char> {
    char::from_u32(FIRST + u32::from(byte))
}

fn byte_of(char: char) -> Option<u8> {
    u32::from(char).checked_sub(FIRST)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_text_of_its_own() {
        let mut texts = std::collections::BTreeSet::new();
        let names: [&[u8]; 8] = [
            b"plain.db",
            "gr\u{fc}n.db".as_bytes(),
            b"gr\xfcn.db",
            b"gr\xf6n.db",
            "\u{fffd}.db".as_bytes(),
            "\u{10ffe4}.db".as_bytes(),
            b"\xe4.db",
            b"\xf4\x8f\xff",
        ];
        for name in names {
            let name = OsStr::from_bytes(name);
            let text = text(name);
            assert_eq!(path(&text).as_os_str(), name, "{text:?}");
            assert!(texts.insert(text));
        }
        assert_eq!(text(OsStr::new("gr\u{fc}n")), "gr\u{fc}n");
    }
}
