//! Random schemas: root and non-root tables that refer to each other in every way, all types,
//! limits, constraints and indexes.

use corvid_json::Value;

use super::Profile;
use crate::world::dice::Dice;

/// A table under construction.
struct Draft {
    is_root: bool,
    columns: Vec<(String, String)>,
    /// Columns that are suitable for an index.
    keys: Vec<String>,
}

/// Returns a random schema, parsed from its JSON text.
pub(super) fn generate(dice: &mut Dice, profile: Profile) -> Value {
    let count = 2 + dice.below(4);
    let roots: Vec<bool> = (0..count)
        .map(|table| table == 0 || dice.chance(55))
        .collect();
    let mut tables: Vec<Draft> = roots.iter().map(|is_root| draft(dice, *is_root)).collect();
    for (table, is_root) in roots.iter().enumerate() {
        // Rows of a non-root table exist only while they are referenced. The first holder is a root
        // table; the second is random.
        if !is_root {
            let others: Vec<usize> = (0..count).filter(|other| roots[*other]).collect();
            let holder = *dice.pick(&others);
            let holders = [holder, dice.below(count)];
            for (number, holder) in holders.into_iter().enumerate() {
                let ty = references(dice, table, true, &roots, profile);
                tables[holder]
                    .columns
                    .push((format!("s{table}_{number}"), ty));
            }
        }
        if dice.chance(60) && (*is_root || !profile.suits_reference) {
            let holder = dice.below(count);
            let ty = references(dice, table, false, &roots, profile);
            tables[holder].columns.push((format!("w{table}"), ty));
        }
    }
    let tables: Vec<String> = tables
        .iter()
        .enumerate()
        .map(|(number, table)| finish(dice, number, table))
        .collect();
    let text = format!(
        r#"{{"name":"Gen","version":"1.0.0","tables":{{{}}}}}"#,
        tables.join(",")
    );
    Value::parse(text.as_bytes()).expect("valid JSON")
}

