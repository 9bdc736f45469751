"""TLS streams: a certified peer, a peer of other authorities, a peer without TLS, refused, bad files."""
# not on: debian: old versions differ from the newest in details, and have a parser in C that counts otherwise

import os
import sys

sys.path.pop(0)  # This folder has the names of standard modules.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import errno
import socket
import ssl
import subprocess
import tempfile
import threading

import ovs.stream
import ovs.vlog
from transcript import say

for level in ("emer", "err", "warn", "info", "dbg"):
    setattr(ovs.vlog.Vlog, level, lambda self, message, **kwargs: None)

folder = tempfile.TemporaryDirectory()


def path(name):
    return os.path.join(folder.name, name)


def openssl(*arguments):
    subprocess.run(("openssl",) + arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def authority(name):
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path(name + ".key"), "-out",
            path(name + ".pem"), "-days", "2", "-subj", "/CN=" + name)


def certificate(name, ca):
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", path(name + ".key"), "-out", path(name + ".csr"),
            "-subj", "/CN=" + name)
    openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path(ca + ".pem"), "-CAkey", path(ca + ".key"),
            "-CAcreateserial", "-out", path(name + ".pem"), "-days", "2")


authority("ca")
authority("other")
certificate("server", "ca")
certificate("client", "ca")
certificate("stranger", "other")


def serve(cert, behaviour, wants_client=True, version=None):
    """Runs a server for one connection and returns its port and its thread."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    listener.settimeout(10)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path(cert + ".pem"), path(cert + ".key"))
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(path("ca.pem"))
    if version is not None:
        context.minimum_version = context.maximum_version = version

    def run():
        sock, _ = listener.accept()
        sock.settimeout(10)
        try:
            if behaviour == "plain":
                sock.recv(100)
                sock.sendall(b"no TLS here" * 10)
                return
            tls = context.wrap_socket(sock, server_side=True)
            while True:
                data = tls.recv(65536)
                if not data or behaviour == "close":
                    tls.close()
                    return
                tls.sendall(data)
        except OSError:
            pass
        finally:
            sock.close()
            listener.close()
    thread = threading.Thread(target=run)
    thread.start()
    return listener.getsockname()[1], thread


def settings(ca, name):
    ovs.stream.Stream.ssl_set_ca_cert_file(path(ca) if ca else None)
    ovs.stream.Stream.ssl_set_certificate_file(path(name + ".pem"))
    ovs.stream.Stream.ssl_set_private_key_file(path(name + ".key"))


def block(stream, kind):
    poller = ovs.poller.Poller()
    stream.wait(poller, kind)
    poller.timer_wait(5000)
    poller.block()


def receive(stream, size):
    got = b""
    while len(got) < size:
        error, data = stream.recv(4096)
        if error == errno.EAGAIN:
            block(stream, stream.W_RECV)
        elif error or not data:
            return got, "error" if error else "end"
        else:
            got += data
    return got, ""


def send(stream, data):
    while data:
        n = stream.send(data)
        if n == -errno.EAGAIN:
            block(stream, stream.W_SEND)
        elif n < 0:
            return "error"
        else:
            data = data[n:]
    return ""


for version in (None, ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
    settings("ca.pem", "client")
    port, thread = serve("server", "echo", version=version)
    error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open("ssl:127.0.0.1:%d" % port), 5000)
    say("open", version and version.name, error, type(stream).__name__, stream.connect())
    say("send", send(stream, b"hello"), receive(stream, 5))
    say("nothing", stream.recv(10)[0] == errno.EAGAIN)
    big = os.urandom(30000)
    say("big", send(stream, big), receive(stream, 30000) == (big, ""))
    stream.close()
    thread.join()

port, thread = serve("server", "close")
error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open("ssl:127.0.0.1:%d" % port), 5000)
say("closing peer", error, send(stream, b"x"), receive(stream, 5))
stream.close()
thread.join()

for ca, name, cert, behaviour in (("ca.pem", "client", "stranger", "echo"), ("ca.pem", "client", "server", "plain")):
    settings(ca, name)
    port, thread = serve(cert, behaviour)
    error, stream = ovs.stream.Stream.open_block(ovs.stream.Stream.open("ssl:127.0.0.1:%d" % port), 5000)
    say("refused", cert, behaviour, error != 0, stream)
    thread.join()

settings("ca.pem", "client")
unused = socket.socket()
unused.bind(("127.0.0.1", 0))
error, stream = ovs.stream.Stream.open_block(
    ovs.stream.Stream.open("ssl:127.0.0.1:%d" % unused.getsockname()[1]), 5000)
say("no listener", error != 0, stream)

silent = socket.socket()
silent.bind(("127.0.0.1", 0))
silent.listen(1)
error, stream = ovs.stream.Stream.open_block(
    ovs.stream.Stream.open("ssl:127.0.0.1:%d" % silent.getsockname()[1]), 300)
say("silent peer", error == errno.ETIMEDOUT, stream)
say("probes", ovs.stream.stream_or_pstream_needs_probes("ssl:127.0.0.1:1"))
