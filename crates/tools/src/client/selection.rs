//! Finds the server and the database in a command line (docs/spec/cli.md 3.1).
//!
//! Both are optional, and nothing marks them. If there are more words than the command needs, a
//! first word with a colon is a server, and the next word is a database if the server serves one of
//! that name.

use corvid_net::dirs;
use corvid_rpc::remote::RemoteList;

use crate::client::commands::{Action, COMMANDS, Command, HISTORY, Invocation, Prepared, transact};
use crate::client::settings::Settings;
use crate::failure::Failure;
use crate::leader;
use crate::session::Session;
use crate::sibling;

/// Runs a command on the words that follow it.
///
/// # Errors
/// The command failed, or its words are wrong.
pub(crate) fn run(command: &Command, settings: &Settings, words: &[String]) -> Result<(), Failure> {
    // A command that ignored one of these would change more than was asked for.
    let dry_run = settings.dry_run.then_some("--dry-run");
    let keep_uuids = settings.keep_uuids.then_some("--keep-uuids");
    let given = settings
        .history
        .selecting()
        .chain(dry_run)
        .chain(keep_uuids);
    command.check_options(given, COMMANDS)?;
    let run: Prepared = match command.action {
        Action::Alone(run) => {
            check_count(command, words)?;
            return run(settings, words);
        }
        // As in the reference, the last word is read whatever stands before it.
        Action::Argument(prepare) => match words {
            [argument] | [_, argument] => prepare(argument)?,
            _ => return Err(wrong_count(command)),
        },
        Action::Connection(run) | Action::Database(run) => Box::new(run),
    };
    let (list, words) = server(command, words);
    if matches!(command.action, Action::Argument(_)) {
        // The reference ignores a word that is not a server (COMPAT 816).
        check_count(command, words)?;
    }
    if words.len() > 1 {
        check_verb(command, words)?;
    }
    // The other commands of the reference connect first. These are our own, and there may be a
    // database among their words.
    let counts = command.args_min..=command.args_max.saturating_add(1);
    if command.is_about(HISTORY) && !counts.contains(&words.len()) {
        return Err(wrong_count(command));
    }
    let mut servers = Servers {
        list,
        database: None,
        settings,
    };
    let (mut session, database, words) = match servers.only() {
        Some(_) => {
            let mut session = servers.connect(None)?;
            let (database, words) = match command.action {
                Action::Database(_) => {
                    let served = session.list_dbs()?;
                    let (database, rest) = database(command, &served, words)?;
                    // Scripts may compare what the reference's commands say.
                    let is_own = command.is_about(HISTORY);
                    if is_own && rest.len() == words.len() && rest.len() > command.args_max {
                        check_verb(command, words)?;
                        return Err(hint_at(wrong_count(command), &served, words));
                    }
                    (database, rest)
                }
                _ => (String::new(), words),
            };
            (session, database, words)
        }
        None => {
            let (database, words) = explicit_database(command, words)?;
            let in_transaction = match command.name {
                "transact" | "query" => words.first().and_then(|text| transact::database(text)),
                _ => None,
            };
            servers.database = database.map(str::to_owned).or(in_transaction);
            let session = servers.connect(None)?;
            (session, database.unwrap_or_default().to_owned(), words)
        }
    };
    check_count(command, words)?;
    run(
        &mut session,
        &Invocation {
            settings,
            database,
            args: words,
            servers: &servers,
        },
    )
}

/// The servers of a command line.
#[derive(Debug)]
pub(crate) struct Servers<'a> {
    list: RemoteList,
    /// The database that one of several servers must serve.
    database: Option<String>,
    settings: &'a Settings,
}

