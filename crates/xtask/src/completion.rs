//! Completions for shells, which are made from the manual of a program by the generators of `clap`.
//! These generators know the quoting rules of the three shells.
//!
//! The [`clap::Command`] is used for completions only: the programs themselves read their command
//! lines as getopt does.

use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Command, ValueHint};
use clap_complete::Shell;
use corvid_shell::args::{self, OptionEntry};
use corvid_shell::manual::{Chapter, Manual};

use crate::{Outcome, programs};

/// The directories in which shells look for the completions of packages.
const DIRECTORIES: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions"),
    (Shell::Fish, "fish/vendor_completions.d"),
    (Shell::Zsh, "zsh/vendor-completions"),
];

/// Writes the completions of each program into the directories of the shells below `/usr/share`.
pub(crate) fn write_all(dir: &Path) -> Outcome {
    let programs = programs::all();
    let controls = programs
        .iter()
        .flat_map(|program| &program.manual.chapters)
        .find(|chapter| chapter.title == "CONTROL COMMANDS")
        .ok_or("no manual lists control commands")?;
    for program in &programs {
        let manual = &program.manual;
        let mut command = command(manual);
        if manual.name == "ovs-appctl" {
            command = with_subcommands(command, controls);
        }
        for (shell, place) in DIRECTORIES {
            let place = dir.join(place);
            fs::create_dir_all(&place)?;
            let file = match shell {
                Shell::Zsh => format!("_{}", manual.name),
                Shell::Fish => format!("{}.fish", manual.name),
                _ => manual.name.to_owned(),
            };
            fs::write(place.join(file), text(shell, &mut command, manual.name)?)?;
        }
    }
    Ok(())
}

fn text(shell: Shell, command: &mut Command, name: &str) -> Outcome<String> {
    let mut text = Vec::new();
    clap_complete::generate(shell, command, name, &mut text);
    // For a program with commands, the generator for bash writes the hyphen in the program's name
    // in two ways, so that its cases would not match.
    let as_label = name.replace('-', "__subcmd__");
    Ok(String::from_utf8(text)?.replace(&as_label, &name.replace('-', "__")))
}

/// Returns a program as a `clap` command.
fn command(manual: &Manual) -> Command {
    let mut command = Command::new(manual.name)
        .about(manual.purpose)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true);
    for option in &manual.options {
        command = command.arg(argument(option));
    }
    if manual.commands.is_empty() {
        let files = Arg::new("files")
            .num_args(0..)
            .value_hint(ValueHint::FilePath);
        return command.arg(files);
    }
    for chapter in &manual.commands {
        command = with_subcommands(command, chapter);
    }
    command
}

/// Adds the commands of a chapter that do not exist yet.
fn with_subcommands(mut command: Command, chapter: &Chapter) -> Command {
    for entry in &chapter.entries {
        let words = &mut entry.term.split_whitespace();
        // Options of a single command are written before its name, in brackets.
        let Some(name) = words.find(|word| !word.starts_with(['[', '-'])) else {
            continue;
        };
        if command.find_subcommand(name).is_none() {
            let arguments = Arg::new("arguments")
                .num_args(0..)
                .value_hint(ValueHint::AnyPath);
            let about = entry.meaning.replace('`', "");
            let mut subcommand = Command::new(name.to_owned()).about(about).arg(arguments);
            for option in own_options(&entry.term) {
                let is_global = |known: &Arg| known.get_long() == option.get_long();
                if !command.get_arguments().any(is_global) {
                    subcommand = subcommand.arg(option);
                }
            }
            command = command.subcommand(subcommand.disable_help_flag(true));
        }
    }
    command
}

/// Returns the long options in a synopsis: `[--since=MOMENT]`, `[--dry-run]`.
fn own_options(term: &str) -> Vec<Arg> {
    let mut options: Vec<Arg> = Vec::new();
    for word in
        term.split(|separator: char| separator.is_whitespace() || "[]()|".contains(separator))
    {
        let Some(option) = word.strip_prefix("--").filter(|option| !option.is_empty()) else {
            continue;
        };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        if options.iter().any(|known| known.get_long() == Some(name)) {
            continue;
        }
        let argument = Arg::new(name.to_owned()).long(name.to_owned());
        options.push(match value {
            "" => argument.action(ArgAction::SetTrue),
            value => argument
                .value_name(value.to_owned())
                .value_hint(hint(value)),
        });
    }
    options
}

fn argument(option: &OptionEntry) -> Arg {
    let id = option.long.map_or_else(
        || option.short.into_iter().collect::<String>(),
        str::to_owned,
    );
    let mut argument = Arg::new(id)
        .help(option.meaning.replace('`', ""))
        .global(true);
    if let Some(long) = option.long {
        argument = argument.long(long);
    }
    if let Some(short) = option.short {
        argument = argument.short(short);
    }
    let hint = hint(option.value);
    match option.arg {
        args::Arg::None => argument.action(ArgAction::SetTrue),
        args::Arg::Required => argument.value_name(option.value).value_hint(hint),
        args::Arg::Optional => argument
            .value_name(option.value)
            .value_hint(hint)
            .num_args(0..=1)
            .require_equals(true),
    }
}

/// Returns the kind of value that a placeholder stands for.
fn hint(value: &str) -> ValueHint {
    match value {
        "FILE" | "SOCKET" => ValueHint::FilePath,
        "DIR" => ValueHint::DirPath,
        "COMMAND" => ValueHint::CommandString,
        _ => ValueHint::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_a_command_that_clap_accepts() {
        for program in programs::all() {
            command(&program.manual).debug_assert();
        }
    }

    #[test]
    fn options_are_found_in_a_synopsis() {
        let found = own_options("log [-n N] [--since=MOMENT] [--json] | log --json [-- X]");
        let names: Vec<_> = found.iter().filter_map(Arg::get_long).collect();
        assert_eq!(names, ["since", "json"]);
        assert!(found[0].get_action().takes_values() && !found[1].get_action().takes_values());
    }
}
