//! Full explanations of the commands of `ovsdb-tool`, for the manual page.
//!
//! There is one text per command, found by its name. A test of the program checks that every
//! command has one.

/// The paragraphs about a command, separated by empty lines; empty if the command does not exist.
pub(crate) fn of(command: &str) -> &'static str {
    match command {
        "create" => CREATE,
        "create-cluster" => CREATE_CLUSTER,
        "join-cluster" => JOIN_CLUSTER,
        "compact" => COMPACT,
        "convert" => CONVERT,
        "needs-conversion" => NEEDS_CONVERSION,
        "db-name" | "schema-name" => NAME,
        "db-version" | "schema-version" => VERSION,
        "db-cksum" | "schema-cksum" => CKSUM,
        "db-cid" => DB_CID,
        "db-sid" => DB_SID,
        "db-local-address" => DB_LOCAL_ADDRESS,
        "db-is-clustered" | "db-is-standalone" => IS,
        "query" => QUERY,
        "transact" => TRANSACT,
        "show-log" => SHOW_LOG,
        "check-cluster" => CHECK_CLUSTER,
        "compare-versions" => COMPARE_VERSIONS,
        "cluster-to-standalone" => CLUSTER_TO_STANDALONE,
        "salvage" => SALVAGE,
        "history" => HISTORY,
        "log" => LOG,
        "diff" => DIFF,
        "dump" => DUMP,
        "restore" => RESTORE,
        "help" | "list-commands" => HELP,
        _ => "",
    }
}

const HISTORY: &str = "\
A server that runs with `--keep-history` keeps each file that a compaction replaces, compressed, in the folder DB.history. The command \
prints one line for each file, oldest first, DB itself last: its number, the times of its first and last record, the number of its \
transactions, its size, and its name. Then it says which files are missing in between.

`history verify` reads everything: the checksums of the segments, the hash of each record, and whether each file continues where the one \
before it ends. It prints what is wrong. The exit status is 0 if nothing is, 2 if commits are missing, and 1 if a file is damaged.

`history remove` removes files by their numbers. DB itself has none. Later commands say that the files are missing. It may be used while \
a server keeps the history.

All commands for history work on standalone files and on those of a cluster's members, with or without a folder, also while a server writes \
to DB. If DB does not exist, they read the folder alone. `zstd -d` decompresses a segment to an ordinary database file.";

const LOG: &str = "\
Prints the commits with their changes, oldest first. A commit has its id, its time in UTC, its client if the server recorded it \
(`--record-clients` of `ovsdb-server`), and its comment. A changed row has its table, its name if it has one, and its UUID; `-` is before a \
value or element that is no longer there, `+` before a new one. With `-n` only the last commits are printed.

The options select: rows of a table, a row by its UUID or the beginning of that, rows of which one column has changed, commits whose client \
or comment contains a text, and a time. Without `--since` the listing begins with the contents that the oldest file begins with.

