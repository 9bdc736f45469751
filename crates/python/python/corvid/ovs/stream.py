"""Byte streams by name: `tcp:`, `ssl:` and `unix:` connect, `ptcp:` and `punix:` wait for connections.

Nothing blocks except `Stream.open_block`. Errors are numbers; a name that no stream has is EAFNOSUPPORT.
"""

import errno
import os
import socket
import ssl

from . import fatal_signal, poller, socket_util, timeval, util, vlog

vlog = vlog.Vlog("stream")


def stream_or_pstream_needs_probes(name):
    """True if the peer of `name` can vanish in silence, False if not, None if there is no such stream."""
    cls = Stream._find_method(name)
    if cls:
        return cls.needs_probes()
    if PassiveStream.is_valid_name(name):
        return PassiveStream.needs_probes(name)
    return None


class Stream(object):
    """A connection, perhaps one that is not made yet."""

    # States.
    __S_CONNECTING = 0
    __S_CONNECTED = 1
    __S_DISCONNECTED = 2

    # What to wait for.
    W_CONNECT = 0
    W_RECV = 1
    W_SEND = 2

    IPTOS_PREC_INTERNETCONTROL = 0xC0
    DSCP_DEFAULT = IPTOS_PREC_INTERNETCONTROL >> 2

    _SOCKET_METHODS = {}

    _SSL_private_key_file = None
    _SSL_certificate_file = None
    _SSL_ca_cert_file = None

    def __init__(self, socket, name, status, is_server=False):
        """`status` is that of the connection: 0, EAGAIN while it is being made, or the error that ended it."""
        self.socket = socket
        self.name = name
        self.error = 0
        if status == errno.EAGAIN:
            self.state = Stream.__S_CONNECTING
        elif status == 0:
            self.state = Stream.__S_CONNECTED
        else:
            self.state = Stream.__S_DISCONNECTED

    @staticmethod
    def register_method(method, cls):
        """Makes `cls` open the names that begin with `method`, followed by a colon."""
        Stream._SOCKET_METHODS[method + ":"] = cls

    @staticmethod
    def _find_method(name):
        method, colon, _suffix = name.partition(":")
        return Stream._SOCKET_METHODS.get(method + colon)

    @staticmethod
    def is_valid_name(name):
        """Whether `name` begins like the name of a stream that connects."""
        return Stream._find_method(name) is not None

    @staticmethod
    def open(name, dscp=DSCP_DEFAULT):
        """Begins to connect: (0, stream) or (error number, None)."""
        cls = Stream._find_method(name)
        if not cls:
            return errno.EAFNOSUPPORT, None
        error, sock = cls._open(name.partition(":")[2], dscp)
        if error:
            return error, None
        status = cls.check_connection_completion(sock)
        if status not in (0, errno.EAGAIN):
            sock.close()
            return status, None
        return 0, cls(sock, name, status)

    @staticmethod
    def _open(suffix, dscp):
        raise NotImplementedError("This method must be overrided by subclass")

    @staticmethod
    def open_block(error_stream, timeout=None):
        """Waits until the stream that `open` returned is connected, at most `timeout` milliseconds.

        The argument is the pair that `open` returned, and the result is such a pair.
        """
        error, stream = error_stream
        if error:
            return error, None
        deadline = None if timeout is None else timeval.msec() + timeout
        while True:
            stream.run()
            error = stream.connect()
            if error != errno.EAGAIN:
                break
            if deadline is not None and timeval.msec() >= deadline:
                error = errno.ETIMEDOUT
                break
            waiter = poller.Poller()
            stream.run_wait(waiter)
            stream.connect_wait(waiter)
            if deadline is not None:
                waiter.timer_wait_until(deadline)
            waiter.block()
        if error:
            stream.close()
            return error, None
        return 0, stream

    @staticmethod
    def check_connection_completion(sock):
        return socket_util.check_connection_completion(sock)

    def close(self):
        if self.socket is not None:
            self.socket.close()
        self.state = Stream.__S_DISCONNECTED

    def connect(self):
        """0 when connected, EAGAIN while the connection is being made, otherwise the error that ended it."""
        if self.state == Stream.__S_CONNECTING:
            self.__finish_connecting()
        if self.state == Stream.__S_CONNECTING:
            return errno.EAGAIN
        if self.state == Stream.__S_CONNECTED:
            return 0
        return self.error

    def __finish_connecting(self):
        status = self.check_connection_completion(self.socket)
        if status != errno.EAGAIN:
            self.state = Stream.__S_DISCONNECTED if status else Stream.__S_CONNECTED
            self.error = status

    def recv(self, n):
        """(0, at most `n` bytes); no bytes mean that the peer closed. (EAGAIN, "") if none are there, or another error."""
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
        """The count of the bytes sent, or a negative error number: -EAGAIN if the system takes none now."""
        error = self.connect()
        if error:
            return -error
        if isinstance(buf, str):
            buf = buf.encode("utf-8")
        if not buf:
            return 0
        return self._send(buf)

    def _send(self, buf):
        try:
            return self.socket.send(buf)
        except OSError as e:
            return -socket_util.get_exception_errno(e)

    def run(self):
        """Does what is due between connect, recv and send; nothing for these streams."""

    def run_wait(self, poller):
        """Waits for what `run` does."""

    def wait(self, poller, wait):
        """Makes `poller` wake for one of W_CONNECT, W_RECV and W_SEND."""
        assert wait in (Stream.W_CONNECT, Stream.W_RECV, Stream.W_SEND)
        if self.state == Stream.__S_DISCONNECTED:
            poller.immediate_wake()
            return
        if self.state == Stream.__S_CONNECTING:
            wait = Stream.W_CONNECT
        poller.fd_wait(self.socket, self._events(wait))

    def _events(self, wait):
        return poller.POLLIN if wait == Stream.W_RECV else poller.POLLOUT

    def connect_wait(self, poller):
        self.wait(poller, Stream.W_CONNECT)

    def recv_wait(self, poller):
        self.wait(poller, Stream.W_RECV)

    def send_wait(self, poller):
        self.wait(poller, Stream.W_SEND)

    def __del__(self):
        sock = getattr(self, "socket", None)
        if sock is not None:
            sock.close()

    @staticmethod
    def ssl_set_private_key_file(file_name):
        Stream._SSL_private_key_file = file_name

    @staticmethod
    def ssl_set_certificate_file(file_name):
        Stream._SSL_certificate_file = file_name

    @staticmethod
    def ssl_set_ca_cert_file(file_name):
        Stream._SSL_ca_cert_file = file_name


