//! Runs a chain: commands on contents, the transaction of their changes, then their output.
//!
//! The commands run again on new contents if others have changed what they rely on, and when
//! something has changed that `wait-until` waits for. They print only after the commit, so a chain
//! that fails prints nothing on standard output.

use corvid_data::{Schema, Uuid};
use corvid_json::Value;
use corvid_shell::output;
use corvid_shell::terminal::Painted;
use corvid_shell::vlog::{self, Module};
use corvid_tools::table::{Format, Printer, Style};
use corvid_tools::uuids::RandomUuids;

use crate::commands::{self, Action, Context, Output};
use crate::contents::Contents;
use crate::failure::{Failure, Kind};
use crate::grammar::chain::Invocation;
use crate::grammar::row_names::RowNames;
use crate::page::{self, Layout, Shape};
use crate::plain_json;
use crate::server::Server;
use crate::settings::{Objects, Settings};
use crate::transaction::Transaction;

/// A chain to run.
pub(crate) struct ChainRun<'a> {
    /// The commands.
    pub(crate) chain: &'a [Invocation],
    /// The comment of the transaction.
    pub(crate) comment: String,
    /// Prints the transaction instead of sending it.
    pub(crate) is_explained: bool,
    /// The options.
    pub(crate) settings: &'a Settings,
    /// The part of a transaction that the chain is.
    pub(crate) part: Part,
}

/// The part of a transaction that a chain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The whole: it is committed, and everything is printed.
    Whole,
    /// The beginning of an open transaction: nothing is sent, and the output of the commands before
    /// this one is not printed.
    Open(usize),
    /// All of an open transaction: it is committed, and only the UUIDs of new rows are printed.
    Commit,
}

impl ChainRun<'_> {
    /// Runs the chain until it is committed, and prints its output.
    ///
    /// # Errors
    /// A command failed, the server refused the transaction, or the connection broke.
    pub(crate) fn run(&self, server: &mut Server) -> Result<(), Failure> {
        server.begin_reading(self.settings)?;
        let schema = server.schema()?;
        for invocation in self.chain {
            commands::check(&schema, invocation)?;
        }
        let outcome = loop {
            match self.attempt(server, &schema) {
                Ok(Attempt::Done(outcome)) => break outcome,
                // Now the server has what the commands asked for at one moment.
                Ok(Attempt::IsMixed) => continue,
                Ok(Attempt::Waits(_)) if self.settings.at.is_some() => {
                    return Err(Failure::no_match(
                        "at the moment of --at a condition does not hold",
                    ));
                }
                Ok(Attempt::Waits(tables)) => {
                    output::flush()?;
                    server.wait_for_change(&schema, &tables)?;
                }
                Err(failure) if failure.kind == Kind::Conflict => {}
                Err(failure) => return Err(failure),
            }
            server.forget_reads();
        };
        for warning in &outcome.warnings {
            vlog::warn(Module::OvsdbClient, format_args!("{warning}"));
        }
        if self.is_explained {
            let database = std::iter::once(Value::string(server.database()));
            let params = database.chain(outcome.transaction.operations);
            commands::print_json(&Value::Array(params.collect()), self.settings);
            return Ok(());
        }
        print(outcome, self.settings, self.part)
    }

    fn attempt(&self, server: &mut Server, schema: &Schema) -> Result<Attempt, Failure> {
        let random = RandomUuids::new();
        let mut uuids = random.map_err(|failure| Failure::no_match(failure.to_string()))?;
        let mut context = Context {
            contents: Contents::new(schema, server),
            names: RowNames::new(&mut uuids),
            number: 0,
            must_wait: false,
            warnings: Vec::new(),
        };
        for invocation in self.chain {
            commands::want(&mut context.contents, invocation)?;
        }
        let mut outputs = Vec::new();
        for (number, invocation) in self.chain.iter().enumerate() {
            context.number = number;
            if let Action::InChain(run) = invocation.command.action {
                outputs.push(run(&mut context, invocation)?);
            }
            if context.must_wait {
                return Ok(Attempt::Waits(context.contents.tables_read()));
            }
        }
        let mut warnings = match self.part {
            // A later line may still define or refer to a name.
            Part::Open(_) => Vec::new(),
            Part::Whole | Part::Commit => context.names.finish()?,
        };
        warnings.append(&mut context.warnings);
        let transaction = Transaction::of(&context.contents, &self.comment);
        if !server.reads_are_of_one_moment()? {
            return Ok(Attempt::IsMixed);
        }
        if self.settings.at.is_some() && !transaction.operations.is_empty() {
            return Err(Failure::usage(
                "with --at, commands can only read: the past does not change",
            ));
        }
        let is_sent = !transaction.operations.is_empty()
            && !self.settings.dry_run
            && !self.is_explained
            && !matches!(self.part, Part::Open(_));
        let results = match is_sent {
            true => server.commit(transaction.operations.clone())?,
            false => Vec::new(),
        };
        Ok(Attempt::Done(Outcome {
            outputs,
            warnings,
            transaction,
            results,
        }))
    }
}

/// The outcome of one run of the commands.
enum Attempt {
    /// The changes are committed.
    Done(Outcome),
    /// The rows were read at several moments between which they have changed. The commands run
    /// again on rows of one moment.
    IsMixed,
    /// A condition does not hold: the commands run again when one of these tables has changed.
    Waits(Vec<corvid_data::TableId>),
}

