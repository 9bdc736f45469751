//! Databases written by hand for tests and examples: JSON whose UUIDs are words.
//!
//! A text is an object of tables, each an array of rows as `select` returns them. `@word` stands
//! for `["uuid", …]`, always the same for a word.

use corvid_data::Uuid;
use corvid_json::Value;
use corvid_picture::Tables;

/// The UUID that a word stands for.
pub(crate) fn uuid(word: &str) -> Uuid {
    // FNV-1a in 128 bits: any function without collisions among a few words would do.
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    for byte in word.bytes() {
        hash ^= u128::from(byte);
        hash = hash.wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
    }
    Uuid(hash.to_be_bytes())
}

/// The tables of a written database.
pub(crate) fn tables(text: &str) -> Tables {
    tables_with(text, |_, _| true)
}

/// The tables of a written database, with the columns that a function chooses by their tables and
/// names.
pub(crate) fn tables_with(text: &str, is_wanted: impl Fn(&str, &str) -> bool) -> Tables {
    let mut json = String::new();
    let mut parts = text.split('@');
    json.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        let end = part.find(|letter| !is_word(letter)).unwrap_or(part.len());
        json.push_str(&format!("[\"uuid\",\"{}\"]", uuid(&part[..end])));
        json.push_str(&part[end..]);
    }
    let value = Value::parse(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"));
    let mut tables = Tables::new();
    for (table, rows) in value.as_object().expect("an object of tables") {
        let table = table.to_string();
        for row in rows.as_array().expect("an array of rows") {
            let mut members = row.as_object().expect("an object of columns").clone();
            members.retain(|name, _| name == "_uuid" || is_wanted(&table, &name.to_string()));
            let row = Value::Object(members);
            assert!(tables.set_json(&table, &row), "{table}: {row}");
        }
    }
    tables
}
