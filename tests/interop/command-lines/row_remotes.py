"""Remotes that rows of a database describe, and what the server writes back into these rows (docs/spec/cli.md 1.5, 1.6)."""

import pathlib

SCHEMA = pathlib.Path(__file__).resolve().parent / "remotes.ovsschema"
ASK = "ovs-appctl -t ovsdb-server"
DUMP = "ovsdb-client dump remotes Remote name target is_connected status | sed 's/bound_port=\"[0-9]*\"/bound_port=\"PORT\"/; s/ *$//'"
# What has been logged since the last look, but for attempts, whose number is a matter of time.
LOG = "cut -d'|' -f3- ovsdb-server.log | tail -n +$(($(cat seen) + 1)) | grep -E 'remote deconfigured|target. column' | sort -u; wc -l < ovsdb-server.log > seen"
INSERT = '[\\"remotes\\",{\\"op\\":\\"insert\\",\\"table\\":\\"G\\",\\"row\\":{}}]'


def transact(*operations):
    return f"ovsdb-client transact '[\"remotes\",{','.join(operations)}]'"


def described(name, columns):
    """A row of that name, among those that the column names."""
    row = f'{{"op":"insert","table":"Remote","uuid-name":"u","row":{{"name":"{name}"{columns}}}}}'
    return transact(row, '{"op":"mutate","table":"G","where":[],"mutations":[["remotes","insert",["named-uuid","u"]]]}')


def changed(name, columns):
    return transact(f'{{"op":"update","table":"Remote","where":[["name","==","{name}"]],"row":{{{columns}}}}}')


def until(name, text):
    """Waits until the row shows that."""
    return f"n=0; until ovsdb-client dump remotes Remote name status is_connected | grep -w '{name}' | grep -qE '{text}'; do sleep .02; n=$((n + 1)); [ $n -lt 500 ] || break; done"


LINES = [
    f"cp {SCHEMA} s; ovsdb-tool create remotes.db s; echo 0 > seen",
    "ovsdb-server remotes.db --no-chdir --detach --pidfile --remote=punix:db.sock --log-file -vconsole:off -vsyslog:off",
    f"{ASK} ovsdb-server/add-remote db:remotes,G,remotes",
    transact('{"op":"insert","table":"G","row":{}}'),
    described("nothing", ""),
    described("bogus", ',"target":"bogus:1"'),
    described("out", ',"target":"unix:nosuch.sock"'),
    described("unix", ',"target":"punix:a.sock"'),
    "until_there a.sock; ovsdb-client list-dbs unix:a.sock; stat -c %a a.sock",
    described("tcp", ',"target":"ptcp:0:127.0.0.1"'),
    f"{until('tcp', 'bound_port')}; {DUMP}",
    # Two clients, of whom the row of a listener tells.
    f"ovsdb-client -t 30 wait unix:a.sock remotes removed 2> /dev/null & p=$!; ovsdb-client -t 30 wait unix:a.sock remotes removed 2> /dev/null & q=$!;"
    f" {until('unix', 'n_connections')}; {DUMP}; kill $p $q",
    # A peer of ours that holds one lock and waits for nothing.
    changed("out", '"target":"unix:peer.sock"'),
    f"ovsdb-client -t 30 lock punix:peer.sock l > peer.out 2>&1 & p=$!; {until('out', 'locks_held')}; kill $p; grep locked peer.out",
    LOG,
    # Another target is another remote; a role is one too. Its clients are sent away.
    changed("unix", '"target":"punix:b.sock","read_only":true'),
    f"until_there b.sock; ls *.sock | grep -v peer; ovsdb-client transact unix:b.sock \"{INSERT}\"",
    transact('{"op":"update","table":"G","where":[],"row":{"remotes":["set",[]]}}'),
    "n=0; until ! ovsdb-client list-dbs unix:b.sock 2> /dev/null || [ $n -ge 500 ]; do sleep .02; n=$((n + 1)); done; ls *.sock | grep -v peer",
    LOG,
    # Columns of other types name no remotes.
    transact('{"op":"insert","table":"Bare","uuid-name":"b","row":{"target":"punix:c.sock"}}', '{"op":"insert","table":"G","row":{"bare":["named-uuid","b"],"map":["map",[["punix:m.sock","x"]]]}}'),
    *(f"{ASK} ovsdb-server/add-remote db:remotes,G,{column}" for column in ("numbers", "map", "bare")),
    f"{ASK} ovsdb-server/list-remotes",
    "until_there c.sock; ls *.sock | grep -v peer",
    LOG,
    f"{ASK} exit",
]