fn draft(dice: &mut Dice, is_root: bool) -> Draft {
    let mut draft = Draft {
        is_root,
        columns: Vec::new(),
        keys: Vec::new(),
    };
    for number in 0..1 + dice.below(5) {
        let name = format!("c{number}");
        let ty = column_type(dice);
        if !ty.contains("ephemeral") {
            draft.keys.push(name.clone());
        }
        draft.columns.push((name, ty));
    }
    draft.keys.push("id".to_owned());
    draft
        .columns
        .push(("id".to_owned(), r#""type":"integer""#.to_owned()));
    draft
}

fn finish(dice: &mut Dice, number: usize, draft: &Draft) -> String {
    let columns: Vec<String> = draft
        .columns
        .iter()
        .map(|(name, ty)| format!(r#""{name}":{{{ty}}}"#))
        .collect();
    let mut text = format!(r#""T{number}":{{"columns":{{{}}}"#, columns.join(","));
    if draft.is_root {
        text.push_str(r#","isRoot":true"#);
    }
    if dice.chance(20) {
        text.push_str(&format!(r#","maxRows":{}"#, 1 + dice.below(8)));
    }
    let mut indexes = Vec::new();
    if dice.chance(40) {
        indexes.push(r#"["id"]"#.to_owned());
    }
    if dice.chance(40) {
        let second = if dice.chance(60) {
            "id"
        } else {
            dice.pick(&draft.keys).as_str()
        };
        let (a, b) = (dice.pick(&draft.keys).as_str(), second);
        indexes.push(if a == b {
            format!(r#"["{a}","_uuid"]"#)
        } else {
            format!(r#"["{a}","{b}"]"#)
        });
    }
    if !indexes.is_empty() {
        text.push_str(&format!(r#","indexes":[{}]"#, indexes.join(",")));
    }
    text.push('}');
    text
}

/// Returns the members of a column that refers to no table.
fn column_type(dice: &mut Dice) -> String {
    let key = base(dice);
    let ty = match dice.below(10) {
        0..4 => key,
        4..6 => format!(r#"{{"key":{key},"min":0,"max":1}}"#),
        6..8 => format!(r#"{{"key":{key},{}}}"#, limits(dice)),
        _ => format!(r#"{{"key":{key},"value":{},{}}}"#, base(dice), limits(dice)),
    };
    let mut members = format!(r#""type":{ty}"#);
    if !ty.starts_with('{') && !ty.starts_with('"') {
        members = format!(r#""type":{{"key":{ty}}}"#);
    }
    if ty.contains("\"type\":") && !ty.contains("\"key\":") {
        members = format!(r#""type":{{"key":{ty}}}"#);
    }
    match dice.below(12) {
        0 => members.push_str(r#","ephemeral":true"#),
        1 => members.push_str(r#","mutable":false"#),
        _ => {}
    }
    members
}

fn limits(dice: &mut Dice) -> String {
    let max = *dice.pick(&["\"unlimited\"", "\"unlimited\"", "1", "2", "3", "5"]);
    let min = usize::from(dice.chance(25));
    format!(r#""min":{min},"max":{max}"#)
}

fn base(dice: &mut Dice) -> String {
    let plain = *dice.pick(&[
        "integer", "integer", "real", "boolean", "string", "string", "uuid",
    ]);
    let constrained = match (plain, dice.below(10)) {
        ("integer", 0) => r#"{"type":"integer","enum":["set",[0,1,3,5]]}"#,
        ("integer", 1) => r#"{"type":"integer","enum":["set",[2,4]]}"#,
        ("integer", 2) => r#"{"type":"integer","minInteger":-3,"maxInteger":7}"#,
        ("integer", 3) => r#"{"type":"integer","minInteger":-1}"#,
        ("integer", 4) => r#"{"type":"integer","maxInteger":5}"#,
        ("real", 0) => r#"{"type":"real","minReal":-1.5,"maxReal":2.5}"#,
        ("real", 1) => r#"{"type":"real","maxReal":2}"#,
        ("real", 2) => r#"{"type":"real","enum":["set",[0,0.5,2]]}"#,
        ("boolean", 0) => r#"{"type":"boolean","enum":false}"#,
        ("string", 0) => r#"{"type":"string","enum":["set",["","a","b","a b"]]}"#,
        ("string", 1) => r#"{"type":"string","minLength":1}"#,
        ("string", 2) => r#"{"type":"string","maxLength":2}"#,
        ("string", 3) => r#"{"type":"string","minLength":1,"maxLength":3}"#,
        _ => return format!("\"{plain}\""),
    };
    constrained.to_owned()
}

/// Returns the members of a column that refers to a table, in keys or in values.
fn references(
    dice: &mut Dice,
    table: usize,
    is_strong: bool,
    roots: &[bool],
    profile: Profile,
) -> String {
    let strength = |is_strong| if is_strong { "strong" } else { "weak" };
    let to = |table: usize, is_strong| {
        format!(
            r#"{{"type":"uuid","refTable":"T{table}","refType":"{}"}}"#,
            strength(is_strong)
        )
    };
    let this = to(table, is_strong);
    let min = usize::from(dice.chance(10));
    let ty = match dice.below(8) {
        0..2 => format!(r#"{{"key":{this},"min":{min},"max":1}}"#),
        2..5 => format!(r#"{{"key":{this},"min":{min},"max":"unlimited"}}"#),
        5 => format!(
            r#"{{"key":{},"value":{this},"min":0,"max":"unlimited"}}"#,
            base(dice)
        ),
        6 => format!(
            r#"{{"key":{this},"value":{},"min":{min},"max":"unlimited"}}"#,
            base(dice)
        ),
        // With one weak half, the reference miscounts when removing the weak half also removes a
        // strong one. With two weak halves it may crash.
        _ if profile.suits_reference && !is_strong => {
            format!(r#"{{"key":{this},"min":0,"max":3}}"#)
        }
        _ => {
            let other = to(
                dice.below(roots.len()),
                profile.suits_reference || dice.chance(50),
            );
            format!(r#"{{"key":{this},"value":{other},"min":0,"max":3}}"#)
        }
    };
    let ephemeral = if dice.chance(8) {
        r#","ephemeral":true"#
    } else {
        ""
    };
    format!(r#""type":{ty}{ephemeral}"#)
}
