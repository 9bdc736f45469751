"""The server of a control socket: connections, requests and the commands of every daemon.

A program calls `run` and `wait` of its `UnixctlServer` in its main loop.
"""

import errno
import os

from . import UnixctlOutputFormat, command_register, commands
from .. import dirs
from .. import jsonrpc
from .. import stream
from .. import util
from .. import version as _version
from .. import vlog as _vlog

# The work for one connection, and the new connections, in one call of `run`.
REQUESTS_MAX = 10
ACCEPTS_MAX = 10

Message = jsonrpc.Message
vlog = _vlog.Vlog("unixctl_server")


def __getattr__(name):
    # Older programs find it here. A server does not load it otherwise: `vlog/list` would list its
    # module.
    if name == "UnixctlClient":
        from .client import UnixctlClient

        return UnixctlClient
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class UnixctlConnection(object):
    """A connection of a client.  At most one of its requests is without a reply."""

    def __init__(self, rpc):
        assert isinstance(rpc, jsonrpc.Connection)
        self._rpc = rpc
        self._request_id = None
        self._fmt = UnixctlOutputFormat.TEXT

    def run(self):
        """Receives and executes requests; returns 0, or an error after which it must be closed."""
        self._rpc.run()
        error = self._rpc.get_status()
        for _ in range(REQUESTS_MAX):
            if error or self._request_id is not None or self._rpc.get_backlog():
                break
            error, message = self._rpc.recv()
            if error:
                break
            if message.type != Message.T_REQUEST:
                vlog.warn("%s: received unexpected %s message"
                          % (self._rpc.name, Message.type_to_string(message.type)))
                error = errno.EINVAL
                break
            self._process_command(message)
        return 0 if error == errno.EAGAIN else error

    def reply(self, body):
        """Answers the request with the text `body`, or nothing for None."""
        assert body is None or isinstance(body, str)
        body = body or ""
        if self._fmt == UnixctlOutputFormat.JSON:
            self._reply_impl_json(True, {"reply-format": "plain", "reply": body})
        else:
            self._reply_impl_json(True, _line(body))

    def reply_json(self, body):
        """Answers the request with a JSON value, which the client must have asked for."""
        self._reply_impl_json(True, body)

    def reply_error(self, body):
        """Answers the request with the error `body`."""
        assert body is None or isinstance(body, str)
        body = body or ""
        self._reply_impl_json(False, body if self._fmt == UnixctlOutputFormat.JSON else _line(body))

    def _close(self):
        self._rpc.close()
        self._request_id = None

    def _wait(self, poller):
        self._rpc.wait(poller)
        # A client that closes the connection during its request is noticed at the reply.
        # Waiting for it here would make the program poll without rest.
        if self._request_id is None and not self._rpc.get_backlog():
            self._rpc.recv_wait(poller)

    def _reply_impl_json(self, success, body):
        assert self._request_id is not None
        create = Message.create_reply if success else Message.create_error
        message = create(body, self._request_id)
        self._request_id = None
        self._rpc.send(message)

    def _process_command(self, request):
        assert request.type == Message.T_REQUEST
        self._request_id = request.id
        method, params = request.method, request.params
        command = commands.get(method)
        if command is None:
            error = '"%s" is not a valid command' % method
        elif len(params) < command.min_args:
            error = '"%s" command requires at least %d arguments' % (method, command.min_args)
        elif len(params) > command.max_args:
            error = '"%s" command takes at most %d arguments' % (method, command.max_args)
        elif not all(isinstance(param, str) for param in params):
            error = '"%s" command has non-string argument' % method
        else:
            command.callback(self, list(params), command.aux)
            return
        self.reply_error(error)


def _line(text):
    """Returns a text that ends with a newline, which older versions of ovs-appctl do not add."""
    return text if not text or text.endswith("\n") else text + "\n"


def _unixctl_version(conn, unused_argv, version):
    assert isinstance(conn, UnixctlConnection)
    conn.reply("%s (Open vSwitch) %s" % (util.PROGRAM_NAME, version))


def _unixctl_set_options(conn, argv, unused_aux):
    """Sets the format of replies on one connection."""
    words = [part for word in argv
             for part in (word.split("=", 1) if word.startswith("--") else [word])]
    if len(words) != 2 or words[0] != "--format":
        conn.reply_error("usage: set-options --format text|json")
        return
    try:
        conn._fmt = UnixctlOutputFormat[words[1].upper()]
    except KeyError:
        conn.reply_error("unknown format %s" % words[1])
        return
    conn.reply(None)


class UnixctlServer(object):
    """Listens at a control socket and executes the commands of clients."""

    def __init__(self, listener):
        assert isinstance(listener, stream.PassiveStream)
        self._listener = listener
        self._conns = []

    def run(self):
        """Accepts clients and executes their requests."""
        for _ in range(ACCEPTS_MAX):
            error, stream_ = self._listener.accept()
            if error:
                if error != errno.EAGAIN:
                    vlog.warn("%s: accept failed: %s"
                              % (self._listener.name, util.ovs_retval_to_string(error)))
                break
            self._conns.append(UnixctlConnection(jsonrpc.Connection(stream_)))
        for conn in list(self._conns):
            error = conn.run()
            if error:
                conn._close()
                self._conns.remove(conn)

    def wait(self, poller):
        """Makes `poller` wake up when `run` has something to do."""
        self._listener.wait(poller)
        for conn in self._conns:
            conn._wait(poller)

    def close(self):
        """Closes all connections and the socket, and removes the socket."""
        for conn in self._conns:
            conn._close()
        self._conns = []
        self._listener.close()
        self._listener = None

    @staticmethod
    def create(path, version=None):
        """Listens at the socket `path`; returns a tuple of an errno value or 0 and a server.

        A relative `path` is relative to the directory of Open vSwitch's sockets.  Without a
        `path`, the socket has the name that ovs-appctl finds by the name of the program.
        `version` is the version of the program, instead of that of this library.
        """
        assert path is None or isinstance(path, str)

        if path is not None:
            path = "punix:%s" % util.abs_file_name(dirs.RUNDIR, path)
        else:
            path = "punix:%s/%s.%d.ctl" % (dirs.RUNDIR, util.PROGRAM_NAME, os.getpid())
        error, listener = stream.PassiveStream.open(path)
        if error:
            util.ovs_error(error, "could not initialize control socket %s" % path)
            return error, None

        command_register("version", "", 0, 0, _unixctl_version, version or _version.VERSION)
        command_register("set-options", "[--format text|json]", 1, 2, _unixctl_set_options, None)
        return 0, UnixctlServer(listener)
