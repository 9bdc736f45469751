//! Full explanations of the commands of `ovsdb-client`, for the manual page.
//!
//! There is one text per command, found by its name. A test of the program checks that every
//! command has one.

/// The paragraphs about a command, separated by empty lines; empty if the command does not exist.
pub(crate) fn of(command: &str) -> &'static str {
    match command {
        "list-dbs" => LIST_DBS,
        "get-schema" => GET_SCHEMA,
        "get-schema-version" => GET_SCHEMA_VERSION,
        "get-schema-cksum" => GET_SCHEMA_CKSUM,
        "list-tables" => LIST_TABLES,
        "list-columns" => LIST_COLUMNS,
        "transact" => TRANSACT,
        "query" => QUERY,
        "monitor" => MONITOR,
        "monitor-cond" => MONITOR_COND,
        "monitor-cond-since" => MONITOR_COND_SINCE,
        "wait" => WAIT,
        "dump" => DUMP,
        "backup" => BACKUP,
        "history" => HISTORY,
        "log" => LOG,
        "diff" => DIFF,
        "revert" => REVERT,
        "restore" => RESTORE,
        "convert" => CONVERT,
        "needs-conversion" => NEEDS_CONVERSION,
        "ping" => PING,
        "lock" | "steal" | "unlock" => LOCK,
        _ => "",
    }
}

const LIST_DBS: &str = "\
Prints one name per line, sorted. Other commands accept these names as DATABASE. `_Server`, which describes the server itself, is included.";

const GET_SCHEMA: &str = "\
Prints the schema as the server has it; `--pretty` indents it. `ovsdb-tool create` and `convert` accept the output.";

const GET_SCHEMA_VERSION: &str = "\
The line is empty if the schema has no version, as in very old schemas. A version is three numbers, X.Y.Z, whose meaning is a convention. \
The schemas of Open vSwitch and OVN increase X for a change that breaks older clients, such as a removed column, Y for an addition, and Z for \
a cosmetic change. Schema versions are unrelated to the versions of the programs. `ovsdb-tool compare-versions` compares two of them.";

const GET_SCHEMA_CKSUM: &str = "\
The line is empty if the schema has no checksum. The checksum is text from the author of the schema, so that scripts detect a changed schema \
with an unchanged version.";

const LIST_TABLES: &str = "\
A table with one column, in the output format.";

const LIST_COLUMNS: &str = "\
A table of columns with their types, as the schema has them in JSON; without TABLE, of all tables, with the table's name before each column. The \
columns `_uuid` and `_version`, which every table has, are listed too.";

const TRANSACT: &str = "\
TRANSACTION is a JSON array: the name of the database, then operations, as RFC 7047 4.1.3 and 5.2 describe them. The reply is printed as the \
server sends it: one result for each operation, and one more if the commit failed.

The result of a failed operation is an object with a member `error`. The transaction then has no effect, and the exit status is still 0. \
With `--fail` it is 2.

If the connection is lost before the reply, the transaction may or may not have been executed.";

const QUERY: &str = "\
Sends the transaction with an `abort` operation at its end, so that it changes nothing, and omits the result of `abort`. This shows the \
results of changes without making them. Checks that the server makes at a commit, such as references and indexes, are not made.

With `--at` the operations, which must be `select`, see the contents of that moment. See `log` for the servers that can do this.";

const MONITOR: &str = "\
Prints the rows of TABLE first, then each change as it comes, until the program is ended, the connection is lost or the database is removed. A \
change of a row is printed as the old values of the changed columns and the new values of all. Changes that follow one another faster than they \
are read may come as one.

Each argument after TABLE is a group of columns, separated by commas; without one, all columns. A column may be named once in all groups. In \
a group, `!initial` omits the initial rows, `!insert` new rows, `!delete` deleted rows and `!modify` changes of rows. Several groups allow \
different choices for different columns. `ALL` instead of a table monitors all columns of all tables.

With `--detach` the program goes to the background after it has printed the initial rows. There `ovs-appctl`(8) can end it (`exit`), pause its \
reading (`ovsdb-client/block`, `ovsdb-client/unblock`), and, for `monitor-cond` and `monitor-cond-since`, change its condition \
(`ovsdb-client/cond_change TABLE CONDITION`).

