//! The table of commands, and the input that each command gets.

mod check_cluster;
mod cluster_to_standalone;
mod compact;
mod convert;
mod create;
mod dump;
mod execute;
mod history;
mod identity;
mod log;
mod new_member;
mod restore;
mod salvage;
mod schema;
mod show_log;
mod versions;

use std::path::PathBuf;

use corvid_net::{dirs, os_name};
use corvid_shell::output;

use crate::command;
use crate::failure::Failure;
use crate::tool::answer::Answer;
use crate::tool::manual;
use crate::tool::options::Options;

/// The input of a command.
#[derive(Debug)]
pub(crate) struct Invocation<'a> {
    /// The arguments, whose number is within the command's limits.
    pub(crate) args: &'a [String],
    /// The options.
    pub(crate) options: &'a Options,
}

type Outcome = Result<Answer, Failure>;

/// How a command runs, and how `list-commands` shows it.
pub(crate) struct Action {
    /// The arguments, as `list-commands` prints them.
    arguments: &'static str,
    run: fn(&Invocation<'_>) -> Outcome,
}

/// A command of `ovsdb-tool`.
type Command = command::Command<Action>;

/// Headings of the commands, in order.
pub(crate) const TOPICS: [&str; 7] = [
    FILES,
    LOOKING,
    HISTORY,
    TRANSACTIONS,
    SCHEMAS,
    CLUSTERS,
    HELP,
];

const FILES: &str = "Creating and rewriting database files";
const LOOKING: &str = "Inspecting database files";
const HISTORY: &str = "History";
const TRANSACTIONS: &str = "Transactions";
const SCHEMAS: &str = "Schemas";
const CLUSTERS: &str = "Clusters";
const HELP: &str = "Help";

const fn command(
    name: &'static str,
    arguments: &'static str,
    args_min: usize,
    args_max: usize,
    run: fn(&Invocation<'_>) -> Outcome,
) -> Command {
    Command::new(name, args_min, args_max, Action { arguments, run })
}

/// All commands.
pub(crate) const COMMANDS: [Command; 31] = [
    command("create", "[db [schema]]", 0, 2, create::create).means(
        FILES,
        "create [DB [SCHEMA]]",
        "create DB without rows, with SCHEMA",
    ),
    command(
        "create-cluster",
        "db contents local",
        3,
        3,
        new_member::create_cluster,
    )
    .means(
        CLUSTERS,
        "[--election-timer=MS] create-cluster DB CONTENTS LOCAL",
        "create the file of a cluster's first member",
    ),
    command(
        "join-cluster",
        "db name local remote...",
        4,
        usize::MAX,
        new_member::join_cluster,
    )
    .means(
        CLUSTERS,
        "[--cid=UUID] join-cluster DB NAME LOCAL REMOTE...",
        "create the file of a member that will join a cluster",
    ),
    command("compact", "[db [dst]]", 0, 2, compact::compact).means(
        FILES,
        "compact [DB [DST]]",
        "remove the history from DB (write the result to DST, which must not exist)",
    ),
    command("convert", "[db [schema [dst]]]", 0, 3, convert::convert).means(
        FILES,
        "convert [DB [SCHEMA [DST]]]",
        "convert DB's contents to SCHEMA (write the result to DST, which must not exist)",
    ),
    command("needs-conversion", "", 0, 2, convert::needs_conversion).means(
        FILES,
        "needs-conversion [DB [SCHEMA]]",
        "print \"yes\" if DB's schema differs from SCHEMA, else \"no\"",
    ),
    command("db-name", "[db]", 0, 1, schema::db_name).means(
        LOOKING,
        "db-name [DB]",
        "print the name of DB's schema",
    ),
    command("db-version", "[db]", 0, 1, schema::db_version).means(
        LOOKING,
        "db-version [DB]",
        "print the version of DB's schema",
    ),
    command("db-cksum", "[db]", 0, 1, schema::db_cksum).means(
        LOOKING,
        "db-cksum [DB]",
        "print the checksum of DB's schema",
    ),
    command("db-cid", "db", 1, 1, identity::cluster_id).means(
        LOOKING,
        "db-cid DB",
        "print clustered DB's cluster ID",
    ),
    command("db-sid", "db", 1, 1, identity::server_id).means(
        LOOKING,
        "db-sid DB",
        "print clustered DB's server ID",
    ),
    command("db-local-address", "db", 1, 1, identity::local_address).means(
        LOOKING,
        "db-local-address DB",
        "print clustered DB's local address",
    ),
    command("db-is-clustered", "db", 1, 1, identity::is_clustered).means(
        LOOKING,
        "db-is-clustered DB",
        "succeed if DB is a clustered database",
    ),
    command("db-is-standalone", "db", 1, 1, identity::is_standalone).means(
        LOOKING,
        "db-is-standalone DB",
        "succeed if DB is a standalone database",
    ),
    command("schema-name", "[schema]", 0, 1, schema::schema_name).means(
        SCHEMAS,
        "schema-name [SCHEMA]",
        "print SCHEMA's name",
    ),
    command("schema-version", "[schema]", 0, 1, schema::schema_version).means(
        SCHEMAS,
        "schema-version [SCHEMA]",
        "print SCHEMA's version",
    ),
    command("schema-cksum", "[schema]", 0, 1, schema::schema_cksum).means(
        SCHEMAS,
        "schema-cksum [SCHEMA]",
        "print SCHEMA's checksum",
    ),
    command("query", "[db] trns", 1, 2, execute::query).means(
        TRANSACTIONS,
        "[--at=MOMENT] query [DB] TRNS",
        "execute TRNS on DB's contents without changing DB",
    ),
    command("transact", "[db] trns", 1, 2, execute::transact).means(
        TRANSACTIONS,
        "transact [DB] TRNS",
        "execute TRNS on DB",
    ),
    command("show-log", "[db]", 0, 1, show_log::show_log).means(
        LOOKING,
        "[-m]... show-log [DB]",
        "print DB's records",
    ),
    command(
        "check-cluster",
        "db...",
        1,
        usize::MAX,
        check_cluster::check_cluster,
    )
    .means(
        CLUSTERS,
        "check-cluster DB...",
        "check the files of a cluster's members for consistency",
    ),
    command("compare-versions", "a op b", 3, 3, versions::compare).means(
        SCHEMAS,
        "compare-versions A OP B",
        "succeed if A OP B holds for schema versions A and B",
    ),
    command("help", "", 0, usize::MAX, help).means(HELP, "help", "print what --help prints"),
    command("list-commands", "", 0, usize::MAX, list).means(
        HELP,
        "list-commands",
        "print the names of the commands",
    ),
    command(
        "cluster-to-standalone",
        "db clusterdb",
        2,
        2,
        cluster_to_standalone::cluster_to_standalone,
    )
    .means(
        CLUSTERS,
        "cluster-to-standalone DB CLUSTERDB",
        "write the contents of CLUSTERDB, a member's file, to the standalone DB",
    ),
    command("salvage", "file new [schema]", 2, 3, salvage::salvage).means(
        FILES,
        "salvage FILE NEW [SCHEMA]",
        "write what can be read of the damaged FILE to the standalone NEW, and list the rest",
    ),
    command("history", "[db] | verify db | remove db number...", 0, usize::MAX, history::history)
        .means(
            HISTORY,
            "[--json] history [DB] | history verify DB | history remove DB NUMBER...",
            "list the files of DB's history, check them, or remove some of them",
        ),
    command("log", "[db]", 0, 1, log::log).means(
        HISTORY,
        "[--since=MOMENT] [--until=MOMENT] [--table=TABLE] [--row=UUID] [--column=COLUMN] [--client=TEXT] [-nN] [--json] log [DB]",
        "print the commits of DB's history with their changes, oldest first",
    ),
    command("diff", "db from to", 3, 3, log::diff).means(
        HISTORY,
        "[--table=TABLE] [--row=UUID] [--column=COLUMN] [--json] diff DB FROM TO",
        "print how rows at moment TO differ from those at FROM",
    ),
    command("dump", "[db [table]]", 0, 2, dump::dump).means(
        HISTORY,
        "[--at=MOMENT] [--json] dump [DB [TABLE]]",
        "print the rows of TABLE, or of all tables",
    ),
    command("restore", "db new", 2, 2, restore::restore).means(
        HISTORY,
        "--at=MOMENT restore DB NEW",
        "write DB's contents at MOMENT to the standalone NEW, which must not exist",
    ),
];

/// Runs the command that the options name.
///
/// # Errors
/// There is no such command, the number of arguments is wrong, or the command failed.
pub(crate) fn run(options: &Options) -> Outcome {
    let (command, args) = command::find(&COMMANDS, &options.words)?;
    let name = command.name;
    command.check_options(options.history.selecting(), &COMMANDS)?;
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
    (command.action.run)(&Invocation { args, options })
}

impl Invocation<'_> {
    /// The database that the argument at `position` names, or the default one.
    fn database(&self, position: usize) -> PathBuf {
        self.args
            .get(position)
            .map_or_else(default_database, |name| os_name::path(name))
    }

    /// The schema that the argument at `position` names, or the default one.
    fn schema(&self, position: usize) -> PathBuf {
        self.args.get(position).map_or_else(
            || dirs::pkgdata().join("vswitch.ovsschema"),
            |name| os_name::path(name),
        )
    }
}

/// The database, if the command line names none.
fn default_database() -> PathBuf {
    dirs::db().join("conf.db")
}

fn help(_: &Invocation<'_>) -> Outcome {
    output::print(manual::help());
    Ok(Answer::Yes)
}

fn list(_: &Invocation<'_>) -> Outcome {
    output::line("The available commands are:");
    for command in &COMMANDS {
        output::line(format_args!(
            "  {:<23} {}",
            command.name, command.action.arguments
        ));
    }
    Ok(Answer::Yes)
}
