//! The words and sentences of this repository: retired names and phrases must not come back.
//!
//! An engineer who knows etcd, SQLite or Open vSwitch's ovsdb needs no glossary here, because each
//! concept has the name that is usual for it. Below is a list of our former names, with their
//! replacements. No source file or document may use a former name again. The specifications in
//! `docs/spec` describe the reference and are not checked.
//!
//! Reads files as text. Each rule is a function from a text to complaints, and is tested with the
//! snippets below.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that no identifier may contain, in any case, alone or as a part, with the words to use
/// instead.
const PARTS: [(&str, &str); 24] = [
    ("allowance", "budget"),
    ("bury", "close"),
    ("buried", "closed"),
    ("crowd", "connections"),
    ("doom", "close"),
    ("doomed", "closed"),
    ("era", "schema epoch"),
    ("eras", "schema epochs"),
    ("errand", "inline execution"),
    ("errands", "inline execution"),
    ("foretold", "precomputed update"),
    ("habits", "field order cache"),
    ("parked", "pending commit"),
    ("patience", "budget, timeout"),
    ("settle", "complete, resolve, become durable"),
    ("settled", "complete, resolved, durable"),
    ("settles", "completes, resolves, becomes durable"),
    ("settling", "completing, resolving, becoming durable"),
    ("undertaker", "reaper"),
    ("vigil", "watchdog"),
    ("whatever", "the thing itself"),
    ("whoever", "the thing itself"),
    ("wish", "server requirements"),
    ("wishes", "server requirements"),
];

/// Retired names of types. Only the whole name is retired; its words are ordinary.
const TYPES: [(&str, &str); 19] = [
    ("Aside", "salvage copy"),
    ("Asked", "Method"),
    ("Board", "RemoteStatus"),
    ("FirstAnswers", "InitialContents"),
    ("Firsts", "separators"),
    ("Handled", "Completion"),
    ("Held", "BlockedSessions"),
    ("Kept", "Quota"),
    ("Late", "DeferredReply"),
    ("LateText", "DeferredBody"),
    ("Note", "Notification"),
    ("Place", "Slot, Location, Position"),
    ("Remains", "closed queue"),
    ("Repeats", "StringCache"),
    ("Rounds", "FlushPacing"),
    ("Said", "Parsed"),
    ("Text", "Frame"),
    ("Ticket", "LogPosition"),
    ("Unread", "ReplyBackpressure"),
];

/// Retired identifiers. Only the whole identifier is retired.
const IDENTIFIERS: [(&str, &str); 5] = [
    ("corvid_cs", "corvid_session"),
    ("corvid_os", "corvid_net, corvid_reactor, corvid_shell"),
    ("let_go", "release"),
    ("poll_or_die", "a wait that returns the interruption"),
    ("take_along", "try_inline"),
];

/// Phrases that no comment, document or string contains, in lower case and at borders of words.
const PHRASES: [&str; 22] = [
    "in vain",
    "for want of",
    "in being",
    "be it that",
    "whoever",
    "whomever",
    "errand",
    "errands",
    "undertaker",
    "foretold",
    "written ahead",
    "first contents",
    "comes of age",
    "let go of",
    "for how long",
    "of no use",
    "though called",
    "the former",
    "the latter",
    "waits behind",
    "wait behind",
    "waiting behind",
];

/// Phrases that new text avoids. They are counted, with `is no X` where X is a noun, against
/// [`AVOIDED_ALLOWED`].
const AVOIDED: [&str; 1] = ["beside"];

/// Words after which `is no` is idiomatic: `is no longer`.
const IDIOMATIC_AFTER_NO: [&str; 6] = ["longer", "more", "less", "such", "different", "doubt"];

/// Avoided phrases that a crate or folder of documents may have in comments, prose and strings; one
/// that is not listed has none. The numbers only fall.
const AVOIDED_ALLOWED: &[(&str, usize)] = &[
    ("crates/bench", 1),
    ("crates/capi", 5),
    ("crates/consensus", 3),
    ("crates/engine", 1),
    ("crates/fuzzing", 1),
    ("crates/idl", 2),
    ("crates/monitor", 2),
    ("crates/python", 1),
    ("crates/server", 1),
    ("crates/service", 4),
    ("crates/shell", 1),
    ("crates/sim", 2),
    ("crates/xtask", 5),
    ("docs", 3),
    ("docs/internals", 2),
    ("docs/performance", 17),
    ("tests", 9),
];

