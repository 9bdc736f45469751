"""Levels, patterns and the log file, through the control channel; rotation as logrotate does it (docs/spec/cli.md 7)."""

from differences import Known
from files import SETUP
from side import NO_TIMED_MODULES, TIMED_MODULES

ASK = "ovs-appctl -t ovsdb-server"
# Modules of the switch are in every program of the reference; these are the ones that both have.
LIST = f"{ASK} vlog/list | grep -E '^( |daemon |jsonrpc |ovsdb_server |raft |stream_ssl |transaction |vlog )' | tr -s ' '"


def set_to(*words):
    return f"{ASK} vlog/set {' '.join(words)}"


LINES = [
    SETUP,
    f"ovsdb-server good.db --no-chdir --detach --pidfile --log-file -vconsole:off -vsyslog:off {NO_TIMED_MODULES}",
    f"{ASK} vlog/list | head -2",
    f"{ASK} vlog/list | tail -n +3 | sort -c",
    LIST,
    *(set_to(f"'{spec}'") for spec in (
        "bogus", "bogus:file:dbg", "PATTERN", "PATTERN:bogus:x", "PATTERN:file", "FACILITY", "FACILITY:bogus", "file:console", "dbg:info", "raft:jsonrpc",
        "file:bogus", "any:any:any:any:x", "raft:file:dbg:info", "-vraft")),
    set_to("raft:file:dbg", "bogus"),
    LIST,
    set_to("raft:info", "jsonrpc,file,warn", "'ovsdb_server console emer'", "transaction"),
    LIST,
    set_to("RAFT:FILE:OFF", "any:syslog:info", "''"),
    LIST,
    set_to(),
    LIST,
    set_to("ANY:any:INFO"),
    LIST,
    set_to(*(f"{module}:off" for module in TIMED_MODULES)),
    f"{ASK} vlog/list-pattern",
    set_to("PATTERN:file:%p:%m", "PATTERN:syslog:"),
    f"{ASK} vlog/list-pattern",
    set_to("PATTERN:any:%p!%m", "FACILITY:local3"),
    f"{ASK} vlog/list-pattern",
    set_to("FACILITY:daemon", "'PATTERN:any:%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m'"),
    f"{ASK} vlog/disable-rate-limit bogus",
    f"{ASK} vlog/disable-rate-limit jsonrpc raft",
    LIST,
    f"{ASK} vlog/disable-rate-limit vlog bogus",
    LIST,
    f"{ASK} vlog/enable-rate-limit any",
    LIST,
    f"{ASK} vlog/disable-rate-limit",
    f"{ASK} vlog/list | grep -vc disabled",
    f"{ASK} vlog/enable-rate-limit ANY",
    f"{ASK} vlog/enable-rate-limit bogus",
    LIST,
    # As logrotate: away with the old file, then one command; and once more although nothing was moved.
    f"mv ovsdb-server.log ovsdb-server.log.1; {ASK} vlog/reopen; cat ovsdb-server.log; tail -1 ovsdb-server.log.1",
    f"{ASK} vlog/reopen; wc -l < ovsdb-server.log",
    f"gzip -f ovsdb-server.log.1; mv ovsdb-server.log ovsdb-server.log.1; {ASK} vlog/reopen; {ASK} ovsdb-server/add-db nosuch.db; cat ovsdb-server.log",
    f"rm ovsdb-server.log; {ASK} vlog/reopen; cat ovsdb-server.log; stat -c %a ovsdb-server.log",
    f"{ASK} vlog/close; {ASK} vlog/close; cat ovsdb-server.log",
    f"{ASK} ovsdb-server/compact; cat ovsdb-server.log",
    f"{ASK} vlog/reopen; cat ovsdb-server.log",
    f"chmod 0 .; mv ovsdb-server.log dir/; mkdir ovsdb-server.log; chmod 755 .; {ASK} vlog/reopen; rmdir ovsdb-server.log; {ASK} vlog/reopen; tail -2 dir/ovsdb-server.log; cat ovsdb-server.log",
    Known(f"{ASK} vlog/message 'words of a user'; tail -1 ovsdb-server.log", "not in 3.1", (
        "  TIME|N|vlog|INFO|user-message: words of a user", "= 0")),
    f"{ASK} exit",
]
