"""A session on a clock of the play: two remotes, probes, a peer that closes, a passive session."""
# differs: both: ^error of a probe: only the newest original hides the error reply to a probe
# differs: both: p\.sock: the original does not tell its machine when a connection replaces another, and never listens again
# differs: both: unreliable|log reconnect dbg: the original's session of a given connection has no connection

import os
import random
import socket

import ovs.jsonrpc
import ovs.timeval
from play import Pollings, directory, print_logs, say, show

print_logs("poller", "fatal-signal")
BEGIN = 1000000
clock = [BEGIN]
ovs.timeval.msec = lambda: clock[0]
random.shuffle = lambda items: None
DIRECTORY = directory()
A, B, P = (os.path.join(DIRECTORY, name) for name in ("a.sock", "b.sock", "p.sock"))
Message = ovs.jsonrpc.Message
Session = ovs.jsonrpc.Session


def state(session, label=""):
    say(
        "%d %s" % (clock[0] - BEGIN, label),
        (
            session.get_name(), session.reconnect.get_stats(clock[0]).state, session.is_alive(), session.is_connected(),
            session.get_seqno(), session.get_backlog(), session.rpc is not None, session.stream is not None,
            session.pstream is not None,
        ),
    )  # fmt: skip


def run_until_connected(session):
    for _ in range(60):
        session.run()
        state(session, "run")
        if session.is_connected():
            return
        clock[0] += 500


def heard(peer):
    try:
        return peer.recv(1000)
    except BlockingIOError:
        return None


def accept(listener):
    peer, _address = listener.accept()
    peer.setblocking(False)
    return peer


session = Session.open_multiple(["unix:" + A, "unix:" + B])
state(session, "opened")
say("remotes", (session.remotes, session.get_num_of_remotes(), session.reconnect.get_probe_interval()))
say("without connection", (session.send(Message.create_notify("x", [])), session.recv()))
for _ in range(4):
    session.run()
    state(session, "run")
    clock[0] += 500
listener = socket.socket(socket.AF_UNIX)
listener.bind(B)
listener.listen(5)
run_until_connected(session)
peer = accept(listener)
peer.send(b'{"id":null,"method":"n","params":[]}')
say("recv", session.recv())
peer.send(b'{"id":1,"method":"echo","params":[1,2]}')
say("recv", session.recv())
session.run()
say("echo", heard(peer))
peer.send(b'{"id":"echo","result":[],"error":null}')
say("reply of a probe", session.recv())
peer.send(b'{"id":"echo","result":null,"error":"e"}')
say("error of a probe", session.recv())
peer.send(b'{"id":"other","result":null,"error":"e"}')
say("error of a request", session.recv())
say("send", session.send(Message.create_request("q", [])))
say("heard", heard(peer) is not None)
session.reconnect.set_probe_interval(5000)
for step in (5001, 0, 4000, 1001):
    clock[0] += step
    say("recv", session.recv())
    session.run()
    state(session, "after %d" % step)
    say("heard", heard(peer))
run_until_connected(session)
accept(listener).close()
say("recv", session.recv())
session.run()
state(session, "the peer closed")
run_until_connected(session)
peer = accept(listener)
session.force_reconnect()
state(session, "forced")
session.run()
state(session)
session.run()
state(session)
session.reset_backoff()
say("free tries", session.reconnect.backoff_free_tries)
run_until_connected(session)
session.reset_backoff()
say("free tries", session.reconnect.backoff_free_tries)
session.wait(Pollings())
session.recv_wait(Pollings())
session.send(Message.create_notify("x", ["y" * 9000000]))
say("backlog", session.get_backlog() > 0)
session.wait(Pollings())
session.close()
say("closed", session.get_seqno())
session.close()

say("passive")
session = Session.open("punix:" + P)
state(session)
for _ in range(3):
    session.run()
    state(session)
    session.wait(Pollings())
first = socket.socket(socket.AF_UNIX)
first.connect(P)
first.setblocking(False)
session.run()
state(session, "accepted")
session.wait(Pollings())
first.send(b'{"id":null,"method":"n","params":[]}')
say("recv", session.recv())
say("a second connection")
second = socket.socket(socket.AF_UNIX)
second.connect(P)
session.run()
state(session)
show("the first", first.recv, 10)
second.close()
session.recv()
for _ in range(3):
    session.run()
    state(session)
session.close()
say("file", os.path.exists(P))
session = Session.open("punix:/nonexistent/x")
session.run()
state(session)
clock[0] += 1001
session.run()
state(session)

say("a connection that is not made anew")
ours, theirs = socket.socketpair()
ours.setblocking(False)
session = Session.open_unreliably(ovs.jsonrpc.Connection(ovs.stream.Stream(ours, "U", 0)))
state(session, "unreliable")
say("unreliable", (session.get_num_of_remotes(), session.reconnect.get_max_tries()))
theirs.close()
session.recv()
session.run()
state(session, "unreliable")

for remotes, interval in [
    (["tcp:127.0.0.1:1"], None), (["tcp:127.0.0.1:1"], 0), (["tcp:127.0.0.1:1"], 7000), (["unix:x"], 7000), (["ssl:x"], 10),
    (["unix:x", "tcp:127.0.0.1:1"], 9000), (["tcp:127.0.0.1:1", "unix:x"], None),
]:  # fmt: skip
    session = Session.open_multiple(remotes, interval)
    say("probe interval %r %r" % (remotes, interval), (session.reconnect.get_probe_interval(), session.reconnect.is_passive()))
session = Session.open("bogus:x")
session.run()
state(session)
session = Session.open("tcp:127.0.0.1:1")
for _ in range(4):
    session.run()
    state(session)
    clock[0] += 600
