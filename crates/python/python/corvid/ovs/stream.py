"""Byte streams to peers: Unix sockets, TCP and TLS.

It owns the names of connections ("unix:FILE", "tcp:HOST:PORT", "ssl:HOST:PORT", "punix:FILE",
"ptcp:PORT:HOST") and non-blocking connecting, receiving, sending and accepting.  Errors are numbers
of errno.  It knows nothing of messages, which `ovs.jsonrpc` makes of the bytes.
"""

import errno
import os
import socket
import ssl

from . import dns_resolve  # noqa: F401 - programs reach it through this module
from . import dirs
from . import fatal_signal
from . import poller as _poller
from . import socket_util
from . import timeval
from . import util
from . import vlog as _vlog

vlog = _vlog.Vlog("stream")


def stream_or_pstream_needs_probes(name):
    """Returns whether the connection `name` may break without notice, or None if it is unknown."""
    cls = Stream._find_method(name)
    if cls is not None:
        return cls.needs_probes()
    if PassiveStream.is_valid_name(name):
        return PassiveStream.needs_probes(name)
    return None


class Stream(object):
    """A connection to a peer, or an attempt at one."""

    # The states of a stream.
    __S_CONNECTING = 0
    __S_CONNECTED = 1
    __S_DISCONNECTED = 2

    # The kinds of events that `wait()` waits for.
    W_CONNECT = 0
    W_RECV = 1
    W_SEND = 2

    IPTOS_PREC_INTERNETCONTROL = 0xC0
    DSCP_DEFAULT = IPTOS_PREC_INTERNETCONTROL >> 2

    _SSL_private_key_file = None
    _SSL_certificate_file = None
    _SSL_ca_cert_file = None

    _SOCKET_METHODS = {}

    @staticmethod
    def register_method(method, cls):
        """Makes streams whose name begins with `method` and a colon be of the class `cls`."""
        Stream._SOCKET_METHODS[method + ":"] = cls

    @staticmethod
    def _find_method(name):
        for method, cls in Stream._SOCKET_METHODS.items():
            if name.startswith(method):
                return cls
        return None

    @staticmethod
    def find_class(name):
        """Returns the class of the streams called `name`, or None."""
        return Stream._find_method(name)

    @staticmethod
    def is_valid_name(name):
        """Returns true if `name` begins with a registered method."""
        return Stream._find_method(name) is not None

    valid_name = is_valid_name

    def __init__(self, socket, name, status, is_server=False):
        self.socket = socket
        self.name = name
        if status == errno.EAGAIN:
            self.state = Stream.__S_CONNECTING
        elif status == 0:
            self.state = Stream.__S_CONNECTED
        else:
            self.state = Stream.__S_DISCONNECTED
        # The reason why the stream is not connected, for the state disconnected.
        self.error = status if status != errno.EAGAIN else 0
        self.is_server = is_server

    @staticmethod
    def check_connection_completion(sock):
        """Returns 0 if `sock` is connected, `EAGAIN` if it still tries, or the error."""
        return socket_util.check_connection_completion(sock)

    @staticmethod
    def open(name, dscp=DSCP_DEFAULT):
        """Begins to connect to `name`.  Returns a pair of an error and the stream.

        The stream is None if there is an error.  Otherwise `connect()` tells when the connection
        is established.
        """
        cls = Stream.find_class(name)
        if cls is None:
            return errno.EAFNOSUPPORT, None
        error, sock = cls._open(name.split(":", 1)[1], dscp)
        if error in (errno.EAGAIN, errno.EINPROGRESS):
            if sock is None:
                # The backlog of a Unix socket is full.  No attempt goes on that could be awaited.
                return error, None
            return 0, cls(sock, name, errno.EAGAIN)
        if error:
            return error, None
        status = cls.check_connection_completion(sock)
        if status not in (0, errno.EAGAIN):
            sock.close()
            return status, None
        return 0, cls(sock, name, status)

    @staticmethod
    def _open(suffix, dscp):
        raise NotImplementedError("this class opens no sockets")

    @staticmethod
    def open_block(error_stream, timeout=None):
        """Waits until the stream of the pair that `open()` returned is connected, or failed.

        It waits up to `timeout` milliseconds, or without limit if that is None or negative, and
        returns a pair of the same form.
        """
        error, stream = error_stream
        if error or stream is None:
            return error, None
        deadline = None
        if timeout is not None and timeout >= 0:
            deadline = timeval.msec() + timeout
        while True:
            error = stream.connect()
            if error != errno.EAGAIN:
                break
            if deadline is not None and timeval.msec() > deadline:
                error = errno.ETIMEDOUT
                break
            stream.run()
            poller = _poller.Poller()
            stream.run_wait(poller)
            stream.connect_wait(poller)
            if deadline is not None:
                poller.timer_wait_until(deadline + 1)
            poller.block()
        if error:
            stream.close()
            return error, None
        return 0, stream

    def close(self):
        """Closes the stream."""
        self.socket.close()

    def connect(self):
        """Returns 0 if the connection is established, `EAGAIN` if not yet, or the error."""
        if self.state == Stream.__S_CONNECTING:
            error = self._complete()
            if error == 0:
                self.state = Stream.__S_CONNECTED
            elif error != errno.EAGAIN:
                self.state = Stream.__S_DISCONNECTED
                self.error = error
            return error
        return 0 if self.state == Stream.__S_CONNECTED else self.error

    def _complete(self):
        return self.check_connection_completion(self.socket)

    def recv(self, n):
        """Receives up to `n` bytes.  Returns a pair of an error and the bytes.

        No error and no bytes mean that the peer closed the connection.  The error is `EAGAIN` if
        there is nothing to receive yet.
        """
        error = self.connect()
        if error:
            return error, ""
        if n == 0:
            return 0, ""
        return self._recv(n)

    def _recv(self, n):
        try:
            return 0, self.socket.recv(n)
        except OSError as e:
            return socket_util.get_exception_errno(e), ""

    def send(self, buf):
        """Sends the beginning of `buf`.

        Returns the number of bytes sent, or a negative number of errno, which is `-EAGAIN` if
        nothing can be sent yet.
        """
        error = self.connect()
        if error:
            return -error
        data = buf.encode("utf-8") if isinstance(buf, str) else buf
        if not data:
            return 0
        return self._send(data)

    def _send(self, data):
        try:
            return self.socket.send(data)
        except OSError as e:
            return -socket_util.get_exception_errno(e)

    def run(self):
        """Performs what the stream has to do in the background: nothing."""

    def run_wait(self, poller):
        """Makes `poller` wake up when `run()` has something to do."""

    def wait(self, poller, wait):
        """Makes `poller` wake up when `connect()`, `recv()` or `send()` may succeed."""
        assert wait in (Stream.W_CONNECT, Stream.W_RECV, Stream.W_SEND)
        if self.state == Stream.__S_DISCONNECTED or self.socket.fileno() < 0:
            poller.immediate_wake()
            return
        if self.state == Stream.__S_CONNECTING:
            wait = Stream.W_CONNECT
        self._wait(poller, wait)

    def _wait(self, poller, wait):
        events = _poller.POLLIN if wait == Stream.W_RECV else _poller.POLLOUT
        poller.fd_wait(self.socket, events)

    def connect_wait(self, poller):
        """Makes `poller` wake up when `connect()` has news."""
        self.wait(poller, Stream.W_CONNECT)

    def recv_wait(self, poller):
        """Makes `poller` wake up when there is something to receive."""
        self.wait(poller, Stream.W_RECV)

    def send_wait(self, poller):
        """Makes `poller` wake up when something can be sent."""
        self.wait(poller, Stream.W_SEND)

    @staticmethod
    def ssl_set_private_key_file(file_name):
        """Sets the file of the private key of the streams that are opened later."""
        Stream._SSL_private_key_file = file_name

    @staticmethod
    def ssl_set_certificate_file(file_name):
        """Sets the file of the certificate of the streams that are opened later."""
        Stream._SSL_certificate_file = file_name

    @staticmethod
    def ssl_set_ca_cert_file(file_name):
        """Sets the file of the authorities that certify the peers of later streams."""
        Stream._SSL_ca_cert_file = file_name


