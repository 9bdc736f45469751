"""Texts of the ends of processes, and the work at the end of a process."""

# differs: debian: SIGINT: the older version does not handle it
# differs: debian: signal (1|2|6|17) .SIG: names of other constants
# differs: pypi: signal (1|2|6|17) .SIG: names of other constants
# differs: debian: thread: the original raises an exception
# differs: pypi: thread: the original raises an exception

import os
import signal
import sys
import threading
import time

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)

import ovs.fatal_signal as fatal_signal
import ovs.process
from transcript import say

for status in ([0, 256, 512, 30 << 8, 255 << 8, 65535, 0x137f, 64, 34, 40, 65, -1]
               + [s for s in range(1, 32) if s != 16] + [s | 0x80 for s in (1, 2, 6, 9, 11)]):
    say("status", status, ovs.process.status_msg(status))
try:
    ovs.process.status_msg("x")
except TypeError:
    say("TypeError")

DIRECTORY = os.path.join(os.getcwd(), "files")
os.mkdir(DIRECTORY)
SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGALRM", "SIGQUIT", "SIGUSR1", "SIGPIPE", "SIGCHLD")


def path(name):
    return os.path.join(DIRECTORY, name)


def create(*names):
    for name in names:
        with open(path(name), "w"):
            pass


def handlers():
    for name in SIGNALS:
        handler = signal.getsignal(getattr(signal, name))
        say("handler", name, "ours" if getattr(handler, "__module__", "") == fatal_signal.__name__
            else getattr(handler, "__name__", "default"))


def wrote(text):
    return lambda: os.write(1, (text + "\n").encode())


def part(function, *signals):
    """Runs a function in a child, which then sleeps if signals are to be sent to it."""
    sys.stdout.flush()
    ready, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        say("part", function.__name__, *signals)
        function()
        sys.stdout.flush()
        os.write(write, b"x")
        if signals:
            time.sleep(20)
        sys.exit(0)
    os.close(write)
    os.read(ready, 1)
    os.close(ready)
    for name in signals:
        os.kill(pid, getattr(signal, name))
    _, status = os.waitpid(pid, 0)
    if "SIGINT" not in signals:
        # Older versions of Python end by this signal in another way.
        say("end", function.__name__, signals, ovs.process.status_msg(status),
            sorted(os.listdir(DIRECTORY)))
    for name in os.listdir(DIRECTORY):
        os.unlink(path(name))


def hooks():
    say(fatal_signal.add_hook(wrote("first"), wrote("cancelled"), False),
        fatal_signal.add_hook(wrote("second"), None, True))


def handled():
    handlers()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, wrote)
    hooks()
    handlers()


def forgotten():
    hooks()
    create("a")
    fatal_signal.add_file_to_unlink(path("a"))
    say("fork", fatal_signal.fork())
    fatal_signal.add_hook(wrote("new"), None, True)
    create("b")
    fatal_signal.add_file_to_unlink(path("b"))


def files():
    create("a", "b", "c", "d", "e", "f")
    opened = open(path("f"))
    say(fatal_signal.add_file_to_unlink(path("a")), fatal_signal.add_file_to_unlink(path("a")),
        fatal_signal.add_file_to_unlink(path("b")), fatal_signal.add_file_to_unlink(path("missing")),
        fatal_signal.add_file_to_unlink(path("d")), fatal_signal.remove_file_to_unlink(path("d")),
        fatal_signal.remove_file_to_unlink(path("d")), fatal_signal.remove_file_to_unlink("none"),
        fatal_signal.add_file_to_unlink(path("e")), fatal_signal.unlink_file_now(path("e")),
        fatal_signal.unlink_file_now(path("e")), fatal_signal.unlink_file_now("/nonexistent/x"),
        fatal_signal.add_file_to_close_and_unlink(path("f"), opened))
    say(sorted(os.listdir(DIRECTORY)))


def alarm():
    say(fatal_signal.signal_alarm(0), fatal_signal.signal_alarm(None))
    hooks()
    say(fatal_signal.signal_alarm(1))
    sys.stdout.flush()
    time.sleep(20)


def in_thread():
    create("a")
    failures = []

    def work():
        try:
            fatal_signal.add_file_to_unlink(path("a"))
        except ValueError:
            failures.append("raises")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    say("thread", failures)
    os.unlink(path("a"))


part(handled)
part(hooks)
for name in ("SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGKILL"):
    part(hooks, name)
    part(files, name)
part(files)
part(forgotten)
part(forgotten, "SIGTERM")
part(alarm)
part(in_thread)
os.rmdir(DIRECTORY)
