//! `ovsdb-idlc`: prints typed Rust for a schema, or a schema with its annotations.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
ovsdb-idlc: typed code for the tables of an OVSDB schema
usage: ovsdb-idlc [OPTIONS] COMMAND ARG...
where COMMAND is one of:
  annotate SCHEMA ANNOTATIONS  print SCHEMA combined with ANNOTATIONS
  rust IDL                     print a Rust module for IDL, a schema with or without annotations

Options:
  -C, --directory=DIR  change to DIR before anything else
  -h, --help           print this
  -V, --version        print the version
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(problem) => {
            eprintln!("ovsdb-idlc: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// What to print, or what is wrong.
fn run(arguments: &[String]) -> Result<String, String> {
    let mut words = Vec::new();
    let mut arguments = arguments.iter();
    let mut directory = None;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-h" | "--help" => return Ok(USAGE.to_owned()),
            "-V" | "--version" => {
                return Ok(format!(
                    "ovsdb-idlc (Corvid) {}\n",
                    env!("CARGO_PKG_VERSION")
                ));
            }
            "-C" | "--directory" => {
                let value = arguments.next();
                directory = Some(
                    value
                        .ok_or(format!("{argument} needs a directory"))?
                        .as_str(),
                );
            }
            option if option.starts_with("--directory=") => {
                directory = option.split_once('=').map(|(_, value)| value);
            }
            option if option.starts_with('-') => {
                return Err(format!("unknown option {option} (use --help for help)"));
            }
            word => words.push(word),
        }
    }
    let read = |name: &str| {
        let path = Path::new(directory.unwrap_or_default()).join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    match words.as_slice() {
        ["annotate", schema, annotations] => {
            let merged = corvid_idlc::annotate(&read(schema)?, &read(annotations)?);
            merged
                .map(|text| text + "\n")
                .map_err(|error| error.to_string())
        }
        ["rust", idl] => corvid_idlc::rust(&read(idl)?).map_err(|error| format!("{idl}: {error}")),
        [] => Err("missing command name (use --help for help)".to_owned()),
        ["annotate" | "rust", ..] => {
            Err("wrong number of arguments (use --help for help)".to_owned())
        }
        [command, ..] => Err(format!("unknown command '{command}' (use --help for help)")),
    }
}
