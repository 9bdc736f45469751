"""When to connect, to probe and to give up: a state machine that owns no socket and reads no clock.

Every method takes the time in milliseconds. The owner asks `run` for an action, does it, and tells the machine what came
of it. Times of an active connection and of the wait between attempts follow the rules of Open vSwitch.
"""

from . import util, vlog

EOF = util.EOF

# The actions that `Reconnect.run` asks for.
CONNECT = "connect"
DISCONNECT = "disconnect"
PROBE = "probe"

_MIN_BACKOFF_MS = 1000
_MAX_BACKOFF_MS = 8000
_PROBE_INTERVAL_MS = 5000
# Intervals shorter than this would only burden the peer.
_SHORTEST_MS = 1000

vlog = vlog.Vlog("reconnect")


class _Stats(object):
    """A snapshot of a machine, as `get_stats` gives it. Times are in milliseconds; None for what never happened."""


def _since(now, then):
    return None if then is None else now - then


class Reconnect(object):
    """One connection. The states are classes of their own, each with its deadline and the action that is due then."""

    class Void(object):
        """Disabled."""

        name = "VOID"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return None

        @staticmethod
        def run(fsm, now):
            return None

    class Listening(object):
        """Waits for the peer of a passive connection."""

        name = "LISTENING"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return None

        @staticmethod
        def run(fsm, now):
            return None

    class Backoff(object):
        """Waits before the next attempt."""

        name = "BACKOFF"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return fsm.state_entered + fsm.backoff

        @staticmethod
        def run(fsm, now):
            return CONNECT

    class ConnectInProgress(object):
        """An attempt is under way; it may take as long as the backoff."""

        name = "CONNECTING"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return fsm.state_entered + max(_SHORTEST_MS, fsm.backoff)

        @staticmethod
        def run(fsm, now):
            return DISCONNECT

    class Active(object):
        """Connected, and the peer was heard within the probe interval."""

        name = "ACTIVE"
        is_connected = True

        @staticmethod
        def deadline(fsm, now):
            return fsm._silent_until(max(fsm.last_activity, fsm.state_entered), now)

        @staticmethod
        def run(fsm, now):
            idle = now - max(fsm.last_activity, fsm.state_entered)
            vlog.dbg("%s: idle %d ms, sending inactivity probe" % (fsm.name, idle))
            fsm._transition(now, Reconnect.Idle)
            return PROBE

    class Idle(object):
        """Connected; a probe was sent and nothing came since."""

        name = "IDLE"
        is_connected = True

        @staticmethod
        def deadline(fsm, now):
            return fsm._silent_until(fsm.state_entered, now)

        @staticmethod
        def run(fsm, now):
            silent_s = (now - fsm.state_entered) / 1000.0
            vlog.err(
                "%s: no response to inactivity probe after %.3g seconds, disconnecting" % (fsm.name, silent_s)
            )
            return DISCONNECT

    class Reconnect(object):
        """The owner was told to close the connection and open it anew."""

        name = "RECONNECT"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return fsm.state_entered

        @staticmethod
        def run(fsm, now):
            return DISCONNECT

    def __init__(self, now):
        self.name = "void"
        self.min_backoff = _MIN_BACKOFF_MS
        self.max_backoff = _MAX_BACKOFF_MS
        self.probe_interval = _PROBE_INTERVAL_MS
        self.passive = False
        self.info_level = vlog.info

        self.state = Reconnect.Void
        self.state_entered = now
        self.backoff = 0
        self.last_activity = now
        self.last_connected = None
        self.last_disconnected = None
        self.last_receive_attempt = now
        self.max_tries = None
        self.backoff_free_tries = 0

        self.creation_time = now
        self.n_attempted_connections = 0
        self.n_successful_connections = 0
        self.total_connected_duration = 0
        self.seqno = 0

    # Configuration.

    def set_quiet(self, quiet):
        """Whether messages of level "info" become "dbg"."""
        self.info_level = vlog.dbg if quiet else vlog.info

    def get_name(self):
        return self.name

    def set_name(self, name):
        self.name = "void" if name is None else name

    def get_min_backoff(self):
        return self.min_backoff

    def get_max_backoff(self):
        return self.max_backoff

    def get_probe_interval(self):
        return self.probe_interval

    def set_max_tries(self, max_tries):
        """How many attempts are left, or None for no limit."""
        self.max_tries = max_tries

    def get_max_tries(self):
        return self.max_tries

    def set_backoff(self, min_backoff, max_backoff):
        """The shortest and the longest wait between attempts; a second at least."""
        self.min_backoff = max(min_backoff, _SHORTEST_MS)
        self.max_backoff = max(max_backoff, self.min_backoff)
        if self.state == Reconnect.Backoff and self.backoff > self.max_backoff:
            self.backoff = self.max_backoff

    def set_backoff_free_tries(self, backoff_free_tries):
        """How many attempts follow one another without a wait: one for each remote."""
        self.backoff_free_tries = backoff_free_tries

    def set_probe_interval(self, probe_interval):
        """How long the peer may be silent before it is probed; 0 or None for no probes."""
        self.probe_interval = max(_SHORTEST_MS, probe_interval) if probe_interval else 0

    def is_passive(self):
        return self.passive

    def set_passive(self, passive, now):
        """Whether the peer connects. An attempt in the other direction is abandoned."""
        if self.passive == passive:
            return
        self.passive = passive
        if passive:
            abandoned = self.state in (Reconnect.ConnectInProgress, Reconnect.Reconnect)
        else:
            abandoned = self.state == Reconnect.Listening and self._may_retry()
        if abandoned:
            self._transition(now, Reconnect.Backoff)
            self.backoff = 0

    # Orders.

    def is_enabled(self):
        return self.state != Reconnect.Void

    def enable(self, now):
        """Starts connecting, if an attempt is left."""
        if self.state == Reconnect.Void and self._may_retry():
            self._transition(now, Reconnect.Backoff)
            self.backoff = 0

    def disable(self, now):
        if self.state != Reconnect.Void:
            self._transition(now, Reconnect.Void)

    def force_reconnect(self, now):
        """Ends the connection or the attempt; a new one follows as after any other end."""
        if self.state in (Reconnect.ConnectInProgress, Reconnect.Active, Reconnect.Idle):
            self._transition(now, Reconnect.Reconnect)

    # Reports of the owner.

    def connecting(self, now):
        """An attempt began."""
        if self.state != Reconnect.ConnectInProgress:
            if self.passive:
                self.info_level("%s: listening..." % self.name)
            elif self.backoff < self.max_backoff:
                self.info_level("%s: connecting..." % self.name)
            self._transition(now, Reconnect.ConnectInProgress)

    def listening(self, now):
        """A passive connection waits for its peer."""
        if self.state != Reconnect.Listening:
            self.info_level("%s: listening..." % self.name)
            self._transition(now, Reconnect.Listening)

    def listen_error(self, now, error):
        if self.state == Reconnect.Listening:
            self.disconnected(now, error)

    def connected(self, now):
        if not self.state.is_connected:
            self.connecting(now)
            self.info_level("%s: connected" % self.name)
            self._transition(now, Reconnect.Active)
            self.last_connected = now

    def connect_failed(self, now, error):
        """An attempt ended with `error`, or timed out if that is 0 or None."""
        self.connecting(now)
        self.disconnected(now, error)

    def disconnected(self, now, error):
        """The connection or the attempt ended: by `error`, by the peer (`EOF`), or by ourselves (0 or None)."""
        if self.state in (Reconnect.Backoff, Reconnect.Void):
            return
        self._log_end(error)
        was_connected = self.state.is_connected
        if was_connected:
            self.last_disconnected = now
        if not self._may_retry():
            self._transition(now, Reconnect.Void)
            return
        if self.backoff_free_tries > 1:
            self.backoff_free_tries -= 1
            self.backoff = 0
        elif was_connected and (self.passive or self.last_activity - self.last_connected >= self.backoff):
            # The connection was of use, so the wait starts anew.
            self.backoff = 0 if self.passive else self.min_backoff
        else:
            self._lengthen_backoff()
        self._transition(now, Reconnect.Backoff)

    def activity(self, now):
        """The peer was heard, or took something that we sent."""
        if self.state != Reconnect.Active:
            self._transition(now, Reconnect.Active)
        self.last_activity = now

    def receive_attempted(self, now):
        """The owner looked for input at `now`. None: its input is looked for all the time.

        Silence counts only if somebody listened: a program that did not run for a while blames its peer for nothing.
        """
        self.last_receive_attempt = now

    # Time.

    def run(self, now):
        """The action that is due, or None."""
        deadline = self.state.deadline(self, now)
        if deadline is not None and now >= deadline:
            return self.state.run(self, now)
        return None

    def wait(self, poller, now):
        timeout = self.timeout(now)
        if timeout is not None:
            poller.timer_wait(timeout)

    def timeout(self, now):
        """Milliseconds until `run` is due, or None for never."""
        deadline = self.state.deadline(self, now)
        return None if deadline is None else max(0, deadline - now)

    # Facts.

    def is_connected(self):
        return self.state.is_connected

    def get_last_connect_elapsed(self, now):
        return _since(now, self.last_connected)

    def get_last_disconnect_elapsed(self, now):
        return _since(now, self.last_disconnected)

    def get_stats(self, now):
        stats = _Stats()
        stats.creation_time = self.creation_time
        stats.last_activity = self.last_activity
        stats.last_connected = self.last_connected
        stats.last_disconnected = self.last_disconnected
        stats.backoff = self.backoff
        stats.seqno = self.seqno
        stats.is_connected = self.is_connected()
        stats.msec_since_connect = self.get_last_connect_elapsed(now)
        stats.msec_since_disconnect = self.get_last_disconnect_elapsed(now)
        stats.total_connected_duration = self.total_connected_duration
        if stats.is_connected:
            stats.total_connected_duration += stats.msec_since_connect or 0
        stats.n_attempted_connections = self.n_attempted_connections
        stats.n_successful_connections = self.n_successful_connections
        stats.state = self.state.name
        stats.state_elapsed = now - self.state_entered
        return stats

    # Internals.

    def _silent_until(self, since, now):
        """When the silence that began at `since` has lasted too long, or None without probes."""
        if not self.probe_interval:
            return None
        expiration = since + self.probe_interval
        attempt = self.last_receive_attempt
        if now < expiration or attempt is None or attempt >= expiration:
            return expiration
        return now + 1

    def _may_retry(self):
        if self.max_tries is None:
            return True
        if self.max_tries > 0:
            self.max_tries -= 1
            return True
        return False

    def _transition(self, now, state):
        if self.state == Reconnect.ConnectInProgress:
            self.n_attempted_connections += 1
            if state == Reconnect.Active:
                self.n_successful_connections += 1
        if self.state.is_connected != state.is_connected:
            if self.state.is_connected:
                self.total_connected_duration += now - self.last_connected
            self.seqno += 1
        vlog.dbg("%s: entering %s" % (self.name, state.name))
        self.state = state
        self.state_entered = now

    def _log_end(self, error):
        reason = " (%s)" % util.ovs_retval_to_string(error) if error and error > 0 else ""
        log = vlog.warn if reason else self.info_level
        if self.state.is_connected:
            if error == EOF:
                self.info_level("%s: connection closed by peer" % self.name)
            else:
                log("%s: connection dropped%s" % (self.name, reason))
        elif self.state == Reconnect.Listening:
            log("%s: error listening for connections%s" % (self.name, reason))
        elif self.state == Reconnect.Reconnect:
            self.info_level("%s: connection closed by client" % self.name)
        elif self.backoff < self.max_backoff:
            kind = "listen" if self.passive else "connection"
            log("%s: %s attempt %s%s" % (self.name, kind, "failed" if reason else "timed out", reason))

    def _lengthen_backoff(self):
        if self.backoff < self.min_backoff:
            self.backoff = self.min_backoff
        elif self.backoff < self.max_backoff / 2:
            self.backoff *= 2
            action = "trying to listen again" if self.passive else "reconnect"
            self.info_level("%s: waiting %.3g seconds before %s" % (self.name, self.backoff / 1000.0, action))
        else:
            if self.backoff < self.max_backoff:
                action = "try to listen" if self.passive else "reconnect"
                self.info_level(
                    "%s: continuing to %s in the background but suppressing further logging" % (self.name, action)
                )
            self.backoff = self.max_backoff
