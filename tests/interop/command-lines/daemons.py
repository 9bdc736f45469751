"""Processes: detaching, supervision, pidfiles, signals (docs/spec/cli.md 1.2, 1.9, 1.11)."""

from files import SETUP

START = "ovsdb-server good.db -vsyslog:off -vconsole:off --pidfile --unixctl=x.ctl --remote=punix:db.sock"
LEFT = "ls -d *.pid *.ctl *.sock 2>/dev/null"


def ended_by(name):
    """A server in the foreground that is told to end by a signal; what the caller's shell sees, and what is left."""
    # The shell would ignore some of them for what runs in the background, and says of others what we see anyway.
    default = f"env --default-signal={name}" if name != "KILL" else ""
    begin = f"{default} {START} -vconsole:warn 2> said & p=$!; until_there x.ctl"
    return f"({begin}; kill -{name} $p; wait $p; echo $?) 2> /dev/null; cat said; {LEFT}; rm -f *.pid *.ctl *.sock core*"


# Server and supervisor write it both, so what is next to each other may change places.
LOG = "cut -d'|' -f3- m.log | sort"

# The reference writes this line after whoever started it may go on.
BEGUN = "until_said m.log 'ovsdb-server (Open vSwitch)'"

SUPERVISED = "$(cut -d' ' -f4 /proc/$p/stat)"

def as_user(name):
    """Another account (where the suite runs as root): who owns the files, what the process may do."""
    # Not below the scratch directory, which others may not enter.
    return (
        f"d=$(mktemp -d); chmod 777 $d; OVS_RUNDIR=$d OVS_LOGDIR=$d ovsdb-server -vconsole:emer --no-dbs --user={name} --pidfile --detach --log-file --remote=punix:db.sock;"
        " if p=$(cat $d/ovsdb-server.pid); then grep -E '^(Uid|Gid|Groups|Cap)' /proc/$p/status; stat -c '%U %G %a' $d/*.pid $d/*.log $d/*.ctl $d/*.sock;"
        " kill $p; gone $p; fi; ls $d; rm -r $d"
    )


LINES = [
    SETUP,
    *(f"ovsdb-server {options} nosuch.db > out 2>&1; echo $?; tail -1 out | cut -d: -f1; {LEFT}" for options in (
        "--detach", "--detach --pidfile", "--detach --monitor --pidfile", "--monitor --pidfile", "--detach --no-chdir --pidfile=$PWD/y.pid")),
    "ovsdb-server --detach --unixctl=/nosuch/c good.db",
    "ovsdb-server --detach --pidfile=/nosuch/x.pid good.db",
    "ovsdb-server --detach --monitor --pidfile=/nosuch/x.pid good.db",
    "ovsdb-server --detach -vbogus good.db",
    # Detached: in the root directory unless told otherwise, without a terminal, silent on the console.
    f"{START} --detach; p=$(cat ovsdb-server.pid); ovs-appctl -t $PWD/x.ctl version; readlink /proc/$p/cwd /proc/$p/fd/0 /proc/$p/fd/1 /proc/$p/fd/2; cat /proc/$p/comm;"
    " tr '\\0' ' ' < /proc/$p/cmdline; ls *.pid *.ctl *.sock; ovs-appctl -t $PWD/x.ctl vlog/list | grep ^raft",
    "ovsdb-server other.db --pidfile --detach; echo $?; ovs-appctl -t $PWD/x.ctl version",
    f"p=$(cat ovsdb-server.pid); kill $p; gone $p; {LEFT}",
    f"{START} --detach --no-chdir; p=$(cat ovsdb-server.pid); ovs-appctl -t $PWD/x.ctl version; readlink /proc/$p/cwd; ovs-appctl -t $PWD/x.ctl exit; gone $p; {LEFT}",
    # By its name: the pidfile and the socket's default name lead to it.
    "ovsdb-server good.db --detach --pidfile --no-chdir; ovs-appctl -t ovsdb-server version; p=$(cat ovsdb-server.pid); ovs-appctl -t ovsdb-server exit; gone $p",
    "ovsdb-server good.db --detach --pidfile=z.pid --no-chdir; ovs-appctl -t z version; p=$(cat z.pid); ovs-appctl -t $PWD/ovsdb-server.$p.ctl exit; gone $p",
    # A killed server leaves everything behind, which is no obstacle to the next.
    f"{START} --detach; p=$(cat ovsdb-server.pid); kill -9 $p; gone $p; {LEFT}; ovs-appctl -t ovsdb-server version",
    f"{START} --detach; p=$(cat ovsdb-server.pid); ovsdb-client list-dbs; ovs-appctl -t $PWD/x.ctl exit; gone $p; {LEFT}",
    # HUP does not end ours: it reads its files again.
    *(ended_by(name) for name in ("TERM", "INT", "ALRM", "USR1", "USR2", "QUIT", "KILL")),
    # Not by these.
    f"{START} & p=$!; until_there x.ctl; kill -PIPE $p; ovs-appctl -t $PWD/x.ctl exit; wait $p; echo $?; {LEFT}",
    f"env --ignore-signal=HUP {START} & p=$!; until_there x.ctl; kill -HUP $p; ovs-appctl -t $PWD/x.ctl exit; wait $p; echo $?; {LEFT}",
    as_user("nobody"),
    as_user("daemon:daemon"),
    # Supervision.
    f"{START} --detach --monitor --log-file=m.log; {BEGUN}; p=$(cat ovsdb-server.pid); m={SUPERVISED}; titled $m monitoring; cat /proc/$m/comm; tr '\\0' ' ' < /proc/$m/cmdline | sed 's/ *$//'; echo;"
    f" ovs-appctl -t $PWD/x.ctl exit; gone $p; gone $m; {LOG}; rm m.log",
    f"{START} --detach --monitor --log-file=m.log; {BEGUN}; p=$(cat ovsdb-server.pid); m={SUPERVISED}; kill $p; gone $p; gone $m; {LOG}; rm m.log; {LEFT}",
    f"{START} --detach --monitor --log-file=m.log; {BEGUN}; p=$(cat ovsdb-server.pid); m={SUPERVISED}; kill -9 $p; gone $p; gone $m; {LOG}; rm m.log; {LEFT}",
    f"{START} --detach --monitor; p=$(cat ovsdb-server.pid); m={SUPERVISED}; kill $m; gone $m; ovsdb-client list-dbs; ovs-appctl -t $PWD/x.ctl exit; gone $p; {LEFT}",
    f"ulimit -c 0; {START} --detach --monitor --log-file=m.log; {BEGUN}; p=$(cat ovsdb-server.pid); m={SUPERVISED}; kill -ABRT $p; gone $p;"
    " until_said m.log 'ERR.1 crashes'; until_there x.ctl; until ovsdb-client list-dbs 2>/dev/null; do sleep .05; done;"
    f" q=$(cat ovsdb-server.pid); titled $m '1 crashes'; tr '\\0' ' ' < /proc/$m/cmdline | sed 's/ *$//'; echo; [ $p != $q ] && ovs-appctl -t $PWD/x.ctl exit; gone $q; gone $m; {LOG}; rm m.log",
]
