//! Mutates inputs: changes of bytes test the scanning, and changes of JSON values test the decoders
//! that come after the parser.

use corvid_json::frame::whole_texts;
use corvid_json::{Object, Value};

use crate::random::Random;

/// Fragments that often reveal errors of decoders.
const FRAGMENTS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b" ",
    b"\n",
    b"\0",
    b"\x1f",
    b"\x7f",
    b"\xff",
    b"\xc3\xa9",
    b"\xed\xb0\x80",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00",
    b"\\ud83d\\ude00",
    b"null",
    b"true",
    b"-",
    b"0",
    b"-0",
    b"1e400",
    b"1e-400",
    b"1.0",
    b"9223372036854775808",
    b"18446744073709551617",
    b"1.00000000000000000001",
    b"[[[[[[[[",
    b"OVSDB JSON 5 ",
];

/// Values that often reveal errors of constraints, counts and notations.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "2",
    "1.5",
    "4294967295",
    "9223372036854775807",
    "-9223372036854775808",
    "1e300",
    "\"\"",
    "\"a\"",
    "\"one\"",
    "\"two\"",
    "[]",
    "{}",
    "[\"set\",[]]",
    "[\"map\",[]]",
    "[\"set\",[1,2,3]]",
    "[\"set\",[\"a\",\"a\"]]",
    "[\"map\",[[\"k\",\"v\"]]]",
    "[\"map\",[[\"k\",1],[\"k\",2]]]",
    "[\"uuid\",\"00000000-0000-4000-8000-000000000001\"]",
    "[\"uuid\",\"x\"]",
    "[\"named-uuid\",\"r1\"]",
    "[\"named-uuid\",\"r2\"]",
    "\"unlimited\"",
    "\"insert\"",
    "\"delete\"",
    "\"+=\"",
    "\"includes\"",
    "\"==\"",
    "\"_uuid\"",
    "\"\\udc00\"",
];

/// Returns a mutated seed.
pub fn mutate(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut input = random.pick(seeds).clone();
    let other = random.pick(seeds);
    for _ in 0..=random.below(4) {
        if random.below(2) == 0 {
            bytewise(random, &mut input, other);
        } else {
            structural(random, &mut input, other);
        }
    }
    input
}

/// Changes bytes once: they are flipped, deleted, duplicated, inserted or copied from another seed.
fn bytewise(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let at = random.below(input.len() + 1);
    let end = (at + random.below(16)).min(input.len());
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 => drop(input.drain(at..end)),
        2 => {
            let part = input[at..end].to_vec();
            input.splice(at..at, part);
        }
        3 => {
            let from = random.below(other.len());
            let to = (from + random.below(64)).min(other.len());
            input.splice(at..end, other[from..to].iter().copied());
        }
        4 => input.truncate(at),
        _ => {
            let fragment = *random.pick(FRAGMENTS);
            input.splice(at..at, fragment.iter().copied());
        }
    }
}

/// Changes one of the JSON texts of an input once. An input without a JSON text stays unchanged.
fn structural(random: &mut Random, input: &mut Vec<u8>, other: &[u8]) {
    let mut values = texts(input);
    if values.is_empty() {
        return;
    }
    let donors = texts(other);
    let chosen = random.below(values.len());
    match random.below(8) {
        0 => drop(values.remove(chosen)),
        1 => values.push(values[chosen].clone()),
        2 if !donors.is_empty() => values.push(random.pick(&donors).clone()),
        _ => {
            let donor = match donors.as_slice() {
                [] => Value::Null,
                donors => {
                    let donor = random.pick(donors);
                    subtree(random, donor).clone()
                }
            };
            alter(random, &mut values[chosen], donor);
        }
    }
    input.clear();
    for value in values {
        value.write(input);
    }
}

/// Returns the well-formed JSON texts at the beginning of an input.
fn texts(input: &[u8]) -> Vec<Value> {
    whole_texts(input)
        .map_while(|text| Value::parse(text).ok())
        .collect()
}

/// Returns a random value inside `value`, or `value` itself.
fn subtree<'v>(random: &mut Random, value: &'v Value) -> &'v Value {
    let inner = match value {
        Value::Array(elements) if !elements.is_empty() => Some(random.pick(elements)),
        Value::Object(members) => members.values().nth(random.below(members.len())),
        _ => None,
    };
    match inner {
        Some(inner) if random.below(3) > 0 => subtree(random, inner),
        _ => value,
    }
}

/// Changes one random value inside `value`.
fn alter(random: &mut Random, value: &mut Value, donor: Value) {
    if random.below(4) > 0 {
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                let index = random.below(elements.len());
                return alter(random, &mut elements[index], donor);
            }
            Value::Object(members) if !members.is_empty() => {
                let index = random.below(members.len());
                if let Some(member) = members.values_mut().nth(index) {
                    return alter(random, member, donor);
                }
            }
            _ => {}
        }
    }
    match (random.below(6), &mut *value) {
        (0, Value::Array(elements)) if !elements.is_empty() => {
            drop(elements.remove(random.below(elements.len())));
        }
        (1, Value::Array(elements)) => elements.push(donor),
        (0, Value::Object(members)) if !members.is_empty() => {
            drop(remove(members, random.below(members.len())));
        }
        (1, Value::Object(members)) => {
            let name = members
                .keys()
                .nth(random.below(members.len()))
                .cloned()
                .unwrap_or_default();
            members.insert(
                if random.below(2) == 0 {
                    name
                } else {
                    "extra".into()
                },
                donor,
            );
        }
        (2, Value::Integer(integer)) => *integer = integer.wrapping_add(1),
        (3, Value::Integer(integer)) => *integer = integer.wrapping_neg(),
        (2, Value::String(text)) => text.push(b'x'),
        (3 | 4, other) => *other = donor,
        (_, other) => {
            if let Ok(chosen) = Value::parse(random.pick(VALUES).as_bytes()) {
                *other = chosen;
            }
        }
    }
}

fn remove(members: &mut Object, index: usize) -> Option<Value> {
    let name = members.keys().nth(index)?.clone();
    members.remove(&name)
}
