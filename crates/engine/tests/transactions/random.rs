//! Random transactions whose rows refer to each other in every way. The fixture makes the checks:
//! counts, back references and indexes agree with the rows after every commit, failure and undo,
//! and a second execution gives the same result.

use std::fmt::Write as _;

use crate::fixture::Fixture;

/// [`crate::carry_over`] uses it too.
pub(crate) const SCHEMA: &str = r#"{"name":"Web","tables":{
    "Root":{"isRoot":true,"maxRows":20,"indexes":[["name"],["x","y"]],"columns":{
        "name":{"type":{"key":"string","min":0,"max":1}},
        "x":{"type":"integer"},
        "y":{"type":"integer"},
        "owns":{"type":{"key":{"type":"uuid","refTable":"Part"},"min":0,"max":"unlimited"}},
        "sees":{"type":{"key":{"type":"uuid","refTable":"Part","refType":"weak"},"min":0,"max":"unlimited"}},
        "needs":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":2}}}},
    "Part":{"columns":{
        "next":{"type":{"key":{"type":"uuid","refTable":"Part"},"min":0,"max":"unlimited"}},
        "home":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":1}},
        "pairs":{"type":{"key":{"type":"uuid","refTable":"Part"},"value":{"type":"uuid","refTable":"Root","refType":"weak"},"min":0,"max":"unlimited"}},
        "back":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"value":{"type":"uuid","refTable":"Part"},"min":0,"max":"unlimited"}}}},
    "Pin":{"isRoot":true,"columns":{
        "on":{"type":{"key":{"type":"uuid","refTable":"Part","refType":"weak"},"min":1,"max":"unlimited"}}}}}}"#;

/// A small generator. Its output depends on the seed and on the rows that exist.
pub(crate) struct Dice {
    state: u64,
    roots: Vec<u64>,
    parts: Vec<u64>,
}