/// Words that begin no sentence of a comment or document, but for questions: the thing is named
/// instead.
const OPENINGS: [&str; 6] = ["What", "Who", "Whose", "Whatever", "Whoever", "Whomever"];

/// The folders in which files are looked for. The files in the root are also read.
const FOLDERS: [&str; 6] = ["contrib", "crates", "docs", "fuzz", "packaging", "tests"];

type Complaints = Vec<String>;

#[test]
fn retired_words_are_not_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = Path::new(file!()).file_name().unwrap();
    let mut complaints = Complaints::new();
    let mut avoided: BTreeMap<String, Complaints> = BTreeMap::new();
    let mut count = 0;
    for path in files(&root) {
        if path.file_name() == Some(own) {
            continue;
        }
        let shown = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        count += 1;
        let is_source = path.extension().is_some_and(|ending| ending == "rs");
        let (found, prose) = if is_source {
            let mut prose: Vec<String> = text
                .lines()
                .map(|line| split_comment(line).1.to_owned())
                .collect();
            prose.extend(strings(&text).into_iter().map(|(_, string)| string));
            (check_source(&text), prose)
        } else {
            let prose = prose_of_document(&text);
            (check_prose(&prose), prose)
        };
        complaints.extend(found.iter().map(|found| format!("{shown}:{found}")));
        let home = avoided.entry(home(&shown)).or_default();
        let found = prose.iter().filter_map(|line| avoided_in(line));
        home.extend(found.map(|found| format!("{shown}: {found}")));
    }
    let allowed: BTreeMap<&str, usize> = AVOIDED_ALLOWED.iter().copied().collect();
    for (home, found) in avoided {
        if found.len() > allowed.get(home.as_str()).copied().unwrap_or(0) {
            complaints.push(format!(
                "{home}: {} avoided phrases:\n{}",
                found.len(),
                found.join("\n")
            ));
        }
    }
    assert!(count > 500, "only {count} files were found");
    assert!(
        complaints.is_empty(),
        "{} retired words\n{}",
        complaints.len(),
        complaints.join("\n")
    );
}

/// Returns the sources and documents of the repository, except for the specifications.
fn files(root: &Path) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                if !path.ends_with("docs/spec") && !path.ends_with("target") {
                    walk(&path, found);
                }
            } else if is_read(&path) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    for folder in FOLDERS {
        walk(&root.join(folder), &mut found);
    }
    let at_root = fs::read_dir(root).into_iter().flatten().flatten();
    found.extend(
        at_root
            .map(|entry| entry.path())
            .filter(|path| is_read(path)),
    );
    found.sort();
    found
}

fn is_read(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending == "rs" || ending == "md")
}

/// The crate of a source, or the folder of a document.
fn home(shown: &str) -> String {
    let parts: Vec<&str> = shown.split('/').collect();
    match parts[..] {
        ["crates" | "docs", name, _, ..] => format!("{}/{name}", parts[0]),
        [folder, _, ..] => folder.to_owned(),
        _ => "root".to_owned(),
    }
}

/// The avoided phrase of a line of prose, code spans left out.
fn avoided_in(line: &str) -> Option<String> {
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    let lower = format!(" {} ", words(&prose.join(" x ")));
    let phrase = AVOIDED
        .iter()
        .find(|phrase| lower.contains(&format!(" {phrase} ")))
        .map(|phrase| format!("\"{phrase}\""));
    phrase.or_else(|| {
        let words: Vec<&str> = lower.split_whitespace().collect();
        let is_avoided = |three: &&[&str]| {
            matches!(three[0], "is" | "are" | "was" | "were")
                && three[1] == "no"
                && !IDIOMATIC_AFTER_NO.contains(&three[2])
        };
        let place = words.windows(3).position(|three| is_avoided(&three))?;
        // `There is no row` is idiomatic.
        let is_existence = place > 0 && words[place - 1] == "there";
        (!is_existence).then(|| format!("\"{}\"", words[place..place + 3].join(" ")))
    })
}

