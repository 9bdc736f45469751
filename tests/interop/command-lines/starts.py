"""Starts of ovsdb-server: options, what cannot be opened, configured or bound, and what is not fatal (docs/spec/cli.md 1.1, 1.2, 1.10).

Servers here run for the time of a command, so that a start that succeeds ends too.
"""

from differences import Known
from files import SETUP

BEGUN = "--run true"
SERVER = f"ovsdb-server good.db {BEGUN}"
# Keeps each text of a log once and no waiting: how often something is tried depends on the machine.
HOWEVER_OFTEN = "cut -d'|' -f3- | grep -vE ' seconds before (reconnect|trying to listen again)$' | sort -u"


def abbreviations():
    """Every beginning that two or more options share, and one that is enough."""
    names = (
        "remote unixctl run help version detach no-self-confinement no-chdir pidfile overwrite-pidfile monitor user verbose log-file"
        " syslog-method syslog-target peer-ca-cert private-key certificate ca-cert bootstrap-ca-cert ssl-protocols ssl-ciphers record replay"
        " sync-from sync-exclude-tables active no-dbs disable-file-column-diff"
    ).split()
    beginnings = {name[:length] for name in names for length in range(1, len(name))}
    shared = [each for each in sorted(beginnings) if sum(name.startswith(each) for name in names) > 1]
    # 3.1 has no second of these.
    newer = ("ssl-ciphers", "di", "disable-file")
    return [f"ovsdb-server --{each}" for each in shared if each not in newer]


OPTIONS = [
    "ovsdb-server --version",
    "ovsdb-server -V nosuch",
    "lt-ovsdb-server 2>/dev/null || cp -P $(command -v ovsdb-server) lt-ovsdb-server && ./lt-ovsdb-server --version; rm lt-ovsdb-server",
    "ovsdb-server --help | grep -o disable-file-column-diff | head -1",
    "ovsdb-server -h > /dev/null",
    "ovsdb-server --bogus",
    "ovsdb-server -Z",
    "ovsdb-server -pZ -Z",
    "ovsdb-server --remote",
    "ovsdb-server --unixctl",
    "ovsdb-server --run",
    "ovsdb-server -p",
    "ovsdb-server -C",
    "ovsdb-server --no-dbs=1",
    "ovsdb-server --help=1",
    f"ovsdb-server --no-db {BEGUN}",
    f"ovsdb-server --no-dbs good.db {BEGUN}",
    *abbreviations(),
    f"ovsdb-server -- {BEGUN}",
    f"POSIXLY_CORRECT=1 ovsdb-server good.db {BEGUN}",
    f"ovsdb-server {BEGUN} good.db -vconsole:off",
    f"{SERVER} --no-self-confinement --no-chdir --overwrite-pidfile --active --disable-file-column-diff",
    f"ovsdb-server --no-dbs --run false {BEGUN}",
]

