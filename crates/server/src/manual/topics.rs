//! Chapters of the manual page about topics that several options and commands share: remotes in a
//! database, daemons, compaction, backups, clusters, certificates, rate limits. Text only;
//! `docs/operate` has more.

use corvid_shell::manual::Chapter;

/// The chapters, in order.
pub(super) fn chapters() -> Vec<Chapter> {
    vec![
        Chapter::prose("REMOTES", REMOTES),
        Chapter::prose("RUNNING AS A DAEMON", DAEMON),
        Chapter::prose("COMPACTION", COMPACTION),
        Chapter::prose("ACTIVE BACKUP", ACTIVE_BACKUP),
        Chapter::prose("CLUSTERS", CLUSTERS),
        Chapter::prose("CERTIFICATES", CERTIFICATES),
        Chapter::prose("LOGGING", LOGGING),
    ]
}

const REMOTES: &str = "\
`--remote` may be given several times. A passive method listens, an active one connects to a client that listens, again and again. \
`ovsdb-server/add-remote` and `ovsdb-server/remove-remote` do the same at run time; a restart under `--monitor` keeps such changes, another restart \
does not.

`db:DB,TABLE,COLUMN` takes remotes from a database, and follows every change of it. If COLUMN holds strings, each is a connection method. If it \
refers to rows of another table, these columns of such a row count, as far as they are there: `target`, the method, without which the row is \
ignored; `max_backoff`, the longest pause between attempts to connect, ms; `inactivity_probe`, the silence after which the peer is probed, ms, 0 \
for never; `read_only`; `role`, which limits what its clients may change; and `other_config:dscp`. The server writes `is_connected` and `status` \
of the row. A column of another type is an error.

`ovsdb-server/list-remotes` and `ovsdb-server/remove-remote` know what was given by option or command, `db:` included, and not the single remotes that \
a database names. When the database of a `db:` remote is removed, its remotes are closed until a database of that name is added again.

A client whose remote is read-only can read and monitor. Control commands are not for clients: every program that can open the control socket can do everything.";

const DAEMON: &str = "\
`--detach` returns when the server listens on all remotes and its standalone databases can be used; an error before that is printed, and the exit \
status is 1. A member of a cluster may still have to join or to find a leader: `ovsdb-client wait` waits for that. The process has no terminal, its \
directory is `/` unless `--no-chdir` is given, and nothing is logged to the console. A core dump is written to its directory by default, so \
`--no-chdir` may be wanted for one; on the other hand, a daemon in a directory keeps its file system from being unmounted.

`--pidfile` creates a file with the process id, in {rundir} unless its name begins with `/`, and locks it. A file that a living process has locked is \
not replaced, unless `--overwrite-pidfile` is given.

`--monitor` starts a supervisor, which starts the server again when it has died of a signal that means a programming error. It works without \
`--detach` too. `--user` changes the user and drops all rights but those to bind low ports and to lock memory; only root can use it.

`--run` serves for the time of one command, as in `ovsdb-server --remote=punix:s.sock --run='ovsdb-client dump unix:s.sock' my.db`.";

const COMPACTION: &str = "\
Every transaction is appended to the file of its database. Compaction writes the rows as they are now to a new file, which takes the place of the \
old one. The server does it by itself when a file is over 10 MB and has grown to twice the size that it had after the last compaction, and 100 \
transactions have been added and at least ten minutes have passed; and after a day if 100 transactions have been added. `ovsdb-server/compact` does it at once. \
The database is served all the while. The history of changes, which `ovsdb-tool show-log` prints, is lost by it.

Clients that were away can be told what they have missed from a transaction history in memory, which compaction does not shorten.

`ovsdb-server/memory-trim-on-compaction on` also returns unused memory to the system after each compaction.";

const ACTIVE_BACKUP: &str = "\
With `--sync-from=SERVER` the server is a backup: it copies the databases of SERVER, an active connection method, that have the same names and \
schemas, and applies each transaction. A backup refuses changes and locks. With `--active` as well it starts as an active server that knows where \
to copy from. `--sync-exclude-tables` names tables that keep contents of their own. All of this is for standalone databases only.

