//! `corvid-guard`: compares the instruction counts of the hot paths with checked-in figures.
//!
//! A count does not depend on the load of the machine, so it shows regressions that timings do not
//! show. This program runs each path in a separate process under valgrind's callgrind. Instructions
//! are counted while the path runs, not while its inputs are prepared. `paths` has one file for
//! each path, `callgrind` runs callgrind and reads its file, `figures` is the checked-in file, and
//! `verdict` compares.

mod callgrind;
mod error;
mod figures;
mod northbound;
mod paths;
mod replica;
mod server;
mod uuids;
mod verdict;

use std::path::Path;
use std::process::ExitCode;

use corvid_shell::output;

use error::Error;
use figures::Figures;

// The server's allocator, so that allocations cost the same here as in the server.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const USAGE: &str = "\
usage: corvid-guard check     counts the instructions of every path and compares them with the checked-in figures
       corvid-guard accept    writes the present counts to the checked-in figures
       corvid-guard list      lists the paths";

/// The checked-in figures.
const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/figures.txt");

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["check"] => check(),
        ["accept"] => accept(),
        ["list"] => {
            for path in paths::ALL {
                output::report(format_args!("{:16} {}", path.name, path.about));
            }
            Ok(true)
        }
        [callgrind::WORD, name] => callgrind::be_measured(name).map(|()| true),
        _ => {
            output::error_line(USAGE);
            Ok(false)
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            output::error_line(format_args!("corvid-guard: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns true if all paths are within their limits. If instructions cannot be counted here,
/// prints a warning and returns true.
fn check() -> Result<bool, Error> {
    if let Err(reason) = callgrind::is_possible() {
        output::error_line(format_args!(
            "SKIPPED the guard of instruction counts: {reason}"
        ));
        output::error_line("******* REGRESSIONS WILL NOT BE NOTICED *******");
        return Ok(true);
    }
    let expected = Figures::read(Path::new(FIGURES))?;
    let verdict = verdict::of(&count_all()?, &expected);
    output::report_text(verdict.text);
    Ok(verdict.is_good)
}

fn accept() -> Result<bool, Error> {
    callgrind::is_possible().map_err(Error::Impossible)?;
    let counted = count_all()?;
    counted.write(Path::new(FIGURES))?;
    output::report_text(counted.text());
    Ok(true)
}

fn count_all() -> Result<Figures, Error> {
    let counts: Result<_, Error> = paths::ALL
        .iter()
        .map(|path| Ok((path.name.to_owned(), callgrind::count(path)?)))
        .collect();
    Ok(Figures {
        tools: callgrind::tools(),
        counts: counts?,
    })
}
