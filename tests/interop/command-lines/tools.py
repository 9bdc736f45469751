"""ovsdb-tool: options and numbers of arguments (docs/spec/cli.md 4). What its commands do: see `interop/tools` and that program's tests."""

from files import SETUP

ARITIES = (
    "create a b c", "create-cluster a b", "create-cluster a b c d", "join-cluster a", "compact a b c", "convert a b c d", "needs-conversion a b c", "db-name a b",
    "db-version a b", "db-cksum a b", "db-cid", "db-cid a b", "db-sid", "db-sid a b", "db-local-address", "db-local-address a b", "db-is-clustered", "db-is-clustered a b",
    "db-is-standalone", "db-is-standalone a b", "schema-name a b", "schema-version a b", "schema-cksum a b", "compare-versions 1.2.3", "compare-versions 1.2.3 '<' 1.2.3 x",
    "query", "query good.db x y", "transact", "transact good.db x y", "show-log a b", "check-cluster", "cluster-to-standalone a", "cluster-to-standalone a b c", "list-commands x",
)

LINES = [
    SETUP,
    "ovsdb-tool",
    "ovsdb-tool frobnicate",
    "ovsdb-tool --version",
    "ovsdb-tool -V frobnicate",
    "ovsdb-tool --help | grep -o election-timer | head -1",
    "ovsdb-tool help x > /dev/null",
    "ovsdb-tool list-commands | grep -v -E ' (salvage|history|log|diff|dump|restore) '",
    *(f"ovsdb-tool {words}" for words in ARITIES),
    *(f"ovsdb-tool {words} db-name good.db" for words in (
        "--bogus", "--m", "--mo", "--e", "--e=100", "--c", "--c=x", "--r", "--rb=x", "--v", "--ver", "--verb=info", "-x", "-mmm", "-mv", "--more=1", "--log-file", "--log-file=x",
        "--syslog-method=null", "--syslog-target=x", "--timeout=1", "-t1", "-vbogus", "-vconsole:off", "--cid=x", "--cid=", "--cid=00000000-0000-0000-0000-000000000000",
        "--cid=00000000-0000-0000-0000-00000000000g", "--election-timer=99", "--election-timer=600001", "--election-timer=", "--election-timer=600000")),
    "ovsdb-tool db-name -vconsole:off good.db",
    "ovsdb-tool db-name -- -vconsole:off",
    "POSIXLY_CORRECT=1 ovsdb-tool db-name -vconsole:off",
    "ovsdb-tool -o",
    "ovsdb-tool -vPATTERN:console:%m db-name nosuch",
    *(f"ovsdb-tool {command} {name}" for command in ("db-name", "db-version", "db-is-clustered", "db-is-standalone", "db-cid", "show-log") for name in (
        "nosuch.db", "dir", "text.db", "empty.db", "s", "''")),
    "OVS_DBDIR=$PWD/nosuch ovsdb-tool db-name",
    "cp good.db conf.db; ovsdb-tool db-name; ovsdb-tool db-version",
    "OVS_DBDIR= OVS_SYSCONFDIR=$PWD ovsdb-tool db-name",
    "OVS_PKGDATADIR=$PWD ovsdb-tool schema-name",
    "OVS_PKGDATADIR= ovsdb-tool schema-name",
    "ovsdb-tool needs-conversion good.db s; ovsdb-tool needs-conversion good.db t; ovsdb-tool convert good.db t; ovsdb-tool db-name good.db",
]
