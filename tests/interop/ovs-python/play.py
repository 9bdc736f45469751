"""What every play uses: it prints a transcript of calls, results and log messages that is the same at every run."""

import os
import re
import signal
import sys

import ovs.vlog

LEVELS = ("emer", "err", "warn", "info", "dbg")

# A play that hangs must end, with a transcript that shows where.
signal.alarm(60)
sys.stdout.reconfigure(line_buffering=True)
sys.argv[0] = "play"

_hidden = []


def hide(text, name):
    """Prints `name` wherever a result has `text`, such as a port or a directory that differs between runs."""
    _hidden.append((str(text), name))


def clean(text):
    for hidden, name in _hidden:
        text = text.replace(hidden, name)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def say(label, value=""):
    print(clean("%s: %s" % (label, value)).rstrip())


def show(label, function, *arguments, **options):
    """Prints the result of a call, or its exception. Returns the result."""
    try:
        result = function(*arguments, **options)
        text = repr(result)
    except RecursionError:
        result, text = None, "RecursionError"
    except (Exception, SystemExit, AssertionError) as exception:
        result, text = None, "%s(%s)" % (type(exception).__name__, exception)
    if len(text) > 500:
        text = "%s... (%d)" % (text[:200], len(text))
    say(label, text)
    return result


def print_logs(*without):
    """Prints what the library logs, through the attributes that applications replace."""
    for level in LEVELS:
        def log(self, message, _level=level, **_options):
            if self.name not in without:
                say("  log %s %s" % (self.name, _level), message)

        setattr(ovs.vlog.Vlog, level, log)


class Pollings:
    """Takes the place of a poller; prints what would be waited for."""

    def __getattr__(self, name):
        def call(*arguments):
            say("  poller %s" % name, [a if isinstance(a, (int, float)) else "socket" for a in arguments])

        return call


def directory():
    """The scratch directory of this run."""
    path = os.environ["PLAY_DIRECTORY"]
    hide(path, "DIR")
    return path


def seed():
    """The seed of randomised plays."""
    value = int(os.environ.get("INTEROP_SEED") or 1)
    say("seed", value)
    return value
