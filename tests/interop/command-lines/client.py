"""ovsdb-client and ovs-appctl: options, deadlines, servers that are not there (docs/spec/cli.md 2.3, 3). Commands: see `tests` of those programs."""

from differences import Known
from files import SETUP

DUMP = "ovsdb-client {} dump mydb T name n"

OPTIONS = [
    "ovsdb-client --version",
    "ovsdb-client",
    "ovsdb-client --",
    "ovsdb-client -- list-dbs",
    *(f"ovsdb-client --{each}" for each in ("d", "p", "pr", "s", "n", "no", "no-", "l", "m", "t", "ti", "f", "fo", "b", "c", "re", "v", "ver", "o", "sy")),
    "ovsdb-client -t",
    *(f"ovsdb-client {words} list-dbs" for words in ("-tx", "-t5x", "-t0", "-t-1", "-t 99999999999", "--timeout", "-t1 -t5", "-T1", "--peer-ca-cert=x", "--unixctl=x")),
    "OVS_CTL_TIMEOUT=x ovsdb-client list-dbs",
    "OVS_CTL_TIMEOUT=0 ovsdb-client list-dbs",
    "OVS_CTL_TIMEOUT= ovsdb-client list-dbs",
    "OVS_CTL_TIMEOUT=1 ovsdb-client wait mydb removed",
    "OVS_CTL_TIMEOUT=1 ovsdb-client -t 2 wait mydb removed",
    "ovsdb-client -vconsole:off -t1 wait mydb removed",
    "ovsdb-client --pidfile list-dbs; ls ovsdb-client.pid",
    "ovsdb-client --log-file=c.log list-dbs; wc -l < c.log",
    "ovsdb-client --log-file=/nosuch/x list-dbs",
    "ovsdb-client --syslog-method=bogus list-dbs",
    "ovsdb-client --no-self-confinement --no-chdir --overwrite-pidfile list-dbs",
    "ovsdb-client -v list-dbs 2>/dev/null",
]

FORMATS = [DUMP.format(words) for words in (
    "--max-column-width=x", "--max-column-width=-1", "--max-column-width=3", "-f json --pretty", "-ftable", "-f TABLE", "--form=csv", "-d x", "--bare --pretty", "-f list --no-head")]

SERVERS = [
    *(f"ovsdb-client list-dbs {server}" for server in (
        "db.sock", "unix:", "unix:nosuch", "unix:/nosuch/x", "unix:dir", "tcp:127.0.0.1:x", "tcp:127.0.0.1:99999", "tcp:127.0.0.1", "tcp:[::1]:1",
        "x:y", "ptcp:x", "ssl:127.0.0.1:1", "unix:db.sock,unix:db.sock")),
    Known("ovsdb-client list-dbs tcp:127.0.0.1:0", "nothing can be connected to at port 0", (
        '! TIME|N|socket_util|ERR|127.0.0.1:0: bad port number "0"',
        "! TIME|N|stream_tcp|ERR|tcp:127.0.0.1:0: connect: Address family not supported by protocol",
        '! ovsdb-client: failed to connect or listen to "tcp:127.0.0.1:0" (Address family not supported by protocol)', "= 1")),
    "ovsdb-client -t1 list-dbs punix:/nosuch/x",
    "ovsdb-client --private-key=nosuch list-dbs",
    "ovsdb-client --certificate=nosuch list-dbs",
    "ovsdb-client --ca-cert=nosuch list-dbs",
    "ovsdb-client --private-key=nosuch list-dbs ssl:127.0.0.1:1",
    "ovsdb-client --ssl-protocols=bogus list-dbs",
    "ovsdb-client --ssl-ciphers=bogus list-dbs",
]

