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
        "help" | "list-commands" => HELP,
        _ => "",
    }
}

const SALVAGE: &str = "\
Reads a damaged file of a standalone database or of a member of a cluster, row by row, and writes what it can read to NEW, a standalone \
file. Its output has a line for each row and record that is lost. FILE is not changed; stop its server first, and keep FILE until the \
result has been checked. If the record with the schema cannot be read, give the schema as SCHEMA. References to lost rows are removed \
where the schema permits it. A single bit that has changed in a record of up to 32 KiB is found with the help of the record's hash and \
mended.

The exit status is 0 if everything was read, 2 if something was lost, and 1 if nothing could be written. A cluster loses nothing while a \
majority of its members is sound: remove the damaged member and let a new one join instead.";

const CREATE: &str = "\
Makes a standalone file, which a server can also serve as an active backup. SCHEMA is a file with a schema in JSON, as RFC 7047 3.2 \
describes it. The database has no rows. An existing file is never overwritten: remove or rename it first. To make a database that has the \
schema and the rows of another one, copy the file of that one with `cp`.";

const CREATE_CLUSTER: &str = "\
Begins a cluster, of which this file is the only member. Three members keep serving after the loss of one, five after the loss of two. Every \
further member is made by `join-cluster`; run `create-cluster` once for a cluster, never on a second machine.

CONTENTS is either a schema file, and then the database is empty, or a standalone database, whose schema and rows the cluster gets. \
Ephemeral columns of the schema become persistent ones, with a warning, because every member must have every value.

LOCAL is the address at which this member listens for the other members: `tcp:IP:PORT`, `ssl:IP:PORT`, with an IPv6 address in square \
brackets, or `unix:FILE` for members on one machine. Other members connect to exactly this address, so it must be reachable from them: not \
0.0.0.0 and not 127.0.0.1. Clients do not use it. The port must differ from the ports of clients, given to the server with `--remote`.

A follower that hears nothing from its leader for the time of `--election-timer` begins an election: 1000 ms unless the option says \
otherwise. A longer timer stands longer stalls of disks and networks and takes longer to replace a leader that has died. The timer of a \
running cluster is changed with `ovs-appctl cluster/change-election-timer`.";

const JOIN_CLUSTER: &str = "\
Prepares the file of a new member. Nothing is sent now: the server joins when `ovsdb-server` serves the file for the first time. It asks the \
REMOTEs for admission, receives the schema, the rows and the list of members, and only then is a member that votes and serves clients. \
`ovsdb-client wait unix:{rundir}/db.sock NAME connected` waits for that.

NAME is the name of the database, which is that of its schema: `OVN_Southbound`, not the name of a file. `db-name` and `schema-name` print it. \
LOCAL is the address of this member, as for `create-cluster`. REMOTE is the address of a member, in the same form: the address that the \
member uses inside the cluster, not the one that clients use. One REMOTE that is reachable is enough; with more of them the server can also \
join while some members are down.

A server joins whichever cluster answers at REMOTE and serves a database of that name. Where addresses can come to belong to another cluster, \
give the id of the cluster with `--cid`: the server then joins no other one. `db-cid` on the file of a member prints it.

A member that is gone for good keeps its place in the count of the majority until `ovs-appctl cluster/kick` removes it. A new file is always a \
new member, with another server id, even at the same address: do not use a copy of another member's file, and do not bring back an old copy \
of this member's own file, which has forgotten votes that it gave and commits that it acknowledged.";

const COMPACT: &str = "\
Writes a file with the rows as they are now, without the history of changes. With DST the result is a new file, and DB stays as it is; \
otherwise the result replaces DB at once, by a rename, so at any time there is either the old or the complete new file.

A server compacts its files by itself when they have grown to a multiple of their contents, so this is rarely needed. The command refuses a \
file that a server has open, or that another program has locked, and a member of a cluster: ask the server with `ovs-appctl \
ovsdb-server/compact` then.

The history cannot be restored afterwards. Keep a copy of the file if `show-log` may still have something to tell.";

const CONVERT: &str = "\
Gives the database the schema of the file SCHEMA. With DST the result is a new file, which must not exist; otherwise it replaces DB at once.

The rows must be valid under the new schema: types, ranges, enumerations, indexes, references and numbers of rows are all checked, and if \
anything does not fit, the command fails and DB is unchanged. Columns and tables that the new schema lacks are dropped. Columns that only the \
new schema has get their defaults.

