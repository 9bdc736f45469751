//! How well large types are divided into parts: the number of fields and methods that such a type
//! still has, the number of files in which it is implemented, and how many of these files depend on
//! each other.
//!
//! It does not help to distribute a type over several files if each of them can still use
//! everything. So the limits below count what only a real division reduces. They are upper bounds
//! that are lowered whenever a part gets its own state. None of them may rise. The aims of the
//! design are 14 fields, 4 files and circles of 3 files.
//!
//! Reads sources as text. Each measure is a function from a text to a number, and is tested with
//! the snippets below.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::layering::{Code, is_word, item_end, sources};

/// A type, the file and the folder in which it is implemented, and its limits.
struct Limits {
    name: &'static str,
    /// The file that declares the type, from the root and without extension. The parts are in the
    /// folder with the same name.
    module: &'static str,
    fields_max: usize,
    methods_max: usize,
    /// The number of files with an `impl` of the type.
    files_max: usize,
    /// The number of files of the module that reach each other, either by calls of the type's
    /// methods or by the paths that they name.
    circle_max: usize,
}

const TYPES: [Limits; 6] = [
    Limits {
        name: "DatabaseService",
        module: "crates/service/src/database",
        fields_max: 13,
        methods_max: 127,
        files_max: 4,
        circle_max: 0,
    },
    Limits {
        name: "Clustered",
        module: "crates/service/src/database/clustered",
        fields_max: 4,
        methods_max: 24,
        files_max: 1,
        circle_max: 0,
    },
    Limits {
        name: "Upstream",
        module: "crates/service/src/upstream",
        fields_max: 3,
        methods_max: 21,
        files_max: 1,
        circle_max: 2,
    },
    Limits {
        name: "Forwarding",
        module: "crates/service/src/upstream",
        fields_max: 3,
        methods_max: 55,
        files_max: 3,
        circle_max: 3,
    },
    Limits {
        name: "Server",
        module: "crates/server/src/server",
        fields_max: 14,
        methods_max: 127,
        files_max: 12,
        circle_max: 11,
    },
    Limits {
        name: "Member",
        module: "crates/consensus/src/member",
        fields_max: 9,
        methods_max: 60,
        files_max: 4,
        circle_max: 2,
    },
];

/// The measured values of a type.
#[derive(Debug, PartialEq, Eq)]
struct Measures {
    fields: usize,
    methods: usize,
    files: usize,
    /// The files of the largest circle.
    circle: Vec<String>,
}

#[test]
fn types_are_divided_into_parts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for limits in TYPES {
        let module = root.join(limits.module);
        let mut paths = sources(&module);
        paths.push(module.with_extension("rs"));
        let files = paths.into_iter().map(|path| {
            let source = fs::read_to_string(&path).unwrap();
            let shown = path.strip_prefix(root.join(limits.module).parent().unwrap());
            let name = shown.unwrap().with_extension("").display().to_string();
            (name, source)
        });
        let measures = measure(limits.name, &files.collect());
        let found = [
            ("fields", measures.fields, limits.fields_max),
            ("methods", measures.methods, limits.methods_max),
            ("files", measures.files, limits.files_max),
            (
                "files in a circle",
                measures.circle.len(),
                limits.circle_max,
            ),
        ];
        for (what, count, max) in found {
            assert!(
                count <= max,
                "{}: {count} {what}, at most {max}: {measures:?}",
                limits.name
            );
            // If a limit were not tight, an improvement could be lost again without being noticed.
            assert!(
                count + max / 10 >= max,
                "{}: {count} {what}: lower the limit of {max}",
                limits.name
            );
        }
    }
}

