//! The transactions of clients and their required effects.
//!
//! Every transaction has a number. The transaction adds the number to the set `Head.txns` and
//! increments `Head.seq`, so any content shows which transactions are in it. It also marks each row
//! that it touches. The whole content follows from the transactions and their order
//! ([`Content::apply`]); half a transaction matches no order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use corvid_data::{Row, Schema, TableSchema};
use corvid_engine::Database;
use corvid_json::Value;

use crate::world::dice::Dice;

/// Number of keys of items.
const KEYS: usize = 12;

const TAGS: [&str; 5] = ["red", "green", "blue", "a longer tag than the others", ""];

const TABLES: &str = r#"{"Head":{"isRoot":true,"maxRows":1,"columns":{"seq":{"type":"integer"},
"txns":{"type":{"key":"integer","min":0,"max":"unlimited"}}}},
"Item":{"isRoot":true,"indexes":[["k"]],"columns":{"k":{"type":"string"},"n":{"type":"integer"},WIDE
"opt":{"type":{"key":"integer","min":0,"max":1}},"tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
"map":{"type":{"key":"string","value":"integer","min":0,"max":"unlimited"}},"txn":{"type":"integer"}}}}"#;

/// The columns that clients monitor.
pub(crate) const MONITORED: &str =
    r#"{"Head":{"columns":["seq","txns"]},"Item":{"columns":["k","map","n","opt","tags","txn"]}}"#;

