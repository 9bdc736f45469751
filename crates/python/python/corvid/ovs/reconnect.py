"""When to connect, to probe and to give up a connection.

It owns a state machine that takes events (connected, failed, activity) with their times and answers
with the action to perform next.  It opens no connection and reads no clock, so `ovs.jsonrpc` can
drive it, and tests can too.  All times are in milliseconds.
"""

import os

from . import vlog as _vlog

vlog = _vlog.Vlog("reconnect")

# The actions that `Reconnect.run()` returns.
CONNECT = "connect"
DISCONNECT = "disconnect"
PROBE = "probe"

# The error of a connection that the peer closed, as distinct from numbers of errno.
EOF = -1

_INTERVAL_MIN = 1000


def _elapsed(now, then):
    return None if then is None else now - then


class Reconnect(object):
    """The state of one connection that is established again whenever it breaks.

    A new one is disabled.  The owner calls `enable()`, then `run()` whenever `wait()` wakes it up,
    performs the action that `run()` returns, and reports events through the other methods.
    """

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
        """Waiting for a peer to connect, for as long as it takes."""
        name = "LISTENING"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return None

        @staticmethod
        def run(fsm, now):
            return None

    class Backoff(object):
        """Waiting before the next attempt."""
        name = "BACKOFF"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return fsm.state_entered + fsm.backoff

        @staticmethod
        def run(fsm, now):
            return CONNECT

    class ConnectInProgress(object):
        """Waiting for an attempt to succeed."""
        name = "CONNECTING"
        is_connected = False

        @staticmethod
        def deadline(fsm, now):
            return fsm.state_entered + max(_INTERVAL_MIN, fsm.backoff)

        @staticmethod
        def run(fsm, now):
            return DISCONNECT

    class Active(object):
        """Connected, and the peer has been active recently."""
        name = "ACTIVE"
        is_connected = True

        @staticmethod
        def deadline(fsm, now):
            return fsm._probe_deadline(max(fsm.last_activity, fsm.state_entered), now)

        @staticmethod
        def run(fsm, now):
            idle = now - max(fsm.last_activity, fsm.state_entered)
            vlog.dbg("%s: idle %d ms, sending inactivity probe" % (fsm.name, idle))
            fsm._transition(now, Reconnect.Idle)
            return PROBE

    class Idle(object):
        """Connected, and waiting for the answer to a probe."""
        name = "IDLE"
        is_connected = True

        @staticmethod
        def deadline(fsm, now):
            return fsm._probe_deadline(fsm.state_entered, now)

        @staticmethod
        def run(fsm, now):
            vlog.err("%s: no response to inactivity probe after %.3g seconds, disconnecting"
                     % (fsm.name, (now - fsm.state_entered) / 1000.0))
            return DISCONNECT

    class Reconnect(object):
        """About to disconnect because `force_reconnect()` asked for it."""
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
        self.min_backoff = 1000
        self.max_backoff = 8000
        self.probe_interval = 5000
        self.passive = False
        self._quiet = False

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
        # It changes with every connection and disconnection.
        self.seqno = 0

    @property
    def info_level(self):
        """The method of the logger that takes informational messages."""
        return vlog.dbg if self._quiet else vlog.info

    def set_quiet(self, quiet):
        """With true, logs informational messages at debug level."""
        self._quiet = bool(quiet)

    def get_name(self):
        """Returns the name that log messages begin with."""
        return self.name

    def set_name(self, name):
        """Sets the name that log messages begin with; None stands for "void"."""
        self.name = "void" if name is None else name

    def get_min_backoff(self):
        """Returns the wait after the first failure, in milliseconds."""
        return self.min_backoff

    def get_max_backoff(self):
        """Returns the longest wait between attempts, in milliseconds."""
        return self.max_backoff

    def get_probe_interval(self):
        """Returns the time without activity after which a probe is due, or 0 for no probes."""
        return self.probe_interval

    def set_max_tries(self, max_tries):
        """Limits the number of attempts; at 0 there are no more.  None means no limit."""
        self.max_tries = max_tries

    def get_max_tries(self):
        """Returns the number of attempts that are left, or None if there is no limit."""
        return self.max_tries

    def set_backoff(self, min_backoff, max_backoff):
        """Sets the wait after the first failure, and the limit up to which it doubles."""
        self.min_backoff = max(min_backoff, _INTERVAL_MIN)
        self.max_backoff = max(max_backoff, self.min_backoff)
        if self.state == Reconnect.Backoff and self.backoff > self.max_backoff:
            self.backoff = self.max_backoff

    def set_backoff_free_tries(self, backoff_free_tries):
        """Sets how many attempts follow each other without a wait."""
        self.backoff_free_tries = backoff_free_tries

    def set_probe_interval(self, probe_interval):
        """Sets the time without activity after which a probe is due.  0 or None: no probes."""
        self.probe_interval = max(_INTERVAL_MIN, probe_interval) if probe_interval else 0

    def is_passive(self):
        """Returns true if connections are accepted, false if they are opened."""
        return self.passive

    def set_passive(self, passive, now):
        """Chooses between accepting connections and opening them."""
        if self.passive == passive:
            return
        self.passive = passive
        if passive:
            restart = self.state in (Reconnect.ConnectInProgress, Reconnect.Reconnect)
        else:
            restart = self.state == Reconnect.Listening and self.__may_retry()
        if restart:
            self._transition(now, Reconnect.Backoff)
            self.backoff = 0

    def is_enabled(self):
        """Returns true between `enable()` and `disable()`, as long as attempts are left."""
        return self.state != Reconnect.Void

    def enable(self, now):
        """Makes `run()` ask for a connection, if none is there."""
        if self.state == Reconnect.Void and self.__may_retry():
            self._transition(now, Reconnect.Backoff)
            self.backoff = 0

    def disable(self, now):
        """Makes `run()` ask for nothing."""
        if self.state != Reconnect.Void:
            self._transition(now, Reconnect.Void)

    def force_reconnect(self, now):
        """Makes `run()` ask to drop the connection or the attempt, if there is one."""
        if self.state in (Reconnect.ConnectInProgress, Reconnect.Active, Reconnect.Idle):
            self._transition(now, Reconnect.Reconnect)

    def disconnected(self, now, error):
        """Reports that the connection broke or that an attempt failed.

        `error` is a number of errno, `EOF` if the peer closed the connection, or 0.
        """
        if self.state in (Reconnect.Backoff, Reconnect.Void):
            return
        error = error or 0
        self.__log_disconnected(error)
        was_connected = self.state in (Reconnect.Active, Reconnect.Idle)
        if was_connected:
            self.last_disconnected = now
        if not self.__may_retry():
            self._transition(now, Reconnect.Void)
            return
        if self.backoff_free_tries > 1:
            self.backoff_free_tries -= 1
            self.backoff = 0
        elif was_connected and (self.passive or self.__was_useful()):
            self.backoff = 0 if self.passive else self.min_backoff
        else:
            self.__back_off()
        self._transition(now, Reconnect.Backoff)

    def __was_useful(self):
        """Returns true if the connection lasted longer than the wait before it."""
        if self.last_connected is None:
            return False
        return self.last_activity - self.last_connected >= self.backoff

    def __log_disconnected(self, error):
        if self.state in (Reconnect.Active, Reconnect.Idle):
            if error > 0:
                vlog.warn("%s: connection dropped (%s)" % (self.name, os.strerror(error)))
            elif error == EOF:
                self.info_level("%s: connection closed by peer" % self.name)
            else:
                self.info_level("%s: connection dropped" % self.name)
        elif self.state == Reconnect.Listening:
            if error > 0:
                vlog.warn("%s: error listening for connections (%s)"
                          % (self.name, os.strerror(error)))
            else:
                self.info_level("%s: error listening for connections" % self.name)
        elif self.state == Reconnect.Reconnect:
            self.info_level("%s: connection closed by client" % self.name)
        elif self.backoff < self.max_backoff:
            attempt = "listen" if self.passive else "connection"
            if error > 0:
                vlog.warn("%s: %s attempt failed (%s)" % (self.name, attempt, os.strerror(error)))
            else:
                self.info_level("%s: %s attempt timed out" % (self.name, attempt))

    def __back_off(self):
        """Doubles the wait, up to the limit."""
        if self.backoff < self.min_backoff:
            self.backoff = self.min_backoff
        elif self.backoff < self.max_backoff / 2:
            self.backoff *= 2
            action = "trying to listen again" if self.passive else "reconnect"
            self.info_level("%s: waiting %.3g seconds before %s"
                            % (self.name, self.backoff / 1000.0, action))
        else:
            if self.backoff < self.max_backoff:
                action = "try to listen" if self.passive else "reconnect"
                self.info_level("%s: continuing to %s in the background but suppressing further "
                                "logging" % (self.name, action))
            self.backoff = self.max_backoff

    def connecting(self, now):
        """Reports that an attempt has begun."""
        if self.state == Reconnect.ConnectInProgress:
            return
        if self.passive:
            self.info_level("%s: listening..." % self.name)
        elif self.backoff < self.max_backoff:
            self.info_level("%s: connecting..." % self.name)
        self._transition(now, Reconnect.ConnectInProgress)

    def listening(self, now):
        """Reports that connections can be accepted."""
        if self.state != Reconnect.Listening:
            self.info_level("%s: listening..." % self.name)
            self._transition(now, Reconnect.Listening)

    def listen_error(self, now, error):
        """Reports that accepting connections failed with `error`."""
        if self.state == Reconnect.Listening:
            self.disconnected(now, error)

    def connected(self, now):
        """Reports that a connection is established."""
        if not self.state.is_connected:
            self.connecting(now)
            self.info_level("%s: connected" % self.name)
            self._transition(now, Reconnect.Active)
            self.last_connected = now

    def connect_failed(self, now, error):
        """Reports that an attempt failed with `error`."""
        self.connecting(now)
        self.disconnected(now, error)

    def activity(self, now):
        """Reports that the peer sent something, or took something."""
        if self.state != Reconnect.Active:
            self._transition(now, Reconnect.Active)
        self.last_activity = now

    def receive_attempted(self, now):
        """Reports that the owner looked for input.

        No probe is due before: a program that was suspended may find input when it looks. None: it
        always looks.
        """
        self.last_receive_attempt = now

    def _probe_deadline(self, base, now):
        if not self.probe_interval:
            return None
        deadline = base + self.probe_interval
        if self.last_receive_attempt is None or self.last_receive_attempt >= deadline:
            return deadline
        return max(deadline, now + 1)

    def _transition(self, now, state):
        if self.state == Reconnect.ConnectInProgress:
            self.n_attempted_connections += 1
            if state == Reconnect.Active:
                self.n_successful_connections += 1
        if self.state.is_connected != state.is_connected:
            if self.state.is_connected and self.last_connected is not None:
                self.total_connected_duration += now - self.last_connected
            self.seqno += 1
        vlog.dbg("%s: entering %s" % (self.name, state.name))
        self.state = state
        self.state_entered = now

    def __may_retry(self):
        """Returns true if an attempt is left, and takes it."""
        if self.max_tries is None:
            return True
        if self.max_tries > 0:
            self.max_tries -= 1
            return True
        return False

    def run(self, now):
        """Returns the action that is due: `CONNECT`, `DISCONNECT`, `PROBE` or None.

        `CONNECT`: begin an attempt, and report `connecting`, `connected` or `connect_failed`.
        `DISCONNECT`: drop the connection or the attempt, and report `disconnected`.
        `PROBE`: send something that makes the peer answer.
        """
        deadline = self.state.deadline(self, now)
        if deadline is not None and now >= deadline:
            return self.state.run(self, now)
        return None

    def wait(self, poller, now):
        """Makes `poller` wake up when `run()` has something to return."""
        timeout = self.timeout(now)
        if timeout is not None:
            poller.timer_wait(timeout)

    def timeout(self, now):
        """Returns the milliseconds until `run()` has something to return, or None for never."""
        deadline = self.state.deadline(self, now)
        return None if deadline is None else max(0, deadline - now)

    def is_connected(self):
        """Returns true if a connection is established and nobody asked to drop it."""
        return self.state.is_connected

    def get_last_connect_elapsed(self, now):
        """Returns the milliseconds since the last connection, or None before the first."""
        return _elapsed(now, self.last_connected)

    def get_last_disconnect_elapsed(self, now):
        """Returns the milliseconds since the last disconnection, or None before the first."""
        return _elapsed(now, self.last_disconnected)

    def get_stats(self, now):
        """Returns an object with the counters and times as attributes."""
        class Stats(object):
            pass
        stats = Stats()
        stats.creation_time = self.creation_time
        stats.last_connected = self.last_connected
        stats.last_disconnected = self.last_disconnected
        stats.last_activity = self.last_activity
        stats.backoff = self.backoff
        stats.seqno = self.seqno
        stats.is_connected = self.is_connected()
        stats.msec_since_connect = self.get_last_connect_elapsed(now)
        stats.msec_since_disconnect = self.get_last_disconnect_elapsed(now)
        stats.total_connected_duration = self.total_connected_duration
        if self.is_connected() and self.last_connected is not None:
            stats.total_connected_duration += self.get_last_connect_elapsed(now)
        stats.n_attempted_connections = self.n_attempted_connections
        stats.n_successful_connections = self.n_successful_connections
        stats.state = self.state.name
        stats.state_elapsed = now - self.state_entered
        return stats