impl Servers<'_> {
    /// The server, if there is one, which need not be suitable.
    fn only(&self) -> Option<&str> {
        match self.list.remotes.as_slice() {
            [server] if self.list.cluster_id.is_none() => Some(server),
            _ => None,
        }
    }

    /// Connects to the only server, or to the first suitable one. With a deadline (monotonic ms),
    /// requests over the connection end there too.
    ///
    /// # Errors
    /// No server can be used.
    pub(crate) fn connect(&self, deadline_ms: Option<u64>) -> Result<Session, Failure> {
        match self.only() {
            Some(server) => Session::open_until(server, &self.settings.credentials, deadline_ms),
            None => {
                let Settings {
                    credentials,
                    leader_only,
                    ..
                } = self.settings;
                let database = self.database.as_deref();
                leader::connect(&self.list, database, credentials, *leader_only)
                    .map(|session| session.until(deadline_ms))
            }
        }
    }
}

fn check_count(command: &Command, words: &[String]) -> Result<(), Failure> {
    if (command.args_min..=command.args_max).contains(&words.len()) {
        Ok(())
    } else {
        Err(wrong_count(command))
    }
}

fn wrong_count(command: &Command) -> Failure {
    let name = command.name;
    Failure::new(format!("invalid syntax for '{name}' (use --help for help)"))
}

/// # Errors
/// The words are those of `ovsdb-tool history verify` or `remove`. A single word may be a database
/// of that name.
fn check_verb(command: &Command, words: &[String]) -> Result<(), Failure> {
    match words.first().map(String::as_str) {
        Some(verb @ ("verify" | "remove")) if command.name == "history" => {
            Err(wrong_count(command).hinting(&sibling::of_tool(&format!("history {verb}"))))
        }
        _ => Ok(()),
    }
}

/// Says which databases there are: there are too many words, and the first may have been meant as
/// one.
fn hint_at(failure: Failure, served: &[String], words: &[String]) -> Failure {
    let Some(word) = words.first() else {
        return failure;
    };
    let own = served.iter().filter(|name| !name.starts_with('_'));
    let own: Vec<&str> = own.map(String::as_str).collect();
    failure.hinting(&format!(
        "if \"{word}\" is a database, the server does not have it; it has {}",
        own.join(", ")
    ))
}

/// Whether there are more words than the command needs.
fn has_spare(command: &Command, words: &[String]) -> bool {
    words.len() > command.args_min
}

/// Whether a word is a server rather than a name.
pub(crate) fn is_server(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_alphabetic()) && word.contains(':')
}

/// The server, if the command line names none.
pub(crate) fn default_server() -> String {
    format!("unix:{}", dirs::run().join("db.sock").display())
}

fn server<'a>(command: &Command, words: &'a [String]) -> (RemoteList, &'a [String]) {
    match words.split_first() {
        Some((first, rest)) if has_spare(command, words) && is_server(first) => {
            (RemoteList::parse(first), rest)
        }
        _ => (
            RemoteList {
                remotes: vec![default_server()],
                cluster_id: None,
            },
            words,
        ),
    }
}

/// The database: the next word, if the server serves one of that name, else the default database.
fn database<'a>(
    command: &Command,
    served: &[String],
    words: &'a [String],
) -> Result<(String, &'a [String]), Failure> {
    if let Some((first, rest)) = words.split_first()
        && has_spare(command, words)
        && served.contains(first)
    {
        return Ok((first.clone(), rest));
    }
    let mut own = served.iter().filter(|name| !name.starts_with('_'));
    let chosen = match (
        served.iter().find(|name| *name == "Open_vSwitch"),
        own.next(),
        own.next(),
    ) {
        (Some(name), ..) | (None, Some(name), None) => name,
        _ => {
            return Err(Failure::new(
                "could not find a default database, please specify a database name",
            ));
        }
    };
    Ok((chosen.clone(), words))
}

/// The database if several servers are given. It determines the choice of the server, so the
/// command line must name it.
fn explicit_database<'a>(
    command: &Command,
    words: &'a [String],
) -> Result<(Option<&'a str>, &'a [String]), Failure> {
    if !matches!(command.action, Action::Database(_)) {
        return Ok((None, words));
    }
    match words.split_first() {
        Some((first, rest)) if has_spare(command, words) => Ok((Some(first), rest)),
        _ => Err(Failure::new(
            "database name is required with multiple remotes",
        )),
    }
}
