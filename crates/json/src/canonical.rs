//! The canonical text of a value, written while its text is read: compact, members sorted bytewise
//! by name, the last of repeated names, numbers by value.
//!
//! Equal to the text of the value's [`Value`](crate::Value), which takes up to fifty times the
//! memory of a text. Texts of clients may be gigabytes long, so this file writes everything that
//! repeats them.

use std::borrow::Cow;

use crate::{Error, Kind, Reader};

/// A container that is still open.
enum Open<'a> {
    Array,
    Object(Members<'a>),
}

/// The members of an object so far. Their texts are in the output.
struct Members<'a> {
    /// Offset of the first member's text.
    start: usize,
    /// Names, with the offsets of their members' texts.
    members: Vec<(Cow<'a, [u8]>, usize)>,
    are_sorted: bool,
}

/// Reads the next value and appends its canonical text. A thousand levels cost no thread stack.
///
/// # Errors
/// Syntax; `out` then holds a part of the text.
pub fn write_canonical(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let mut stack: Vec<Open<'_>> = Vec::new();
    loop {
        match reader.peek()? {
            Kind::Array => {
                reader.begin_array()?;
                out.push(b'[');
                if reader.next_element()? {
                    stack.push(Open::Array);
                    continue;
                }
                out.push(b']');
            }
            Kind::Object => {
                reader.begin_object()?;
                out.push(b'{');
                if let Some(name) = reader.next_member()? {
                    let mut members = Members::new(out.len());
                    members.begin(name, out);
                    stack.push(Open::Object(members));
                    continue;
                }
                out.push(b'}');
            }
            _ => reader.value()?.write(out),
        }
        // Continue in the container of the value, and close every container that ends here.
        loop {
            match stack.last_mut() {
                None => return Ok(()),
                Some(Open::Array) if reader.next_element()? => {
                    out.push(b',');
                    break;
                }
                Some(Open::Array) => out.push(b']'),
                Some(Open::Object(members)) => {
                    if let Some(name) = reader.next_member()? {
                        out.push(b',');
                        members.begin(name, out);
                        break;
                    }
                    members.sort(out);
                    out.push(b'}');
                }
            }
            stack.pop();
        }
    }
}

impl<'a> Members<'a> {
    fn new(start: usize) -> Members<'a> {
        Members {
            start,
            members: Vec::new(),
            are_sorted: true,
        }
    }

    /// Writes a name; its value follows.
    fn begin(&mut self, name: Cow<'a, [u8]>, out: &mut Vec<u8>) {
        let last = self.members.last();
        self.are_sorted &= last.is_none_or(|(last, _)| *last < name);
        let begin = out.len();
        crate::write::string(out, &name);
        out.push(b':');
        self.members.push((name, begin));
    }

    /// Sorts the members.
    fn sort(&mut self, out: &mut Vec<u8>) {
        if self.are_sorted {
            return;
        }
        let members = std::mem::take(&mut self.members);
        let begins: Vec<usize> = members.iter().map(|(_, begin)| *begin).collect();
        let end_of = |number: usize| match begins.get(number + 1) {
            // A comma precedes the next member.
            Some(next) => next - 1,
            None => out.len(),
        };
        let numbered = members.into_iter().enumerate();
        let mut members: Vec<_> = numbered
            .map(|(number, (name, begin))| (name, begin..end_of(number)))
            .collect();
        // Stable, so the last of equal names stays last.
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut sorted = Vec::with_capacity(out.len() - self.start);
        for (number, (name, text)) in members.iter().enumerate() {
            let next = members.get(number + 1);
            if next.is_some_and(|(next, _)| next == name) {
                continue;
            }
            if !sorted.is_empty() {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&out[text.clone()]);
        }
        out.truncate(self.start);
        out.extend_from_slice(&sorted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    #[test]
    fn a_thousand_levels_fit_into_a_small_stack() {
        let text = [
            "[".repeat(500),
            "{\"b\":1,\"a\":".repeat(450),
            "0".into(),
            "}".repeat(450),
            "]".repeat(500),
        ]
        .concat();
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let thread = small.spawn(move || canonical(&text).len() == text.len());
        assert!(thread.expect("a thread").join().expect("it fits"));
    }

    fn canonical(text: &str) -> String {
        let mut out = Vec::new();
        write_canonical(&mut Reader::new(text.as_bytes()), &mut out).expect("JSON");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn members_are_sorted_and_the_last_of_equal_names_wins() {
        assert_eq!(
            canonical(r#" { "b" : [ 1.0 , 2.50 ] , "a":"x", "b" : {} , "": null }"#),
            r#"{"":null,"a":"x","b":{}}"#
        );
        assert_eq!(canonical(r#"{"a":1,"a":2}"#), r#"{"a":2}"#);
        assert_eq!(
            canonical(r#"{"é":1,"z":2,"\u0061":3}"#),
            r#"{"a":3,"z":2,"é":1}"#
        );
        assert_eq!(canonical("[ ]"), "[]");
        assert_eq!(canonical("{ }"), "{}");
    }

    /// A text of random shape; equal names and escapes are likely.
    fn random_text(state: &mut u64, depth: usize, out: &mut String) {
        let mut below = |limit: u64| {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (*state >> 33) % limit
        };
        match below(if depth == 0 { 5 } else { 7 }) {
            0 => out.push_str("null"),
            1 => {
                let numbers = ["1", "1.0", "-0.5", "1e3", "12345678901234567890"];
                out.push_str(numbers[below(5) as usize]);
            }
            2 => out.push_str("true"),
            3 => out.push_str(r#""\u00e9\n\"""#),
            4 => out.push_str(r#""text""#),
            5 => {
                let count = below(4);
                out.push('[');
                for number in 0..count {
                    out.push_str(if number > 0 { " , " } else { " " });
                    random_text(state, depth - 1, out);
                }
                out.push(']');
            }
            _ => {
                let count = below(5);
                out.push('{');
                for number in 0..count {
                    out.push_str(if number > 0 { "," } else { "" });
                    *state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    let names = ["\"a\":", "\"b\" :", "\"\\u0062\":", "\"\":", "\"é\":"];
                    out.push_str(names[(*state >> 33) as usize % names.len()]);
                    random_text(state, depth - 1, out);
                }
                out.push('}');
            }
        }
    }

    #[test]
    fn the_text_equals_that_of_the_tree() {
        let mut state = 7;
        for _ in 0..2000 {
            let mut text = String::new();
            random_text(&mut state, 4, &mut text);
            let tree = Value::parse(text.as_bytes()).expect("JSON").to_string();
            assert_eq!(canonical(&text), tree, "{text}");
        }
    }
}