LOGGING = [
    "ovsdb-server --syslog-method=bogus",
    "ovsdb-server --syslog-method=null --syslog-method=bogus --no-dbs --run true",
    *(f"ovsdb-server '-v{spec}'" for spec in (
        "bogus", "console:bogus", "file:console:dbg", "dbg:info", "raft:ovsdb_server", "raft jsonrpc", "PATTERN", "PATTERN:bogus:x", "PATTERN:",
        "PATTERN:file", "FACILITY", "FACILITY:bogus", "console:info:x", "any:any:any:bogus")),
    "ovsdb-server --verbose=bogus",
    *(f"ovsdb-server '-v{spec}' --no-dbs {BEGUN}" for spec in (
        "any:any:info", "CONSOLE,EMER", "raft:file:dbg", "PATTERN:console:%m", "PATTERN:any:%p:%c", "FACILITY:local3", "console:emer -vsyslog:err")),
    f"ovsdb-server --log-file=/nosuch/x.log --no-dbs {BEGUN}",
    f"ovsdb-server --log-file=dir --no-dbs {BEGUN}",
    f"OVS_LOGDIR=/nosuch ovsdb-server --log-file --no-dbs {BEGUN}",
    f"OVS_LOGDIR= ovsdb-server --log-file=x.log --no-dbs {BEGUN}",
    f"ovsdb-server --log-file -vconsole:off --no-dbs {BEGUN}; cat ovsdb-server.log",
    f"ovsdb-server -vconsole:off --log-file=my.log --no-dbs {BEGUN}; cat my.log; stat -c %a my.log",
    f"ovsdb-server '-vPATTERN:console:%A|%c|%-8c|%08N|%p|%m|%t|%T|%%' --log-file=my.log --no-dbs {BEGUN}",
    f"ovsdb-server '-vPATTERN:console:%B %p' --log-file=my.log --no-dbs {BEGUN}",
    f"ovsdb-server '-vPATTERN:console:%D{{%Y}} %d{{.###}}X' --log-file=my.log --no-dbs {BEGUN} 2>&1 | sed 's/[0-9]/9/g'",
    f"ovsdb-server --syslog-target=127.0.0.1:9 --no-dbs {BEGUN}",
    *(f"ovsdb-server --{option} --no-dbs {BEGUN}" for option in ("syslog-target=x", "syslog-target=", "syslog-method=udp:", "syslog-method=udp:127.0.0.1", "syslog-method=unix:")),
    "ovsdb-server --syslog-target=127.0.0.1:9 -vbogus",
    f"ovsdb-server --syslog-target=127.0.0.1:9 -vPATTERN:console:%m --no-dbs {BEGUN}",
    f"ovsdb-server --syslog-target=127.0.0.1:9 --log-file=my.log --no-dbs {BEGUN}",
]

DATABASES = [
    f"ovsdb-server {BEGUN}",
    *(f"ovsdb-server {name} {BEGUN}" for name in (
        "nosuch.db", "./nosuch/x.db", "/nosuch/x.db", "dir", "text.db", "empty.db", "under.db", "torn.db", "link.db", "''", "$PWD/good.db", "good.db/x")),
    f"ovsdb-server good.db same.db {BEGUN}",
    f"ovsdb-server good.db ./good.db {BEGUN}",
    Known(f"ovsdb-server good.db good.db {BEGUN}", "newer releases warn of a database that is named twice", (
        "! TIME|N|ovsdb_server|WARN|Duplicate database configuration: good.db", "= 0")),
    f"ovsdb-server good.db other.db {BEGUN}",
    "ovsdb-server good.db --run 'ovsdb-server good.db --run true'",
    "ovsdb-server nosuch.db -vconsole:off > out 2>&1; wc -l < out",
]

REMOTES = [
    *(f"{SERVER} --remote=db:{column}" for column in (
        "nosuch,T,name", "mydb,X,name", "mydb,T,nosuch", "mydb,T", "mydb", "", "mydb,,name", "mydb,T,name,more", "mydb,T,n", "mydb,G,rows")),
    # Which of them comes first is open, and when.
    f"ovsdb-server good.db --run 'sleep .5' --remote=db:_Server,Database,name 2>&1 | {HOWEVER_OFTEN}",
    "ovsdb-server good.db --remote=punix:x.sock --run 'stat -c %a x.sock; ovsdb-client list-dbs unix:x.sock'; ls x.sock",
    "ovsdb-server good.db --remote punix:$PWD/x.sock --remote=punix:x.sock --run 'ls *.sock'",
    f"{SERVER} --remote=ptcp:0:127.0.0.1",
    Known(f"{SERVER} --remote=punix:/nosuch/x.sock", "what cannot be opened is logged once, not at every attempt", (
        '! TIME|N|fatal_signal|WARN|could not unlink "/nosuch/x.sock" (No such file or directory)',
        "! TIME|N|stream_unix|ERR|/nosuch/x.sock: binding failed: No such file or directory",
        "! TIME|N|ovsdb_jsonrpc_server|ERR|punix:/nosuch/x.sock: listen failed: No such file or directory",
        "= 0")),
    Known(f"{SERVER} --remote=pfd:9", "3.1 knows no pfd:", (
        "! TIME|N|stream_unix|ERR|pfd:9: not a socket (Socket operation on non-socket)", "! TIME|N|ovsdb_jsonrpc_server|ERR|pfd:9: listen failed: Socket operation on non-socket", "= 0")),
]