COMMANDS = [
    "ovsdb-client wait unix:db.sock mydb connected",
    "ovsdb-client needs-conversion unix:db.sock s",
    "ovsdb-client convert s",
    "ovsdb-client convert nosuch",
    "ovsdb-client backup mydb > b; ovsdb-client restore mydb < b; ovsdb-client --force restore mydb < b",
    "ovsdb-client restore mydb < s",
    "ovsdb-client restore mydb < /dev/null",
    "ovsdb-client monitor mydb T '!initial' n,n",
    "ovsdb-client -t1 monitor mydb T name '!initial'",
    "ovsdb-client monitor-cond mydb '[[\"n\",\"==\",1]]' ALL",
    "ovsdb-client -t1 lock l",
    "ovsdb-client -t1 steal l",
    Known("ovsdb-client -t1 lock 'a b'", "a refused lock is told", (
        '! ovsdb-client: transaction returned error: {"details":"lock request params must be <id>","error":"syntax error","syntax":"[\\"a b\\"]"}', "= 1")),
    "ovsdb-client --detach --pidfile monitor mydb T; ovs-appctl -t ovsdb-client list-commands | grep -v set-options; p=$(cat ovsdb-client.pid);"
    " ovs-appctl -t ovsdb-client ovsdb-client/block; ovs-appctl -t ovsdb-client ovsdb-client/block; ovs-appctl -t ovsdb-client ovsdb-client/unblock x;"
    " ovs-appctl -t ovsdb-client ovsdb-client/unblock; ovs-appctl -t ovsdb-client exit; gone $p; ls ovsdb-client.pid",
]

APPCTL = [
    "ovs-appctl --syslog-target=127.0.0.1:9 -t /nosuch version",
    "ovs-appctl --syslog-target=127.0.0.1:9",
    "ovsdb-client --syslog-target=127.0.0.1:9",
    "ovsdb-client --syslog-target=127.0.0.1:9 -vconsole:off list-dbs unix:/nosuch",
    "ovs-appctl --version",
    *(f"ovs-appctl {words}" for words in (
        "", "--", "--t", "--ta=ovsdb-server version", "--e", "--e version", "--v", "--l", "--s", "-T", "-T0 version", "-Tx version", "-t", "-tovsdb-server -T1 version",
        "-e -e version", "-t a -t b version", "-t ovsdb-server version --timeout=1", "-t ovsdb-server vlog/set --help", "-t ./ovsdb-server version", "-t '' version", "version",
        "-t /nosuch version", "-t $PWD/s version", "-vbogus version", "-vconsole:off -t /nosuch version", "--log-file=/nosuch/x version", "-x", "--format-x")),
    "echo abc > bad.pid; ovs-appctl -t bad version",
    "echo 1 > stale.pid; ovs-appctl -t stale version",
    ": > void.pid; ovs-appctl -t void version",
    "OVS_CTL_TIMEOUT=x ovs-appctl -t nosuch version",
    Known("ovs-appctl --f", "3.1 has no such option", ("! ovs-appctl: option '--format' requires an argument", "= 1")),
    Known("ovs-appctl -f yaml version", "3.1 has no such option", ("! ovs-appctl: value yaml on -f or --format is invalid", "= 1")),
    Known("ovs-appctl --pretty version", "3.1 has no such option", ("! ovs-appctl: --pretty is supported with --format json only", "= 1")),
    Known("ovs-appctl -t ovsdb-server -f json version", "3.1 has no such option", (
        '  {"reply":"ovsdb-server (Open vSwitch) VERSION\\nCorvid 0.1.0","reply-format":"plain"}', "= 0")),
    Known("ovs-appctl -t ovsdb-server -f json nosuch", "3.1 has no such option", (
        '! "nosuch" is not a valid command (use "list-commands" to see a list of valid commands)', "! ovs-appctl: ovsdb-server: server returned an error", "= 2")),
]

LINES = [
    SETUP,
    'ovsdb-tool transact good.db \'["mydb",{"op":"insert","table":"T","row":{"name":"a","n":1}}]\'',
    "ovsdb-server good.db --no-chdir --detach --pidfile --remote=punix:db.sock -vconsole:off -vsyslog:off",
    *OPTIONS,
    *FORMATS,
    *SERVERS,
    *COMMANDS,
    *APPCTL,
    "ovs-appctl -t ovsdb-server exit | wc -c",
]
