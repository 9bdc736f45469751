//! The shell: executes lines one after another over one connection, from a terminal or from
//! standard input.
//!
//! A line is what a command line is ([`crate::line`]), with the output options in front, or a
//! command of the shell itself ([`request`]). Pure parts are functions of their inputs: [`words`],
//! [`request`], [`open_transaction`], [`prompt`], [`cursor`], [`candidates`], [`highlight`].
//! [`link`] and [`lookup`] have connections, [`editor`] and [`terminal`] the terminal.

mod candidates;
mod cursor;
mod editor;
mod highlight;
mod history;
mod link;
mod lookup;
mod open_transaction;
pub(crate) mod prompt;
mod request;
mod script;
pub(crate) mod terminal;
mod words;

use std::sync::{Mutex, PoisonError};

use corvid_net::{clock, poll};
use corvid_shell::{output, signals};

use crate::chain_run::{ChainRun, Part};
use crate::failure::{Failure, Kind};
use crate::line::Line;
use crate::server::{self, Server};
use crate::servers_file::Servers;
use crate::settings::Settings;

use editor::{Editor, Input};
use link::Link;
use open_transaction::OpenTransaction;
use prompt::{Prompt, Role};
use request::Request;

/// Runs the shell until its input ends.
///
/// # Errors
/// There is no server, or the input cannot be read.
pub(crate) fn run(settings: &Settings) -> Result<(), Failure> {
    let server = Server::connect(settings)?;
    let mut shell = Shell {
        settings: settings.clone(),
        link: Mutex::new(Link::new(server)),
        open: None,
        role: None,
        informed: None,
        is_interactive: terminal::is_interactive(),
    };
    shell.choose_database()?;
    match shell.is_interactive {
        true => shell.interact(),
        false => script::run(&mut shell),
    }
}

/// Whether lines follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// The next line.
    Continues,
    /// Nothing: the user leaves.
    Ends,
}

/// The state of the shell.
struct Shell {
    /// The options, the server and the database in use.
    settings: Settings,
    link: Mutex<Link>,
    /// The transaction that `begin` has opened.
    open: Option<OpenTransaction>,
    /// The server's role for the database when it was last asked.
    role: Option<Role>,
    /// The connection and the database about which the editor is informed.
    informed: Option<(u64, Option<String>)>,
    /// A person types the lines.
    is_interactive: bool,
}

/// Commands that need no database.
const WITHOUT_DATABASE: [&str; 2] = ["dbs", "raw"];

impl Shell {
    /// Reads lines from the terminal until the user leaves.
    fn interact(&mut self) -> Result<(), Failure> {
        terminal::restore_at_death();
        let mut editor = Editor::new(terminal::has_colours())?;
        // The editor has installed a handler of its own.
        signals::cancel_by_interrupt();
        loop {
            let prompt = self.prompt().text(terminal::columns());
            self.inform(&editor);
            // Of the last command. From here to the next command the terminal sends no signals.
            signals::take_cancellation();
            let is_entered = editor.is_entered();
            let input = link::while_idle(&self.link, &is_entered, || editor.read(&prompt))?;
            let line = match input {
                Input::Line(line) => line,
                Input::Cancelled => continue,
                Input::End => break,
            };
            let outcome = self.execute(&words::split(&line).texts());
            match outcome {
                Ok(Flow::Continues) => {}
                Ok(Flow::Ends) => break,
                Err(failure) => failure.print(""),
            }
        }
        if let Err(failure) = self.end() {
            failure.print("");
        }
        Ok(())
    }

    /// Tells the editor what completion and hints need to know, if that is new.
    fn inform(&mut self, editor: &Editor) {
        let settings = &self.settings;
        let link = self.link.get_mut().unwrap_or_else(PoisonError::into_inner);
        let place = (link.generation(), settings.database.clone());
        let remote = link.remote().map(str::to_owned);
        if remote.is_none() || self.informed.as_ref() == Some(&place) {
            return;
        }
        let schema = link.schema(settings.database.as_deref());
        let databases = link.databases();
        // A server that was too slow is asked again before the next prompt.
        let is_whole = schema.is_some() == settings.database.is_some();
        editor.know(|knowledge| {
            knowledge.known.schema = schema;
            knowledge.known.databases = databases;
            // A wrong file is reported when a name is used.
            let servers = Servers::load().unwrap_or_default();
            knowledge.known.servers = servers.names().map(str::to_owned).collect();
            knowledge.lookup.remote = remote;
            knowledge.lookup.database = settings.database.clone().unwrap_or_default();
            knowledge.lookup.credentials = settings.credentials.clone();
            knowledge.lookup.forget();
        });
        self.informed = is_whole.then_some(place);
    }

