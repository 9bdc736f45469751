"""The state machine of connections, on a clock that the play sets."""

import os
import sys

sys.path.pop(0)  # This folder has the names of standard modules.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import ovs.reconnect
import ovs.vlog
from transcript import attempt, generator, say

rng = generator("reconnect")


def log_at(level):
    def log(self, message, **kwargs):
        say("  log", level, message)
    return log


for level in ("emer", "err", "warn", "info", "dbg"):
    setattr(ovs.vlog.Vlog, level, log_at(level))


class Poller(object):
    def timer_wait(self, msec):
        say("  timer", msec)


ERRORS = [0, 0, -1, 111, 104, 5, 99999]
COMMON = ["run", "run", "run", "timeout", "connecting", "connected", "connected", "connect_failed", "disconnected",
          "activity", "receive_attempted", "receive_attempted"]
RARE = ["enable", "disable", "force_reconnect", "listening", "listen_error", "set_backoff", "set_probe_interval",
        "set_backoff_free_tries", "set_passive", "set_max_tries", "set_quiet", "set_name", "wait"]

for case in range(400):
    now = rng.randrange(100000)
    say("case", case, now)
    fsm = ovs.reconnect.Reconnect(now)
    if rng.random() < 0.9:
        fsm.enable(now)
    connected_once = False
    for step in range(rng.randrange(10, 60)):
        now += rng.choice([0, 0, 1, 10, 500, 999, 1000, 1001, 2000, 4999, 5000, 8000, 20000])
        name = rng.choice(COMMON if rng.random() < 0.8 else RARE)
        if name in ("connect_failed", "disconnected", "listen_error"):
            arguments = (now, rng.choice(ERRORS))
        elif name == "set_backoff":
            arguments = rng.choice([(1000, 8000), (1500, 6000), (0, 0), (2000, 1000), (1000, 1000), (3000, 9000),
                                    (1000, 3000), (500, 0), (1100, 64000)])
        elif name == "set_probe_interval":
            arguments = (rng.choice([0, 1, 999, 1000, 5000, 30000, None]),)
        elif name in ("set_backoff_free_tries",):
            arguments = (rng.randrange(4),)
        elif name == "set_passive":
            arguments = (rng.random() < 0.5, now)
        elif name == "set_max_tries":
            arguments = (rng.choice([None, None, None, 0, 1, 2, 3]),)
        elif name == "set_quiet":
            arguments = (rng.random() < 0.3,)
        elif name == "set_name":
            arguments = (rng.choice([None, "tcp:127.0.0.1:1"]),)
        elif name == "wait":
            arguments = (Poller(), now)
        else:
            arguments = (now,)
        if name == "activity" and not fsm.is_connected():
            continue  # Nobody reports activity without a connection.
        if name == "wait" and fsm.timeout(now) is None:
            continue
        result = attempt(getattr(fsm, name), *arguments)
        say("step", now, name, [x for x in arguments if not isinstance(x, Poller)], result)
        say("  is", fsm.state.name, fsm.timeout(now), fsm.is_connected(), fsm.is_enabled(), fsm.is_passive(),
            fsm.get_max_tries(), fsm.get_min_backoff(), fsm.get_max_backoff(), fsm.get_probe_interval(),
            fsm.get_name(), fsm.get_last_connect_elapsed(now), fsm.get_last_disconnect_elapsed(now),
            fsm.backoff_free_tries)
    stats = fsm.get_stats(now)
    say("stats", sorted((k, v) for k, v in vars(stats).items()))

say(ovs.reconnect.CONNECT, ovs.reconnect.DISCONNECT, ovs.reconnect.PROBE, ovs.reconnect.EOF)
