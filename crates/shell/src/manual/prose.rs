//! Paragraphs of a manual's texts.
//!
//! Lines form a paragraph until an empty line; lines that begin with four spaces are kept
//! unchanged. The renderer decides the form of words in backquotes.

/// A piece of prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Words, to be wrapped.
    Paragraph(String),
    /// Lines to keep unchanged, without the four spaces.
    Verbatim(String),
}

/// The pieces of a text, in order.
#[must_use]
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut goes_on = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            goes_on = false;
            continue;
        }
        match (line.strip_prefix("    "), blocks.last_mut()) {
            (Some(kept), Some(Block::Verbatim(lines))) if goes_on => {
                lines.push('\n');
                lines.push_str(kept);
            }
            (Some(kept), _) => blocks.push(Block::Verbatim(kept.to_owned())),
            (None, Some(Block::Paragraph(words))) if goes_on => {
                words.push(' ');
                words.push_str(line.trim());
            }
            (None, _) => blocks.push(Block::Paragraph(line.trim().to_owned())),
        }
        goes_on = true;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_examples_are_kept() {
        let found = blocks("One\ntwo.\n\nThree:\n    a  b\n      c\nFour.");
        let expected = [
            Block::Paragraph("One two.".into()),
            Block::Paragraph("Three:".into()),
            Block::Verbatim("a  b\n  c".into()),
            Block::Paragraph("Four.".into()),
        ];
        assert_eq!(found, expected);
    }
}