The program ends with status 0 when the reader of its output has closed it.";

const MONITOR_COND: &str = "\
CONDITION is a JSON array of clauses, each `[COLUMN, FUNCTION, VALUE]` as in RFC 7047 5.1, or `true` or `false`. A row matches if any of the \
clauses holds; an empty array matches every row. A row that starts to match is shown as an insertion, a row that stops matching as a deletion. \
Columns, choices and `--detach` are those of `monitor`. The method is `monitor_cond`, which `ovsdb-server`(1) describes.";

const MONITOR_COND_SINCE: &str = "\
Prints `found`, which tells whether the server still knows transaction LASTID, and the id of the last transaction, which a later run can give \
as LASTID. If the server knows LASTID, only later changes follow; otherwise all rows come first. The id is printed again with each change. \
Without LASTID all rows are printed. The method is `monitor_cond_since`.";

const WAIT: &str = "\
\"added\" waits until the server has the database. \"connected\" also waits until the server is connected to the cluster, if the database is \
clustered: it has joined, and a leader is known. \"removed\" waits until the server has the database no longer, and so until it has left its \
cluster after `cluster/leave`.

The state is of one server, not of a cluster: SERVER is one address, not a list. DATABASE must be named, because the default is chosen among \
databases that exist. The command waits for a server that does not answer yet. Limit it with `--timeout`.";

const DUMP: &str = "\
All tables are read in one transaction, so the output is a consistent snapshot. Rows are sorted by their values, those of columns \
without UUIDs first. `_version` is left out. Named columns are printed in the order of their names.

With `--at` these are the contents of that moment, under the schema that the database had then. See `log` for the servers that can do this.";

const BACKUP: &str = "\
Writes the schema and all rows, read in one transaction, as a standalone database file to standard output, which must not be a terminal. `ovsdb-server` \
can serve the file as it is, `restore` can read it, and `ovsdb-tool create-cluster` can make it the first member of a cluster. This \
works with any server, also with a cluster or through a relay.

It does not contain ephemeral columns, which do not survive a restart of the server either. Check the exit status, and keep an older backup \
until the new one is complete: a full disk or a lost connection leaves a partial file.

The file of a standalone database can also be copied with `cp` while a server has it open. `ovs-appctl ovsdb-server/backup` makes the server \
write a copy itself.

With `--at` these are the contents of that moment, under the schema that the database had then. See `log` for the servers that can do this.";

const HISTORY: &str = "\
Prints one line for each file of the database's history, oldest first, the present file last: its number, the times of its first and last \
record, the number of its transactions, its size, and its name on the server. Then it says which files are missing in between. A server that runs \
with `--keep-history` keeps the files that compactions replace; otherwise there is the present file only.

`log` says which servers can do this. `ovsdb-tool history verify` and `ovsdb-tool history remove` work on the files.";

const LOG: &str = "\
Prints the commits with their changes, oldest first: what `ovsdb-tool log` prints of the database's file, also with `--json`. `ovsdb-tool`(1) \
describes it. There are two differences. A commit whose record the server does not count as written yet, or that a cluster has not committed, is \
left out. With `--json` a commit with many changes takes several lines, which are equal but for `changes`; all but the first have `continued`: true.

Moments are those of `ovsdb-tool`: an age is measured by the clock of the server, a local time has the zone of this program.

The server reads its files, not the database in memory, with low priority, and sends one page after the other. Nothing is locked or \
changed, and the command can be interrupted at any time.

`history`, `log`, `diff` and `--at` need the `ovsdb-server` that comes with this program. A relay has no file and asks its source. \
Earlier releases and other servers do not know the methods: the command then fails before it prints anything, and says \
which command reads the file.";

const DIFF: &str = "\
Prints the rows that differ, in the form of `log`. Changes in between that were undone are not shown. A table whose columns differ at the two moments, \
because the database was converted, is named on standard error. Rows of a table that only one of the moments has are inserted or deleted.";

