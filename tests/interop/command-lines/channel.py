"""Every control command of ovsdb-server: what it answers, and every wrong number of arguments (docs/spec/cli.md 2.1, 2.4)."""

from differences import Known, Later
from files import SETUP

ASK = "ovs-appctl -t ovsdb-server"

# Usage as `list-commands` shows it, and how many arguments are too few (or none) and too many.
ARITIES = (
    ("exit", None, 1),
    ("version", None, 1),
    ("list-commands", None, 1),
    ("memory/show", None, 1),
    ("coverage/show", None, 1),
    ("coverage/read-counter", 0, 2),
    ("vlog/list", None, 1),
    ("vlog/list-pattern", None, 1),
    ("vlog/reopen", None, 1),
    ("vlog/close", None, 1),
    ("ovsdb-server/add-remote", 0, 2),
    ("ovsdb-server/remove-remote", 0, 2),
    ("ovsdb-server/list-remotes", None, 1),
    ("ovsdb-server/add-db", 0, 2),
    ("ovsdb-server/remove-db", 0, 2),
    ("ovsdb-server/list-dbs", None, 1),
    ("ovsdb-server/reconnect", None, 1),
    ("ovsdb-server/compact", None, 2),
    ("ovsdb-server/memory-trim-on-compaction", 0, 2),
    ("ovsdb-server/tlog-set", 1, 3),
    ("ovsdb-server/tlog-list", None, 1),
    ("ovsdb-server/perf-counters-show", None, 1),
    ("ovsdb-server/perf-counters-clear", None, 1),
    ("ovsdb-server/get-db-storage-status", 0, 2),
    ("ovsdb-server/disable-monitor-cond", None, 1),
    ("ovsdb-server/sync-status", None, 1),
)


def arguments(count):
    return "".join(f" {letter}" for letter in "abcdef"[:count])


def wrong_arities():
    for name, few, many in ARITIES:
        if few is not None:
            yield f"{ASK} {name}{arguments(few)}"
        yield f"{ASK} {name}{arguments(many)}"


GENERAL = [
    # Not in 3.1, ours alone, or not built yet; which are there is looked at by the lines below and by the documents' tests.
    f"{ASK} list-commands | grep -vE ' (set-options|ovsdb-server/(reload|backup|history|list-sessions|status|close-session|list-settings|set-setting|set-relay-source-probe-interval|[a-z-]*(active|sync-exclude)[a-z-]*)) '",
    f"{ASK} version",
    f"{ASK} help",
    f"{ASK} nosuch",
    f"{ASK} ''",
    f"{ASK} cluster/status mydb",
    f"{ASK} exit --cleanup",
    f"{ASK} memory/show",
    f"{ASK} coverage/show | sed -n '1s/hash=.*/hash/p;$s/[0-9]*/N/p'",
    f"{ASK} coverage/read-counter nosuch",
    *wrong_arities(),
    f"{ASK} ovsdb/file/column-diff-enable",
]

REMOTES = [
    *(f"{ASK} ovsdb-server/add-remote {remote}" for remote in (
        "db:x", "db:x,y,z", "db:mydb,y,z", "db:mydb,T,z", "db:mydb,T,n", "db:mydb,T,name", "db:mydb,T,name", "db:mydb,G,rows", "punix:b.sock", "bogus", "''")),
    f"{ASK} ovsdb-server/list-remotes",
    *(f"{ASK} ovsdb-server/remove-remote {remote}" for remote in ("bogu", "bogus", "bogus", "''", "db:mydb,T,n", "db:mydb,T,name", "db:mydb,G,rows")),
    "ovsdb-client list-dbs unix:b.sock",
    f"{ASK} ovsdb-server/remove-remote punix:b.sock; while [ -e b.sock ]; do sleep .02; done; ls *.sock; {ASK} ovsdb-server/list-remotes",
]

# Nothing here may fail with a duplicate name: 3.1 is not itself any more after that.
DATABASES = [
    *(f"{ASK} ovsdb-server/add-db {name}" for name in (
        "nosuch.db", "nosuch/x.db", "text.db", "empty.db", "dir", "good.db", "$PWD/good.db", "link.db", "''", "under.db", "other.db", "other.db")),
    f"{ASK} ovsdb-server/list-dbs",
    *(f"{ASK} ovsdb-server/remove-db {name}" for name in ("nosuch", "_Server", "other", "other", "''", "other.db")),
    *(f"{ASK} ovsdb-server/compact {name}" for name in ("nosuch", "_Server", "mydb", "", "''")),
    *(f"{ASK} ovsdb-server/get-db-storage-status {name}" for name in ("nosuch", "_Server", "mydb", "''")),
    *(f"{ASK} ovsdb-server/tlog-set {words}" for words in (
        "a b", "a on", "a:b on", "mydb:b on", "mydb:b maybe", "mydb:T on", "mydb:T ON", "mydb:T off", "mydb: on", ":T on", "mydb:T:x on", "_Server:Database on")),
    f"{ASK} ovsdb-server/tlog-list",
    *(f"{ASK} ovsdb-server/memory-trim-on-compaction {word}" for word in ("x", "off", "on", "ON", "''")),
    f"{ASK} ovsdb-server/perf-counters-show",
    f"{ASK} ovsdb-server/perf-counters-clear",
    f"{ASK} ovsdb-server/reconnect",
]

