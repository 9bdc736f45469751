"""Unix and TCP streams: names, connecting, receiving, sending, accepting, errors, time limits."""
# not on: debian: old versions differ from the newest in details, and have a parser in C that counts otherwise

import os
import sys

sys.path.pop(0)  # This folder has the names of standard modules.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import errno
import socket
import tempfile
import time

import ovs.poller
import ovs.stream as stream
import ovs.vlog
from transcript import attempt, say

for level in ("emer", "err", "warn", "info", "dbg"):
    setattr(ovs.vlog.Vlog, level, lambda self, message, **kwargs: None)


class Poller(object):
    def fd_wait(self, fd, events):
        say("  fd", events)

    def immediate_wake(self):
        say("  wake")


def shown(pair):
    error, opened = pair
    return error, type(opened).__name__


for name in ("unix:/x", "tcp:1.2.3.4:5", "ssl:1.2.3.4:5", "foo:x", "unix", "punix:x", "ptcp:5", "pssl:5", "", "tcp:"):
    say("name", name, stream.Stream.is_valid_name(name), stream.PassiveStream.is_valid_name(name),
        stream.stream_or_pstream_needs_probes(name), stream.PassiveStream.needs_probes(name))
say(stream.TCPStream.needs_probes(), stream.UnixStream.needs_probes(), stream.SSLStream.needs_probes())
say(stream.Stream.DSCP_DEFAULT, stream.Stream.W_CONNECT, stream.Stream.W_RECV, stream.Stream.W_SEND)
say(stream.usage("X"))

folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "s")
for name in ("foo:x", "unix:" + path, "punix:x"):
    say("open", shown(stream.Stream.open(name)))
for name in ("foo:x", "ptcp", "pssl:0", "unix:x", "punix:" + os.path.join(folder.name, "a", "b")):
    say("listen", shown(stream.PassiveStream.open(name)))

error, passive = stream.PassiveStream.open("punix:" + path)
say("listen", error, type(passive).__name__, passive.name == "punix:" + path, shown(passive.accept()))
passive.wait(Poller())
error, client = stream.Stream.open("unix:" + path)
say("open", error, type(client).__name__, client.name == "unix:" + path, client.error, client.connect())
error, server = passive.accept()
say("accept", error, type(server).__name__, server.name, server.connect())
say("empty", server.recv(10))
for data in (b"abc", "str", b"", "", b"x" * 10):
    say("send", client.send(data), server.recv(2), server.recv(100), client.recv(0))
for kind in (0, 1, 2):
    client.wait(Poller(), kind)
say("wrong kind", attempt(client.wait, Poller(), 5))
for method in (client.connect_wait, client.recv_wait, client.send_wait, client.run_wait):
    say(method.__name__, method(Poller()))
say("run", client.run())
while client.send(b"x" * 65536) >= 0:
    pass
say("full", client.send(b"x") == -errno.EAGAIN, len(server.recv(1000)[1]))
server.close()
say("closed by peer", client.send(b"x"), client.recv(5), client.recv(5), client.connect())
client.close()
say("closed", client.recv(5), client.send(b"x"), client.connect(), attempt(client.close))
passive.close()
say("gone", os.path.exists(path), shown(passive.accept()), attempt(passive.close), shown(stream.Stream.open("unix:" + path)))

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(5)
address = "tcp:127.0.0.1:%d" % listener.getsockname()[1]
bound = socket.socket()
bound.bind(("127.0.0.1", 0))
refusing = "tcp:127.0.0.1:%d" % bound.getsockname()[1]
for timeout in (None, -1, 0, 1000):
    error, client = stream.Stream.open_block(stream.Stream.open(address), timeout)
    say("open", timeout, error, type(client).__name__, client.connect(), client.error)
    say("no delay", client.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0,
        client.socket.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
say("refused", stream.Stream.open_block(stream.Stream.open(refusing)), stream.Stream.open(refusing)[0])
say("error", stream.Stream.open_block((5, None)))
# No such host answers, so the attempt lasts until the time limit or fails at once.
begin = time.monotonic()
error, opened = stream.Stream.open_block(stream.Stream.open("tcp:192.0.2.1:9"), 300)
say("no answer", error != 0, opened, time.monotonic() - begin < 2)


class Other(stream.Stream):
    @staticmethod
    def needs_probes():
        return True

    @staticmethod
    def _open(suffix, dscp):
        say("  _open", suffix, dscp)
        return errno.ENOTSUP, None


stream.Stream.register_method("other", Other)
say("registered", stream.Stream.is_valid_name("other:1"), stream.stream_or_pstream_needs_probes("other:1"))
for setter, name in ((stream.Stream.ssl_set_private_key_file, "_SSL_private_key_file"),
                     (stream.Stream.ssl_set_certificate_file, "_SSL_certificate_file"),
                     (stream.Stream.ssl_set_ca_cert_file, "_SSL_ca_cert_file")):
    say(name, getattr(stream.Stream, name), setter("file"), getattr(stream.Stream, name))
