//! `corvid-xtask`: builds manual pages and completions from the tables of the programs, installs
//! the library for C, builds Debian packages, runs all tests, counts lines, and breaks rules of the
//! consensus library to check that a test fails. `make docs`, `make deb`, `make test` and
//! `make lines` run it; rules are broken by hand.
//!
//! Its outputs are not checked in. It reads the programs' manuals as values
//! ([`corvid_shell::manual`]) and does not name any option or command itself, so a new one appears
//! on every page and in every completion automatically.

mod c_library;
mod completion;
mod deb;
mod failed_test;
mod lines;
mod mutants;
mod page;
mod process_tree;
mod programs;
mod reference;
mod test_run;
mod timed_process;
mod tree;

use std::error::Error;
use std::path::PathBuf;

use corvid_shell::{output, program};

use clap::builder::PathBufValueParser;
use clap::{Arg, ArgAction, ArgMatches, Command};

/// The result of a task.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// The command line. It is built without `clap`'s macros, because these need more features of the
/// parser that all macros use than the other libraries do. So all libraries with macros would be
/// built a second time.
fn command_line() -> Command {
    let task = |name: &'static str, about: &'static str| {
        Command::new(name)
            .about(about)
            .arg(path("dir").value_name("DIR").required(true))
    };
    let deb = task("deb", "Builds the Debian package into DIR")
        .arg(
            path("bin-dir")
                .long("bin-dir")
                .required(true)
                .help("The folder of the built programs"),
        )
        .arg(
            path("source")
                .long("source")
                .default_value(".")
                .help("The root of the repository, for documents, units and scripts"),
        )
        .arg(
            Arg::new("fast")
                .long("fast")
                .action(ArgAction::SetTrue)
                .help("Compress fast rather than well"),
        )
        .arg(
            path("library")
                .long("library")
                .value_name("ARCHIVE")
                .help("The archive of the library for C, to build its packages too"),
        );
    let c = task(
        "c",
        "Installs the library for C below DIR, as /usr/local would have it",
    )
    .arg(
        path("library")
            .long("library")
            .value_name("ARCHIVE")
            .required(true)
            .help("The archive that cargo built"),
    )
    .arg(
        path("source")
            .long("source")
            .default_value(".")
            .help("The root of the repository"),
    );
    Command::new("corvid-xtask")
        .about("Builds manual pages, completions and the Debian package of Corvid")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(task("man", "Writes the manual pages below DIR"))
        .subcommand(task(
            "completions",
            "Writes the completions of bash, fish and zsh below DIR",
        ))
        .subcommand(task(
            "lines",
            "Counts lines of product code of the repository at DIR, by crate",
        ))
        .subcommand(task(
            "reference",
            "Writes the generated pages of docs/reference of the repository at DIR",
        ))
        .subcommand(deb)
        .subcommand(c)
        .subcommand(
            Command::new("mutants")
                .about("Breaks the rules of clusters one by one; a test must fail each time")
                .arg(
                    Arg::new("name")
                        .value_name("NAME")
                        .num_args(0..)
                        .help("Only these"),
                ),
        )
        .subcommand(
            Command::new("test")
                .about(
                    "Builds all tests of the workspace and runs them, several programs at a time",
                )
                .arg(
                    Arg::new("beside")
                        .long("beside")
                        .value_name("COMMAND")
                        .help("Also runs COMMAND; the run fails if it fails"),
                ),
        )
}

fn path(name: &'static str) -> Arg {
    Arg::new(name).value_parser(PathBufValueParser::new())
}

fn run(line: &ArgMatches) -> Outcome {
    let (task, arguments) = line.subcommand().ok_or("no task")?;
    let given = |name: &str| -> Outcome<PathBuf> {
        let path = arguments.get_one::<PathBuf>(name).cloned();
        path.ok_or_else(|| format!("{task}: no {name}").into())
    };
    match task {
        "man" => page::write_all(&given("dir")?),
        "test" => test_run::run(arguments.get_one::<String>("beside")),
        "mutants" => {
            let names = arguments.get_many::<String>("name");
            mutants::run(&names.into_iter().flatten().collect())
        }
        "lines" => lines::print(&given("dir")?),
        "reference" => reference::write_all(&given("dir")?),
        "completions" => completion::write_all(&given("dir")?),
        "c" => c_library::install(&given("dir")?, &given("library")?, &given("source")?),
        _ => deb::build(&deb::Inputs {
            dir: given("dir")?,
            bin_dir: given("bin-dir")?,
            source: given("source")?,
            fast: arguments.get_flag("fast"),
            library: arguments.get_one::<PathBuf>("library").cloned(),
        }),
    }
}

fn main() {
    let status = match run(&command_line().get_matches()) {
        Ok(()) => 0,
        Err(error) => {
            output::error_line(format_args!("corvid-xtask: {error}"));
            1
        }
    };
    // Writes standard output, which is buffered unless it is a terminal.
    program::exit(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_is_valid() {
        command_line().debug_assert();
    }
}