With `--json` each commit is one line: an object with `event` (`commit`, or `begin`, `schema` for a conversion, `gap` for commits that are \
missing), `id`, `date` (ms since the Unix epoch), `file`, `client` (`client`, the name in its certificate, `peer`, `role`, `via`), \
`comment`, and `changes`: `table`, `row`, `name` (the row's, if it has one), `op` (`insert`, `modify`, `delete`), and `columns`, which have \
`old` and `new`, or for sets and maps `removed` and `added`.

In a member's file, entries at its end may not be known to be committed. They are marked: `confirmed` is false.";

const DIFF: &str = "\
Prints the rows that differ, in the form of `log`. Changes in between that were undone are not shown. A table whose columns differ at the two moments, because the \
database was converted, is named on standard error. Rows of a table that only one of the moments has are inserted or deleted.";

const DUMP: &str = "\
Prints the tables in the form of `ovsdb-client dump`, under the schema that the database had at the moment. Without `--at` these are the \
contents of DB now.";

const RESTORE: &str = "\
Writes a standalone file with the rows as they were at the moment, under the schema of then. The rows keep their UUIDs, which \
`ovsdb-client restore` does only with `--keep-uuids`. DB and its history are only read. To go back in time, stop the server, put NEW in the place of DB, and start the \
server; for a cluster, begin a new one from NEW with `create-cluster`.";

const SALVAGE: &str = "\
Reads a damaged file of a standalone database or a cluster member, row by row, and writes everything readable to NEW, a standalone file. It \
prints one line for each row and record that is lost. FILE is not changed; stop its server first, and keep FILE until the \
result has been checked. If the record with the schema cannot be read, give the schema as SCHEMA. References to lost rows are removed where \
the schema permits it. A single flipped bit in a record of up to 32 KiB is repaired with the help of the record's hash.

The exit status is 0 if everything was read, 2 if something was lost, and 1 if nothing could be written. A cluster loses nothing while a \
majority of its members is intact: remove the damaged member and add a new one instead.";

const CREATE: &str = "\
Creates a standalone file. A server can also serve it as an active backup. SCHEMA is a file with a schema in JSON, as RFC 7047 3.2 \
describes it. The database has no rows. An existing file is never overwritten: remove or rename it first. To duplicate a database with its \
rows, copy its file with `cp`.";

const CREATE_CLUSTER: &str = "\
Creates a cluster whose only member is this file. Three members tolerate the loss of one, five the loss of two. Create every further member \
with `join-cluster`; run `create-cluster` once per cluster, never on a second machine.

CONTENTS is either a schema file, for an empty database, or a standalone database, whose schema and rows the cluster gets. Ephemeral columns \
become persistent, with a warning, because every member must have every value.

LOCAL is the address at which this member listens for the other members: `tcp:IP:PORT`, `ssl:IP:PORT`, with an IPv6 address in square \
brackets, or `unix:FILE` for members on one machine. Other members connect to exactly this address, so it must be reachable from them: not \
0.0.0.0 and not 127.0.0.1. Clients do not use it. The port must differ from the ports of clients, given to the server with `--remote`.

A follower that hears nothing from its leader for the time of `--election-timer` (default: 1000 ms) starts an election. A longer timer \
tolerates longer stalls of disks and networks, and takes longer to replace a dead leader. The timer of a \
running cluster is changed with `ovs-appctl cluster/change-election-timer`.";

const JOIN_CLUSTER: &str = "\
Prepares the file of a new member. Nothing is sent now: the server joins when `ovsdb-server` serves the file for the first time. It asks the \
REMOTEs for admission and receives the schema, the rows and the list of members; only then does it vote and serve clients. \
`ovsdb-client wait unix:{rundir}/db.sock NAME connected` waits for that.

NAME is the name of the database, which is that of its schema: `OVN_Southbound`, not the name of a file. `db-name` and `schema-name` print it. \
LOCAL is the address of this member, as for `create-cluster`. REMOTE is the address of a member, in the same form: the address that the \
member uses inside the cluster, not the one that clients use. One reachable REMOTE is enough; with more of them the server can also join \
while some members are down.

A server joins any cluster that answers at REMOTE and serves a database of that name. If addresses may be reused by another cluster, give \
the cluster id with `--cid`: the server then joins only that cluster. `db-cid` on the file of a member prints it.

A member that is permanently lost still counts for the majority until `ovs-appctl cluster/kick` removes it. A new file is always a \
new member, with another server id, even at the same address: do not use a copy of another member's file, and do not restore an old copy of \
this member's own file, which lacks votes and commits that the member has acknowledged.";

const COMPACT: &str = "\
Writes a file with the present rows and without the history of changes. With DST the result is a new file, and DB is unchanged; otherwise \
the result replaces DB atomically by a rename.

A server compacts its files automatically when they have grown to a multiple of their contents, so this is rarely needed. The command \
refuses a file that a server has open or another program has locked, and files of cluster members: in these cases use `ovs-appctl \
ovsdb-server/compact`.

The history cannot be restored afterwards. Keep a copy of the file if you may still need `show-log`.";

const CONVERT: &str = "\
Converts the database to the schema in the file SCHEMA. With DST the result is a new file, which must not exist; otherwise it replaces DB at once.

The rows must be valid under the new schema: types, ranges, enumerations, indexes, references and numbers of rows are all checked, and if \
anything does not fit, the command fails and DB is unchanged. Columns and tables that the new schema lacks are dropped. Columns that only the \
new schema has get their defaults.

Warning: dropping a column or a table deletes its contents, and no later conversion brings them back. Copy an important database before you \
convert it. A downgrade to an older schema loses everything that only the newer one can hold.

The command refuses a file that a server has open: stop the server first, or convert the served database with `ovsdb-client convert`. It is for \
standalone files only; a cluster is converted while it runs, by the same command of `ovsdb-client`.";

const NEEDS_CONVERSION: &str = "\
Compares the schema in DB with SCHEMA, versions and checksums included. The answer is on standard output; the exit status is 0 for both. For \
standalone files only; ask a cluster with `ovsdb-client needs-conversion`.";

const NAME: &str = "\
This is the name that clients use for the database. `db-name` also reads the file of a cluster's member.";

const VERSION: &str = "\
The line is empty if the schema has no version, as in very old schemas. For the database of a cluster, use `ovsdb-client \
get-schema-version`; `db-version` reads standalone files.

A version is three numbers, X.Y.Z, whose meaning is a convention. The schemas of Open vSwitch and OVN increase X for a change that breaks \
older clients, such as a removed column, Y for an addition, and Z for a cosmetic change. Schema versions are unrelated to the versions of the \
programs.";

const CKSUM: &str = "\
The line is empty if the schema has no checksum. The checksum is text from the author of the schema, so that scripts detect a changed schema \
with an unchanged version; it is not verified. For the database of a cluster, use `ovsdb-client get-schema-cksum`; `db-cksum` \
reads standalone files.";

const DB_CID: &str = "\
The id is a UUID that all members share and that never changes. A file that `join-cluster` has made without `--cid` does not know it until the \
server has joined: the command then says so and exits with status 2. The UUID of zeros is not an id. For the files of members only.";

const DB_SID: &str = "\
The id is a UUID that `create-cluster` or `join-cluster` has chosen for this member; it is known before the server has joined. `ovs-appctl \
cluster/status` and `cluster/kick` name members by its first digits. For the files of members only.";

const DB_LOCAL_ADDRESS: &str = "\
This is the LOCAL of `create-cluster` or `join-cluster`: where other members reach this one, not where clients do. For the files of members only.";

const IS: &str = "\
The answer is the exit status: 0 for yes, 2 for no. Status 1 means that there is no answer: the file does not exist, cannot be read, or is not \
a database.";

const QUERY: &str = "\
Loads the database, executes the transaction in memory and prints the results. TRNS is a JSON array, the params of the method `transact` of \
RFC 7047 4.1.3: the name of the database, then operations. The transaction may contain changes, whose results are printed; DB itself is only \
read, so the command can run at any time, also while a server has the file open.

The transaction has all permissions unless `--rbac-role` names a role. A `wait` whose condition is not met fails, because nothing else can \
change the database. For standalone files only; `ovsdb-client query` asks the server of a cluster.";

const TRANSACT: &str = "\
Like `query`, but writes the changes to DB, and syncs them if the transaction contains `commit` with `durable`. Results are printed for \
every operation. An operation that fails prints its error, nothing is changed, and the exit status is still 0, unless `--fail` is given.

The command refuses a file that a server has open or another program has locked: send the transaction to the server with `ovsdb-client \
transact` then, as for the database of a cluster.";

const SHOW_LOG: &str = "\
Prints each record of the file: when it was written, by which client, and with which comment, if there is one. With `-m` it also \
prints which rows each transaction has inserted, changed and deleted, and with `-mm` the values of the changed columns. A row is named by \
the value of its column `name`, or by the first digits of its UUID.

The command reads standalone files and files of cluster members. In a member's file, records are entries, votes, terms, snapshots and commit \
indexes. The listing ends at the first damaged record, with a message. The command only reads, and can run \
while a server has the file open.";

const CHECK_CLUSTER: &str = "\
Reads the files of a cluster's members and checks that each of them, and all of them together, are in a state that the consensus algorithm can \
reach: one leader for a term, equal entries at equal index and term, committed entries in the log of every later leader, votes that agree. \
Give the files of all members if you can, because comparing logs reveals faults. Files that have not joined are skipped with a line on \
standard output.

Events that are unusual but allowed are printed on standard output, with status 0. The first fault is an error with status 1. It means that \
a server has a bug, that a disk has lost writes that it had confirmed, or that a file was copied or restored from an older copy; keep the \
files, and report it.

Copy the files while their servers are stopped, or check them where they are: a file that is being written may end in the middle of a record.";

const COMPARE_VERSIONS: &str = "\
OP is one of `<`, `<=`, `==`, `>=`, `>` and `!=`; quote it, because `<` and `>` are shell operators. The answer is the exit \
status: 0 if the comparison holds, 2 if it does not. Status 1 means that a version is not three numbers X.Y.Z, or that OP is unknown.";

const CLUSTER_TO_STANDALONE: &str = "\
For a cluster that has permanently lost most of its members, so that the others cannot elect a leader. Writes the database of one surviving \
member to the new standalone file DB, from which `create-cluster` can begin a new cluster. The cluster's file is only read.

Stop the server of that member first. Of several survivors, take the one whose log is longest: the last transactions may not have reached \
the others. Transactions at the end of the log that are not known to be committed are included, and a message says how many; a torn record at \
the end, which a crash leaves, is left out. Damage anywhere else is an error, which says how to extract the records before it.

Never run the old members again after a new cluster has begun: clients that reach them see the old contents.";

const HELP: &str = "The text goes to standard output, and the exit status is 0.";
