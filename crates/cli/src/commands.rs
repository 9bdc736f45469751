//! The commands: their table, and what a command gets and returns.
//!
//! A command works on [`Contents`] and makes no changes elsewhere: the caller sends the
//! transaction, and prints what the commands of a chain returned once it is committed.

mod bundle;
mod change;
mod change_line;
mod check;
mod count;
mod create;
mod describe;
mod doctor;
mod edit;
mod get;
mod list;
mod past;
mod raw;
mod schema;
mod schema_check;
mod schema_diff;
mod schema_doc;
mod servers;
mod show;
mod top;
mod wait_until;
mod watch;

use std::fmt;

use corvid_data::{ColumnId, Datum, TableId, TableSchema, Uuid};
use corvid_tools::table::Table;

use crate::contents::Contents;
use crate::failure::Failure;
use crate::grammar::chain::Invocation;
use crate::grammar::names;
use crate::grammar::row_names::RowNames;
use crate::server::Server;
use crate::settings::Settings;

/// The output of a command.
#[derive(Debug)]
pub(crate) enum Output {
    /// Text, complete with its newlines; may be empty.
    Text(String),
    /// Records, by default one column on a line.
    Table(Table),
    /// Facts about a schema, by default in aligned columns.
    Listing(Table),
    /// The UUID of the row that the command creates, as the server chose it.
    Created(Uuid),
}

/// The state that the commands of a chain share.
pub(crate) struct Context<'a> {
    /// The rows as the chain sees them.
    pub contents: Contents<'a>,
    /// The names of rows.
    pub names: RowNames<'a>,
    /// The index of the command in the chain.
    pub number: usize,
    /// A command waits for a condition that does not hold yet: the chain has no effect, and runs
    /// again when a table that it read has changed.
    pub must_wait: bool,
    /// Warnings for standard error, printed after the commit.
    pub warnings: Vec<String>,
}

impl<'a> Context<'a> {
    /// The table that the first argument names.
    fn table(&self, invocation: &Invocation) -> Result<(TableId, &'a TableSchema), Failure> {
        let schema = self.contents.schema();
        let word = invocation
            .args
            .first()
            .map(String::as_str)
            .unwrap_or_default();
        let id = names::table(schema, word)?;
        Ok((id, schema.table(id)))
    }

    /// Checks that a column of a row may be written.
    fn check_mutable(&self, table: TableId, row: Uuid, column: ColumnId) -> Result<(), Failure> {
        let schema = self.contents.schema().table(table);
        if schema.column(column).mutable || self.contents.is_created(table, row) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "cannot modify read-only column {} in table {}",
            schema.column(column).name,
            schema.name
        )))
    }

    /// The values of columns of a row.
    fn values(
        &mut self,
        table: TableId,
        row: Uuid,
        columns: &[ColumnId],
    ) -> Result<Vec<Datum>, Failure> {
        let read = |column: &ColumnId| self.contents.read(table, row, *column);
        columns.iter().map(read).collect()
    }
}

/// A function that runs a command.
pub(crate) type Run = fn(&mut Context<'_>, &Invocation) -> Result<Output, Failure>;

/// How a command runs.
#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// As one of the commands of a chain.
    InChain(Run),
    /// Alone, over the connection.
    Alone(fn(&mut Server, &Invocation, &Settings) -> Result<(), Failure>),
    /// Alone, without a connection unless it makes one.
    Offline(fn(&Invocation, &Settings) -> Result<(), Failure>),
    /// It precedes a chain.
    BeforeChain,
}

/// A command.
pub(crate) struct Command {
    /// The command's name.
    pub name: &'static str,
    /// The minimum number of arguments.
    pub args_min: usize,
    /// The maximum number of arguments.
    pub args_max: usize,
    /// The options that may precede the name; those that end in `=` take a value.
    pub options: &'static [&'static str],
    /// Which arguments begin with the name of a column.
    pub columns: Columns,
    /// How the command runs.
    pub action: Action,
    /// Options, name and arguments, as the manual shows them.
    pub synopsis: &'static str,
    /// A description in one line.
    pub meaning: &'static str,
    /// Paragraphs for the manual page.
    pub detail: &'static str,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub(crate) use check::{Columns, check, want};