class PassiveStream(object):
    """A socket that accepts connections."""

    def __init__(self, sock, name, bind_path):
        self.name = name
        self.socket = sock
        self.bind_path = bind_path

    @staticmethod
    def needs_probes(name):
        """Returns true unless `name` is that of a Unix socket."""
        return not name.startswith("punix:")

    @staticmethod
    def is_valid_name(name):
        """Returns true if `name` is that of a socket that accepts connections."""
        return name.startswith(("punix:", "ptcp:"))

    @staticmethod
    def open(name):
        """Begins to listen at `name`.  Returns a pair of an error and the passive stream."""
        if not PassiveStream.is_valid_name(name):
            return errno.EAFNOSUPPORT, None
        bind_path = None
        if name.startswith("punix:"):
            bind_path = name[len("punix:"):]
            error, sock = socket_util.make_unix_socket(socket.SOCK_STREAM, True, bind_path, None)
        else:
            error, sock = PassiveStream._bind_tcp(name[len("ptcp:"):])
        if error:
            return error, None
        try:
            sock.listen(10)
        except OSError as e:
            sock.close()
            return socket_util.get_exception_errno(e), None
        return 0, PassiveStream(sock, name, bind_path)

    @staticmethod
    def _bind_tcp(suffix):
        """Returns a pair of an error and a socket bound to "PORT[:HOST]" or to "HOST:PORT"."""
        first, _, rest = suffix.partition(":")
        if first.isdigit() or not rest:
            port, host = first, rest
        else:
            host, _, port = suffix.rpartition(":")
        host = host.strip("[]")
        if not port.isdigit() or int(port) > 65535:
            return errno.EINVAL, None
        try:
            sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as e:
            return socket_util.get_exception_errno(e), None
        try:
            socket_util.set_nonblocking(sock)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, int(port)))
        except OSError as e:
            sock.close()
            error = socket_util.get_exception_errno(e)
            return (error if error > 0 else errno.EINVAL), None
        return 0, sock

    def close(self):
        """Closes the socket and removes its file."""
        if self.bind_path is not None and self.socket.fileno() >= 0:
            fatal_signal.unlink_file_now(self.bind_path)
        self.socket.close()

    def accept(self):
        """Accepts a connection.  Returns a pair of an error and the stream.

        The error is `EAGAIN` if there is no connection to accept.
        """
        try:
            sock, address = self.socket.accept()
        except OSError as e:
            error = socket_util.get_exception_errno(e)
            if error not in (errno.EAGAIN, errno.EBADF):
                vlog.dbg("accept: %s" % os.strerror(error))
            return error, None
        socket_util.set_nonblocking(sock)
        if self.bind_path is not None:
            return 0, Stream(sock, "unix:%s" % address, 0)
        return 0, Stream(sock, "ptcp:%s:%s" % (address[0], address[1]), 0)

    def wait(self, poller):
        """Makes `poller` wake up when there is a connection to accept."""
        poller.fd_wait(self.socket, _poller.POLLIN)