`ovsdb-server/connect-active-ovsdb-server` makes a backup of a running server, `ovsdb-server/disconnect-active-ovsdb-server` makes it active. Both \
close the connections of all clients, which then connect again and find the other role. `ovsdb-server/set-active-ovsdb-server` names the source \
first. What only the backup has is lost when it begins to copy.

Nothing here decides which server is to be active. Two active servers whose clients write to both have two histories, and one of them will be lost: \
use a resource manager that stops or isolates the old one first, or a cluster.

`ovsdb-server/sync-status` tells the role and, of a backup, whether it is connecting, replicating or has failed, and why.";

const CLUSTERS: &str = "\
A file made by `ovsdb-tool create-cluster` or `join-cluster` is served as a member of a cluster. Over half of the members must run and reach one \
another for anything to be written. The commands `cluster/...` are for such databases.

`cluster/status` shows the role of this member, its term, its log and its connections. `cluster/leave` removes this server from its cluster, \
`cluster/kick` another one, named by its server id or its address. Both need a working majority, and both change what a majority is: of three members, \
two can leave one after the other, and the last is a cluster of one, which works alone and survives nothing. Wait with `ovsdb-client wait DB \
removed` before the process is stopped. A server that has left never comes back with the same file: make a new one with `ovsdb-tool join-cluster`.

`cluster/change-election-timer` sets the time without a word from the leader after which an election begins, in ms, to at most twice the present \
value at a time. It is a change of the cluster, given to the leader, committed like a transaction, and kept over restarts; `cluster/status` shows \
when it holds. Raise it where disks or networks stall for longer. A dead leader is then noticed later.

`cluster/set-backlog-threshold` bounds what waits to be sent to another member, in messages and in bytes. A connection whose backlog exceeds it, \
and has more than 50 messages, is closed and made again.

`cluster/cid` prints the id of the cluster, which is unknown before a server without `--cid` has joined, and `cluster/sid` that of this server.";

const CERTIFICATES: &str = "\
SSL/TLS needs a private key, a certificate for it and the certificates of the authorities whose signatures on peers' certificates are trusted: \
`--private-key`, `--certificate`, `--ca-cert`, each a PEM file. The authority that peers trust must have signed the certificate; it need not be that of \
`--ca-cert`. Files are read again when they change.

Each of these options may be `db:DB,TABLE,COLUMN`: the first string in that column that is not empty names the file, and every change is followed. If the \
database is removed, the option has no value until it is back.

Warning: `--ca-cert=none` accepts any peer. Connections are encrypted, but nothing shows who is at the other end.

Warning: `--bootstrap-ca-cert=FILE` takes the authority of the first peer for granted and stores it in FILE, if FILE does not exist. Someone in between \
at that moment is trusted from then on. It works only if the peer sends the certificate of its authority, and it excludes `--ca-cert`. The first connection \
is closed after the file has been written.

`--peer-ca-cert` names certificates that are sent to peers with one's own, for peers that bootstrap: the authority of one's own certificate, or the \
certificate itself if it is self-signed. A peer that has its authority already does not need it.";

const LOGGING: &str = "\
`ovs-appctl`(8) describes levels, modules and patterns of `vlog/set`, `vlog/list` and `vlog/list-pattern`.

Messages that could come very often are logged up to a rate, and the next one that is logged says how many were not. `vlog/disable-rate-limit MODULE...` \
logs all of them, for all modules without an argument, until `vlog/enable-rate-limit`.

`vlog/reopen` closes the log file and opens it again by its name, after it has been renamed; `vlog/close` only closes it. Neither does anything without \
`--log-file`.

At `jsonrpc:dbg` each message of the protocol is a line, long ones cut. Such a log holds what clients write, secrets included.

The server logs how much memory it takes soon after the start and whenever that grows by half. `memory/show` prints the sizes of what it holds, \
`coverage/show` how often counted events have happened, over the last seconds, minute and hour.";