/// Returns the schema as JSON. The wide schema has one more column.
pub(crate) fn schema_json(is_wide: bool) -> String {
    let wide = if is_wide {
        r#""extra":{"type":"integer"},"#
    } else {
        ""
    };
    let version = if is_wide { "2.0.0" } else { "1.0.0" };
    let tables = TABLES.replace("WIDE", wide);
    format!(r#"{{"name":"A","version":"{version}","tables":{tables}}}"#)
}

/// Whether this is the wide schema.
pub(crate) fn is_wide(schema: &Schema) -> bool {
    schema.version == "2.0.0"
}

/// The record that inserts an empty head.
pub(crate) const FIRST_ROWS: &str =
    r#"{"_date":0,"_is_diff":true,"Head":{"00000000-0000-4000-8000-000000000001":{}}}"#;

/// Returns a file with the narrow schema and an empty head.
pub(crate) fn first_file() -> Vec<u8> {
    let schema = Value::parse(schema_json(false).as_bytes());
    let schema = schema.expect("a constant");
    let schema = Schema::from_json(&schema).expect("a constant");
    let mut file = Vec::new();
    corvid_log::write_schema(&mut file, &schema);
    let body = format!("{FIRST_ROWS}\n").into_bytes();
    corvid_log::header::Header::of(&body).write(corvid_log::Magic::Standalone, &mut file);
    file.extend_from_slice(&body);
    file
}

/// An action on one item. A transaction has at most one action per item.
#[derive(Clone, Debug)]
enum Deed {
    Insert {
        n: i64,
        tags: BTreeSet<&'static str>,
    },
    Update {
        n: i64,
        opt: Option<i64>,
    },
    AddTag(&'static str),
    RemoveTag(&'static str),
    Put {
        key: &'static str,
        value: i64,
    },
    Delete,
}

/// The effects of a transaction other than marking and counting.
#[derive(Clone, Debug)]
pub(crate) struct Txn {
    pub(crate) number: i64,
    deeds: BTreeMap<String, Deed>,
    pub(crate) is_durable: bool,
    /// The transaction waits for this item to exist, at most this long, ms.
    wait: Option<(String, u64)>,
    /// Number of filler rows, which make files longer than one copied block.
    filling: usize,
    /// The transaction asserts that its session owns this lock.
    pub(crate) lock: Option<&'static str>,
}

impl Txn {
    /// Draws a transaction; kinds and sizes vary.
    pub(crate) fn draw(number: i64, dice: &mut Dice) -> Txn {
        let mut deeds = BTreeMap::new();
        let rows = if dice.chance(40) {
            1
        } else {
            1 + dice.below(5)
        };
        for _ in 0..rows {
            let deed = match dice.below(10) {
                0..4 => Deed::Insert {
                    n: dice.between(0, 9),
                    tags: TAGS.into_iter().filter(|_| dice.chance(40)).collect(),
                },
                4 | 5 => Deed::Update {
                    n: dice.between(0, 9),
                    opt: dice.chance(50).then(|| dice.between(0, 9)),
                },
                6 => Deed::AddTag(draw_tag(dice)),
                7 => Deed::RemoveTag(draw_tag(dice)),
                8 => Deed::Put {
                    key: draw_tag(dice),
                    value: dice.between(0, 3),
                },
                _ => Deed::Delete,
            };
            deeds.insert(format!("k{}", dice.below(KEYS)), deed);
        }
        let waits = dice.chance(6);
        Txn {
            number,
            deeds,
            is_durable: dice.chance(40),
            wait: waits.then(|| (format!("k{}", dice.below(KEYS)), dice.below(200) as u64)),
            filling: if dice.chance(2) { 40_000 } else { 0 },
            lock: None,
        }
    }

    /// Returns a durable transaction that only counts and has no reason to fail.
    pub(crate) fn plain(number: i64) -> Txn {
        Txn {
            number,
            deeds: BTreeMap::new(),
            is_durable: true,
            wait: None,
            filling: 0,
            lock: None,
        }
    }

    /// Returns the `params` of the transaction's request. The result of operation
    /// [`Txn::seq_operation`] has the transaction's number in the order of commits.
    pub(crate) fn params(&self) -> String {
        let t = self.number;
        let mut text = String::from(r#"["A""#);
        if let Some(lock) = self.lock {
            let _ = write!(text, r#",{{"op":"assert","lock":"{lock}"}}"#);
        }
        if let Some((k, timeout)) = &self.wait {
            let _ = write!(
                text,
                r#",{{"op":"wait","table":"Item","where":[["k","==","{k}"]],"columns":["k"],"until":"==","rows":[{{"k":"{k}"}}],"timeout":{timeout}}}"#
            );
        }
        let _ = write!(
            text,
            r#",{{"op":"mutate","table":"Head","where":[],"mutations":[["seq","+=",1],["txns","insert",{t}]]}},{{"op":"select","table":"Head","where":[],"columns":["seq"]}}"#
        );
        for (k, deed) in &self.deeds {
            let which = format!(r#""table":"Item","where":[["k","==","{k}"]]"#);
            let mutate = |mutation: String| {
                format!(
                    r#"{{"op":"mutate",{which},"mutations":[{mutation}]}},{{"op":"update",{which},"row":{{"txn":{t}}}}}"#
                )
            };
            let operation = match deed {
                Deed::Insert { n, tags } => {
                    let mut tags: Vec<String> =
                        tags.iter().map(|tag| format!(r#""{tag}""#)).collect();
                    if self.filling > 0 {
                        tags.push(format!(r#""{}""#, filler(self.filling)));
                    }
                    format!(
                        r#"{{"op":"insert","table":"Item","row":{{"k":"{k}","n":{n},"txn":{t},"tags":["set",[{}]]}}}}"#,
                        tags.join(",")
                    )
                }
                Deed::Update { n, opt } => {
                    let opt = opt.map_or(r#"["set",[]]"#.to_owned(), |opt| opt.to_string());
                    format!(r#"{{"op":"update",{which},"row":{{"n":{n},"opt":{opt},"txn":{t}}}}}"#)
                }
                Deed::AddTag(tag) => mutate(format!(r#"["tags","insert","{tag}"]"#)),
                Deed::RemoveTag(tag) => mutate(format!(r#"["tags","delete","{tag}"]"#)),
                Deed::Put { key, value } => mutate(format!(
                    r#"["map","delete",["set",["{key}"]]],["map","insert",["map",[["{key}",{value}]]]]"#
                )),
                Deed::Delete => format!(r#"{{"op":"delete",{which}}}"#),
            };
            text.push(',');
            text.push_str(&operation);
        }
        if self.is_durable {
            text.push_str(r#",{"op":"commit","durable":true}"#);
        }
        text.push(']');
        text
    }

    /// Whether the transaction waits for an item.
    pub(crate) fn waits(&self) -> bool {
        self.wait.is_some()
    }

    /// Index of the element of the result that shows [`Content::seq`] right after the transaction.
    pub(crate) fn seq_operation(&self) -> usize {
        1 + usize::from(self.wait.is_some()) + usize::from(self.lock.is_some())
    }
}

fn draw_tag(dice: &mut Dice) -> &'static str {
    TAGS[dice.below(TAGS.len())]
}

fn filler(length: usize) -> String {
    "filling ".repeat(length / 8)
}

/// An item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Item {
    n: i64,
    opt: Option<i64>,
    tags: BTreeSet<String>,
    map: BTreeMap<String, i64>,
    txn: i64,
}

/// The content of the database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The number of transactions in it.
    pub(crate) seq: i64,
    /// The numbers of these transactions.
    pub(crate) txns: BTreeSet<i64>,
    items: BTreeMap<String, Item>,
    /// Number of rows of `Head`.
    heads: usize,
}

impl Content {
    /// Returns the content of the first file.
    pub(crate) fn first() -> Content {
        Content {
            heads: 1,
            ..Content::default()
        }
    }

    /// Applies a transaction that commits.
    ///
    /// # Errors
    /// The transaction cannot have committed on this content.
    pub(crate) fn apply(&mut self, txn: &Txn) -> Result<(), String> {
        self.seq += 1;
        self.txns.insert(txn.number);
        if let Some((k, _)) = &txn.wait
            && !self.items.contains_key(k)
        {
            return Err(format!("transaction {} did not wait for {k}", txn.number));
        }
        for (k, deed) in &txn.deeds {
            if let Deed::Insert { n, tags } = deed {
                let mut item = Item {
                    n: *n,
                    txn: txn.number,
                    tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
                    ..Item::default()
                };
                if txn.filling > 0 {
                    item.tags.insert(filler(txn.filling));
                }
                if self.items.insert(k.clone(), item).is_some() {
                    return Err(format!("transaction {} inserted {k} again", txn.number));
                }
                continue;
            }
            let Some(item) = self.items.get_mut(k) else {
                continue;
            };
            item.txn = txn.number;
            match deed {
                Deed::Update { n, opt } => (item.n, item.opt) = (*n, *opt),
                Deed::AddTag(tag) => drop(item.tags.insert((*tag).to_owned())),
                Deed::RemoveTag(tag) => drop(item.tags.remove(*tag)),
                Deed::Put { key, value } => drop(item.map.insert((*key).to_owned(), *value)),
                Deed::Delete => drop(self.items.remove(k)),
                Deed::Insert { .. } => {}
            }
        }
        Ok(())
    }

    /// Returns the content of a real database. Only tables that [`Txn`] changes count.
    pub(crate) fn of(database: &Database) -> Content {
        let mut content = Content::default();
        for (id, table) in database.schema().iter() {
            for row in database.rows(id) {
                if table.name.as_str() == "Head" {
                    content.heads += 1;
                    // The database of the simulation of clients has another name for it.
                    let seq = integers(table, row, "seq");
                    let seq = seq.into_iter().chain(integers(table, row, "count"));
                    content.seq = seq.last().unwrap_or(-1);
                    content.txns = integers(table, row, "txns").into_iter().collect();
                } else if table.column_named(b"k").is_some() {
                    let k = strings(table, row, "k").concat();
                    let item = Item {
                        n: integers(table, row, "n").first().copied().unwrap_or(-1),
                        opt: integers(table, row, "opt").first().copied(),
                        tags: strings(table, row, "tags").into_iter().collect(),
                        map: pairs(table, row, "map"),
                        txn: integers(table, row, "txn").first().copied().unwrap_or(-1),
                    };
                    content.items.insert(k, item);
                }
            }
        }
        content
    }

    /// Describes the differences between two contents.
    pub(crate) fn difference(&self, other: &Content) -> String {
        let mut text = String::new();
        if (self.seq, self.heads) != (other.seq, other.heads) {
            let _ = write!(text, "seq {} and {}; ", self.seq, other.seq);
            let _ = write!(text, "heads {} and {}; ", self.heads, other.heads);
        }
        if self.txns != other.txns {
            let _ = write!(text, "txns {:?} and {:?}; ", self.txns, other.txns);
        }
        let keys: BTreeSet<&String> = self.items.keys().chain(other.items.keys()).collect();
        for k in keys {
            let (one, two) = (self.items.get(k), other.items.get(k));
            if one != two {
                let _ = write!(text, "{k}: {one:?} and {two:?}; ");
            }
        }
        text
    }
}

fn cell(table: &TableSchema, row: &Row, column: &str) -> Value {
    let columns = table.columns().iter().zip(row.columns.iter());
    let mut found = columns.filter(|(schema, _)| schema.name.as_str() == column);
    let is_map = column == "map";
    found
        .next()
        .map_or(Value::Null, |(_, datum)| datum.to_json(is_map))
}

/// Returns the elements of a set. A set of one element may be written as the bare element.
fn elements(value: &Value) -> Vec<&Value> {
    match value.as_array() {
        Some([_, Value::Array(elements)]) => elements.iter().collect(),
        _ => vec![value],
    }
}

fn integers(table: &TableSchema, row: &Row, column: &str) -> Vec<i64> {
    let value = cell(table, row, column);
    let integers = elements(&value).into_iter();
    integers.filter_map(Value::as_integer).collect()
}

fn strings(table: &TableSchema, row: &Row, column: &str) -> Vec<String> {
    let value = cell(table, row, column);
    let strings = elements(&value).into_iter();
    strings
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

fn pairs(table: &TableSchema, row: &Row, column: &str) -> BTreeMap<String, i64> {
    let value = cell(table, row, column);
    let pairs = elements(&value).into_iter().filter_map(Value::as_array);
    pairs
        .filter_map(|pair| match pair {
            [key, value] => Some((key.as_str()?.to_owned(), value.as_integer()?)),
            _ => None,
        })
        .collect()
}
