"""The state machine of reconnections under random orders and reports."""

import random

import ovs.reconnect
from play import print_logs, say, seed

print_logs()
generator = random.Random(seed())
METHODS = ("run",) * 6 + ("enable", "connecting", "connected", "activity", "receive_attempted") * 3 + (
    "disable", "force_reconnect", "listening", "passive", "active", "settings", "failed", "failed", "ended", "ended", "error",
)  # fmt: skip
for turn in range(120):
    now = 1000000
    fsm = ovs.reconnect.Reconnect(now)
    fsm.set_name("m%d" % turn)
    if turn % 4 == 0:
        fsm.set_passive(True, now)
    fsm.set_backoff_free_tries(generator.randrange(4))
    fsm.set_quiet(turn % 7 == 0)
    if turn % 5 == 0:
        fsm.set_max_tries(generator.randrange(6))
    fsm.enable(now)
    for _ in range(60):
        now += generator.choice([0, 1, 100, 999, 1000, 2500, 5000, 9000])
        method = generator.choice(METHODS)
        error = generator.choice([0, -1, 2, 104])
        if method == "passive":
            result = fsm.set_passive(True, now)
        elif method == "active":
            result = fsm.set_passive(False, now)
        elif method == "settings":
            result = fsm.set_backoff(generator.choice([0, 1500, 3000]), generator.choice([0, 4000, 9000]))
            fsm.set_probe_interval(generator.choice([0, 1000, 3000]))
        elif method == "failed":
            result = fsm.connect_failed(now, error)
        elif method == "ended":
            result = fsm.disconnected(now, error)
        elif method == "error":
            result = fsm.listen_error(now, error)
        elif method == "activity" and fsm.last_connected is None:
            # The original fails at the end of a connection that was never reported.
            result = fsm.connected(now)
        else:
            result = getattr(fsm, method)(now)
        stats = fsm.get_stats(now)
        say("%d %s %s" % (now - 1000000, method, error), (result, fsm.timeout(now), sorted(vars(stats).items())))