class UnixStream(Stream):
    @staticmethod
    def needs_probes():
        return False

    @staticmethod
    def _open(suffix, dscp):
        if not suffix:
            return errno.ENOENT, None
        return socket_util.make_unix_socket(socket.SOCK_STREAM, True, None, suffix)


class TCPStream(Stream):
    @staticmethod
    def needs_probes():
        return True

    @staticmethod
    def _open(suffix, dscp):
        error, sock = socket_util.inet_open_active(socket.SOCK_STREAM, suffix, None, dscp)
        if not error:
            try:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as e:
                sock.close()
                return socket_util.get_exception_errno(e), None
        return error, sock


class SSLStream(Stream):
    """TLS 1.2 or later. The peer must have a certificate of our CA; its name is not checked."""

    def __init__(self, *args, **kwargs):
        self._shaken = False
        # What the handshake waits for, once TCP has connected.
        self._handshake_events = None
        super().__init__(*args, **kwargs)

    @staticmethod
    def needs_probes():
        return True

    @staticmethod
    def _open(suffix, dscp):
        try:
            context = SSLStream._context()
        except (OSError, ValueError) as e:
            # ssl.SSLError is an OSError, whose number is not the system's.
            vlog.err("SSL/TLS configuration: %s" % e)
            return errno.ENOPROTOOPT, None
        error, sock = TCPStream._open(suffix, dscp)
        if error:
            return error, None
        try:
            return 0, context.wrap_socket(sock, do_handshake_on_connect=False)
        except OSError as e:
            sock.close()
            return _ssl_errno(e), None

    @staticmethod
    def _context():
        for file_name, what in (
            (Stream._SSL_private_key_file, "private key"),
            (Stream._SSL_certificate_file, "certificate"),
            (Stream._SSL_ca_cert_file, "CA certificate"),
        ):
            if not file_name:
                raise ValueError("%s must be configured" % what)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_verify_locations(Stream._SSL_ca_cert_file)
        context.load_cert_chain(Stream._SSL_certificate_file, Stream._SSL_private_key_file)
        return context

    def connect(self):
        error = super().connect()
        if error or self._shaken:
            return error
        try:
            self.socket.do_handshake()
        except ssl.SSLWantReadError:
            self._handshake_events = poller.POLLIN
            return errno.EAGAIN
        except ssl.SSLWantWriteError:
            self._handshake_events = poller.POLLOUT
            return errno.EAGAIN
        except (OSError, ValueError) as e:
            vlog.warn("%s: SSL/TLS handshake failed: %s" % (self.name, e))
            self.error = _ssl_errno(e)
            self.state = Stream._Stream__S_DISCONNECTED
            return self.error
        self._shaken = True
        self._handshake_events = None
        return 0

    def _events(self, wait):
        return self._handshake_events or super()._events(wait)

    def _recv(self, n):
        try:
            return 0, self.socket.recv(n)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return errno.EAGAIN, ""
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return 0, b""
        except OSError as e:
            return _ssl_errno(e), ""

    def _send(self, buf):
        try:
            return self.socket.send(buf)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return -errno.EAGAIN
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return -errno.EPIPE
        except OSError as e:
            return -_ssl_errno(e)

    def close(self):
        if self.socket is not None and self._shaken:
            try:
                # Tells the peer that the end is meant. Its answer is not waited for.
                self.socket.unwrap()
            except (OSError, ValueError):
                pass
        super().close()


