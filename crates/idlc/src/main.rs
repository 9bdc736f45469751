//! `ovsdb-idlc`: prints typed Rust or Python for a schema, or a schema with its annotations.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use corvid_idlc::options::Options;
use corvid_shell::{args, program};

fn main() -> ExitCode {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let options = Options::parse(&args::from_env());
    let text = run(&options).unwrap_or_else(|problem| program::fatal(problem));
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The text to print, or the error.
fn run(options: &Options) -> Result<String, String> {
    let read = |name: &str| {
        let path = Path::new(options.directory.as_deref().unwrap_or_default()).join(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let words: Vec<&str> = options.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["annotate", schema, annotations] => {
            let merged = corvid_idlc::annotate(&read(schema)?, &read(annotations)?);
            merged
                .map(|text| text + "\n")
                .map_err(|error| error.to_string())
        }
        ["rust", idl] => corvid_idlc::rust(&read(idl)?).map_err(|error| format!("{idl}: {error}")),
        ["python", idl] => {
            corvid_idlc::python(&read(idl)?).map_err(|error| format!("{idl}: {error}"))
        }
        [] => Err("missing command name (use --help for help)".to_owned()),
        ["annotate" | "rust" | "python", ..] => {
            Err("wrong number of arguments (use --help for help)".to_owned())
        }
        [command, ..] => Err(format!("unknown command '{command}' (use --help for help)")),
    }
}
