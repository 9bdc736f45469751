"""What the log tells of commands and of clients that come, go and say nonsense (docs/spec/cli.md 2.1, 7.7), and what such clients are answered."""

from files import SETUP
from side import NO_TIMED_MODULES

ASK = "ovs-appctl -t ovsdb-server"
LOG = "cut -d'|' -f3- ovsdb-server.log | tail -n +$(($(cat seen) + 1)); wc -l < ovsdb-server.log > seen"
# A client that does not want to know of databases that come and go, so its session ends.
WATCHED = "rm -f mon.out; ovsdb-client --no-db-change-aware monitor mydb T > mon.out 2>&1 & p=$!; until_said mon.out row"
ENDED = "wait $p; echo $?; cat mon.out"

# Sends one message on a connection of its own; what comes back, or that nothing does. An error's `result` may be left out.
SAY = """cat > say.py <<'END'
import glob, json, socket, sys
place, said = sys.argv[1:]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(glob.glob(place)[0])
    connection.send(said.encode())
    connection.settimeout(30)
    reply = connection.recv(4096)
    members = json.loads(reply) if reply else {}
    print(json.dumps({name: value for name, value in members.items() if name == "id" or value is not None}, sort_keys=True) if reply else "closed")
END"""


# Waits to be called, says one thing a call, and listens until the other side hangs up.
PEER = """cat > peer.py <<'END'
import socket, sys
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind("peer.sock")
    listener.listen()
    listener.settimeout(30)
    for said in sys.argv[1:]:
        with listener.accept()[0] as connection:
            connection.settimeout(30)
            connection.send(said.encode())
            while connection.recv(4096):
                pass
END"""


def say(place, *messages):
    return [f"python3 say.py '{place}' '{message}'" for message in messages]


ID = '"id":1'
LINES = [
    SETUP,
    SAY,
    PEER,
    'ovsdb-tool transact good.db \'["mydb",{"op":"insert","table":"T","row":{"name":"a"}}]\'',
    f"echo 0 > seen; ovsdb-server good.db --no-chdir --detach --pidfile --remote=punix:db.sock --log-file -vconsole:off -vsyslog:off {NO_TIMED_MODULES}",
    f"{ASK} vlog/disable-rate-limit",
    LOG,
    f"{ASK} ovsdb-server/compact; {ASK} ovsdb-server/compact mydb",
    LOG,
    f"{WATCHED}; {ASK} ovsdb-server/add-db other.db; {ENDED}",
    f"{WATCHED}; {ASK} ovsdb-server/remove-db other; {ENDED}",
    f"{WATCHED}; {ASK} ovsdb-server/reconnect; {ENDED}",
    f"{WATCHED}; {ASK} ovsdb-server/disable-monitor-cond; {ENDED}",
    f"{WATCHED}; sed 's/1.2.3/1.2.4/' s > newer; ovsdb-client convert unix:db.sock newer; {ENDED}",
    f"{WATCHED}; {ASK} ovsdb-server/remove-remote punix:db.sock; {ENDED}; {ASK} ovsdb-server/add-remote punix:db.sock",
    LOG,
    *say("db.sock", "[]", "{}", f'{{{ID},"result":1,"error":null}}', f'{{"method":"x","params":{{}},{ID}}}', f'{{"method":"x","params":[],{ID},"more":1}}', "{]}", "nope ", "1 ",
         f'{{"method":1,"params":[],{ID}}}', f'{{"method":"x","params":[],{ID}}}', f'{{"method":"echo","params":["x"],{ID},"result":null}}'),
    LOG,
    *say("ovsdb-server.*.ctl", "[]", "{}", f'{{{ID},"result":1,"error":null}}', f'{{"method":"version","params":{{}},{ID}}}', '{"method":"version","params":[],"id":null}', "{]}",
         '{"method":"version","params":[]}', f'{{"method":1,"params":[],{ID}}}', f'{{"method":"version","params":[1],{ID}}}', f'{{"method":"vlog/set","params":[1],{ID}}}',
         f'{{"method":"exit","params":["x"],{ID}}}', f'{{"method":"nosuch","params":[],{ID}}}', '{"method":"version","params":[],"id":{"a":[1]}}'),
    LOG,
    # What is called by the server says nonsense.
    f"python3 peer.py '[]' '{{]}}' & p=$!; until_there peer.sock; {ASK} ovsdb-server/add-remote unix:peer.sock; wait $p; until_said ovsdb-server.log 'peer.sock: waiting';"
    f" {ASK} ovsdb-server/remove-remote unix:peer.sock; grep peer.sock ovsdb-server.log | cut -d'|' -f3- | sed '/waiting/q'; wc -l < ovsdb-server.log > seen",
    # A listener that could not be opened is no remote yet, a connection of ours always is one.
    *(f"{ASK} ovsdb-server/{verb}-remote {remote}; {ASK} memory/show | grep -o 'sessions.*'" for verb in ("add", "remove") for remote in ("punix:no/x.sock", "unix:nosuch.sock")),
    "grep -o 'ovsdb_jsonrpc_server|INFO.*such.*deconfigured' ovsdb-server.log; grep -c 'x.sock: remote deconfigured' ovsdb-server.log; wc -l < ovsdb-server.log > seen",
    f"{ASK} exit",
    LOG,
]
