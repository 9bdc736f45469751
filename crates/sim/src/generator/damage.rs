//! Damages one location of a request: another value, a missing or an unexpected member, an unknown
//! name.

use corvid_json::Value;

use crate::world::dice::Dice;

const JUNK: [&str; 26] = [
    "null",
    "true",
    "7",
    "-1",
    "1.5",
    "\"junk\"",
    "\"\"",
    "\"1x\"",
    "[]",
    "{}",
    "[[]]",
    "[{}]",
    "[\"set\",[]]",
    "[\"set\",[1,1]]",
    "[\"set\",{}]",
    "[\"set\"]",
    "[\"map\",[]]",
    "[\"map\",[[1,2],[1,3]]]",
    "[\"map\",[[1]]]",
    "[\"uuid\",\"x\"]",
    "[\"uuid\",\"00000000-0000-0000-0000-000000000000\"]",
    "[\"named-uuid\",\"1x\"]",
    "[\"named-uuid\",7]",
    "[\"id\",\"==\",\"x\"]",
    "[\"nosuch\",\"==\",1]",
    "[\"id\",\"===\",1]",
];

/// Returns `value` with damage in one location.
pub(super) fn damaged(dice: &mut Dice, value: &Value) -> Value {
    let mut value = value.clone();
    let depth = 1 + dice.below(5);
    spoil(dice, &mut value, depth);
    value
}

fn junk(dice: &mut Dice) -> Value {
    Value::parse(dice.pick(&JUNK).as_bytes()).expect("valid JSON")
}

fn spoil(dice: &mut Dice, value: &mut Value, depth: usize) {
    match value {
        Value::Array(elements) if depth > 0 && !elements.is_empty() => {
            let position = dice.below(elements.len());
            match dice.below(8) {
                0 => drop(elements.remove(position)),
                1 => elements.insert(position, junk(dice)),
                _ => spoil(dice, &mut elements[position], depth - 1),
            }
        }
        Value::Object(members) if depth > 0 && !members.is_empty() => {
            let position = dice.below(members.len());
            let name = members.keys().nth(position).expect("it is there").clone();
            match dice.below(8) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert("extra".into(), junk(dice))),
                2 => {
                    let member = members.remove(&name).expect("it is there");
                    members.insert("nosuch".into(), member);
                }
                _ => spoil(
                    dice,
                    members.get_mut(&name).expect("it is there"),
                    depth - 1,
                ),
            }
        }
        place => *place = junk(dice),
    }
}
