"""The session of an Idl as programs see it through ``Idl._session``: the core has the real one."""

from .. import stream as _stream

#: Milliseconds.
_DEFAULT_PROBE_INTERVAL = 5000


class _Reconnect:
    """The settings of reconnection."""

    def __init__(self, session):
        self._session = session

    def set_probe_interval(self, probe_interval):
        """Milliseconds of silence before the server is probed; 0 never probes, None is the
        default.
        """
        self._session._set_probe_interval(probe_interval)

    def get_probe_interval(self):
        """As it was set. The default depends on the remote: sockets of this machine need no
        probes.
        """
        interval = self._session._probe_interval
        if interval is None:
            needs_probes = _stream.stream_or_pstream_needs_probes(self._session.get_name())
            return _DEFAULT_PROBE_INTERVAL if needs_probes else 0
        return interval

    @property
    def probe_interval(self):
        """As :meth:`get_probe_interval`."""
        return self.get_probe_interval()

    def get_name(self):
        """The remote."""
        return self._session.get_name()

    def is_connected(self):
        """Whether there is a connection."""
        return self._session.is_connected()

    def force_reconnect(self, _now=None):
        """Ends the connection and makes another one."""
        self._session.force_reconnect()


class _Rpc:
    """The connection, for its name."""

    def __init__(self, name):
        self.name = name


class Session:
    """What programs ask of a session: which remotes, whether it is connected, probes."""

    def __init__(self, idl, probe_interval):
        self._idl = idl
        self._probe_interval = probe_interval
        self.reconnect = _Reconnect(self)

    @property
    def remotes(self):
        """The remotes, in the order in which they are tried."""
        native = self._idl._native
        return [] if native is None else native.remotes

    @property
    def rpc(self):
        """The connection; None without one."""
        return _Rpc(self.get_name()) if self.is_connected() else None

    def get_num_of_remotes(self):
        """How many remotes there are."""
        return len(self.remotes)

    def get_name(self):
        """The remote that is connected, or is tried."""
        native = self._idl._native
        remote = None if native is None else native.session.remote
        return remote or (self.remotes or [""])[0]

    def is_connected(self):
        """Whether there is a connection."""
        native = self._idl._native
        return native is not None and native.session.is_connected

    def is_alive(self):
        """Whether there is a connection, or is going to be."""
        native = self._idl._native
        return native is not None and native.session.is_alive

    def force_reconnect(self):
        """Ends the connection and makes another one."""
        self._idl.force_reconnect()

    def close(self):
        """Ends the session."""
        self._idl.close()

    def _set_probe_interval(self, milliseconds):
        self._probe_interval = milliseconds
        native = self._idl._native
        if native is not None:
            native.set_probe_interval(None if milliseconds is None else milliseconds / 1000)
