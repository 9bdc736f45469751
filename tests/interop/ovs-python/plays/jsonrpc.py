"""Messages, connections over a socket pair with a scripted peer, and sessions on a scripted clock."""

import os
import sys

sys.path.pop(0)  # This folder has the names of standard modules.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import random
import socket
import tempfile

import ovs.jsonrpc as jsonrpc
import ovs.stream
import ovs.timeval
import ovs.vlog
from transcript import attempt, generator, say, text

rng = generator("jsonrpc")
Message = jsonrpc.Message
folder = tempfile.TemporaryDirectory()


def log_at(level):
    def log(self, message, **kwargs):
        say("  log", level, message.replace(folder.name, ""))
    return log


for level in ("emer", "err", "warn", "info"):
    setattr(ovs.vlog.Vlog, level, log_at(level))


def log_messages(self, message, **kwargs):
    """Of the lines at DBG those with messages of the protocol, of which ours cuts long ones; other traces are each library's own."""
    if (": send " in message or ": received " in message) and len(message) < 4096:
        log_at("dbg")(self, message)


ovs.vlog.Vlog.dbg = log_messages
ovs.vlog.Vlog.dbg_is_enabled = lambda self: True


def shown(value):
    if isinstance(value, tuple):
        return [shown(x) for x in value]
    if isinstance(value, Message):
        return "%s %s %s" % (value.type, value, text(value.to_json()))
    return text(value)


MEMBERS = {"method": ["a", "", 5, None], "params": [[], [1, "x"], {}, None, "s"], "result": [None, 1, {}, False],
           "error": [None, "e", {"error": "x"}], "id": [None, 0, 1, "s", False, [1]], "x": [1]}
for value in (None, 5, [], "s", {}):
    say("from", shown(Message.from_json(value)))
for case in range(1500):
    json = {name: rng.choice(values) for name, values in MEMBERS.items() if rng.random() < (0.05 if name == "x" else 0.5)}
    kept = dict(json)
    say("from", text(json), shown(Message.from_json(json)), json == kept)
    message = Message(rng.randrange(5), *[rng.choice(MEMBERS[n]) if rng.random() < 0.5 else None
                                          for n in ("method", "params", "result", "error", "id")])
    say("message", text(vars(message)), attempt(message.is_valid), attempt(message.to_json), attempt(str, message))
for type_ in range(5):
    say("type", attempt(Message.type_to_string, type_))
first = Message.create_request("m", [1])
say("ids", Message.create_request("m", []).id - first.id, shown(Message.create_notify("n", [2])),
    shown(Message.create_reply({}, 3)), shown(Message.create_error("e", 4)))


class Poller(object):
    def fd_wait(self, fd, events):
        say("  fd", events)

    def immediate_wake(self):
        say("  wake")

    def timer_wait(self, msec):
        say("  timer", msec)


def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return jsonrpc.Connection(ovs.stream.Stream(ours, "unix:x", 0)), theirs


def peek(peer):
    try:
        return peer.recv(1 << 20)
    except BlockingIOError:
        return None


note = Message.create_notify("note", ["\u00e9"])
connection, peer = pair()
say("fresh", shown(connection.recv()), connection.get_status(), connection.get_backlog(), connection.get_received_bytes())
connection.run()
connection.wait(Poller())
connection.recv_wait(Poller())
say("send", connection.send(note), connection.get_backlog(), peek(peer))
big = Message.create_notify("big", ["x" * 500000])
say("big", connection.send(big), connection.get_backlog() > 0)
connection.wait(Poller())
say("behind it", connection.send(note), connection.send(note))
count = 0
while connection.get_backlog():
    count += len(peek(peer) or b"")
    connection.run()
while True:
    data = peek(peer)
    if not data:
        break
    count += len(data)
say("received", count)
peer.send(b'{"method":"a","params":[],"id":1}{"method":"b","params":[],"id":2} \n {"id":3,"res')
say(shown(connection.recv()), connection.get_received_bytes())
connection.recv_wait(Poller())
say(shown(connection.recv()), shown(connection.recv()))
connection.recv_wait(Poller())
peer.send(b'ult":"\xc3\xa9","error":null}')
say(shown(connection.recv()), shown(connection.recv()))

for bad in (b"x ", b"[1]", b'{"a":1}', b'{"method":"a","params":[],"id":1} x ', b'{"id":1,"result":"\xff"}', b'{"id":1,\n]',
            b"5 ", b'{"method":"a","params":5,"id":1}', b"\x16\x03\x01", b'{"id":1}', b'{"result":1,"error":2,"id":1}'):
    connection, peer = pair()
    peer.send(bad)
    say("bad", bad, shown(connection.recv()), shown(connection.recv()), connection.get_status(), connection.send(note),
        connection.run(), connection.get_backlog(), peek(peer))
for partial in (b"", b'{"method":"a","params":[],"id":1}', b'{"method":"a",'):
    connection, peer = pair()
    peer.send(partial)
    peer.close()
    say("end", partial, [shown(connection.recv()) for _ in range(3)], connection.get_status(), connection.send(note),
        shown(connection.recv_block()))