/// The string literals of the code before the tests, each with its line; lines that go on are
/// joined.
fn strings(text: &str) -> Vec<(usize, String)> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut string: Option<(usize, String)> = None;
    for (index, line) in code.lines().enumerate() {
        let mut letters = match &string {
            Some(_) => line.trim_start().chars().peekable(),
            None => split_comment(line).0.chars().peekable(),
        };
        let mut before = ' ';
        while let Some(letter) = letters.next() {
            match (&mut string, letter) {
                (Some((_, text)), '\\') => text.extend(letters.next().filter(|next| *next == '"')),
                (Some(_), '"') => found.extend(string.take()),
                (Some((_, text)), letter) => text.push(letter),
                // A letter in quotes, as '"'.
                (None, '"') if before == '\'' && letters.peek() == Some(&'\'') => {}
                (None, '"') => string = Some((index + 1, String::new())),
                (None, '/') if letters.peek() == Some(&'/') => break,
                (None, _) => {}
            }
            before = letter;
        }
    }
    found
}

/// Complaints about a Rust source, each with its line.
fn check_source(text: &str) -> Complaints {
    let mut complaints = Complaints::new();
    let mut prose = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = split_comment(line);
        let words = check_identifiers(&without_strings(code));
        complaints.extend(words.iter().map(|word| format!("{}: {word}", index + 1)));
        prose.push(comment.to_owned());
    }
    complaints.extend(check_prose(&prose));
    for (line, string) in strings(text) {
        let found = check_phrases(&string).into_iter();
        complaints.extend(found.map(|phrase| format!("{line}: {phrase} in a string")));
    }
    complaints
}

/// The retired phrases of a line of prose.
fn check_phrases(line: &str) -> Complaints {
    let lower = format!(" {} ", words(line));
    let is_there = |phrase: &&str| lower.contains(&format!(" {phrase} "));
    let found = PHRASES.into_iter().filter(is_there);
    found.map(|phrase| format!("\"{phrase}\"")).collect()
}

/// A line's code without the contents of its strings: texts that operators and scripts read keep
/// their words.
fn without_strings(code: &str) -> String {
    let mut in_string = false;
    let mut before = ' ';
    let mut kept = String::new();
    for c in code.chars() {
        if c == '"' && before != '\\' {
            in_string = !in_string;
        }
        if !in_string {
            kept.push(c);
        }
        before = c;
    }
    kept
}

/// Divides a line into its code and its comment.
fn split_comment(line: &str) -> (&str, &str) {
    let mut in_string = false;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '"' if before != '\\' => in_string = !in_string,
            '/' if !in_string && line[at..].starts_with("//") => {
                let comment = line[at..].trim_start_matches(['/', '!']);
                return (&line[..at], comment);
            }
            _ => {}
        }
        before = c;
    }
    (line, "")
}

fn check_identifiers(code: &str) -> Complaints {
    let mut complaints = Complaints::new();
    let mut previous = "";
    for identifier in code.split(|c: char| !c.is_alphanumeric() && c != '_') {
        if identifier.is_empty() {
            continue;
        }
        let is_defined = matches!(previous, "struct" | "enum" | "type" | "trait");
        let whole = IDENTIFIERS.iter().find(|(name, _)| *name == identifier);
        let named = TYPES
            .iter()
            .find(|(name, _)| is_defined && *name == identifier);
        let parts = parts(identifier);
        let part = PARTS
            .iter()
            .find(|(part, _)| parts.iter().any(|found| found == part));
        if let Some((_, instead)) = whole.or(named).or(part) {
            complaints.push(format!("{identifier}: say {instead}"));
        }
        previous = identifier;
    }
    complaints
}

/// Returns the words of an identifier in lower case: `LateText` and `late_text` consist of `late`
/// and `text`.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if c != '_'
            && let Some(part) = parts.last_mut()
        {
            part.extend(c.to_lowercase());
        }
    }
    parts
}

/// Returns the lines of a document, without blocks of code.
fn prose_of_document(text: &str) -> Vec<String> {
    let mut in_block = false;
    let mut prose = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        let is_prose = !in_block && !is_fence && !line.starts_with("    ");
        prose.push(if is_prose {
            line.to_owned()
        } else {
            String::new()
        });
    }
    prose
}

