//! The program `corvid-console`: shows OVSDB databases in a browser, those of any server.
//!
//! [`database`] is one client of the public library for each database, [`pages`] make HTML of what
//! it holds, [`web`] is HTTP with its limits. The binary calls [`main`]; the generator of manual
//! pages calls [`manual::manual`].
//!
//! # Cost
//!
//! | For a server | |
//! |---|---|
//! | sessions | one for each database, whatever the number of viewers |
//! | monitors | one; its condition is false for each table that nobody looks at, so such a table costs one comparison for each changed row and no bytes |
//! | a table that is looked at | its rows once, then its changes, as for `ovsdb-client monitor`; the condition becomes false again some time after the last look (`--idle`, two minutes by default) |
//! | names of rows that such a table refers to | the same for the tables with these rows, if the server's status says that they have at most 2000 |
//! | a row page | one `select` for each column that refers to the row's table, skipped for tables that are known to have more than [`pages::REFERRERS_ROWS_MAX`] rows |
//! | counts of rows | the status that the server publishes, at most once in two seconds; without it a count is read only when a viewer asks for it |
//!
//! Memory of the console: the replica of the tables that are looked at; 16 to 22 bytes a row for
//! each of the last eight orders of a table, of 1.5 million rows in all ([`database::orders`]); the
//! rows, the graph and sixteen pictures of a network ([`database::pictures`]); 256 KiB of recent
//! changes. A page of a table reads the rows of that page. A filter or an order reads the table
//! once and is kept; a change moves the changed rows in it.
//!
//! A change is encoded once for all viewers of its table, or of the same part of a network. A
//! viewer that falls behind by more than [`web::EVENTS_MAX`] events is disconnected; its browser
//! connects again and reads the page anew.

mod database;
mod failure;
mod filter;
mod pages;
mod refusal;
mod settings;
mod status;
mod web;

pub mod manual;

use corvid_shell::{args, program};

use settings::Settings;

/// Runs the program on the command line of this process. Returns only by ending the process.
pub fn main() -> ! {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let settings = Settings::parse(&args::from_env());
    match web::run(&settings) {
        Ok(never) => match never {},
        Err(error) => program::fatal(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_describes_every_option() {
        assert_eq!(manual::manual().complaints(), [""; 0]);
    }
}