const REVERT: &str = "\
With a commit (its id as `log` prints it, `HEAD` for the last one, `HEAD~2` for the third last) it undoes what that commit changed. With a \
time (`-2h`, `2026-11-28T10:00`) it brings the rows back to what they were then. It prints \
the changes that it makes, in the form of `log`; with `--dry-run` it only prints them. `--table` and `--row` undo a part.

All is undone in one transaction, or nothing. Rows keep their UUIDs. Later changes of others are conflicts: a column that no longer has the \
value that the change wrote, or a row that was deleted or created again. All conflicts are listed on standard error, the exit status is 1, and \
nothing is changed. Elements of sets and maps are compared one by one, so the ports that were added to a bridge later stay. It is a conflict, \
too, if a row that is not part of the revert would be deleted with its last reference, if others refer weakly to a row that is to be deleted, or if another row has taken the value of an index. \
A row that is as it was before needs nothing. If nothing is left to revert, standard error says so and the exit status is 0. Ephemeral columns are not in the history and stay as they are. In a cluster name the commit by its \
id: `HEAD` is the last commit that the asked member has applied, and others may be ahead of it for a moment. A conversion of the schema cannot be reverted. \
If the server refuses the transaction, for example because another row takes the value of an index at the last moment, nothing is changed and the exit status is 2.

Sequences of events do not come back: a program that saw the change may have acted on it. The revert is a commit like others, and can be reverted. \
`log` says which servers can do this.";

const RESTORE: &str = "\
SNAPSHOT is a standalone database file, from `backup` or from a server. One transaction replaces all rows of DATABASE by its rows, so \
clients see either all of the change or none. If anything fails, nothing is changed.

Rows get new UUIDs. References between rows are adjusted, but UUIDs stored by clients, in other databases or in text columns are not, and \
every client sees all rows deleted and inserted. `--keep-uuids` gives rows the UUIDs of the backup; it needs a server that accepts UUIDs for \
new rows, and fails with a message on any other. A standalone database can also keep its UUIDs in another way: stop the server, replace its \
file by the backup, and start it. A warning about new UUIDs is printed when standard error is a terminal.

Ephemeral columns always get their defaults. The schemas of backup and database must be equal. If they differ, convert the database to the \
schema of the backup first. `--force` ignores differences: the transaction may fail, or succeed without the parts that the schemas do not \
share.";

const CONVERT: &str = "\
SCHEMA is a file with a schema in JSON; its name says which database to convert. The server converts all rows in one step: other clients see the \
old schema or the new one.

The rows must be valid under the new schema: types, ranges, enumerations, indexes, references and numbers of rows are all checked, and if \
anything does not fit, nothing is changed. Columns and tables that the new schema lacks are dropped. Columns that only the new schema has get \
their defaults. In a cluster every column is persistent: ephemeral columns of SCHEMA are made so, with a warning.

Warning: dropping a column or a table deletes its contents, and no later conversion brings them back. Make a backup of a database that matters \
before you convert it.

Clients that have sent `set_db_change_aware` are notified of the change, and their blocked transactions and monitors are canceled. Other \
clients are disconnected, and see the new schema when they reconnect. The command works with standalone and clustered databases; \
`ovsdb-tool convert` converts a standalone file without a server.";

const NEEDS_CONVERSION: &str = "\
Compares the schema in the file with that of the database of the same name. The answer is on standard output; the exit status is 0 for both.";

const PING: &str = "\
See HEALTH CHECKS below.";

const LOCK: &str = "\
For tests, and to keep other clients of the same lock from working. Prints the reply, then each notification: `locked` when this session becomes the \
owner, `stolen` when another one takes the lock. The lock is held for as long as the program runs, and belongs to the server, not to a database. \
`steal` takes it from its owner at once; the owner is notified. `unlock` releases a lock that the same session has requested, or stops waiting for it.

With `--detach` the program goes to the background when it has printed the first reply. `ovs-appctl`(8) then gives it further commands, `lock \
LOCK`, `steal LOCK` and `unlock LOCK`, over the same session, and ends it with `exit`, which releases its locks.";