/// Returns the complaints about lines of prose, each with its line.
fn check_prose(lines: &[String]) -> Complaints {
    let mut complaints = Complaints::new();
    for (index, line) in lines.iter().enumerate() {
        let found = check_phrases(line).into_iter();
        complaints.extend(found.map(|phrase| format!("{}: {phrase}", index + 1)));
        // A heading is no sentence.
        if line.starts_with('#') {
            continue;
        }
        for opening in openings(line, index.checked_sub(1).map(|before| &*lines[before])) {
            if OPENINGS.contains(&opening) && !is_question(&lines[index..], opening) {
                complaints.push(format!(
                    "{}: a sentence begins with \"{opening}\"",
                    index + 1
                ));
            }
        }
    }
    complaints
}

/// Returns the words of a line in lower case, with single spaces between them.
fn words(line: &str) -> String {
    let words: Vec<String> = line
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// Returns the first word of each sentence that begins in a line. A line begins a sentence if it is
/// the first line or the previous line is empty.
fn openings<'t>(line: &'t str, before: Option<&str>) -> Vec<&'t str> {
    let is_new = before.is_none_or(|before| before.trim().is_empty());
    let first = |text: &'t str| text.split(|c: char| !c.is_alphanumeric()).next();
    let text = line.trim_start_matches([' ', '-', '*', '>', '#']);
    let mut found = Vec::new();
    if is_new || line.trim_start().starts_with(['-', '*']) {
        found.extend(first(text));
    }
    for (at, _) in text.match_indices(". ") {
        found.extend(first(text[at + 1..].trim_start()));
    }
    found
}

/// Whether the sentence that begins with `opening` in the first of these lines ends with a question
/// mark, or has no end, like a heading.
fn is_question(lines: &[String], opening: &str) -> bool {
    let text = lines[..lines.len().min(4)].join(" ");
    let Some(at) = text.find(opening) else {
        return false;
    };
    let sentence = &text[at..];
    match sentence.find(['.', '?']) {
        Some(end) => sentence[end..].starts_with('?'),
        None => true,
    }
}

mod rules {
    use super::{
        avoided_in, check_identifiers, check_prose, check_source, home, parts, prose_of_document,
        strings,
    };

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn identifiers_are_judged_by_their_parts() {
        assert_eq!(parts("LateText2_go"), ["late", "text2", "go"]);
        assert_eq!(check_identifiers("let x = Allowance::new();").len(), 1);
        assert_eq!(check_identifiers("budget.is_settled()").len(), 1);
        assert_eq!(check_identifiers("pub struct Held {").len(), 1);
        assert!(check_identifiers("generation, camera, is_held, Held").is_empty());
    }

    #[test]
    fn comments_and_strings_are_judged_as_prose() {
        let found = check_source("let a = 1; // tried in vain\nlet b = \"// in vain\";");
        assert_eq!(found, ["1: \"in vain\"", "2: \"in vain\" in a string"]);
        assert!(check_source("let a = \"parked_answers\";").is_empty());
        let test = "#[cfg(test)]\nmod tests {\nlet a = \"in vain\";\n}";
        assert!(check_source(test).is_empty());
    }

    #[test]
    fn strings_are_joined_and_quotes_in_them_are_kept() {
        let source = "f(\"a \\\n      b\", '\"', \"say \\\"c\\\"\"); // \"d\"";
        let found: Vec<String> = strings(source).into_iter().map(|it| it.1).collect();
        assert_eq!(found, ["a b", "say \"c\""]);
    }

    #[test]
    fn avoided_phrases_are_told_from_idioms() {
        assert!(avoided_in("beside the file").is_some());
        assert!(avoided_in("the test `it_is_no_leader` shows it").is_none());
        assert!(avoided_in("that it is no leader").is_some());
        assert!(avoided_in("it is no longer open; there is no row").is_none());
        assert_eq!(home("crates/log/src/a.rs"), "crates/log");
        assert_eq!(home("docs/plan.md"), "docs");
    }

    #[test]
    fn sentences_name_their_subject() {
        let begins = |text: &str| check_prose(&lines(text)).len();
        assert_eq!(begins("What arrives is executed."), 1);
        assert_eq!(begins("A shard reads. Who waits is woken."), 1);
        assert_eq!(begins("- What arrives is executed."), 1);
        assert_eq!(begins("What does it do? It reads."), 0);
        assert_eq!(begins("It shows\nWhat happened."), 0);
        assert_eq!(begins("## What a member promises"), 0);
    }

    #[test]
    fn blocks_of_code_in_documents_are_no_prose() {
        assert_eq!(prose_of_document("a\n```\nin vain\n```\nb").concat(), "ab");
    }
}