/// A committed chain.
struct Outcome {
    outputs: Vec<Output>,
    warnings: Vec<String>,
    transaction: Transaction,
    results: Vec<Value>,
}

impl Outcome {
    /// Whether commands were to print records, and none of them has one.
    fn has_no_match(&self) -> bool {
        let mut tables = self.outputs.iter().filter_map(|output| match output {
            Output::Table(table) => Some(table.rows.is_empty()),
            _ => None,
        });
        tables
            .next()
            .is_some_and(|is_empty| is_empty && tables.all(|is_empty| is_empty))
    }

    /// The UUID that the server gave to the row of a command.
    fn uuid(&self, command: usize) -> Option<Uuid> {
        let result = self.results.get(*self.transaction.inserts.get(&command)?)?;
        let uuid = result.get("uuid")?.as_array()?.get(1)?.as_str()?;
        Uuid::parse(uuid.as_bytes())
    }
}

fn print(outcome: Outcome, settings: &Settings, part: Part) -> Result<(), Failure> {
    let created: Vec<Option<Uuid>> = (0..outcome.outputs.len())
        .map(|number| outcome.uuid(number))
        .collect();
    let is_empty = outcome.has_no_match();
    let is_printed = |(number, output): &(usize, Output)| match part {
        Part::Whole => true,
        // The UUID of a new row is not known before the commit.
        Part::Open(first) => *number >= first && !matches!(output, Output::Created(_)),
        Part::Commit => matches!(output, Output::Created(_)),
    };
    let outputs = outcome.outputs.into_iter().enumerate().filter(is_printed);
    let outputs = outputs.map(|(number, text)| match text {
        Output::Created(uuid) => {
            let uuid = created[number].unwrap_or(uuid).to_text();
            Output::Text(format!("{}\n", String::from_utf8_lossy(&uuid)))
        }
        other => other,
    });
    if settings.quiet {
        return match is_empty {
            true => Err(Failure::silent()),
            false => Ok(()),
        };
    }
    print_outputs(outputs, settings)
}

/// Prints outputs in the form that the settings ask for.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print_outputs(
    outputs: impl Iterator<Item = Output>,
    settings: &Settings,
) -> Result<(), Failure> {
    if let Some(objects) = settings.objects {
        return print_objects(outputs, objects, settings);
    }
    let is_for_person = matches!(settings.format, None | Some(Format::List | Format::Table));
    if let Some(size) = output::terminal_size()
        && is_for_person
        && !settings.oneline
    {
        return print_page(outputs, size.columns, settings);
    }
    print_exactly(outputs, settings)
}

/// Prints as the reference's tools do.
fn print_exactly(
    outputs: impl Iterator<Item = Output>,
    settings: &Settings,
) -> Result<(), Failure> {
    let printer = |default| {
        Printer::new(Style {
            format: settings.format.unwrap_or(default),
            ..settings.style
        })
    };
    let (mut records, mut listings) = (printer(Format::List), printer(Format::Table));
    for output in outputs {
        match output {
            Output::Table(table) => records.print(&table, &mut output::Output)?,
            Output::Listing(table) => listings.print(&table, &mut output::Output)?,
            Output::Text(text) if settings.oneline => output::line(one_line(&text)),
            Output::Text(text) => output::print(text),
            Output::Created(_) => {}
        }
    }
    Ok(())
}

/// Prints for a person at a terminal.
fn print_page(
    outputs: impl Iterator<Item = Output>,
    columns: usize,
    settings: &Settings,
) -> Result<(), Failure> {
    let mut page = Painted::for_output();
    let mut is_first = true;
    for output in outputs {
        let (table, default) = match output {
            Output::Table(table) => (table, Layout::Fitting),
            Output::Listing(table) => (table, Layout::Table),
            Output::Text(text) => {
                page.lines(&text);
                continue;
            }
            Output::Created(_) => continue,
        };
        if !std::mem::replace(&mut is_first, false) {
            page.end_line();
        }
        let shape = Shape {
            layout: match settings.format {
                Some(Format::Table) => Layout::Table,
                Some(_) => Layout::Records,
                None => default,
            },
            cells: settings.style.cells,
            has_headings: settings.style.headings,
            columns,
        };
        page::add_table(&mut page, &table, shape);
    }
    match settings.no_pager {
        true => output::show(&page)?,
        false => output::show_page(&page)?,
    }
    Ok(())
}

/// Prints records as plain JSON, after the texts of other commands.
fn print_objects(
    outputs: impl Iterator<Item = Output>,
    objects: Objects,
    settings: &Settings,
) -> Result<(), Failure> {
    let mut tables = Vec::new();
    for output in outputs {
        match output {
            Output::Table(table) | Output::Listing(table) => tables.push(table),
            Output::Text(text) if settings.oneline => output::line(one_line(&text)),
            Output::Text(text) => output::print(text),
            Output::Created(_) => {}
        }
    }
    match objects {
        Objects::Array => output::line(plain_json::array(&tables, settings.style.pretty)),
        Objects::Lines => tables
            .iter()
            .flat_map(plain_json::objects)
            .for_each(output::line),
    }
    output::flush()?;
    Ok(())
}

/// The text of `--oneline`: without the last newline, others and backslashes escaped.
fn one_line(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.replace('\\', "\\\\").replace('\n', "\\n")
}
