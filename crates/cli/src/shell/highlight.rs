//! The colours of a line: its commands, options and comments.

use super::request;
use super::words;

const COMMAND: &str = "\x1b[1m";
const UNKNOWN: &str = "\x1b[31m";
const OPTION: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// The line with the codes of its colours. Without them it is the same text.
#[must_use]
pub(crate) fn coloured(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    let mut is_command_next = true;
    for word in words::split(line).words {
        let is_last = word.end == line.len();
        let colour = match word.text.as_str() {
            "--" => {
                is_command_next = true;
                Some(OPTION)
            }
            option if is_command_next && option.starts_with('-') => Some(OPTION),
            name if is_command_next => {
                is_command_next = name == crate::commands::EXPLAIN;
                match request::names().any(|known| known == name) || name == "exit" {
                    true => Some(COMMAND),
                    // The name may not be finished.
                    false if is_last && request::names().any(|known| known.starts_with(name)) => {
                        None
                    }
                    false => Some(UNKNOWN),
                }
            }
            _ => None,
        };
        out.push_str(&line[at..word.start]);
        let text = &line[word.start..word.end];
        match colour {
            Some(colour) => out.extend([colour, text, PLAIN]),
            None => out.push_str(text),
        }
        at = word.end;
    }
    out.push_str(&line[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_options_have_colours_and_the_text_stays() {
        for (line, coloured_line) in [
            ("", ""),
            ("list T", "\x1b[1mlist\x1b[0m T"),
            ("lis", "lis"),
            ("lst T", "\x1b[31mlst\x1b[0m T"),
            (
                "--if-exists  get T 'a b' -- count T # x",
                "\x1b[36m--if-exists\x1b[0m  \x1b[1mget\x1b[0m T 'a b' \x1b[36m--\x1b[0m \x1b[1mcount\x1b[0m T # x",
            ),
            ("explain set", "\x1b[1mexplain\x1b[0m \x1b[1mset\x1b[0m"),
        ] {
            assert_eq!(coloured(line), coloured_line);
            let plain = [COMMAND, UNKNOWN, OPTION, PLAIN]
                .into_iter()
                .fold(coloured(line), |text, code| text.replace(code, ""));
            assert_eq!(plain, line);
        }
    }
}
