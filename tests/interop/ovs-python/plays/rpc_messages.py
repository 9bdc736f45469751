"""JSON-RPC messages, and a connection over a pair of sockets: whole and partial messages, errors, blocking calls."""
# differs: both: ^transact_block: \(0, : the ids of requests are numbers of a counter
# differs: both: ^recv: \(84, None, 84, \d\): how much was received before the error
# differs: both: ^  poller immediate_wake: a connection that has failed wakes its waiter
# differs: both: ^recv: .*(u00e9|é|, 3[67]\)): the original counts characters as bytes
# differs: both: ^recv: \((11, None, 0|84, None, 84), 1[12]\): a character in two reads ends the original's connection
# differs: both: receive error: Invalid or incomplete multibyte: a character in two reads ends the original's connection

import socket
import threading

import ovs.jsonrpc
import ovs.stream
from play import Pollings, print_logs, say, show

print_logs("poller")
Message = ovs.jsonrpc.Message


def describe(value):
    return value if not isinstance(value, Message) else (str(value), value.to_json(), value.is_valid())


def recv(connection):
    error, message = connection.recv()
    say("recv", (error, describe(message), connection.get_status(), connection.get_received_bytes()))


def pair(name="p"):
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    return ovs.jsonrpc.Connection(ovs.stream.Stream(ours, name, 0)), theirs


for json in [
    {}, [], "x", 1, None, {"id": 1, "method": "m", "params": []}, {"id": None, "method": "m", "params": []},
    {"method": "m", "params": []}, {"method": "m", "params": {}}, {"method": 1, "params": []},
    {"id": 1, "result": 1, "error": None}, {"id": 1, "result": None, "error": "e"}, {"id": 1, "result": 1, "error": 2},
    {"id": 1, "result": None, "error": None}, {"id": None, "result": 1, "error": None}, {"id": 1, "method": "m"},
    {"id": 1, "method": "m", "params": [], "x": 1}, {"id": 1, "method": "m", "params": [], "result": 1},
    {"id": 1, "result": 1}, {"id": 1, "error": 1}, {"id": None, "error": 1}, {"method": None, "id": 1, "result": 5},
    {"params": None, "method": "m", "id": 3}, {"id": 1, "method": "m", "params": 5}, {"x": 1},
    {"id": False, "method": "m", "params": []}, {"error": "x"}, {"id": 1, "params": []},
    {"id": 1, "method": "m", "params": [], "zz": 1, "aa": 2},
]:  # fmt: skip
    say("from_json %r" % (json,), describe(Message.from_json(json)))
for message in [
    Message.create_request("m", [1]), Message.create_request("m", [1]), Message.create_notify("n", []),
    Message.create_reply(5, 1), Message.create_reply(None, 1), Message.create_error("e", 2),
    Message(0, None, None, None, None, None), Message(1, "a", [], None, None, 1), Message(2, "m", None, 3, None, 4),
    Message(3, None, None, 3, None, 4), Message(0, "x", "text", None, None, 1), Message(0, "x", [], None, None, None),
]:  # fmt: skip
    say("message", sorted(vars(message).items()))
    say("  ", describe(message))
for number in range(5):
    show("type_to_string %d" % number, Message.type_to_string, number)

connection, peer = pair()
recv(connection)
say("send", connection.send(Message.create_notify("hello", [1])))
say("peer", peer.recv(1000))
say("send much", connection.send(Message.create_notify("big", ["x" * 500000])))
say("backlog", connection.get_backlog() > 0)
got = b""
while len(got) < 500000:
    connection.run()
    try:
        got += peer.recv(100000)
    except BlockingIOError:
        pass
connection.run()
say("backlog", connection.get_backlog())
for data in [b'{"id":1,"method":"m",', b'"params":[]}{"id":2,', b'"result":1,"error":null} \n {"x', b'":1}', b""]:
    if data:
        peer.send(data)
    say("data", data)
    recv(connection)
    recv(connection)
say("send", connection.send(Message.create_notify("x", [])))
say("recv_block", connection.recv_block())
say("send_block", connection.send_block(Message.create_notify("x", [])))
say("transact_block", connection.transact_block(Message.create_request("x", [])))
connection.close()

for data in [
    b"[1]", b"xyz", b"xyz ", b"\xff\xfe", b'{"a"\n:@', b"5", b'{"method":"\xc3\xa9","params":[],"id":null}', b"}",
    b'{"id":1,"method":"m","params":[],"q":1}', b'{"method":"a","params":[]}{"method":"b","params":[]}garbage',
]:  # fmt: skip
    connection, peer = pair()
    peer.send(data)
    say("data", data)
    recv(connection)
    recv(connection)
    recv(connection)
    connection.close()
    peer.close()

say("a character in two pieces")
connection, peer = pair()
peer.send(b'{"method":"\xc3')
recv(connection)
peer.send(b'\xa9","params":[],"id":null}')
recv(connection)

say("the peer closes")
connection, peer = pair()
peer.close()
recv(connection)
recv(connection)
connection, peer = pair()
peer.close()
say("send", connection.send(Message.create_notify("x", [])))
recv(connection)
connection, peer = pair()
connection.error(5)
connection.error(6)
say("status", connection.get_status())

say("transact_block")
connection, peer = pair()
server = ovs.jsonrpc.Connection(ovs.stream.Stream(peer, "server", 0))
Message._next_id = 100


def serve():
    _error, request = server.recv_block()
    server.send_block(Message.create_notify("noise", []))
    server.send_block(Message.create_reply("other", 55))
    server.send_block(Message.create_reply("mine", request.id))
    _error, request = server.recv_block()
    server.send_block(Message.create_error("bad", request.id))
    server.recv_block()
    server.close()


thread = threading.Thread(target=serve)
thread.start()
for method in "xyz":
    error, reply = connection.transact_block(Message.create_request(method, []))
    say("transact_block", (error, describe(reply)))
thread.join()

connection, peer = pair()
say("wait")
connection.wait(Pollings())
connection.recv_wait(Pollings())
connection.send(Message.create_notify("x", ["y" * 1000000]))
connection.wait(Pollings())
connection.error(3)
connection.wait(Pollings())
connection.recv_wait(Pollings())
