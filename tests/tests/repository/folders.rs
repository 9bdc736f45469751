//! The order of the folders inside the crate `service`: which of its modules may name which.
//!
//! A folder at the root of the crate, or a file there with its folder, is one room. A room names
//! lower rooms only, so each can be read without those above it. The order is written here; a room
//! that is missing, or an arrow that runs up, is a complaint.
//!
//! Reads sources as text, without tests. Proven on snippets below.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::layering::{Code, is_word, sources};

/// The rooms of `crates/service/src`, the lowest first.
const ROOMS: [&str; 35] = [
    // Values without a state of their own.
    "codec",
    "counters",
    "applied_index",
    "schema_epoch",
    "session_limits",
    "server_db",
    "member_row",
    "remote_rows",
    "remote_status",
    "relayed_client",
    "once",
    "replication",
    "client_memory",
    "served_databases",
    "read_history",
    "storage",
    // Everything that shards, databases and the main thread send each other.
    "job",
    "message",
    "audit",
    "recorded_client",
    "locks",
    "frontend",
    // The parts of a database.
    "tape",
    "environment",
    "barrier",
    "replies",
    "executor",
    "observers",
    "upstream",
    // The other side of a database that follows another server.
    "member",
    "relay",
    "database",
    // Batches of a database, written down and played back.
    "pump",
    "recording",
    // The crate as its callers see it.
    "lib",
];

#[test]
fn no_arrow_runs_up_between_the_rooms_of_service() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = root.join("crates/service/src");
    let mut files = BTreeMap::new();
    for path in sources(&folder) {
        let name = path.strip_prefix(&folder).unwrap().with_extension("");
        let source = fs::read_to_string(&path).unwrap();
        files.insert(name.display().to_string(), source);
    }
    let complaints = check(&files, &ROOMS);
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// The arrows that run up, and the rooms without a place in the order.
fn check(files: &BTreeMap<String, String>, rooms: &[&str]) -> Vec<String> {
    let exports = exports(files.get("lib").map_or("", String::as_str));
    let rank = |room: &str| rooms.iter().position(|it| *it == room);
    let mut complaints = Vec::new();
    for (file, source) in files {
        let module: Vec<&str> = file.split('/').collect();
        let Some(own) = rank(module[0]) else {
            complaints.push(format!("{file}: the room {} has no place", module[0]));
            continue;
        };
        // Tests may look anywhere.
        if module.ends_with(&["tests"]) {
            continue;
        }
        let code = Code::of(source).without_tests();
        for named in roots(&module, &code.text) {
            let named = exports.get(&named).unwrap_or(&named);
            if rank(named).is_some_and(|rank| rank > own) {
                complaints.push(format!("{file} names {named}, which is above it"));
            }
        }
    }
    for room in rooms {
        let below = format!("{room}/");
        if !files.contains_key(*room) && !files.keys().any(|file| file.starts_with(&below)) {
            complaints.push(format!("{room}: there is no such room"));
        }
    }
    complaints
}

/// The names that the root of the crate passes on, with the rooms that they come from.
fn exports(root: &str) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    let code = Code::of(root);
    for export in code.text.split("pub use ").skip(1) {
        let Some((room, names)) = export.split_once("::") else {
            continue;
        };
        let names = names.split(';').next().unwrap_or_default();
        for name in names.split(|found| !is_word(found)) {
            if !name.is_empty() {
                exports.insert(name.to_owned(), room.to_owned());
            }
        }
    }
    exports
}

/// The first words, from the root of the crate on, of the paths in a module's text.
fn roots(module: &[&str], text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (start, depth) in [("crate::", 0), ("super::", module.len() - 1)] {
        for (at, _) in text.match_indices(start) {
            let before = &text[..at];
            if !before.ends_with(is_word) && !before.ends_with("::") {
                add_roots(&text[at + start.len()..], &module[..depth], &mut found);
            }
        }
    }
    found
}

/// Adds the first words of the paths that begin here, below `base`.
fn add_roots(path: &str, base: &[&str], found: &mut BTreeSet<String>) {
    if let Some(rest) = path.strip_prefix("super::") {
        add_roots(rest, &base[..base.len().saturating_sub(1)], found);
    } else if let Some(group) = path.strip_prefix('{') {
        for entry in entries(group) {
            add_roots(entry, base, found);
        }
    } else {
        let end = path.find(|it| !is_word(it)).unwrap_or(path.len());
        let first = base.first().copied().unwrap_or(&path[..end]);
        if !first.is_empty() && first != "self" {
            found.insert(first.to_owned());
        }
    }
}

/// The entries of a group of paths, whose brace is open.
fn entries(group: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut found = Vec::new();
    let mut start = 0;
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            ',' if depth == 0 => {
                found.push(group[start..at].trim());
                start = at + 1;
            }
            '}' if depth == 0 => {
                found.push(group[start..at].trim());
                return found;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    found
}

mod proofs {
    //! Arrows are found however they are written.

    use super::*;

    const LOW_AND_HIGH: [&str; 3] = ["low", "high", "lib"];

    fn complaints(low: &str, lib: &str) -> Vec<String> {
        let files = [
            ("low", "//! L"),
            ("low/deep", low),
            ("high", "use crate::low::L;"),
            ("lib", lib),
        ];
        let files = files.map(|(name, source)| (name.to_owned(), source.to_owned()));
        check(&files.into(), &LOW_AND_HIGH)
    }

    #[test]
    fn every_way_to_name_a_higher_room_is_seen() {
        for source in [
            "use crate::high::H;",
            "use crate::{\n    low::L,\n    high::{H, I},\n};",
            "fn f() { crate::high::h(); }",
            "use super::super::high::H;",
            "use super::super::{high, low};",
            "use crate::H;",
        ] {
            let found = complaints(source, "pub mod high;\npub use high::{G, H};");
            assert_eq!(
                found,
                ["low/deep names high, which is above it"],
                "{source}"
            );
        }
    }

    #[test]
    fn lower_rooms_comments_and_tests_pass() {
        for source in [
            "use crate::low::L;",
            "use super::high::H;",
            "// crate::high\nconst T: &str = \"crate::high\";",
            "#[cfg(test)]\nmod tests { use crate::high::H; }",
            "use other_crate::high::H;",
            "use corvid::crate_::high;",
            "pub(in super::super) fn f() {}",
        ] {
            assert!(complaints(source, "").is_empty(), "{source}");
        }
    }

    #[test]
    fn each_room_has_a_place() {
        let files: BTreeMap<String, String> = [("other/x".to_owned(), String::new())].into();
        assert_eq!(
            check(&files, &["low"]),
            [
                "other/x: the room other has no place",
                "low: there is no such room"
            ]
        );
    }
}
