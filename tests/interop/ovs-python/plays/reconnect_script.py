"""The state machine of reconnections on a scripted clock: every transition, its log messages and its timeouts."""

import ovs.reconnect
from play import Pollings, print_logs, say, show

print_logs()


class Machine:
    """A machine whose clock begins at 50 s, so that no time is 0."""

    CLOCK = {
        "run": 0, "enable": 0, "disable": 0, "connecting": 0, "connect_failed": 0, "connected": 0, "disconnected": 0,
        "activity": 0, "force_reconnect": 0, "listening": 0, "listen_error": 0, "receive_attempted": 0, "set_passive": 1,
        "wait": 1, "timeout": 0, "get_stats": 0, "get_last_connect_elapsed": 0, "get_last_disconnect_elapsed": 0,
    }  # fmt: skip

    def __init__(self, name):
        self.fsm = ovs.reconnect.Reconnect(50000)
        self.fsm.set_name(name)

    def __getattr__(self, name):
        method = getattr(self.fsm, name)
        if name not in self.CLOCK:
            return method

        def call(*arguments):
            arguments = list(arguments)
            arguments[self.CLOCK[name]] += 50000
            return method(*arguments)

        return call

    def do(self, now, name, *arguments):
        show("%d %s%r" % (now, name, arguments), getattr(self, name), *arguments)
        state(self, now)


def state(machine, now):
    stats = machine.get_stats(now)
    say("   ", (stats.state, stats.backoff, machine.is_enabled(), machine.is_connected(), machine.timeout(now)))
    say("   ", sorted(item for item in vars(stats).items() if item[0] != "state"))
    say("   ", (machine.get_last_connect_elapsed(now), machine.get_last_disconnect_elapsed(now), machine.get_max_tries()))


m = Machine("N")
say("defaults", (m.get_name(), m.get_min_backoff(), m.get_max_backoff(), m.get_probe_interval(), m.is_passive()))
m.set_name(None)
say("no name", m.get_name())
m.set_name("N")
for now, name, *arguments in [
    (0, "run"), (0, "enable"), (1, "enable"), (1, "run"), (0, "connecting"), (10, "run"), (1000, "run"),
    (1000, "connect_failed", 111), (1000, "run"), (2000, "run"), (2000, "connecting"), (2005, "connect_failed", 111),
    (4005, "run"), (4005, "connecting"), (4006, "connected"), (4006, "run"), (5000, "activity"), (10000, "run"),
    (10000, "receive_attempted"), (10000, "run"), (10000, "run"), (11000, "receive_attempted"), (15000, "run"),
    (15000, "receive_attempted"), (15000, "run"), (15000, "disconnected", 0), (15000, "disconnected", 0), (19000, "run"),
    (19000, "connecting"), (19000, "connected"), (29000, "disconnected", -1), (31000, "connecting"),
    (31000, "disconnected", 104), (40000, "connecting"), (40000, "connect_failed", 0), (50000, "connecting"),
    (50000, "connect_failed", None), (90000, "force_reconnect"), (90000, "run"), (90000, "connecting"),
    (90000, "force_reconnect"), (90000, "run"), (90001, "disconnected", 0), (90001, "disable"), (90001, "run"),
    (90001, "enable"), (90001, "connecting"), (90001, "connected"), (90002, "force_reconnect"), (90002, "run"),
    (90002, "disable"), (90002, "connect_failed", 5), (90002, "activity"), (90002, "connected"),
]:  # fmt: skip
    m.do(now, name, now, *arguments)

m = Machine("tries")
m.set_max_tries(2)
for now, name, *arguments in [
    (0, "enable"), (0, "connecting"), (0, "connect_failed", 2), (1000, "run"), (1000, "connecting"),
    (1000, "connect_failed", 2), (5000, "run"), (5000, "enable"),
]:  # fmt: skip
    m.do(now, name, now, *arguments)

for free in (0, 1, 2, 3):
    m = Machine("free %d" % free)
    m.set_backoff_free_tries(free)
    m.enable(0)
    for turn in range(6):
        m.do(turn * 10000, "connecting", turn * 10000)
        m.do(turn * 10000 + 1, "connect_failed", turn * 10000 + 1, 2)

for pair in [(0, 0), (500, 200), (2000, 5000), (5000, 2000), (100, 100)]:
    m = Machine("settings")
    m.set_backoff(*pair)
    say("backoff %r" % (pair,), (m.get_min_backoff(), m.get_max_backoff()))
for interval in (0, 1, 999, 1000, 5000, None, -5):
    m = Machine("settings")
    m.set_probe_interval(interval)
    say("probe interval %r" % interval, m.get_probe_interval())

m = Machine("passive")
m.do(0, "set_passive", True, 0)
for now, name, *arguments in [
    (0, "enable"), (0, "run"), (0, "listening"), (0, "run"), (5, "connected"), (10000, "run"), (10000, "disconnected", 0),
    (10000, "run"), (10000, "listening"), (10001, "listen_error", 98), (10001, "run"), (13001, "run"), (13001, "connecting"),
    (13001, "listening"),
]:  # fmt: skip
    m.do(now, name, now, *arguments)
m.do(13002, "set_passive", False, 13002)
m.set_passive(True, 13003)
for name in ("listening", "listening", "force_reconnect", "disable", "connected"):
    m.do(13003, name, 13003)

m = Machine("quiet")
m.set_quiet(True)
for now, name, *arguments in [
    (0, "enable"), (0, "connecting"), (0, "connect_failed", 2), (1000, "connecting"), (1000, "connected"),
    (7000, "receive_attempted"), (7000, "run"), (13000, "receive_attempted"), (13000, "run"), (13000, "disconnected", -1),
]:  # fmt: skip
    m.do(now, name, now, *arguments)

for connected_ms in (0, 999, 1000, 3999, 4000, 8000, 20000):
    m = Machine("useful %d" % connected_ms)
    m.enable(0)
    for turn in range(3):
        m.connecting(turn)
        m.connect_failed(turn, 2)
    m.connecting(100)
    m.connected(100)
    m.activity(100 + connected_ms)
    m.do(100 + connected_ms, "disconnected", 100 + connected_ms, -1)

m = Machine("waits")
for now, name in [(0, "run"), (0, "enable"), (0, "connecting"), (100, "run"), (5000, "connected"), (9000, "activity")]:
    getattr(m, name)(now)
    m.wait(Pollings(), now)
fsm = ovs.reconnect.Reconnect(1000.25)
fsm.set_name("fractions")
fsm.enable(1000.25)
fsm.connecting(1000.25)
fsm.connected(1000.5)
fsm.receive_attempted(6000.9)
say("run", (fsm.run(6000.9), fsm.timeout(6001.0)))
fsm.receive_attempted(11900.9)
say("run", fsm.run(11900.95))
say("words", (ovs.reconnect.CONNECT, ovs.reconnect.DISCONNECT, ovs.reconnect.PROBE, ovs.reconnect.EOF))
