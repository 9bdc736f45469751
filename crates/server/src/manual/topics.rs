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
`--remote` may be given several times. A passive method listens; an active one connects, and reconnects, to a client that listens. \
`ovsdb-server/add-remote` and `ovsdb-server/remove-remote` change remotes at run time; such changes survive a restart by `--monitor`, but no \
other restart.

`db:DB,TABLE,COLUMN` takes remotes from a database and follows its changes. If COLUMN holds strings, each is a connection method. If it \
refers to rows of another table, the server uses these columns of each row, where they exist: `target`, the method, without which the row is \
ignored; `max_backoff`, the maximum interval between connection attempts, ms; `inactivity_probe`, the idle time after which the peer is \
probed, ms, 0 for never; `read_only`; `role`, which restricts the changes of its clients; and `other_config:dscp`. The server writes `is_connected` and `status` \
of the row. A column of another type is an error.

`ovsdb-server/list-remotes` and `ovsdb-server/remove-remote` know the remotes given by option or command, including `db:`, but not the \
individual remotes that a database names. When the database of a `db:` remote is removed, its remotes are closed until a database of that name is added again.

Clients of a read-only remote can only read and monitor. Control commands are not restricted by roles: every program that can open the control socket has all permissions.";

const DAEMON: &str = "\
With `--detach`, the command returns when the server listens on all remotes and serves its standalone databases; an earlier error is \
printed, and the exit status is 1. A cluster member may not have joined or found a leader yet: `ovsdb-client wait` waits for that. The daemon \
has no terminal, its working directory is `/` unless `--no-chdir` is given, and it does not log to the console. Use `--no-chdir` to find core \
dumps in the present directory; the daemon then prevents unmounting its file system.

`--pidfile` creates and locks a file with the process id, in {rundir} unless its name begins with `/`. A file that a running process has \
locked is replaced only with `--overwrite-pidfile`.

`--monitor` starts a supervisor, which restarts the server after a signal that indicates a programming error. It also works without \
`--detach`. `--user` changes the user and drops all capabilities except those to bind low ports and to lock memory; it requires root.

`--run` serves while one command runs, as in `ovsdb-server --remote=punix:s.sock --run='ovsdb-client dump unix:s.sock' my.db`.";

const COMPACTION: &str = "\
Every transaction is appended to the file of its database. Compaction writes the present rows to a new file, which replaces the old one. The \
server compacts a file automatically when it exceeds 10 MB, has doubled since the last compaction, has 100 new transactions and at least ten \
minutes have passed; also after a day if it has 100 new transactions. `ovsdb-server/compact` compacts at once. The database is served \
throughout. Compaction discards the history of changes that `ovsdb-tool show-log` prints.

Clients that reconnect get the changes that they have missed from a transaction history in memory, which compaction does not affect.

`ovsdb-server/memory-trim-on-compaction on` also returns unused memory to the system after each compaction.";

const ACTIVE_BACKUP: &str = "\
With `--sync-from=SERVER` the server is a backup: it copies the databases of SERVER, an active connection method, that have the same names and \
schemas, and applies each transaction. A backup refuses changes and locks. With `--active` it starts as an active server with a configured \
source. `--sync-exclude-tables` names tables that are not copied. All of this applies to standalone databases only.

`ovsdb-server/connect-active-ovsdb-server` turns a running server into a backup, `ovsdb-server/disconnect-active-ovsdb-server` makes it active. Both \
close all client connections; clients reconnect and find the new role. First set the source with `ovsdb-server/set-active-ovsdb-server`. Contents that only the backup has are lost when it starts to copy.

The servers do not decide which one is active. If clients write to two active servers, one of the two histories will be lost: use a resource \
manager that stops or isolates the old server first, or use a cluster.

`ovsdb-server/sync-status` prints the role and, for a backup, whether it is connecting, replicating or has failed, and why.";

const CLUSTERS: &str = "\
A file created by `ovsdb-tool create-cluster` or `join-cluster` is served as a member of a cluster. Writes need a majority of the members to \
be running and connected. The `cluster/...` commands apply to such databases.

`cluster/status` shows the role of this member, its term, its log and its connections. `cluster/leave` removes this server from its cluster, \
`cluster/kick` another one, named by its server id or its address. Both need a working majority, and both change its size: of three members, \
two can leave one after the other, and the last is a cluster of one, which tolerates no failure. Before you stop the process, wait with \
`ovsdb-client wait DB removed`. A server that has left never comes back with the same file: make a new one with `ovsdb-tool join-cluster`.

`cluster/change-election-timer` sets the time of silence from the leader after which followers start an election, in ms, to at most twice \
the present value at a time. Run it on the leader. The change is committed like a transaction and survives restarts; `cluster/status` shows \
when it is in effect. Raise the timer if disks or networks stall for longer. A dead leader is then detected later.

`cluster/set-backlog-threshold` limits the unsent messages to another member, by number and bytes. A connection whose backlog exceeds a \
limit and has more than 50 messages is closed and reopened.

`cluster/cid` prints the id of the cluster, which is unknown before a server without `--cid` has joined, and `cluster/sid` that of this server.";

const CERTIFICATES: &str = "\
SSL/TLS needs a private key, its certificate, and the certificates of the authorities that are trusted to sign peers' certificates: \
`--private-key`, `--certificate`, `--ca-cert`, each a PEM file. The authority that peers trust must have signed the certificate; it need not be that of \
`--ca-cert`. Files are read again when they change.

Each of these options may be `db:DB,TABLE,COLUMN`: the first nonempty string in that column names the file, and the server follows changes. \
If the database is removed, the option has no value until the database is back.

Warning: `--ca-cert=none` accepts any peer. Connections are encrypted, but the peer is not authenticated.

Warning: `--bootstrap-ca-cert=FILE` trusts the authority of the first peer and stores it in FILE, if FILE does not exist. A man in the \
middle of that connection is trusted from then on. It works only if the peer sends the certificate of its authority, and it excludes `--ca-cert`. The first connection \
is closed after the file has been written.

`--peer-ca-cert` names certificates to send to peers in addition to the server's own, for peers that bootstrap: the authority of the \
server's certificate, or the certificate itself if it is self-signed. A peer that already has the authority does not need it.";

const LOGGING: &str = "\
`ovs-appctl`(8) describes levels, modules and patterns of `vlog/set`, `vlog/list` and `vlog/list-pattern`.

Frequent messages are rate-limited, and the next one that is logged says how many were dropped. `vlog/disable-rate-limit MODULE...` \
logs all of them, for all modules without an argument, until `vlog/enable-rate-limit`.

`vlog/reopen` closes the log file and opens it again by name, for use after it was renamed; `vlog/close` only closes it. Neither has an \
effect without `--log-file`.

At `jsonrpc:dbg` each protocol message is logged on one line, truncated if long. Such a log contains everything that clients write, including secrets.

The server logs its memory usage soon after the start and whenever it has grown by half. `memory/show` prints the sizes of its data \
structures, `coverage/show` the rates of counted events over the last seconds, minute and hour.";