    /// The prompt, after asking the server for its role.
    fn prompt(&mut self) -> Prompt {
        let database = self.settings.database.clone();
        let link = self.link();
        if let Some(database) = &database {
            match link.role(database) {
                Some(role) => self.role = Some(role),
                // A connection that was closed on purpose: the role is probably the same.
                None if link.remote().is_none() && !link.is_lost() => {}
                None => self.role = None,
            }
        }
        let name = self.settings.server_name.clone();
        let (server, is_lost) = {
            let link = self.link();
            (link.remote().map(str::to_owned), link.is_lost())
        };
        Prompt {
            server: name
                .or(server)
                .unwrap_or_else(|| server::address(&self.settings)),
            database,
            role: self.role,
            is_lost,
            is_open: self.open.is_some(),
        }
    }

    /// Executes the words of a line.
    ///
    /// # Errors
    /// A command failed.
    fn execute(&mut self, words: &[String]) -> Result<Flow, Failure> {
        match Request::of(words)? {
            Request::Nothing => {}
            Request::Quit => return Ok(Flow::Ends),
            Request::Help(topic) => output::print(request::help(topic.as_deref())?),
            Request::Begin => {
                if self.open.is_some() {
                    return Err(Failure::usage("a transaction is open already"));
                }
                self.open = Some(OpenTransaction::default());
            }
            Request::Commit => self.commit()?,
            Request::Abort => {
                if self.open.take().is_none() {
                    return Err(no_transaction());
                }
            }
            Request::Use(database) => self.use_database(&database)?,
            Request::Connect(server) => self.connect(&server)?,
            Request::Chain => self.run(words)?,
        }
        Ok(Flow::Continues)
    }

    /// Ends the shell. An open transaction is dropped.
    ///
    /// # Errors
    /// There was one.
    fn end(&mut self) -> Result<(), Failure> {
        match self.open.take() {
            None => Ok(()),
            Some(_) => Err(Failure::usage(
                "the open transaction was not committed, nothing was changed",
            )),
        }
    }