Warning: dropping a column or a table deletes its contents, and no later conversion brings them back. Keep a copy of a database that \
matters before you convert it. A downgrade to an older schema loses what only the newer one can hold.

The command refuses a file that a server has open: stop the server first, or convert the served database with `ovsdb-client convert`. It is for \
standalone files only; a cluster is converted while it runs, by the same command of `ovsdb-client`.";

const NEEDS_CONVERSION: &str = "\
Compares the schema in DB with SCHEMA, versions and checksums included. The answer is on standard output; the exit status is 0 for both. For \
standalone files only; ask a cluster with `ovsdb-client needs-conversion`.";

const NAME: &str = "\
This is the name that clients use for the database. `db-name` also reads the file of a cluster's member.";

const VERSION: &str = "\
The line is empty if the schema has no version, as very old ones do not. For the database of a cluster, use `ovsdb-client \
get-schema-version`; `db-version` reads standalone files.

A version is three numbers, X.Y.Z. Nothing enforces their meaning. The schemas of Open vSwitch and OVN raise X for a change that older clients \
do not survive, such as a removed column, Y for an addition, and Z for a change of form. They have nothing to do with the versions of the \
programs.";

const CKSUM: &str = "\
The line is empty if the schema has no checksum. The checksum is text that the author of the schema has put there, so that scripts notice a \
changed schema whose version was forgotten; it is not checked. For the database of a cluster, use `ovsdb-client get-schema-cksum`; `db-cksum` \
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

The transaction has all rights, unless `--rbac-role` names a role. A `wait` that does not hold fails, because nothing else can change the \
database. For standalone files only; `ovsdb-client query` asks the server of a cluster.";

const TRANSACT: &str = "\
As `query`, and the changes are written to DB, and brought to disk if the transaction contains `commit` with `durable`. Results are printed for \
every operation. An operation that fails prints its error, nothing is changed, and the exit status is still 0, unless `--fail` is given.

The command refuses a file that a server has open or another program has locked: send the transaction to the server with `ovsdb-client \
transact` then, as for the database of a cluster.";

const SHOW_LOG: &str = "\
Prints each record of the file: when it was written, by which client and with which comment, as far as clients add one. With `-m` it also \
prints which rows each transaction has inserted, changed and deleted, and with `-mm` the values of the changed columns. A row is named by \
the value of its column `name`, or by the first digits of its UUID.

Standalone files and the files of a cluster's members are both read, and look different: in the second case, records are entries, votes, terms, \
snapshots and commit indexes. The listing ends at the first damaged record, with a message. The command only reads, and can run \
while a server has the file open.";

const CHECK_CLUSTER: &str = "\
Reads the files of a cluster's members and checks that each of them, and all of them together, are in a state that the consensus algorithm can \
reach: one leader for a term, equal entries at equal index and term, committed entries in the log of every later leader, votes that agree. \
Give the files of all members, if you can: faults show where logs are compared. Files that have not joined are left out with a line on \
standard output.

Events that are unusual but allowed are printed on standard output, with status 0. The first fault is an error with status 1. It means that \
a server has a bug, that a disk has lost writes that it had confirmed, or that a file was copied or restored from an older copy; keep the \
files, and report it.

Copy the files while their servers are stopped, or check them where they are: a file that is being written may end in the middle of a record.";

const COMPARE_VERSIONS: &str = "\
OP is one of `<`, `<=`, `==`, `>=`, `>` and `!=`; quote it, since the shell gives `<` and `>` a meaning of their own. The answer is the exit \
status: 0 if the comparison holds, 2 if it does not. Status 1 means that a version is not three numbers X.Y.Z, or that OP is unknown.";

const CLUSTER_TO_STANDALONE: &str = "\
For a cluster that is lost: most of its members are gone for good, so the others cannot elect a leader. Writes the database of one surviving \
member to the new standalone file DB, from which `create-cluster` can begin a new cluster. The cluster's file is only read.

Stop the server of that member first. Of several survivors, take the one whose log is longest: the last transactions may not have reached \
the others. Transactions at the end of the log that are not known to be committed are included, and a message says how many; a torn record at \
the end, which a crash leaves, is left out. Damage anywhere else is an error, which says how to get at what precedes it.

Never run the old members again after a new cluster has begun: clients that reach them see the old contents.";

const HELP: &str = "The text goes to standard output, and the exit status is 0.";
