//! The command-line programs `ovsdb-client`, `ovsdb-tool` and `ovs-appctl`.
//!
//! Each program is a module with a `main` function and a manual; its binary in `src/bin` adds the
//! allocator. At the root are the parts that the programs share: the table of commands, the type of
//! a fatal error, common options, random UUIDs, schema files, suggestions, printed tables, the
//! connection to a server, what is said of a database's history and how a server reads it, the
//! status of a server ([`status`]), and a database as a file ([`backup`]). The public ones serve
//! the programs `corvid` (`crates/cli`) and `corvid-console` (`crates/console`) too:
//! [`client::run_history`] runs a command for `corvid`. No other program uses another program's
//! module; only `sibling` reads the tables of commands of two, for hints.

mod command;
mod history;
mod request_failure;
mod schema_file;
mod sibling;
mod typed_json;

pub mod backup;
pub mod failure;
pub mod leader;
pub mod past;
pub mod rows;
pub mod session;
pub mod standard_options;
pub mod status;
pub mod suggestion;
pub mod table;
pub mod uuids;

pub mod appctl;
pub mod client;
pub mod tool;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Command, chapters};

    #[test]
    fn manuals_describe_every_option_and_command() {
        for manual in [
            client::manual::manual(),
            tool::manual::manual(),
            appctl::manual::manual(),
        ] {
            assert_eq!(manual.complaints(), [""; 0], "{}", manual.name);
        }
    }

    #[test]
    fn manuals_explain_every_command() {
        for manual in [client::manual::manual(), tool::manual::manual()] {
            let entries = manual.commands.iter().flat_map(|topic| &topic.entries);
            let bare: Vec<&str> = entries
                .filter(|entry| entry.detail.is_empty())
                .map(|entry| entry.term.as_str())
                .collect();
            assert_eq!(bare, [""; 0], "{}", manual.name);
        }
    }

    #[test]
    fn manuals_list_every_command() {
        fn missing<A>(topics: &[&'static str], commands: &[Command<A>]) -> usize {
            let chapters = chapters(topics, commands, |_| "");
            let listed: usize = chapters.iter().map(|chapter| chapter.entries.len()).sum();
            commands.len() - listed
        }
        assert_eq!(
            missing(&client::commands::TOPICS, client::commands::COMMANDS),
            0
        );
        assert_eq!(
            missing(&tool::commands::TOPICS, &tool::commands::COMMANDS),
            0
        );
    }
}
