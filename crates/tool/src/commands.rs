//! The table of commands, and how a command line finds its entry.

mod check_cluster;
mod cluster_to_standalone;
mod compact;
mod convert;
mod create;
mod execute;
mod identity;
mod new_member;
mod schema;
mod show_log;
mod versions;

use std::path::PathBuf;

use corvid_os::dirs;

use crate::failure::{Answer, Failure};
use crate::options::{self, Options};

/// What a command gets.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    /// Arguments, as many as the command allows.
    pub(crate) args: &'a [String],
    /// The options.
    pub(crate) options: &'a Options,
}

type Outcome = Result<Answer, Failure>;

struct Command {
    name: &'static str,
    /// Its arguments, as `list-commands` prints them.
    usage: &'static str,
    args_min: usize,
    args_max: usize,
    run: fn(&Invocation<'_>) -> Outcome,
}

const fn command(
    name: &'static str,
    usage: &'static str,
    args_min: usize,
    args_max: usize,
    run: fn(&Invocation<'_>) -> Outcome,
) -> Command {
    Command {
        name,
        usage,
        args_min,
        args_max,
        run,
    }
}

const COMMANDS: [Command; 25] = [
    command("create", "[db [schema]]", 0, 2, create::create),
    command(
        "create-cluster",
        "db contents local",
        3,
        3,
        new_member::create_cluster,
    ),
    command(
        "join-cluster",
        "db name local remote...",
        4,
        usize::MAX,
        new_member::join_cluster,
    ),
    command("compact", "[db [dst]]", 0, 2, compact::compact),
    command("convert", "[db [schema [dst]]]", 0, 3, convert::convert),
    command("needs-conversion", "", 0, 2, convert::needs_conversion),
    command("db-name", "[db]", 0, 1, schema::db_name),
    command("db-version", "[db]", 0, 1, schema::db_version),
    command("db-cksum", "[db]", 0, 1, schema::db_cksum),
    command("db-cid", "db", 1, 1, identity::cluster_id),
    command("db-sid", "db", 1, 1, identity::server_id),
    command("db-local-address", "db", 1, 1, identity::local_address),
    command("db-is-clustered", "db", 1, 1, identity::is_clustered),
    command("db-is-standalone", "db", 1, 1, identity::is_standalone),
    command("schema-name", "[schema]", 0, 1, schema::schema_name),
    command("schema-version", "[schema]", 0, 1, schema::schema_version),
    command("schema-cksum", "[schema]", 0, 1, schema::schema_cksum),
    command("query", "[db] trns", 1, 2, execute::query),
    command("transact", "[db] trns", 1, 2, execute::transact),
    command("show-log", "[db]", 0, 1, show_log::show_log),
    command(
        "check-cluster",
        "db...",
        1,
        usize::MAX,
        check_cluster::check_cluster,
    ),
    command("compare-versions", "a op b", 3, 3, versions::compare),
    command("help", "", 0, usize::MAX, help),
    command("list-commands", "", 0, usize::MAX, list),
    command(
        "cluster-to-standalone",
        "db clusterdb",
        2,
        2,
        cluster_to_standalone::cluster_to_standalone,
    ),
];

/// Runs the command that the options name.
///
/// # Errors
/// No such command, a wrong number of arguments, or what the command itself reports.
pub(crate) fn run(options: &Options) -> Outcome {
    let Some((name, args)) = options.words.split_first() else {
        return Err(Failure::new("missing command name; use --help for help"));
    };
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        return Err(Failure::new(format!(
            "unknown command '{name}'; use --help for help"
        )));
    };
    if args.len() < command.args_min {
        return Err(Failure::new(format!(
            "'{name}' command requires at least {} arguments",
            command.args_min
        )));
    }
    if args.len() > command.args_max {
        return Err(Failure::new(format!(
            "'{name}' command takes at most {} arguments",
            command.args_max
        )));
    }
    (command.run)(&Invocation { args, options })
}

impl Invocation<'_> {
    /// The database at this place among the arguments, or the default one.
    fn database(&self, place: usize) -> PathBuf {
        self.args
            .get(place)
            .map_or_else(default_database, PathBuf::from)
    }

    /// The schema at this place among the arguments, or the default one.
    fn schema(&self, place: usize) -> PathBuf {
        self.args
            .get(place)
            .map_or_else(|| dirs::pkgdata().join("vswitch.ovsschema"), PathBuf::from)
    }
}

/// The database that is meant when none is named.
fn default_database() -> PathBuf {
    dirs::db().join("conf.db")
}

fn help(_: &Invocation<'_>) -> Outcome {
    print!("{}", options::usage());
    Ok(Answer::Yes)
}

fn list(_: &Invocation<'_>) -> Outcome {
    println!("The available commands are:");
    for command in &COMMANDS {
        println!("  {:<23} {}", command.name, command.usage);
    }
    Ok(Answer::Yes)
}
