"""The client of a control socket."""

from .. import jsonrpc
from .. import stream
from .. import util
from .. import vlog as _vlog

vlog = _vlog.Vlog("unixctl_client")


class UnixctlClient(object):
    """A connection to a daemon that executes control commands."""

    def __init__(self, conn):
        assert isinstance(conn, jsonrpc.Connection)
        self._conn = conn

    def transact(self, command, argv):
        """Executes a command; returns a tuple `(error, error_text, result)`.

        `error` is 0 or says why there is no answer: an errno value or `ovs.util.EOF`.  An answer
        is either the text of an error or a result.
        """
        assert isinstance(command, str)
        assert isinstance(argv, list)
        assert all(isinstance(argument, str) for argument in argv)

        request = jsonrpc.Message.create_request(command, argv)
        error, reply = self._conn.transact_block(request)
        if error:
            vlog.warn("error communicating with %s: %s"
                      % (self._conn.name, util.ovs_retval_to_string(error)))
            return error, None, None
        if reply.error is not None:
            return 0, reply.error, None
        assert reply.result is not None
        return 0, None, reply.result

    def close(self):
        """Closes the connection."""
        self._conn.close()

    @staticmethod
    def create(path):
        """Connects to the socket `path`; returns a tuple of an errno value or 0 and a client."""
        assert isinstance(path, str)

        error, stream_ = stream.Stream.open_block(stream.Stream.open("unix:%s" % path))
        if error:
            vlog.warn("failed to connect to %s" % path)
            return error, None
        return 0, UnixctlClient(jsonrpc.Connection(stream_))