connection, peer = pair()
peer.close()
say("broken", connection.send(note), connection.get_status(), shown(connection.recv()), connection.send_block(note))
connection, peer = pair()
request = Message.create_request("q", [])
for id_ in (77, "s"):
    request.id = id_
    peer.send(b'{"method":"a","params":[],"id":9}{"result":1,"error":null,"id":1}{"result":5,"error":null,"id":77}'
              if id_ == 77 else b'{"result":null,"error":"bad","id":"s"}')
    say("transact", shown(connection.transact_block(request)), peek(peer))
say("error", connection.error(5), connection.error(7), connection.get_status(), shown(connection.recv()), connection.close())

# Messages in pieces of any size arrive whole and in order.
for case in range(100):
    connection, peer = pair()
    sent = [Message.create_notify("m", [rng.choice(["", "x" * rng.randrange(6000), "[{", '"', 1.5, None, {"a": [1]}])])
            for _ in range(rng.randrange(1, 6))]
    data = "".join(ovs.json.to_string(m.to_json()) + rng.choice(["", " ", "\n"]) for m in sent).encode()
    got = []
    while data:
        n = rng.randrange(1, 5000)
        peer.send(data[:n])
        data = data[n:]
        while True:
            error, message = connection.recv()
            if error:
                break
            got.append(message.params)
    say("pieces", error, got == [m.params for m in sent], len(got))

clock = [1000]
ovs.timeval.msec = lambda: clock[0]
random.shuffle = lambda remotes: None


def state(name):
    say(name, session.get_name().replace(folder.name, ""), session.reconnect.state.name, session.reconnect.backoff,
        session.get_seqno(), session.is_alive(), session.is_connected(), session.get_backlog(),
        session.get_num_of_remotes(), session.reconnect.get_probe_interval())


def step(milliseconds=0, receive=True):
    clock[0] += milliseconds
    if receive:
        say("recv", shown(session.recv()))
    session.run()
    state("run")


def listen(name):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(os.path.join(folder.name, name))
    listener.listen(5)
    listener.setblocking(False)
    return listener


listener = listen("s")
path = "unix:" + os.path.join(folder.name, "s")
session = jsonrpc.Session.open(path)
state("open")
say("unconnected", session.recv(), session.recv_wait(Poller()), session.send(note), session.wait(Poller()))
step()
session.wait(Poller())
step()
session.wait(Poller())
session.recv_wait(Poller())
peer, _ = listener.accept()
peer.setblocking(False)
say("send", session.send(note), peek(peer))
peer.send(b'{"method":"echo","params":[5],"id":7}{"result":[],"error":null,"id":"echo"}{"method":"echo","params":[5],"id":null}'
          b'{"method":"m","params":[],"id":9}{"error":"e","id":"echo"}')
for _ in range(6):
    step()
say("replies", peek(peer))
session.reconnect.set_probe_interval(5000)
step(6000, receive=False)
step(10)
say("probe", peek(peer))
step(4000)
peer.send(b'{"resu')
step()
peer.send(b'lt":[],"error":null,"id":"echo"}')
step()
for _ in range(3):
    step(6000)
    session.wait(Poller())
say("dropped", peek(peer), peek(peer))
step(1000)
step()
peer, _ = listener.accept()
peer.close()
step()
step(2000)
step()
peer, _ = listener.accept()
peer.send(b"garbage ")
step()
listener.close()
for _ in range(4):
    step(9000)
    session.wait(Poller())
session.force_reconnect()
session.reset_backoff()
state("reset")
session.close()

for name, interval in (("unix:none", 0), ("unix:none", 9000), ("tcp:127.0.0.1:1", None), ("tcp:127.0.0.1:1", 0),
                       ("tcp:127.0.0.1:1", 10), ("tcp:127.0.0.1:1", 30000), ("ptcp:1", None), ("foo:x", None)):
    session = jsonrpc.Session.open(name, interval)
    state("open")
step()
listeners = [listen("a"), listen("c")]
session = jsonrpc.Session.open_multiple(["unix:" + os.path.join(folder.name, x) for x in "abc"])
say("remotes", [x.replace(folder.name, "") for x in session.remotes])
for _ in range(3):
    step()
peer, _ = listeners[0].accept()
peer.close()
for _ in range(6):
    step()
session.force_reconnect()
for _ in range(8):
    step(1000)
session.reset_backoff()
session.force_reconnect()
for _ in range(8):
    step(100)
for _ in range(4):
    session.pick_remote()
    state("pick")
session.close()

session = jsonrpc.Session.open("punix:" + os.path.join(folder.name, "p"))
state("passive")
step()
session.wait(Poller())
clients = []
for _ in range(2):
    clients.append(socket.socket(socket.AF_UNIX))
    clients[-1].connect(os.path.join(folder.name, "p"))
    step()
    session.wait(Poller())
say("replaced", clients[0].recv(5), session.send(note), clients[1].recv(100))
session.close()
say("removed", os.path.exists(os.path.join(folder.name, "p")))
