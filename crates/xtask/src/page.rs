//! Manual pages: a program's manual as roff.
//!
//! Sections have the customary order. The meanings are phrases in `--help`, and become sentences
//! here. Words between backquotes become bold.

use std::fs;
use std::path::Path;

use corvid_shell::args::OptionEntry;
use corvid_shell::manual::prose::{Block, blocks};
use corvid_shell::manual::{Chapter, Manual, Placeholders, shared};
use roff::{Inline, Roff, bold, roman};

use crate::{Outcome, programs};

/// Writes `manN/NAME.N` for each program.
pub(crate) fn write_all(dir: &Path) -> Outcome {
    for program in programs::all() {
        let path = dir.join(program.page());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, text(&program.manual))?;
    }
    Ok(())
}

/// Returns the page of one program.
pub(crate) fn text(manual: &Manual) -> String {
    let mut page = Page {
        roff: Roff::new(),
        placeholders: Placeholders::built_in(manual.name),
    };
    let section = manual.section.to_string();
    let source = concat!("Corvid ", env!("CARGO_PKG_VERSION"));
    page.roff.control(
        "TH",
        [
            manual.name.to_uppercase().as_str(),
            &section,
            "",
            source,
            "Open vSwitch databases",
        ],
    );
    page.section("NAME");
    page.roff
        .text([roman(format!("{} - {}", manual.name, manual.purpose))]);
    page.section("SYNOPSIS");
    for usage in manual.usage {
        page.roff
            .text([bold(manual.name), roman(format!(" {usage}"))]);
        page.roff.control("br", []);
    }
    page.section("DESCRIPTION");
    page.prose(manual.description);
    page.prose(manual.introduction);
    if !manual.commands.is_empty() {
        page.section("COMMANDS");
        for chapter in &manual.commands {
            page.roff.control("SS", [chapter.title]);
            page.chapter(chapter);
        }
    }
    for note in &manual.notes {
        page.section(&note.title.to_uppercase());
        page.chapter(note);
    }
    page.section("OPTIONS");
    page.prose(shared::COMMAND_LINES);
    for (title, options) in manual.option_groups() {
        page.roff.control("SS", [title]);
        for option in options {
            page.option(option);
        }
    }
    for chapter in &manual.chapters {
        page.section(chapter.title);
        page.chapter(chapter);
    }
    page.roff.to_roff()
}

/// A page that is being written.
struct Page {
    roff: Roff,
    placeholders: Placeholders,
}

impl Page {
    fn section(&mut self, title: &str) {
        self.roff.control("SH", [title]);
    }

    fn chapter(&mut self, chapter: &Chapter) {
        self.prose(chapter.text);
        for entry in &chapter.entries {
            let term = self.placeholders.fill(&entry.term);
            self.roff.control("TP", []).text([bold(term)]);
            self.meaning(entry.meaning, entry.detail);
        }
    }

    fn option(&mut self, option: &OptionEntry) {
        let mut term = Vec::new();
        for spelling in option.spellings() {
            if !term.is_empty() {
                term.push(roman(", "));
            }
            term.push(bold(spelling));
        }
        self.roff.control("TP", []).text(term);
        self.meaning(option.meaning, option.detail);
    }

    /// Writes the text that explains a term.
    fn meaning(&mut self, meaning: &str, detail: &str) {
        let text = self.placeholders.fill(&sentence(meaning));
        self.roff.text(inlines(&text));
        for block in blocks(&self.placeholders.fill(detail)) {
            self.roff.control("IP", []);
            self.block(block);
        }
    }

    fn prose(&mut self, text: &str) {
        for block in blocks(&self.placeholders.fill(text)) {
            self.roff.control("PP", []);
            self.block(block);
        }
    }

    fn block(&mut self, block: Block) {
        match block {
            Block::Paragraph(words) => {
                self.roff.text(inlines(&words));
            }
            Block::Verbatim(lines) => {
                self.roff.control("RS", ["4"]).control("nf", []);
                for line in lines.lines() {
                    self.roff.text([roman(line)]);
                }
                self.roff.control("fi", []).control("RE", []);
            }
        }
    }
}

/// Converts a text; words between backquotes become bold.
fn inlines(text: &str) -> Vec<Inline> {
    let parts = text.split('`').enumerate();
    parts
        .filter(|(_, part)| !part.is_empty())
        .map(|(place, part)| match place % 2 {
            0 => roman(part),
            _ => bold(part),
        })
        .collect()
}

/// Converts a phrase to a sentence.
pub(crate) fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let end = if phrase.ends_with(['.', ':']) {
        ""
    } else {
        "."
    };
    first.into_iter().chain(letters).collect::<String>() + end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_become_sentences() {
        assert_eq!(sentence("print this and exit"), "Print this and exit.");
        assert_eq!(sentence("`exit` ends it."), "`exit` ends it.");
    }

    #[test]
    fn every_option_and_chapter_is_on_the_page() {
        for program in programs::all() {
            let manual = program.manual;
            let page = text(&manual).replace("\\-", "-");
            for option in &manual.options {
                for spelling in option.spellings() {
                    assert!(page.contains(&spelling), "{}: {spelling}", manual.name);
                }
            }
            for chapter in &manual.chapters {
                let heading = [
                    format!(".SH {}\n", chapter.title),
                    format!(".SH \"{}\"\n", chapter.title),
                ];
                let is_there = heading.iter().any(|heading| page.contains(heading));
                assert!(is_there, "{}: {}", manual.name, chapter.title);
            }
            assert!(!page.contains('`') && !page.contains("{rundir}"), "{page}");
        }
    }
}