# Long enough for the first attempts.
LASTING = "ovsdb-server good.db --run 'sleep .2'"
LONG = "l" * 60

ADDRESSES = [
    *(f"{LASTING} '--remote={remote}' 2>&1 | {HOWEVER_OFTEN}" for remote in (
        "ptcp:0:[::1]", "ptcp:0:[::]", "ptcp:0:127.0.0.1:x", "ptcp:0:203.0.113.7", "ptcp:-1", "ptcp:x", "ptcp:0x50", "ptcp:0:::1", "ptcp:65536", "pssl:0:127.0.0.1", "pssl:x",
        "tcp:127.0.0.1:1", "tcp:[::1]:1", "tcp:127.0.0.1:x", "tcp:127.0.0.1:99999", "tcp:127.0.0.1:1:2", "ssl:127.0.0.1:1", "unix:", "unix:dir", "unix:nosuch.sock", "punix:dir",
        "PTCP:1", "bogus:1", "nonsense", "", "ptcp:99999", "tcp", ":", "punix", "fd:3", "relay:x:y", "ptcp:127.0.0.1")),
    Known(f"{LASTING} '--remote=tcp:[::1]' 2>&1 | {HOWEVER_OFTEN}", "the default port belongs to addresses of IPv6 too", (
        "  reconnect|INFO|tcp:[::1]: connecting...", "  reconnect|INFO|tcp:[::1]: connection attempt failed (Connection refused)",
        "  stream|WARN|The default OVSDB port number has changed from 6632 to 6640", "= 0")),
    # Names that are longer than the kernel takes.
    f"mkdir {LONG} {LONG}/{LONG}; ovsdb-server good.db --remote=punix:$PWD/{LONG}/{LONG}/s.sock --unixctl=$PWD/{LONG}/{LONG}/s.ctl"
    f" --run 'cd {LONG}/{LONG}; ls; ovsdb-client list-dbs unix:$PWD/s.sock; ovs-appctl -t $PWD/s.ctl version'; ls {LONG}/{LONG}",
    "ovsdb-server good.db --remote=ptcp:0:127.0.0.1 --log-file=p.log -vconsole:off --run 'port=$(sed -n s/.*listening.on.port.//p p.log);"
    " ovsdb-client list-dbs tcp:127.0.0.1:$port; ovsdb-server --no-dbs --remote=ptcp:$port:127.0.0.1 --run true 2>&1 | sed s/$port/PORT/g | cut -d\"|\" -f3- | sort -u'",
    # A name is looked up beside everything else.
    "ovsdb-server good.db --remote=ptcp:0:localhost --log-file=n.log -vconsole:off --run 'n=0; until grep -q listening n.log || [ $n -ge 500 ]; do sleep .02; n=$((n + 1)); done;"
    " ovsdb-client list-dbs tcp:localhost:$(sed -n s/.*listening.on.port.//p n.log); cut -d\"|\" -f3- n.log | grep listening'",
    # A place that is taken is taken over.
    "ovsdb-server good.db --remote=punix:b.sock --run 'ovsdb-server --no-dbs --remote=punix:b.sock --run true; ls *.sock'",
    "touch f.sock; ovsdb-server good.db --remote=punix:f.sock --run 'stat -c %F f.sock'; ls f.sock",
    *(f"umask {mask}; ovsdb-server good.db --remote=punix:b.sock --pidfile --log-file=u{mask}.log --run 'stat -c %a b.sock *.pid *.ctl u{mask}.log'" for mask in ("0", "077")),
]