def _ssl_errno(e):
    """An error number of the system: those of the TLS library mean something else."""
    if isinstance(e, ssl.SSLError) or not getattr(e, "errno", None):
        return errno.EPROTO
    return e.errno


class PassiveStream(object):
    """Waits for connections at a Unix socket or a TCP port."""

    def __init__(self, sock, name, bind_path):
        self.name = name
        self.socket = sock
        self.bind_path = bind_path

    @staticmethod
    def needs_probes(name):
        return not name.startswith("punix:")

    @staticmethod
    def is_valid_name(name):
        return name.startswith(("punix:", "ptcp:"))

    @staticmethod
    def open(name):
        """Begins to wait: (0, passive stream) or (error number, None). TCP: "ptcp:PORT", "ptcp:PORT:HOST" or "ptcp:HOST:PORT"."""
        if not PassiveStream.is_valid_name(name):
            return errno.EAFNOSUPPORT, None
        method, _colon, suffix = name.partition(":")
        if method == "ptcp":
            bind_path = None
            error, sock = _listen_tcp(suffix)
        else:
            if not suffix:
                return errno.ENOENT, None
            # A daemon leaves the directory to which a relative path belongs, and still has to remove the file.
            bind_path = util.abs_file_name(None, suffix)
            error, sock = socket_util.make_unix_socket(socket.SOCK_STREAM, True, bind_path, None)
        if error:
            return error, None
        try:
            sock.listen(10)
        except OSError as e:
            vlog.err("%s: listen: %s" % (name, os.strerror(e.errno)))
            sock.close()
            return e.errno, None
        return 0, PassiveStream(sock, name, bind_path)

    def close(self):
        """Stops waiting and removes the file of a Unix socket."""
        if self.socket is not None:
            self.socket.close()
        if self.bind_path is not None:
            fatal_signal.unlink_file_now(self.bind_path)
            self.bind_path = None

    def accept(self):
        """(0, stream) for the next connection, (EAGAIN, None) if there is none, or another error."""
        while True:
            try:
                sock, address = self.socket.accept()
            except OSError as e:
                error = socket_util.get_exception_errno(e)
                if error == errno.ECONNABORTED:
                    continue
                if error not in (errno.EAGAIN, errno.EWOULDBLOCK):
                    vlog.dbg("accept: %s" % util.ovs_retval_to_string(error))
                return error, None
            socket_util.set_nonblocking(sock)
            if sock.family == socket.AF_UNIX:
                return 0, Stream(sock, "unix:%s" % os.fsdecode(address or b""), 0)
            return 0, Stream(sock, "ptcp:%s:%s" % (address[0], address[1]), 0)

    def wait(self, poller):
        poller.fd_wait(self.socket, _POLLIN)

    def __del__(self):
        sock = getattr(self, "socket", None)
        if sock is not None:
            sock.close()


_POLLIN = poller.POLLIN


def _listen_tcp(suffix):
    """A listening address: the port alone or one side of a colon is a number, the other side a host."""
    host, colon, port = suffix.rpartition(":")
    if not colon:
        host, port = "", suffix
    elif suffix.partition(":")[0].isdigit():
        port, _colon, host = suffix.partition(":")
    host = host.strip("[]")
    if not port.isdigit() or int(port) > 65535:
        return errno.EINVAL, None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as e:
        return socket_util.get_exception_errno(e), None
    try:
        socket_util.set_nonblocking(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, int(port)))
        return 0, sock
    except OSError as e:
        sock.close()
        return e.errno if isinstance(e.errno, int) and e.errno > 0 else errno.EADDRNOTAVAIL, None


def usage(name):
    """The text about the forms of `name` for a program's help."""
    return """
Active %s connection methods:
  unix:FILE               Unix domain socket named FILE
  tcp:HOST:PORT           TCP socket to HOST with port no of PORT
  ssl:HOST:PORT           SSL/TLS socket to HOST with port no of PORT

Passive %s connection methods:
  punix:FILE              Listen on Unix domain socket FILE
  ptcp:PORT[:HOST]        Listen on TCP PORT, at HOST only if it is given""" % (
        name,
        name,
    )


Stream.register_method("unix", UnixStream)
Stream.register_method("tcp", TCPStream)
Stream.register_method("ssl", SSLStream)
