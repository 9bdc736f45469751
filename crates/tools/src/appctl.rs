//! `ovs-appctl`: sends one command to a running daemon, over its control socket
//! (docs/spec/cli.md 2.3).
//!
//! The words after the options are sent to the daemon unchanged; the program itself has no table of
//! commands. Exit status: 0 if the daemon answered, 1 if it was not reached, 2 if it answered with
//! an error. The binary calls [`main`]; the generator of manual pages calls [`manual::manual`].

pub mod manual;
mod options;
mod reply;

use corvid_shell::unixctl::{Client, Format, socket_of};
use corvid_shell::{args, output, program};

use crate::suggestion;

use options::Options;
use reply::Ending;

/// Runs the program on the command line of this process, and ends the process.
pub fn main() -> ! {
    program::init_waiting(&std::env::args_os().next().unwrap_or_default());
    let options = Options::parse(&args::from_env());
    let path = socket_of(&options.target).unwrap_or_else(|error| program::fatal(error));
    let mut client = Client::connect(&path).unwrap_or_else(|error| program::fatal(error));
    let target = &options.target;
    let mut run = |command: &str, args: &[String]| {
        let answer = client.transact(command, args);
        answer.unwrap_or_else(|error| program::fatal(format_args!("{target}: {error}")))
    };
    if options.format == Format::Json {
        let switched = run("set-options", &["--format", "json"].map(str::to_owned));
        if let Err(error) = switched {
            reply::print_error(&error, target).end();
        }
    }
    let ending = match run(&options.command, &options.args) {
        Ok(result) => reply::print(&result, &options),
        Err(error) => {
            let ending = reply::print_error(&error, target);
            if reply::is_unknown_command(&error)
                && let Ok(commands) = client.transact("list-commands", &[])
                && let Some(commands) = reply::plain_text(&commands)
                && let Some(meant) = suggestion::nearest(&options.command, listed(&commands))
            {
                let question = suggestion::question(meant);
                output::error_line(format_args!("{}: {question}", program::name()));
            }
            ending
        }
    };
    ending.end()
}

/// The command names in the text of `list-commands`: the first word of each indented line.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter(|line| line.starts_with(' '));
    lines.filter_map(|line| line.split_whitespace().next())
}

impl Ending {
    /// Ends the process.
    fn end(self) -> ! {
        program::exit(match self {
            Ending::Answered => 0,
            Ending::Refused => 2,
        })
    }
}