    /// Chooses the only database, if none was named.
    fn choose_database(&mut self) -> Result<(), Failure> {
        let wanted = self.settings.database.clone();
        let server = self.connected()?;
        if wanted.is_some() {
            return server.choose(wanted.as_deref());
        }
        let mut own = own_databases(server)?.into_iter();
        self.settings.database = match (own.next(), own.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        Ok(())
    }

    /// Changes to another database of the server.
    fn use_database(&mut self, database: &str) -> Result<(), Failure> {
        self.check_no_transaction()?;
        self.with_server(true, |server, _| server.choose(Some(database)))?;
        self.settings.database = Some(database.to_owned());
        self.role = None;
        Ok(())
    }

    /// Changes to another server. If it cannot be reached, the present one stays.
    fn connect(&mut self, server: &str) -> Result<(), Failure> {
        self.check_no_transaction()?;
        let base = Settings {
            database: None,
            ..self.settings.clone()
        };
        let settings = base.with_server(server, &Servers::load()?)?;
        let connected = Server::connect(&settings);
        if signals::take_cancellation() {
            return Err(cancelled());
        }
        *self.link() = Link::new(connected?);
        self.informed = None;
        self.settings = settings;
        self.role = None;
        self.choose_database()
    }

    fn check_no_transaction(&self) -> Result<(), Failure> {
        match self.open {
            None => Ok(()),
            Some(_) => Err(Failure::usage(
                "a transaction is open: commit or abort it first",
            )),
        }
    }

    /// Runs a chain or a command that stands alone.
    fn run(&mut self, words: &[String]) -> Result<(), Failure> {
        let (settings, words) = self.settings.of_line(words)?;
        let line = Line::parse(&words).map_err(|failure| suggesting_own(failure, &words))?;
        if let Some(outcome) = line.run_offline(&settings) {
            return outcome;
        }
        let name = line.chain.first().map_or("", |first| first.command.name);
        if settings.database.is_none() && !WITHOUT_DATABASE.contains(&name) {
            let server = self.connected()?;
            let names = own_databases(server)?.join(", ");
            return Err(Failure::usage(match names.as_str() {
                "" => "the server serves no database".to_owned(),
                _ => format!("choose a database with \"use\": {names}"),
            }));
        }
        let Some(open) = self.open.as_ref().filter(|_| line.is_chain()) else {
            // Others print as they go, or change something each time.
            let is_repeatable = line.is_chain();
            return self.with_server(is_repeatable, |server, _| line.run(server, &settings));
        };
        let chain = open.followed_by(&line.chain);
        let part = match line.is_explained {
            true => Part::Whole,
            false => Part::Open(open.len()),
        };
        let comment = open.finish().1;
        self.with_server(true, |server, _| {
            server.choose(settings.database.as_deref())?;
            let run = ChainRun {
                chain: &chain,
                comment: format!("corvid: {comment}"),
                is_explained: line.is_explained,
                settings: &settings,
                part,
            };
            run.run(server)
        })?;
        let is_tried = line.is_explained || settings.dry_run;
        if let Some(open) = self.open.as_mut().filter(|_| !is_tried) {
            open.add(line.chain, &words);
        }
        Ok(())
    }

    /// Executes the open transaction. It stays open if nothing was sent; otherwise it ends.
    fn commit(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.take() else {
            return Err(no_transaction());
        };
        let (chain, comment) = open.finish();
        if chain.is_empty() {
            return Ok(());
        }
        let outcome = self.with_server(true, |server, settings| {
            server.choose(settings.database.as_deref())?;
            let run = ChainRun {
                chain,
                comment: format!("corvid: {comment}"),
                is_explained: false,
                settings,
                part: Part::Commit,
            };
            run.run(server)
        });
        match outcome {
            Err(failure) if failure.kind == Kind::Connection && !failure.is_in_doubt => {
                self.open = Some(open);
                Err(failure.and("the transaction is still open"))
            }
            Err(failure) if !failure.is_in_doubt => {
                Err(failure.and("nothing was changed, and the transaction has ended"))
            }
            other => other,
        }
    }

    /// Runs a function with the connection. If the connection proves to be broken before anything
    /// was changed, and the function may run twice, it runs again with a new one.
    fn with_server(
        &mut self,
        is_repeatable: bool,
        run: impl Fn(&mut Server, &Settings) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // When the connection first broke during this command (monotonic ms).
        let mut broken_ms = None;
        loop {
            let settings = self.settings.clone();
            let server = match self.connected() {
                Err(_) if signals::take_cancellation() => return Err(cancelled()),
                other => other?,
            };
            let outcome = run(server, &settings).and_then(|()| Ok(output::flush()?));
            let is_in_doubt = server.is_in_doubt();
            let is_reporting = server.is_reporting();
            let link = self.link();
            if signals::take_cancellation() {
                // The reply to what was asked would arrive later.
                link.close();
                let failure = cancelled();
                return Err(if is_in_doubt {
                    failure.in_doubt()
                } else {
                    failure
                });
            }
            let broken = match outcome {
                Err(failure) if failure.kind == Kind::Connection => failure,
                other => {
                    if is_reporting {
                        link.close();
                    }
                    return other;
                }
            };
            let now_ms = clock::mono_ms();
            match broken_ms {
                None => link.lose(),
                // A server that starts or stops may accept connections and close them: that was
                // reported.
                Some(_) => link.close(),
            }
            if is_in_doubt {
                return Err(broken.in_doubt());
            }
            if !is_repeatable || now_ms > *broken_ms.get_or_insert(now_ms) + link::RECONNECT_MS {
                link.lose();
                return Err(broken);
            }
            if poll::wait(None, Some(link::PAUSE)).is_err() && signals::take_cancellation() {
                return Err(cancelled());
            }
        }
    }

    /// The connection; a new one if the last one broke.
    fn connected(&mut self) -> Result<&mut Server, Failure> {
        let link = self.link.get_mut().unwrap_or_else(PoisonError::into_inner);
        link.server(&self.settings)
    }

    fn link(&mut self) -> &mut Link {
        self.link.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The databases of a server other than its own ones.
fn own_databases(server: &mut Server) -> Result<Vec<String>, Failure> {
    let mut names = server.databases()?;
    names.retain(|name| !name.starts_with('_'));
    Ok(names)
}

fn no_transaction() -> Failure {
    Failure::usage("no transaction is open: \"begin\" opens one")
}

/// The failure of a command that Ctrl-C has cancelled.
fn cancelled() -> Failure {
    // The terminal shows the key at the beginning of the line.
    output::error_line("");
    Failure::connection("cancelled")
}

/// Suggests a command of the shell for a name that is not a command.
fn suggesting_own(failure: Failure, words: &[String]) -> Failure {
    match words.first() {
        Some(name) if !failure.has_suggestion() && request::names().all(|known| known != name) => {
            failure.suggesting(name, request::names())
        }
        _ => failure,
    }
}
