//! `ovsdb-idlc`: prints typed Rust, Python or C for a schema, and merges annotations into schemas.

use std::path::Path;

use corvid_idlc::options::Options;
use corvid_shell::{args, output, program};

fn main() {
    program::init(&std::env::args_os().next().unwrap_or_default());
    let options = Options::parse(&args::from_env());
    let text = run(&options).unwrap_or_else(|problem| program::fatal(problem));
    output::print(text);
    program::exit(0)
}

/// Returns the text to print, or the error message.
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
        ["c-idl-header", idl] => c(&read(idl)?, idl).map(|code| code.header),
        ["c-idl-source", idl] => c(&read(idl)?, idl).map(|code| code.source),
        ["c", idl] => write_c(&c(&read(idl)?, idl)?, "."),
        ["c", idl, directory] => write_c(&c(&read(idl)?, idl)?, directory),
        [] => Err("missing command name (use --help for help)".to_owned()),
        [
            "annotate" | "c" | "c-idl-header" | "c-idl-source" | "rust" | "python",
            ..,
        ] => Err("wrong number of arguments (use --help for help)".to_owned()),
        [command, ..] => Err(format!("unknown command '{command}' (use --help for help)")),
    }
}

fn c(text: &str, idl: &str) -> Result<corvid_idlc::C, String> {
    corvid_idlc::c(text).map_err(|error| format!("{idl}: {error}"))
}

/// Writes the header and the source into `directory`, and returns the names of the files.
fn write_c(code: &corvid_idlc::C, directory: &str) -> Result<String, String> {
    let mut names = String::new();
    for (text, suffix) in [(&code.header, "h"), (&code.source, "c")] {
        let path = Path::new(directory).join(format!("{}-idl.{suffix}", code.name));
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        names += &format!("{}\n", path.display());
    }
    Ok(names)
}