def usage(name):
    """Returns a text for users about the connection methods of the program `name`."""
    return """
Active %s connection methods:
  unix:FILE               Unix domain socket named FILE
  tcp:HOST:PORT           TCP socket to HOST with port no of PORT
  ssl:HOST:PORT           SSL/TLS socket to HOST with port no of PORT

Passive %s connection methods:
  punix:FILE              Listen on Unix domain socket FILE""" % (name, name)


class UnixStream(Stream):
    """A stream through a Unix socket."""

    @staticmethod
    def needs_probes():
        return False

    @staticmethod
    def _open(suffix, dscp):
        path = util.abs_file_name(dirs.RUNDIR, suffix)
        return socket_util.make_unix_socket(socket.SOCK_STREAM, True, None, path)


class TCPStream(Stream):
    """A stream through a TCP connection."""

    @staticmethod
    def needs_probes():
        return True

    @staticmethod
    def _open(suffix, dscp):
        error, sock = socket_util.inet_open_active(socket.SOCK_STREAM, suffix, 0, dscp)
        if not error:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as e:
                sock.close()
                return socket_util.get_exception_errno(e), None
        return error, sock


class SSLStream(Stream):
    """A stream through TLS 1.2 or newer.

    The peer must show a certificate of the authorities, if their file is set.  The name of the
    host is not compared with the certificate.
    """

    # The direction that the last operation waits for.
    _wants = None

    @staticmethod
    def needs_probes():
        return True

    @staticmethod
    def check_connection_completion(sock):
        """Returns 0 if the TLS connection is established, `EAGAIN` if not yet, or the error.

        Before TLS begins on `sock`, this is about the connection below.
        """
        error = socket_util.check_connection_completion(sock)
        if error or not isinstance(sock, ssl.SSLSocket):
            return error
        try:
            sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return errno.EAGAIN
        except OSError as e:
            return _tls_errno(e, "handshake")
        return 0

    @staticmethod
    def _open(suffix, dscp):
        # The files are read here, so that a wrong one fails at once and not when TLS begins.
        error, _ = SSLStream._context()
        if error:
            return error, None
        error, sock = TCPStream._open(suffix, dscp)
        if error:
            return error, None
        error = socket_util.check_connection_completion(sock)
        if error not in (0, errno.EAGAIN):
            sock.close()
            return error, None
        return errno.EAGAIN, sock

    @staticmethod
    def _context():
        """Returns a pair of an error and a context with the files that are set."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            if Stream._SSL_ca_cert_file is not None:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(Stream._SSL_ca_cert_file)
            if Stream._SSL_certificate_file is not None:
                context.load_cert_chain(Stream._SSL_certificate_file, Stream._SSL_private_key_file)
        except OSError as e:
            return _tls_errno(e, "configuration"), None
        return 0, context

    def _complete(self):
        """Begins TLS as soon as the connection below is established, and goes on with it."""
        if not isinstance(self.socket, ssl.SSLSocket):
            self._wants = Stream.W_SEND
            error = socket_util.check_connection_completion(self.socket)
            if error:
                return error
            error, context = SSLStream._context()
            if error:
                return error
            try:
                self.socket = context.wrap_socket(self.socket, do_handshake_on_connect=False)
            except OSError as e:
                return _tls_errno(e, "handshake")
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            self._wants = Stream.W_RECV
            return errno.EAGAIN
        except ssl.SSLWantWriteError:
            self._wants = Stream.W_SEND
            return errno.EAGAIN
        except OSError as e:
            return _tls_errno(e, "handshake")
        self._wants = None
        return 0

    def _recv(self, n):
        try:
            return 0, self.socket.recv(n)
        except ssl.SSLWantReadError:
            return errno.EAGAIN, ""
        except ssl.SSLWantWriteError:
            self._wants = Stream.W_SEND
            return errno.EAGAIN, ""
        except ssl.SSLZeroReturnError:
            return 0, b""
        except OSError as e:
            return _tls_errno(e, "receive"), ""

    def _send(self, data):
        try:
            return self.socket.send(data)
        except ssl.SSLWantWriteError:
            return -errno.EAGAIN
        except ssl.SSLWantReadError:
            self._wants = Stream.W_RECV
            return -errno.EAGAIN
        except OSError as e:
            return -_tls_errno(e, "send")

    def _wait(self, poller, wait):
        if (wait == Stream.W_RECV and isinstance(self.socket, ssl.SSLSocket)
                and self.socket.pending()):
            # The bytes are decrypted already, so the socket itself may stay silent.
            poller.immediate_wake()
            return
        wants, self._wants = self._wants, None
        super()._wait(poller, wait if wants is None else wants)

    def close(self):
        """Tells the peer that nothing follows, as far as this goes at once, and closes."""
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.fileno() >= 0:
            try:
                self.socket.unwrap()
            except (OSError, ValueError):
                pass
        super().close()


def _tls_errno(e, action):
    """Returns the number of errno for an exception, and logs an error of TLS itself."""
    if isinstance(e, ssl.SSLError):
        vlog.warn("TLS %s: %s" % (action, e))
        return errno.EPROTO
    return e.errno or errno.EPROTO


Stream.register_method("unix", UnixStream)
Stream.register_method("tcp", TCPStream)
Stream.register_method("ssl", SSLStream)
