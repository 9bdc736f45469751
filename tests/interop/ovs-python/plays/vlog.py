"""Levels, patterns, destinations and control commands of the log."""

# differs: debian: ^x 4$: after the log file is closed, its messages go to standard error
# differs: pypi: ^x 4$: after the log file is closed, its messages go to standard error
# differs: debian: list-commands: ours has this command, which every daemon in C has
# differs: pypi: list-commands: ours has this command, which every daemon in C has
# differs: both: ^'(two|tab)\\: control characters of a message are escaped, so it is one line

import argparse
import os
import re
import sys
import tempfile
import threading

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)

import ovs.unixctl
import ovs.vlog
from ovs.vlog import Vlog
from transcript import attempt, say

DIRECTORY = tempfile.mkdtemp()
FILE = os.path.join(DIRECTORY, "log")
LONG = "a_module_with_a_long_name"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*Z?")


class Timeless(object):
    """Standard error with a fixed time and directory, in the place of standard output."""

    def write(self, text):
        sys.stdout.write(TIME.sub("TIME", text.replace(DIRECTORY, "DIR")))

    def flush(self):
        sys.stdout.flush()


sys.stderr = Timeless()
# Otherwise there is no facility.
os.environ.pop("OVS_SYSLOG_METHOD", None)


class Conn(object):
    def reply(self, body):
        if body and body.count("\n") > 3:
            body = levels_of(body)
        say("reply", repr(body))

    def reply_error(self, body):
        say("reply_error", repr(body))


def levels_of(table=None):
    """Returns the lines of this play's modules in the table of levels."""
    lines = (table or Vlog.get_levels()).split("\n")
    return [line for line in lines if line.split(" ")[0] in ("", "play", "other", LONG)]