ENVIRONMENT = [
    "mkdir etc etc/openvswitch; cp good.db etc/openvswitch/conf.db; OVS_DBDIR= OVS_SYSCONFDIR=$PWD/etc ovsdb-server --run 'ovs-appctl -t $(echo $PWD/*.ctl) ovsdb-server/list-dbs'",
    "OVS_DBDIR= OVS_SYSCONFDIR= ovsdb-server --run true",
]

TLS = [
    *(f"{SERVER} --{option}=db:mydb,T,n" for option in ("private-key", "certificate", "ca-cert", "bootstrap-ca-cert", "ssl-protocols", "ssl-ciphers")),
    *(f"{SERVER} --private-key=db:{column}" for column in ("nosuch,T,name", "mydb,X,name", "mydb,T,nosuch", "mydb,T", "mydb,T,set", "mydb,T,name")),
    f"{SERVER} --ssl-protocols=bogus",
    f"{SERVER} --ssl-protocols=",
    f"{SERVER} --ssl-protocols=TLSv1.2",
    f"{SERVER} --ssl-ciphers=bogus",
    f"{SERVER} --ssl-ciphers=HIGH",
    f"{SERVER} --ca-cert=nosuch.pem",
    f"{SERVER} --ca-cert=none",
    f"{SERVER} --bootstrap-ca-cert=nosuch.pem",
    f"{SERVER} --peer-ca-cert=nosuch.pem",
    *(Known(f"{SERVER} --{option}=nosuch.pem", "3.1 is silent until somebody connects", (
        f"! TIME|N|stream_ssl|ERR|{function}: No such file or directory", "= 0")) for option, function in (
            ("private-key", "SSL_use_PrivateKey_file"), ("certificate", "SSL_use_certificate_file"))),
]

SOCKETS_AND_PIDFILES = [
    f"{SERVER} --unixctl=/nosuch/x.ctl",
    f"{SERVER} --unixctl=dir",
    "ovsdb-server good.db --unixctl=none --run 'ls *.ctl'",
    "ovsdb-server good.db --unixctl=x.ctl --run 'stat -c \"%a %F\" x.ctl; ovs-appctl -t $PWD/x.ctl version'; ls x.ctl",
    "ovsdb-server good.db --run 'ls *.ctl | sed s/[0-9]*//g'",
    f"{SERVER} --pidfile=/nosuch/x.pid",
    f"{SERVER} --pidfile=dir; ls -d dir*",
    "ovsdb-server good.db --pidfile --run 'ls *.pid*; stat -c %a ovsdb-server.pid .good.db.~lock~; wc -l < ovsdb-server.pid'; ls *.pid*",
    "ovsdb-server good.db --pidfile=x.pid --run 'ovsdb-server other.db --pidfile=x.pid --run true 2>&1'; ls *.pid*",
    "ovsdb-server good.db --pidfile=x.pid --run 'ovsdb-server other.db --pidfile=x.pid --overwrite-pidfile --run true 2>&1; ls *.pid*'",
    "echo 1 > x.pid; ovsdb-server good.db --pidfile=x.pid --run 'grep -cx 1 x.pid'",
    "ovsdb-server --pidfile x.pid --run true",
    "ovsdb-server good.db --run 'exit 3'",
    "ovsdb-server good.db --run 'kill -9 $$'",
    "ovsdb-server good.db --run /nosuch",
]

USERS = [
    f"{SERVER} --user={name}" for name in ("nosuchuser", "nobody:nosuchgroup", "nobody:root", ":nosuchgroup", ":nogroup", "root", "root:root", ":root", ":", "''")
] + [f"{SERVER} --pidfile=x.pid --user=nosuchuser", "setpriv --reuid=65534 --regid=65534 --clear-groups ovsdb-server --no-dbs --user=nobody --run true"]

LINES = [SETUP, *OPTIONS, *LOGGING, *DATABASES, *REMOTES, *ADDRESSES, *ENVIRONMENT, *TLS, *SOCKETS_AND_PIDFILES, *USERS]
