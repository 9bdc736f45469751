"""Streams: names, Unix and TCP connections, passive streams, blocking opens with a limit, long paths, errors."""
# differs: both: ^open p?unix:: \(: the original opens the current folder
# differs: both: ^(ptcp:0:127|  : ValueError|  accept: 0$|  : \(0, <ovs.stream.PassiveStream object>\)): the original takes the host of ptcp for the port

import os
import signal
import socket
import time

import ovs.poller
import ovs.socket_util
import ovs.stream
from play import Pollings, directory, hide, print_logs, say, show

print_logs("poller", "dns_resolve", "fatal-signal")
DIRECTORY = directory()
Stream = ovs.stream.Stream
PassiveStream = ovs.stream.PassiveStream


def opened(label, pair):
    """Describes the pair that an open returns, and returns its stream."""
    if pair is None:
        return None
    error, stream = pair
    say(label, (error, None if error else (type(stream).__name__, stream.name)))
    return stream


for name in ["unix:x", "tcp:1", "ssl:", "punix:x", "ptcp:1", "pssl:1", "foo", "tcp", "", "TCP:1"]:
    say(
        "name %r" % name,
        (Stream.is_valid_name(name), PassiveStream.is_valid_name(name), ovs.stream.stream_or_pstream_needs_probes(name)),
    )
for name in ["foo", "unix:/nonexistent/x", "unix:", "tcp:127.0.0.1:1", "tcp:[::1]:1", "tcp:::1:1"]:
    opened("open %s" % name, Stream.open(name))

a_path = os.path.join(DIRECTORY, "a")
listener = opened("open passive", PassiveStream.open("punix:" + a_path))
say("bind_path", listener.bind_path)
say("accept", listener.accept())
listener.wait(Pollings())
opened("open a path in use", PassiveStream.open("punix:" + a_path)).close()
say("file", os.path.exists(a_path))
listener.close()
listener = PassiveStream.open("punix:" + a_path)[1]
client = opened("open", Stream.open("unix:" + a_path))
say("connect", client.connect())
server = opened("accept", listener.accept())
client.run()
client.run_wait(Pollings())
client.connect_wait(Pollings())
client.recv_wait(Pollings())
client.send_wait(Pollings())
for wait in (Stream.W_CONNECT, Stream.W_RECV, Stream.W_SEND):
    client.wait(Pollings(), wait)
say("recv", client.recv(10))
say("send", (client.send(b"abc"), client.send("text"), client.send(b"")))
say("recv", (server.recv(2), server.recv(10), server.recv(0)))
sent = client.send(b"x" * 10000000)
say("send much", 0 < sent < 10000000)
say("send more", client.send(b"y"))
server.close()
say("recv", client.recv(10))
say("send", client.send(b"x"))
client.close()
client.close()
server = PassiveStream.open("punix:" + a_path)
client = Stream.open("unix:" + a_path)[1]
server[1].accept()[1].close()
say("recv of a closed connection", client.recv(10))
client.close()
listener.close()
listener.close()
say("file", os.path.exists(a_path))
for name in ["punix:", "punix:/nonexistent/x", "pssl:1", "foo"]:
    opened("open %s" % name, PassiveStream.open(name))
for name in ["punix:x", "ptcp:x"]:
    say("needs_probes", PassiveStream.needs_probes(name))

tcp = socket.socket()
tcp.bind(("127.0.0.1", 0))
tcp.listen(5)
port = tcp.getsockname()[1]
hide(port, "PORT")
client = opened("tcp", Stream.open("tcp:127.0.0.1:%d" % port))
time.sleep(0.05)
say("connect", client.connect())
say("TOS", client.socket.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
say("NODELAY", client.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
client.close()
opened("open_block", Stream.open_block(Stream.open("tcp:127.0.0.1:%d" % port))).close()
opened("open_block refused", Stream.open_block(Stream.open("tcp:127.0.0.1:1")))
opened("open_block bad name", Stream.open_block(Stream.open("foo")))
opened("open_block of an error", Stream.open_block((5, None)))
full = socket.socket()
full.bind(("127.0.0.1", 0))
full.listen(0)
waiting = []
for _ in range(4):
    waiting.append(socket.socket())
    waiting[-1].setblocking(False)
    waiting[-1].connect_ex(full.getsockname())
for limit in (300, 0):
    begin = time.monotonic()
    opened("open_block %d" % limit, Stream.open_block(Stream.open("tcp:127.0.0.1:%d" % full.getsockname()[1]), limit))
    say("  tenths of a second", round((time.monotonic() - begin) * 10))
for target in ["ptcp:0:127.0.0.1", "ptcp:127.0.0.1:0"]:
    passive = opened(target, show("  ", PassiveStream.open, target))
    if passive:
        peer = Stream.open_block(Stream.open("tcp:127.0.0.1:%d" % passive.socket.getsockname()[1]))[1]
        say("  accept", passive.accept()[0])
        peer.close()
        passive.close()

util = ovs.socket_util
for address in ["1.2.3.4", "1.2.3", "256.1.1.1", "", "abc", "::1"]:
    show("is_valid_ipv4_address %r" % address, util.is_valid_ipv4_address, address)
for pair in [("1.2.3.4:5", None), ("1.2.3.4", 6640), ("1.2.3.4", None), ("[::1]:5", None), ("", 5), (":5", None), ("1.2.3.4:0", None)]:
    show("inet_parse_active %r" % (pair,), util.inet_parse_active, *pair)
show("get_exception_errno", util.get_exception_errno, OSError(5, "x"))
say("get_null_fd", (util.get_null_fd() >= 0, util.get_null_fd() == util.get_null_fd()))
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
reader, writer = os.pipe()
show("write_fully", util.write_fully, writer, b"abc")
say("read", os.read(reader, 10))
os.close(reader)
for fd, data in [(writer, b"x"), (9999, b"x"), (writer, b"")]:
    say("write_fully", util.write_fully(fd, data))
long_path = os.path.join(DIRECTORY, "d" * 90, "e" * 30)
os.makedirs(os.path.dirname(long_path))
error, sock = util.make_unix_socket(socket.SOCK_STREAM, True, long_path, None)
say("long path", (error, os.path.exists(long_path)))
sock.listen(1)
say("long path", util.make_unix_socket(socket.SOCK_STREAM, True, None, long_path)[0])
say("no path", util.make_unix_socket(socket.SOCK_STREAM, True, None, "/nonexistent")[0])
sock = socket.socket()
util.set_nonblocking(sock)
say("blocking", sock.getblocking())
util.set_dscp(sock, socket.AF_INET, 10)
say("TOS", sock.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
show("set_dscp", util.set_dscp, sock, socket.AF_INET, 64)
show("inet_open_active", lambda: util.inet_open_active(socket.SOCK_STREAM, "127.0.0.1:%d" % port, None, 0)[0])
