//! `corvid-xtask`: what is made from the tables of the programs, and the Debian package. Behind `make docs` and `make deb`.
//!
//! Nothing that it makes is checked in. It reads the programs' manuals as values ([`corvid_os::manual`]); it knows no option and no command
//! by itself, so a new one is in every page and completion at once.

mod completion;
mod deb;
mod page;
mod programs;
mod tree;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a task comes to.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(about = "Makes manual pages, completions and the Debian package of Corvid")]
struct CommandLine {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Writes the manual pages below DIR
    Man { dir: PathBuf },
    /// Writes the completions of bash, fish and zsh below DIR
    Completions { dir: PathBuf },
    /// Builds the Debian package into DIR
    Deb {
        dir: PathBuf,
        /// Where the programs have been built
        #[arg(long)]
        bin_dir: PathBuf,
        /// The root of the repository, for units and scripts
        #[arg(long, default_value = ".")]
        source: PathBuf,
        /// Compress little
        #[arg(long)]
        fast: bool,
    },
}

fn main() -> ExitCode {
    let done = match CommandLine::parse().task {
        Task::Man { dir } => page::write_all(&dir),
        Task::Completions { dir } => completion::write_all(&dir),
        Task::Deb {
            dir,
            bin_dir,
            source,
            fast,
        } => deb::build(&deb::Inputs {
            dir,
            bin_dir,
            source,
            fast,
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corvid-xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