pub(crate) use describe::type_in_words;
pub(crate) use raw::print_json;
pub(crate) use servers::lag;

/// The command that precedes a chain to show its transaction.
pub(crate) const EXPLAIN: &str = "explain";

/// The number of a command that is alone, in [`Context`].
const NO_COMMAND: usize = 0;

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// All commands.
pub(crate) static COMMANDS: &[Command] = &[
    Command {
        name: "list",
        args_min: 1,
        args_max: ANY,
        options: &["--if-exists", "--columns=", "--where="],
        columns: Columns::None,
        action: Action::InChain(list::list),
        synopsis: "[--if-exists] [--columns=COLUMN[,COLUMN]...] list TABLE [RECORD]... | list TABLE [COLUMN]... --where=EXPRESSION",
        meaning: "print records of TABLE, or all of them",
        detail: "Rows are sorted by their contents. With `--if-exists`, records that do not exist are skipped. With `--where`, the words after TABLE \
are columns. Of `list`, `find`, `count` and `watch`, `--where` and `--columns` may also follow the command's name.",
    },
    Command {
        name: "find",
        args_min: 1,
        args_max: ANY,
        options: &["--columns=", "--where="],
        columns: Columns::From(1),
        action: Action::InChain(list::find),
        synopsis: "[--columns=COLUMN[,COLUMN]...] [--where=EXPRESSION] find TABLE [COLUMN[:KEY]=VALUE]...",
        meaning: "print the records of TABLE that satisfy every condition",
        detail: "Besides `=` there are `!=`, `<`, `>`, `<=` and `>=`, which compare sets first by their size, and \
`{=}`, `{!=}`, `{<}`, `{>}`, `{<=}`, `{>=}`, `{in}` and `{not-in}`, which compare them as sets. A row without KEY satisfies only \
conditions of the second kind, for which its value is the empty set.",
    },
    Command {
        name: "count",
        args_min: 1,
        args_max: ANY,
        options: &["--where="],
        columns: Columns::From(1),
        action: Action::InChain(count::count),
        synopsis: "[--where=EXPRESSION] count TABLE [COLUMN[:KEY]=VALUE]...",
        meaning: "print the number of records of TABLE that satisfy every condition",
        detail: "Conditions are those of `find`.",
    },
    Command {
        name: "get",
        args_min: 2,
        args_max: ANY,
        options: &["--if-exists", "--id="],
        columns: Columns::From(2),
        action: Action::InChain(get::get),
        synopsis: "[--if-exists] [--id=@NAME] get TABLE RECORD [COLUMN[:KEY]]...",
        meaning: "print the values of columns of a record, one on a line",
        detail: "With `--if-exists`, a record that does not exist prints nothing, and a KEY that does not exist an empty line. \
With `--id`, later commands may use @NAME for the record's UUID.",
    },
    Command {
        name: "set",
        args_min: 3,
        args_max: ANY,
        options: &["--if-exists"],
        columns: Columns::From(2),
        action: Action::InChain(change::set),
        synopsis: "[--if-exists] set TABLE RECORD COLUMN[:KEY]=VALUE...",
        meaning: "set columns, or single keys of maps, of a record",
        detail: "With `--if-exists`, a record that does not exist is ignored.",
    },
    Command {
        name: "add",
        args_min: 4,
        args_max: ANY,
        options: &["--if-exists"],
        columns: Columns::At(2),
        action: Action::InChain(change::add),
        synopsis: "[--if-exists] add TABLE RECORD COLUMN [KEY=]VALUE...",
        meaning: "add elements to a set, or pairs to a map",
        detail: "A key that the map has already keeps its value: use `set` to replace it.",
    },
    Command {
        name: "remove",
        args_min: 4,
        args_max: ANY,
        options: &["--if-exists"],
        columns: Columns::At(2),
        action: Action::InChain(change::remove),
        synopsis: "[--if-exists] remove TABLE RECORD COLUMN (VALUE|KEY|KEY=VALUE)...",
        meaning: "remove elements from a set, or pairs from a map",
        detail: "A KEY alone removes its pair with any value. Elements that the column does not contain are ignored.",
    },
    Command {
        name: "clear",
        args_min: 3,
        args_max: ANY,
        options: &["--if-exists"],
        columns: Columns::WordsFrom(2),
        action: Action::InChain(change::clear),
        synopsis: "[--if-exists] clear TABLE RECORD COLUMN...",
        meaning: "empty columns of a record",
        detail: "The columns must be allowed to be empty.",
    },
    Command {
        name: "create",
        args_min: 2,
        args_max: ANY,
        options: &["--id="],
        columns: Columns::None,
        action: Action::InChain(create::create),
        synopsis: "[--id=(@NAME|UUID)] create TABLE COLUMN[:KEY]=VALUE...",
        meaning: "create a record, and print its UUID",
        detail: "With `--id=@NAME`, other commands of the chain may use @NAME for the new UUID. With `--id=UUID` the row gets that UUID. \
The server deletes a row to which no other refers, unless its table is a root table: `describe` shows which are.",
    },
    Command {
        name: "destroy",
        args_min: 1,
        args_max: ANY,
        options: &["--if-exists", "--all"],
        columns: Columns::None,
        action: Action::InChain(create::destroy),
        synopsis: "[--if-exists] destroy TABLE RECORD... | --all destroy TABLE",
        meaning: "delete records of TABLE",
        detail: "With `--all`, all records of TABLE. The server itself deletes the records of a table that is not a root table, when no other \
record refers to them: there the command only checks that the record exists, and hides it from later commands of the chain.",
    },
    Command {
        name: "wait-until",
        args_min: 2,
        args_max: ANY,
        options: &[],
        columns: Columns::From(2),
        action: Action::InChain(wait_until::wait_until),
        synopsis: "wait-until TABLE RECORD [COLUMN[:KEY]=VALUE]...",
        meaning: "wait until a record exists and satisfies every condition",
        detail: "The commands of the chain take effect together, after the wait. `--timeout` limits it.",
    },
    Command {
        name: "tables",
        args_min: 0,
        args_max: 0,
        options: &[],
        columns: Columns::NoTable,
        action: Action::InChain(describe::tables),
        synopsis: "tables",
        meaning: "list the tables of the database with their columns and indexes",
        detail: "The records of a root table stay until they are deleted, the others as long as a record refers to them.",
    },
    Command {
        name: "describe",
        args_min: 1,
        args_max: 1,
        options: &[],
        columns: Columns::None,
        action: Action::InChain(describe::describe),
        synopsis: "describe TABLE",
        meaning: "list the columns of TABLE with their types",
        detail: "`optional` means at most one element. A column that is not mutable is set by `create` only.",
    },
    Command {
        name: "show",
        args_min: 0,
        args_max: 2,
        options: &[],
        columns: Columns::NoTable,
        action: Action::InChain(show::show),
        synopsis: "show [TABLE [RECORD]]",
        meaning: "print records as a tree, each with the records that it keeps alive",
        detail: "Without TABLE, the records of all root tables. Columns with their default value are left out. A record that several others \
refer to is printed in full once.",
    },
    Command {
        name: "watch",
        args_min: 1,
        args_max: ANY,
        options: &["--columns=", "--where="],
        columns: Columns::None,
        action: Action::Alone(watch::watch),
        synopsis: "[--where=EXPRESSION] watch TABLE [COLUMN]...",
        meaning: "print the records of TABLE, then every change, until interrupted",
        detail: "A line that begins with `+` is a record that exists or appears, with its values other than defaults; `~` is a change, with \
old and new values, or the elements of a set or map that are new (`+`), gone (`-`) or replaced (`->`); `-` is a record that disappears. With \
`--where`, a record appears when EXPRESSION begins to hold. With `--json` or `--jsonl`, each line is a JSON object: `event` is `present`, \
`insert`, `modify` or `delete`, `row` has the columns, and `old` the old values of changed ones. After a lost connection the command connects \
again, says so, and prints what has changed meanwhile.",
    },
    Command {
        name: "edit",
        args_min: 2,
        args_max: 2,
        options: &[],
        columns: Columns::NoTable,
        action: Action::Alone(edit::edit),
        synopsis: "edit TABLE RECORD",
        meaning: "change the columns of a record in an editor",
        detail: "The editor (`VISUAL`, else `EDITOR`, else `vi`) gets one line for each column, in the form of the arguments of `set`. If others change \
the same columns meanwhile, nothing is changed, and the text is kept in a file.",
    },
    Command {
        name: "log",
        args_min: 0,
        args_max: 0,
        options: &[
            "--since=",
            "--until=",
            "--table=",
            "--row=",
            "--column=",
            "--client=",
            "-n=",
            "--json",
        ],
        columns: Columns::NoTable,
        action: Action::Alone(past::run),
        synopsis: "log [-n N] [--since=MOMENT] [--until=MOMENT] [--table=TABLE] [--row=UUID] [--column=COLUMN] [--client=TEXT] [--json]",
        meaning: "print the commits of the database with their changes, oldest first",
        detail: "`-n` prints the last N commits only, the other options those that they describe. `ovsdb-client`(1) explains moments. The id of a \
commit is what `--at`, `diff` and `revert` take.",
    },
    Command {
        name: "diff",
        args_min: 2,
        args_max: 2,
        options: &["--table=", "--row=", "--column=", "--json"],
        columns: Columns::NoTable,
        action: Action::Alone(past::run),
        synopsis: "diff FROM TO [--table=TABLE] [--row=UUID] [--column=COLUMN] [--json]",
        meaning: "print what has changed between two moments",
        detail: "`diff HEAD~1 HEAD` is the last commit, `diff -1h now` the last hour.",
    },
    Command {
        name: "revert",
        args_min: 1,
        args_max: 1,
        options: &["--table=", "--row=", "--json", "--dry-run"],
        columns: Columns::NoTable,
        action: Action::Alone(past::run),
        synopsis: "revert MOMENT [--table=TABLE] [--row=UUID] [--dry-run] [--json]",
        meaning: "undo one commit, or everything since a time, in one transaction",
        detail: "`revert HEAD` undoes the last commit, `revert -15min` the last quarter of an hour. Later changes of others stay, or the \
command fails and changes nothing. With `--dry-run` it only prints the changes.",
    },
    Command {
        name: "schema",
        args_min: 1,
        args_max: 3,
        options: &[],
        columns: Columns::NoTable,
        action: Action::Offline(schema::schema),
        synopsis: "schema check FILE | schema diff [OLD] NEW | schema doc [FILE]",
        meaning: "check a schema in a file, compare two schemas, or describe one in Markdown",
        detail: "`check` prints each fault with its line and column, and likely mistakes. `diff` lists what a conversion from OLD to NEW would \
lose (`-`), change (`~`) and add (`+`). Without OLD it takes the schema of the server's database, and counts the rows and values that would be lost or \
would not fit. `doc` without FILE describes the server's database.",
    },
    Command {
        name: "servers",
        args_min: 0,
        args_max: ANY,
        options: &["--ctl=", "--metrics=", "--json"],
        columns: Columns::NoTable,
        action: Action::Offline(servers::servers),
        synopsis: "servers [--json] [--ctl=SOCKET[,SOCKET]...] [--metrics=URL[,URL]...] [SERVER]...",
        meaning: "list the members of a cluster, or a relay and its sources, with their state",
        detail: "Each database of each server is a row: address, model, role, term, log entries that it lacks of the leader's (`lag`), sessions, size of the file, version and state. Clients see the model, the role and the lag on every server. The rest, the other members and the source of a relay are in the status of the server, which is read from its control socket if it is on this machine, in the folder of its socket or in the run directory; else from the socket that `--ctl` names, or from the address of `--metrics-listen` that `--metrics` or `servers.toml` names. A value that is not known is `-`, and `null` in JSON.",
    },
    Command {
        name: "doctor",
        args_min: 0,
        args_max: ANY,
        options: &["--ctl=", "--metrics=", "--json"],
        columns: Columns::NoTable,
        action: Action::Offline(doctor::doctor),
        synopsis: "doctor [--json] [--ctl=SOCKET[,SOCKET]...] [--metrics=URL[,URL]...] [SERVER]...",
        meaning: "check the servers for what goes wrong, and say what to do",
        detail: "Servers are found as by `servers`. Each finding has its evidence, an advice and a command. A check that lacks a fact is undecided and says what it needs. With `--json`, all findings of all checks are printed: `verdict` is `ok`, `warn`, `bad` or `unknown`. The exit status is 0 if nothing is wrong, and 1 if something was found.",
    },
    Command {
        name: "top",
        args_min: 0,
        args_max: ANY,
        options: &["--ctl=", "--metrics=", "--interval=", "--count="],
        columns: Columns::NoTable,
        action: Action::Offline(top::top),
        synopsis: "top [--interval=SECONDS] [--count=N] [--ctl=SOCKET] [--metrics=URL] [SERVER]",
        meaning: "show what a server does, drawn anew every second",
        detail: "Transactions a second by database, jobs, sessions with their cost, the most expensive first, and the slowest transactions, from the status of \
the server, which is found as by `servers`. `q` or Ctrl-C ends it. With `--count`, it ends after N pictures. Elsewhere than on a terminal the pictures are \
text, one after the other.",
    },
    Command {
        name: "bundle",
        args_min: 0,
        args_max: 1,
        options: &["--ctl=", "--metrics=", "--log=", "--with-contents"],
        columns: Columns::NoTable,
        action: Action::Offline(bundle::bundle),
        synopsis: "bundle [--with-contents] [--log=FILE] [--ctl=SOCKET[,SOCKET]...] [--metrics=URL[,URL]...] [FILE]",
        meaning: "write one archive for a bug report, and list what is in it",
        detail: "FILE is a new `.tar.zst`, by default with the time in its name. It has what `servers` and `doctor` print, status, settings, metrics, versions, \
schemas, numbers of rows and the end of the log. Rows are in it only with `--with-contents`. Passwords, private keys, values with names like those and \
credentials within URLs are left out; look at it before you send it. `--log` names the log of the first server, if the command line of its process does not.",
    },
    Command {
        name: "dbs",
        args_min: 0,
        args_max: 0,
        options: &[],
        columns: Columns::NoTable,
        action: Action::Alone(raw::dbs),
        synopsis: "dbs",
        meaning: "print the names of the databases that the server serves",
        detail: "One of them is the server's own, `_Server`, which describes the others.",
    },
    Command {
        name: "raw",
        args_min: 1,
        args_max: 1,
        options: &[],
        columns: Columns::NoTable,
        action: Action::Alone(raw::raw),
        synopsis: "raw OPERATIONS",
        meaning: "execute a transaction of operations as JSON, and print their results",
        detail: "OPERATIONS is a JSON array of objects, as RFC 7047 describes them, or one object. The name of the database may come first, as in \
the `params` of a `transact` request. If the server refuses the transaction, the results are printed too.",
    },
    Command {
        name: EXPLAIN,
        args_min: 0,
        args_max: ANY,
        options: &[],
        columns: Columns::NoTable,
        action: Action::BeforeChain,
        synopsis: "explain [OPTIONS] COMMAND [ARG...] [-- [OPTIONS] COMMAND [ARG...]]...",
        meaning: "print the transaction that the commands would send, as JSON, and change nothing",
        detail: "The output is what `ovsdb-client transact` takes. The commands read the database, because the transaction depends on it.",
    },
    Command {
        name: "comment",
        args_min: 0,
        args_max: ANY,
        options: &[],
        columns: Columns::NoTable,
        action: Action::InChain(comment),
        synopsis: "comment [TEXT]...",
        meaning: "do nothing, but appear in the comment of the transaction",
        detail: "The log of the database keeps the comment: `ovsdb-client log` shows it.",
    },
];

fn comment(_context: &mut Context<'_>, _invocation: &Invocation) -> Result<Output, Failure> {
    Ok(Output::Text(String::new()))
}