/// Measures a type in files, which are given by their module paths, such as
/// `database/clustered/applying`.
fn measure(name: &str, files: &BTreeMap<String, String>) -> Measures {
    let mut fields = 0;
    let mut owners = BTreeMap::new();
    let mut codes = BTreeMap::new();
    let mut blocks = BTreeMap::new();
    for (path, source) in files {
        let code = Code::of(source).without_tests();
        for body in bodies(&code.text, &format!("struct {name} {{")) {
            fields += members(body, ":");
        }
        let of_type: Vec<String> = bodies(&code.text, &format!("impl {name} {{"))
            .map(str::to_owned)
            .collect();
        for body in &of_type {
            for method in methods(body) {
                owners.insert(method, path.clone());
            }
        }
        blocks.insert(path.clone(), of_type);
        codes.insert(path.clone(), code.text);
    }
    let mut arrows = BTreeMap::new();
    for (path, text) in &codes {
        let mut reached: BTreeSet<String> = paths_named(path, text, files);
        for body in &blocks[path] {
            reached.extend(calls(body).filter_map(|called| owners.get(called).cloned()));
        }
        reached.remove(path);
        arrows.insert(path.clone(), reached);
    }
    Measures {
        fields,
        methods: owners.len(),
        files: blocks.values().filter(|bodies| !bodies.is_empty()).count(),
        circle: largest_circle(&arrows),
    }
}

/// Returns the bodies of items that begin with `opening`.
fn bodies<'a>(text: &'a str, opening: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(opening).map(move |(at, _)| {
        let item = &text[at..];
        &item[opening.len()..item_end(item) - 1]
    })
}

/// Returns how many lines at the outermost level of a body contain a member.
fn members(body: &str, mark: &str) -> usize {
    let mut depth = 0_usize;
    let mut count = 0;
    for line in body.lines() {
        count += usize::from(depth == 0 && line.contains(mark));
        depth += line.matches(['{', '(', '<']).count();
        depth = depth.saturating_sub(line.matches(['}', ')', '>']).count());
    }
    count
}

/// Returns the names of the functions of a body, without functions that are inside other functions.
fn methods(body: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut names = Vec::new();
    let mut words = body.split_inclusive(|found: char| !is_word(found));
    while let Some(word) = words.next() {
        if word.trim() == "fn" && depth == 0 {
            let name = words.clone().next().unwrap_or_default();
            names.push(name.trim_end_matches(|found| !is_word(found)).to_owned());
        }
        depth += word.matches('{').count();
        depth -= word.matches('}').count();
    }
    names
}

/// Returns the methods that a body calls on `self`.
fn calls(body: &str) -> impl Iterator<Item = &str> {
    let receivers = body.match_indices("self");
    receivers.filter_map(|(at, receiver)| {
        let rest = body[at + receiver.len()..].trim_start().strip_prefix('.')?;
        let rest = rest.trim_start();
        let end = rest.find(|found| !is_word(found))?;
        rest[end..].starts_with('(').then_some(&rest[..end])
    })
}

/// Returns the files that a file names by paths: modules next to it and below it. Items of a module
/// above it are not counted, because every part may name the type and the time.
fn paths_named(path: &str, text: &str, files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in text.match_indices("super::") {
        // `super::super::` counts once, from its first word.
        if text[..at].ends_with("super::") || text[..at].ends_with(is_word) {
            continue;
        }
        let mut base = path.rsplit_once('/').map(|(base, _)| base);
        let mut rest = &text[at + "super::".len()..];
        while let Some(further) = rest.strip_prefix("super::") {
            base = base.and_then(|base| Some(base.rsplit_once('/')?.0));
            rest = further;
        }
        // A path that only limits visibility ends here.
        let Some(base) = base else { continue };
        for entry in entries(rest) {
            named.extend(deepest(base, entry, files));
        }
    }
    for (at, _) in text.match_indices("::") {
        let before = &text[..at];
        let start = before.rfind(|found| !is_word(found)).map_or(0, |it| it + 1);
        if !before[..start].ends_with("::") {
            let end = text[start..].find(|found| !is_word(found) && found != ':');
            let whole = &text[start..end.map_or(text.len(), |end| start + end)];
            named.extend(deepest(path, whole, files));
        }
    }
    named
}

