//! Commands that a user expects in one program and that another one has: `ovsdb-client` asks a
//! server, `ovsdb-tool` reads a database's file, and both have `history`, `log` and `diff`.

use crate::{client, tool};

/// Names the other program, if that has the command and this one does not.
pub(crate) fn hint(word: &str) -> Option<String> {
    let is_of_tool = tool::commands::COMMANDS
        .iter()
        .any(|command| command.name == word);
    let is_of_client = client::commands::COMMANDS
        .iter()
        .any(|command| command.name == word);
    match (is_of_client, is_of_tool) {
        (false, true) => Some(of_tool(word)),
        (true, false) => Some(format!(
            "\"{word}\" is a command of ovsdb-client, which asks a server"
        )),
        _ => None,
    }
}

/// The words are those of a command of `ovsdb-tool`.
pub(crate) fn of_tool(words: &str) -> String {
    format!("\"{words}\" is a command of ovsdb-tool, which works on a database's file")
}