NEWER = [
    Known(f"{ASK} ovsdb-server/reload", "not in 3.1", (
        "! Configuration file was not specified on command line", "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} ovsdb-server/reload x", "not in 3.1", (
        '! "ovsdb-server/reload" command takes at most 0 arguments', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} set-options --format json", "not in 3.1", ("! ovs-appctl: Unexpected reply type in JSON rpc reply: object", "= 2")),
    Known(f"{ASK} set-options --format=text", "not in 3.1", ("= 0",)),
    Known(f"{ASK} set-options --format yaml", "not in 3.1", (
        "! option format has invalid value yaml", "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} set-options --format", "not in 3.1", (
        "! option '--format' requires an argument", "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} set-options --colour red", "not in 3.1", (
        "! unrecognized option '--colour'", "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} set-options", "not in 3.1", (
        '! "set-options" command requires at least 1 arguments', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} set-options a b c", "not in 3.1", (
        '! "set-options" command takes at most 2 arguments', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} ovsdb-server/backup mydb", "ours alone", (
        '! "ovsdb-server/backup" command requires at least 2 arguments', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} ovsdb-server/backup mydb a b", "ours alone", (
        '! "ovsdb-server/backup" command takes at most 2 arguments', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
    Known(f"{ASK} vlog/message", "not in 3.1", (
        '! "vlog/message" command requires at least 1 arguments', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
]

ACTIVE_BACKUP = [
    f"{ASK} ovsdb-server/sync-status",
    *(Later(f"{ASK} ovsdb-server/{words}") for words in (
        "set-active-ovsdb-server", "set-active-ovsdb-server a b", "get-active-ovsdb-server", "get-active-ovsdb-server x",
        "connect-active-ovsdb-server x", "connect-active-ovsdb-server", "disconnect-active-ovsdb-server x", "disconnect-active-ovsdb-server",
        "set-active-ovsdb-server-probe-interval", "set-active-ovsdb-server-probe-interval 1 2", "set-active-ovsdb-server-probe-interval 5000",
        "set-sync-exclude-tables a b", "set-sync-exclude-tables mydb:T", "get-sync-exclude-tables", "get-sync-exclude-tables x")),
]

LINES = [
    SETUP,
    "ovsdb-server good.db --no-chdir --detach --pidfile --remote=punix:db.sock --log-file -vconsole:off -vsyslog:off",
    *GENERAL,
    *REMOTES,
    *DATABASES,
    *NEWER,
    *ACTIVE_BACKUP,
    f"{ASK} ovsdb-server/disable-monitor-cond",
    f"p=$(cat ovsdb-server.pid); {ASK} exit; gone $p; ls *.pid *.sock *.ctl",
    f"{ASK} version",
    "ovsdb-server --detach --pidfile --no-dbs --disable-file-column-diff -vconsole:off",
    f"{ASK} list-commands | grep ovsdb/",
    f"{ASK} ovsdb/file/column-diff-enable x",
    f"{ASK} ovsdb/file/column-diff-enable",
    f"{ASK} ovsdb/file/no-data-conversion-enable",
    f"{ASK} ovsdb-server/compact",
    f"{ASK} vlog/reopen",
    f"{ASK} vlog/close",
    f"{ASK} exit",
    Known("ovsdb-server --no-dbs -vconsole:off --unixctl=n.ctl --disable-file-no-data-conversion --run 'for words in enable \"enable x\"; do"
          " ovs-appctl -t $PWD/n.ctl ovsdb/file/no-data-conversion-$words 2>&1; done; ovs-appctl -t $PWD/n.ctl list-commands | grep ovsdb/; true'", "not in 3.1", (
              '  "ovsdb/file/no-data-conversion-enable" command takes at most 0 arguments', "  ovs-appctl: $DIR/n.ctl: server returned an error",
              "    ovsdb/file/no-data-conversion-enable ", "= 0")),
]
