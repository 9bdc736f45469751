"""Addresses, Unix and TCP sockets, and errors."""
# not on: debian: old versions differ from the newest in details, and have a parser in C that counts otherwise

import os
import sys

sys.path.pop(0)  # This folder has the names of standard modules.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import socket
import tempfile
import time

import ovs.socket_util as util
import ovs.vlog
from transcript import attempt, say

for level in ("emer", "err", "warn", "info", "dbg"):
    setattr(ovs.vlog.Vlog, level, lambda self, message, **kwargs: None)

for address in ("1.2.3.4", "", "1.2.3", "256.1.1.1", "::1", "localhost", "01.2.3.4", "1.2.3.4 ", "0.0.0.0", "1.2.3.4.5",
                None, 5):
    say("IPv4", address, attempt(util.is_valid_ipv4_address, address))
for target in ("1.2.3.4:5", "1.2.3.4", "[::1]:5", "::1", "", ":5", "1.2.3.4:", "1.2.3.4:x", "1.2.3.4:0", "1.2.3.4:65535",
               "[::1:5", "[::1]5", "[::1]:", "1.2.3.4:5:6", "[fe80::1%lo]:5", "[]:5", "no.such.host.invalid:5",
               " 1.2.3.4:5", "[1.2.3.4]:5", "::1:5"):
    for port in (None, 0, 6640):
        say("parse", ascii(target), port, attempt(util.inet_parse_active, target, port))
for e in (OSError(5, "x"), socket.error(111, "y"), socket.gaierror(-2, "n"), ValueError("a")):
    say("errno", attempt(util.get_exception_errno, e))
say("null", util.get_null_fd() == util.get_null_fd(), util.get_null_fd() >= 0)


def sock(pair):
    error, s = pair
    if s is None:
        return error, None
    return error, s.family.name, s.type.name, s.getblocking()


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(5)
port = listener.getsockname()[1]
bound = socket.socket()
bound.bind(("127.0.0.1", 0))
for style in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for name, number in (("listening", port), ("refusing", bound.getsockname()[1])):
        for default in (None, number):
            error, s = util.inet_open_active(style, "127.0.0.1" if default else "127.0.0.1:%d" % number, default, 48)
            time.sleep(0.02)
            say("open", style.name, name, sock((error, s)), util.check_connection_completion(s),
                s.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
say("dscp", attempt(util.inet_open_active, socket.SOCK_STREAM, "127.0.0.1:%d" % port, None, 64),
    sock(util.inet_open_active(socket.SOCK_STREAM, "127.0.0.1:%d" % port, None, -1)))
s = socket.socket()
for dscp in (10, 0, 63, 64, -1):
    say("dscp", dscp, attempt(util.set_dscp, s, socket.AF_INET, dscp), s.getsockopt(socket.IPPROTO_IP, socket.IP_TOS))
say("family", attempt(util.set_dscp, s, socket.AF_UNIX, 1))
util.set_nonblocking(s)
say("blocking", s.getblocking())
for address in (("127.0.0.1", 80), ("::1", 80)):
    family, s = util.inet_create_socket_active(socket.SOCK_STREAM, address)
    say("create", family.name, sock((0, s)))

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    error, server = util.make_unix_socket(socket.SOCK_STREAM, True, "a", None)
    server.listen(1)
    say("bind", sock((error, server)), oct(os.stat("a").st_mode))
    clients = [util.make_unix_socket(socket.SOCK_STREAM, True, None, "a") for _ in range(4)]
    say("connect", [sock(c) for c in clients], util.check_connection_completion(clients[0][1]))
    for bind, connect in ((None, "none"), ("b/c", None), (None, None), ("a", None)):
        say("unix", bind, connect, sock(util.make_unix_socket(socket.SOCK_STREAM, True, bind, connect)))
    open("file", "w").close()
    say("file", sock(util.make_unix_socket(socket.SOCK_STREAM, True, None, "file")),
        sock(util.make_unix_socket(socket.SOCK_STREAM, True, "file", None)))
    server.close()
    say("closed", sock(util.make_unix_socket(socket.SOCK_STREAM, True, None, "a")))
    say("undone", sock(util.make_unix_socket(socket.SOCK_DGRAM, True, "d", "a")), sorted(os.listdir(".")))
    os.chdir("/")
r, w = os.pipe()
for data in (b"abc", b"", "str"):
    say("write", attempt(util.write_fully, w, data))
os.close(r)
say("write", attempt(util.write_fully, w, b"abc"))
os.close(w)
say("write", attempt(util.write_fully, w, b"abc"))