/// Number of UUIDs per table. It is small, so that rows reappear and references dangle.
const IDENTITIES: u64 = 40;

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice {
            state: seed,
            roots: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// Executes a random transaction and returns its result.
    pub(crate) fn transact(&mut self, web: &mut Fixture) -> String {
        self.roots = identities(web, "Root");
        self.parts = identities(web, "Part");
        let mut operations = String::new();
        for number in 0..=self.below(4) {
            let comma = if number > 0 { "," } else { "" };
            write!(operations, "{comma}{}", self.operation()).expect("a string takes all");
        }
        web.run(&operations)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    /// Usually the UUID of an existing row.
    fn uuid(&mut self, table: &str) -> String {
        let (base, present) = match table {
            "Root" => (1_000_000, self.roots.len() as u64),
            _ => (2_000_000, self.parts.len() as u64),
        };
        if present == 0 || self.below(30) == 0 {
            return format!(r#"["uuid","<{}>"]"#, base + self.below(IDENTITIES));
        }
        let position = self.below(present) as usize;
        let number = match table {
            "Root" => self.roots[position],
            _ => self.parts[position],
        };
        format!(r#"["uuid","<{number}>"]"#)
    }

    /// Usually an unused UUID.
    fn new_uuid(&mut self, table: &str) -> u64 {
        let base = if table == "Root" {
            1_000_000
        } else {
            2_000_000
        };
        let mut number = base + self.below(IDENTITIES);
        for _ in 0..4 {
            if self.roots.contains(&number) || self.parts.contains(&number) {
                number = base + self.below(IDENTITIES);
            }
        }
        number
    }

    fn uuids(&mut self, table: &str, most: u64) -> String {
        let mut all: Vec<String> = (0..self.below(most + 1))
            .map(|_| self.uuid(table))
            .collect();
        all.sort();
        all.dedup();
        format!(r#"["set",[{}]]"#, all.join(","))
    }

    fn pairs(&mut self, key: &str, value: &str) -> String {
        let (k, v, l) = (self.uuid(key), self.uuid(value), self.uuid(key));
        if k == l || self.below(2) == 0 {
            return format!(r#"["map",[[{k},{v}]]]"#);
        }
        let w = self.uuid(value);
        format!(r#"["map",[[{k},{v}],[{l},{w}]]]"#)
    }

    /// A column of a table with a value for it.
    fn column(&mut self, table: &str) -> (&'static str, String) {
        match table {
            "Root" => match self.below(6) {
                0 => ("name", format!(r#""n{}""#, self.below(40))),
                1 => ("x", self.below(10).to_string()),
                2 => ("y", self.below(10).to_string()),
                3 => ("owns", self.uuids("Part", 5)),
                4 => ("sees", self.uuids("Part", 5)),
                _ => ("needs", self.uuids("Root", 2)),
            },
            "Part" => match self.below(4) {
                0 => ("next", self.uuids("Part", 3)),
                1 => ("home", self.uuids("Root", 1)),
                2 => ("pairs", self.pairs("Part", "Root")),
                _ => ("back", self.pairs("Root", "Part")),
            },
            _ => ("on", self.uuid("Part")),
        }
    }

    fn row(&mut self, table: &str) -> String {
        let mut columns: Vec<(&str, String)> =
            (0..=self.below(3)).map(|_| self.column(table)).collect();
        if table == "Root" && self.below(8) > 0 {
            columns.push(("x", self.below(10).to_string()));
            columns.push(("y", self.below(10).to_string()));
            columns.retain(|(name, _)| *name != "name");
        }
        columns.sort();
        columns.dedup_by_key(|(name, _)| *name);
        let members: Vec<String> = columns
            .into_iter()
            .map(|(name, value)| format!(r#""{name}":{value}"#))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    fn condition(&mut self, table: &str) -> String {
        match self.below(8) {
            0 => "[]".into(),
            1 if table == "Root" => format!(r#"[["name","==","n{}"]]"#, self.below(40)),
            2 if table == "Root" => {
                format!(
                    r#"[["y","==",{}],["x","==",{}]]"#,
                    self.below(4),
                    self.below(4)
                )
            }
            _ => format!(r#"[["_uuid","==",{}]]"#, self.uuid(table)),
        }
    }

    /// A part is inserted with a root that owns it. Otherwise it would be garbage at once.
    fn insert(&mut self, table: &str) -> String {
        let (uuid, row) = (self.new_uuid(table), self.row(table));
        let insert =
            format!(r#"{{"op":"insert","table":"{table}","uuid":"<{uuid}>","row":{row}}}"#);
        if table != "Part" || self.below(8) == 0 {
            return insert;
        }
        self.parts.push(uuid);
        let (column, owner) = match self.below(2) {
            0 => ("owns", "Root"),
            _ => ("next", "Part"),
        };
        let holder = self.uuid(owner);
        format!(
            r#"{insert},{{"op":"mutate","table":"{owner}","where":[["_uuid","==",{holder}]],"mutations":[["{column}","insert",["uuid","<{uuid}>"]]]}}"#
        )
    }

    fn operation(&mut self) -> String {
        let table = self.pick(&["Root", "Root", "Part", "Part", "Pin"]);
        match self.below(10) {
            0..4 => self.insert(table),
            4..6 => {
                let (condition, row) = (self.condition(table), self.row(table));
                format!(r#"{{"op":"update","table":"{table}","where":{condition},"row":{row}}}"#)
            }
            6..9 => {
                let condition = self.condition(table);
                let mutator = self.pick(&["insert", "delete"]);
                let (column, value) = loop {
                    let (column, value) = self.column(table);
                    if !["name", "x", "y"].contains(&column) {
                        break (column, value);
                    }
                };
                format!(
                    r#"{{"op":"mutate","table":"{table}","where":{condition},"mutations":[["{column}","{mutator}",{value}]]}}"#
                )
            }
            _ => {
                let condition = self.condition(table);
                format!(r#"{{"op":"delete","table":"{table}","where":{condition}}}"#)
            }
        }
    }
}

/// The numbers of the rows of a table.
fn identities(web: &Fixture, table: &str) -> Vec<u64> {
    let id = web.database.schema().table_id(table).expect("a table");
    let mut numbers: Vec<u64> = web
        .database
        .rows(id)
        .map(|row| {
            let tail = row.uuid.0[8..].try_into().expect("eight bytes");
            u64::from_be_bytes(tail) & 0xffff_ffff_ffff
        })
        .collect();
    numbers.sort_unstable();
    numbers
}

/// The seed from the environment, or a new one. It is printed.
pub(crate) fn seed() -> u64 {
    let seed = match std::env::var("SEED") {
        Ok(seed) => seed.parse().expect("SEED is a number"),
        Err(_) => 0x0dd_b1a5_e5ba_11ed,
    };
    println!("SEED={seed}");
    seed
}

#[test]
fn every_state_agrees_with_its_rows() {
    const TRANSACTIONS: u32 = 4000;
    let mut dice = Dice::new(seed());
    let mut web = Fixture::new(SCHEMA);
    let (mut committed, mut failed) = (0, 0);
    for _ in 0..TRANSACTIONS {
        let result = dice.transact(&mut web);
        if result.contains(r#""error""#) {
            failed += 1;
        } else if web.last.is_some() {
            committed += 1;
        }
    }
    println!("{committed} committed, {failed} failed");
    assert!(
        committed > TRANSACTIONS / 10 && failed > TRANSACTIONS / 10,
        "{committed} committed, {failed} failed: the mix proves little"
    );
}