def part(function):
    """Runs a function in a child, because logging cannot be started twice."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        say("part", function.__name__)
        try:
            function()
        except BaseException as e:
            say("raises", type(e).__name__, e)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)


def read():
    with open(FILE) as f:
        text = f.read()
    os.truncate(FILE, 0)
    return TIME.sub("TIME", text)


log = Vlog("Play")
Vlog("other")
Vlog(LONG)


@part
def constants():
    for name in ("DESTINATIONS", "PATTERNS", "LEVELS", "FACILITIES", "syslog_facility"):
        value = getattr(ovs.vlog, name)
        say(name, sorted(value.items()) if isinstance(value, dict) else value)
    say(log.name, levels_of())
    for name in ("dbg", "Info", "warn", "ERR", "emer", "off", "any", "", "debug"):
        say("level", name, ovs.vlog.get_level(name))
    say(attempt(log.info, "lost"), sorted(set(ovs.unixctl.commands) - {"list-commands"}))
    say([(n, getattr(log, n + "_is_enabled")()) for n in ("emer", "err", "warn", "info", "dbg")])


@part
def levels():
    Vlog.init(FILE)
    for args in (("any", "any", "off"), ("play", "file", "dbg"), ("PLAY", "FILE", "Info"),
                 ("play", "any", "warn"), ("any", "file", "err"), ("none", "any", "dbg"),
                 ("any", "none", "dbg"), ("any", "any", "none"), ("any", "syslog", "emer"),
                 ("play", "file", "emer"), ("play", "file", "dbg"), ("any", "console", "off")):
        say(args, attempt(Vlog.set_level, *args), levels_of())
        for name in ("err", "warn", "info", "dbg"):
            getattr(log, name)("at %s" % name)
        say([(n, getattr(log, n + "_is_enabled")()) for n in ("emer", "err", "warn", "info", "dbg")])
        say(read().split("\n"))


@part
def strings():
    for s in ("dbg", "play:err", "console:warn", "play:syslog:dbg", "dbg other", "other file off",
              "", "any", "none", "play,other:dbg", "console", "any:any:any", "err:warn", "err:err",
              "play:other", "play:play", "console:file", "dbg::", " dbg", "ANY:File:DBG",
              "any:play:file:info", "file:info:play", "pattern:console", "pattern",
              "pattern:none:x", "pattern: x:y", "pattern:console:%m", "pattern file %m-%c",
              "patterns:x", "FACILITY:local1", "FACILITY local2", "FACILITY:LOCAL3", "FACILITY:",
              "FACILITY:none", "FACILITYlocal1", "dbg:FACILITY:local1"):
        say(repr(s), attempt(Vlog.set_levels_from_string, s), levels_of(),
            sorted(ovs.vlog.PATTERNS.items()), ovs.vlog.syslog_facility)


@part
def patterns():
    Vlog.init(FILE)
    Vlog.set_level("any", "console", "off")
    for pattern in ("%m", "%A", "%c", "%d", "%D", "%n", "%N", "%p", "%t", "%T", "", "%", "%q", "%C",
                    "a|%c|b", "x%cy", "%m%n%m", "%c%T", "%T%c", "%c%T%p", "%p%p", "100% %m",
                    "%05N|%c", "|%05N|", "|%5N|", "|%9N|", "|%09N|", "|%-9N|", "|%0N|", "|%9p|",
                    "|%09p|", "|%-9p|", "|%3m|", "|%03m|", "|%-m|", "|%9T|", "|%9n|", "|%9A|",
                    " %m ", "  x %m\t", "%D{x}|%m", "%D{%Y-}%m", "%c{x}", "%D{",
                    "\\1%m\\n", "{0}%m", "%D{%Y-%m-%dT%H:%M:%S}Z|%N", "%s", "%d{}x"):
        Vlog.set_pattern("file", pattern)
        log.info("the text")
        say(repr(pattern), repr(read()))
    Vlog.set_pattern("file", "%c|%N|%p|%m")
    for message in ("", " blanks ", "%c", "%%", "\\1 \\n", "two\nlines", "tab\t", "{x}", "100%"):
        log.warn(message)
        say(repr(message), repr(read()))
    Vlog.set_pattern("file", "%t|%T|%c%T|%m")
    thread = threading.Thread(target=log.info, args=("text",), name="worker")
    thread.start()
    thread.join()
    say(repr(read()))
    for pattern in ("%D{%S.#}", "%D{%S.##}", "%d{%S.###}", "%r"):
        Vlog.set_pattern("file", pattern)
        log.info("x")
        say(pattern, bool(re.match(r"\d+\.\d*", read())))


@part
def defaults():
    Vlog.init(FILE)
    Vlog.set_level("any", "any", "dbg")
    for name in ("emer", "err", "warn", "info", "dbg"):
        sys.stdout.flush()
        Vlog.set_level("any", "console", "off")
        getattr(log, name)("text of %s" % name)
        sys.stdout.flush()
        say(read())


@part
def exceptions():
    Vlog.init(FILE)
    Vlog.set_level("any", "console", "off")
    Vlog.set_pattern("file", "%p %m")
    log.exception("outside")
    say(read().split("\n"))
    try:
        raise ValueError("of this play")
    except ValueError:
        log.exception("inside")
        log.info("inside", exc_info=True)
        log.info("inside", exc_info=False, extra={"a": 1})
    say([line for line in read().split("\n") if not line.startswith(" ")])
    say(attempt(log.info, "x", unknown=1))


@part
def replaced():
    Vlog.init()
    seen = []

    class Logger(object):
        def write(self, message, **kwargs):
            seen.append((message, sorted(kwargs)))

    for name in ("emer", "err", "warn", "info", "dbg"):
        setattr(Vlog, name, Logger().write)
        getattr(log, name)("to %s" % name)
    log.exception("an exception")
    setattr(Vlog, "exception", Logger().write)
    log.exception("again")
    setattr(Vlog, "info", lambda self, message: seen.append((self is log, message)))
    log.info("plain")
    for name in ("emer", "err", "warn", "info", "dbg"):
        setattr(Vlog, name + "_is_enabled", lambda: "yes %s" % name)
    say(seen)


@part
def commands():
    Vlog.init(FILE)
    Vlog.set_level("any", "console", "off")
    Vlog.set_pattern("file", "%m")
    say(attempt(Vlog.init, "/other"))
    for name, command in sorted(ovs.unixctl.commands.items()):
        say(name, repr(command.usage), command.min_args, command.max_args == sys.maxsize
            or command.max_args, command.aux)

    def call(name, *argv):
        say("call", name, argv)
        ovs.unixctl.commands[name].callback(Conn(), list(argv), None)

    call("vlog/list")
    for argv in (("dbg",), ("none",), ("play:file:info", "other:off"), ("play", "dbg"), (),
                 ("pattern:file:x%m",), ("none", "err"), ("FACILITY:none",), ("FACILITY:local4",)):
        call("vlog/set", *argv)
    call("vlog/list")
    log.info("1")
    os.rename(FILE, FILE + ".1")
    log.info("2")
    call("vlog/reopen")
    log.err("3")
    say(repr(open(FILE + ".1").read()), repr(read()))
    call("vlog/close")
    log.err("4")
    call("vlog/close")
    say(repr(read()))
    call("vlog/reopen")
    log.err("5")
    say(repr(read()), attempt(Vlog.reopen_log_file))


@part
def no_file():
    Vlog.init()
    for name in ("vlog/reopen", "vlog/close"):
        ovs.unixctl.commands[name].callback(Conn(), [], None)
    say(attempt(Vlog.reopen_log_file))


def options(argv):
    def run():
        say([word.replace(DIRECTORY, "DIR") for word in argv])
        parser = argparse.ArgumentParser(prog="play")
        ovs.vlog.add_args(parser)
        args = parser.parse_args(argv)
        say(str(args.log_file).replace(DIRECTORY, "DIR"), args.verbose)
        say(attempt(ovs.vlog.handle_args, args), levels_of())
        log.info("started")
        say(sorted(os.listdir(DIRECTORY)))
    part(run)


for argv in ([], ["-v"], ["-vdbg"], ["-v", "console:off", "play:dbg"], ["--verbose=none"],
             ["--verbose", "file:dbg"], ["-vconsole:off", "--log-file=" + FILE], ["--log-fil=x="]):
    options(argv)

for name in os.listdir(DIRECTORY):
    os.unlink(os.path.join(DIRECTORY, name))
os.rmdir(DIRECTORY)