/// Returns the paths in a group, or the only path.
fn entries(text: &str) -> Vec<&str> {
    let Some(group) = text.strip_prefix('{') else {
        let end = text.find(|found| !is_word(found) && found != ':');
        return vec![&text[..end.unwrap_or(text.len())]];
    };
    let mut depth = 0_usize;
    let mut found = Vec::new();
    let mut start = 0;
    for (at, byte) in group.char_indices() {
        match byte {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(group[start..at].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Returns the file of the module to which a path below `base` leads, as deep as there are files.
fn deepest(base: &str, path: &str, files: &BTreeMap<String, String>) -> Option<String> {
    let mut module = base.to_owned();
    let mut deepest = None;
    for word in path.split("::") {
        let word = word.trim_end_matches(|found| !is_word(found));
        module = format!("{module}/{word}");
        if !files.contains_key(&module) {
            break;
        }
        deepest = Some(module.clone());
    }
    deepest
}

/// Returns the largest set of files in which each file reaches all others.
fn largest_circle(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = arrows
        .keys()
        .map(|from| {
            let mut reached = BTreeSet::new();
            let mut next = vec![from.as_str()];
            while let Some(file) = next.pop() {
                for to in arrows.get(file).into_iter().flatten() {
                    if reached.insert(to.as_str()) {
                        next.push(to);
                    }
                }
            }
            (from.as_str(), reached)
        })
        .collect();
    let circles = reach.iter().map(|(from, reached)| {
        let mutual = reached.iter().filter(|to| {
            let back = reach.get(*to);
            back.is_some_and(|back| back.contains(from))
        });
        mutual.map(|file| (*file).to_owned()).collect::<Vec<_>>()
    });
    circles.max_by_key(Vec::len).unwrap_or_default()
}

mod proofs {
    //! The measures count the right things.

    use super::*;

    fn files(sources: &[(&str, &str)]) -> BTreeMap<String, String> {
        let sources = sources.iter();
        sources
            .map(|(path, source)| ((*path).to_owned(), (*source).to_owned()))
            .collect()
    }

    #[test]
    fn fields_methods_and_files_of_one_type_are_counted() {
        let found = measure(
            "T",
            &files(&[
                (
                    "t",
                    "struct T {\n    /// A: b.\n    a: u8,\n    b: HashMap<\n        X,\n        y::Y,\n    >,\n}\n\
                     struct Other {\n    c: u8,\n}\nimpl T {\n    fn f(&self) { fn inner() {} }\n}\n",
                ),
                (
                    "t/x",
                    "impl T { pub fn g(&self) {} fn h() {} }\nimpl Other { fn i() {} }\n",
                ),
                ("t/y", "#[cfg(test)]\nmod tests { impl T { fn j() {} } }\n"),
            ]),
        );
        assert_eq!((found.fields, found.methods, found.files), (2, 3, 2));
        assert!(found.circle.is_empty());
    }

    #[test]
    fn files_that_call_or_name_each_other_are_a_circle() {
        let found = measure(
            "T",
            &files(&[
                (
                    "t",
                    "mod x; mod y; mod z;\nimpl T { fn start(&self) { self.f(); } }",
                ),
                ("t/x", "use super::{T, y::Y};\nimpl T { fn f(&self) {} }"),
                ("t/y", "use super::z::{Z, self};\n"),
                (
                    "t/z",
                    "impl T { fn g(&self) { self\n    .f(); self.start.g(); } }",
                ),
                (
                    "t/alone",
                    "pub(super) struct Alone; impl Alone { fn f(&self) { self.g() } }",
                ),
            ]),
        );
        assert_eq!(found.circle, ["t/x", "t/y", "t/z"]);
    }

    #[test]
    fn paths_lead_to_the_deepest_file() {
        let files = files(&[("t", ""), ("t/x", ""), ("t/x/deep", ""), ("t/y", "")]);
        let named = |path, text| {
            paths_named(path, text, &files)
                .into_iter()
                .collect::<Vec<_>>()
        };
        assert_eq!(named("t/x/deep", "use super::super::y::Y;"), ["t/y"]);
        assert_eq!(
            named("t/y", "pub(in super::super) fn f() { super::x::f() }"),
            ["t/x"]
        );
        assert_eq!(
            named("t/x", "use deep::Deep;\nuse crate::y::Y;"),
            ["t/x/deep"]
        );
        assert_eq!(named("t", "use x::deep::Deep;"), ["t/x/deep"]);
        assert_eq!(named("t/y", "use super::{x::{deep::A, B}, T};"), ["t/x"]);
    }
}
