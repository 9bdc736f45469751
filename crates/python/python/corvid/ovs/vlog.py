"""Logging: modules with levels for each destination, in the way of Open vSwitch.

A destination is the console, a file or the system log.  It owns the levels, patterns and handlers
of the process; the loggers "console", "file" and "syslog" of `logging` write the records.  Nothing
is written before `Vlog.init`.
"""

import itertools
import logging
import logging.handlers
import os
import re
import sys
import time

from . import _log_pattern
from . import dirs
from . import unixctl
from . import util

DESTINATIONS = {"console": "info", "file": "info", "syslog": "info"}
PATTERNS = {
    "console": "%D{%Y-%m-%dT%H:%M:%SZ}|%05N|%c%T|%p|%m",
    "file": "%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m",
    "syslog": "ovs|%05N|%c%T|%p|%m",
}
LEVELS = {
    "dbg": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "err": logging.ERROR,
    "emer": logging.CRITICAL,
    "off": logging.CRITICAL,
}
FACILITIES = ["auth", "authpriv", "cron", "daemon", "ftp", "kern", "lpr", "mail", "news", "syslog",
              "user", "uucp", "local0", "local1", "local2", "local3", "local4", "local5",
              "local6", "local7"]
syslog_facility = "daemon"
syslog_handler = ""

_SYSLOG_SOCKET = "/dev/log"


def get_level(level_str):
    """Returns the number of the level with this name in any case, or None."""
    return LEVELS.get(level_str.lower())


class Vlog(object):
    """The log of one module, whose name is `name` in lower case."""

    __inited = False
    __start_time = 0.0
    __numbers = itertools.count()
    # Levels by module and destination.
    __levels = {}
    # The levels of modules that are created after the start, by destination.
    __late_levels = dict(DESTINATIONS)
    __log_file = None
    __file_handler = None
    __log_patterns = PATTERNS

    def __init__(self, name):
        self.name = name.lower()
        if self.name not in Vlog.__levels:
            Vlog.__levels[self.name] = dict(Vlog.__late_levels if Vlog.__inited else DESTINATIONS)

    def __log(self, level, message, **kwargs):
        if not Vlog.__inited:
            return
        # Messages that no destination takes are counted too.
        number = next(Vlog.__numbers)
        severity = LEVELS[level.lower()]
        destinations = [destination
                        for destination, least in Vlog.__levels.get(self.name, {}).items()
                        if severity >= LEVELS[least]]
        if not destinations:
            return
        facilities = logging.handlers.SysLogHandler.facility_names
        record = _log_pattern.Record(
            number, self.name, level, str(message),
            (time.monotonic() - Vlog.__start_time) * 1000,
            facilities.get(syslog_facility, facilities["daemon"]))
        for destination in destinations:
            text = record.text(Vlog.__log_patterns[destination])
            logging.getLogger(destination).log(severity, text, **kwargs)

    def emer(self, message, **kwargs):
        """Logs `message` at level EMER.  The keywords are those of `logging.Logger.log`."""
        self.__log("EMER", message, **kwargs)

    def err(self, message, **kwargs):
        """Logs `message` at level ERR."""
        self.__log("ERR", message, **kwargs)

    def warn(self, message, **kwargs):
        """Logs `message` at level WARN."""
        self.__log("WARN", message, **kwargs)

    def info(self, message, **kwargs):
        """Logs `message` at level INFO."""
        self.__log("INFO", message, **kwargs)

    def dbg(self, message, **kwargs):
        """Logs `message` at level DBG."""
        self.__log("DBG", message, **kwargs)

    def exception(self, message):
        """Logs `message` at level ERR with the stack of the exception that is being handled."""
        self.err(message, exc_info=True)

    def __is_enabled(self, level):
        number = LEVELS[level]
        return any(number >= LEVELS[least]
                   for least in Vlog.__levels.get(self.name, {}).values())

    def emer_is_enabled(self):
        """Returns whether some destination takes messages at level EMER."""
        return self.__is_enabled("emer")

    def err_is_enabled(self):
        """Returns whether some destination takes messages at level ERR."""
        return self.__is_enabled("err")

    def warn_is_enabled(self):
        """Returns whether some destination takes messages at level WARN."""
        return self.__is_enabled("warn")

    def info_is_enabled(self):
        """Returns whether some destination takes messages at level INFO."""
        return self.__is_enabled("info")

    def dbg_is_enabled(self):
        """Returns whether some destination takes messages at level DBG."""
        return self.__is_enabled("dbg")

    @staticmethod
    def init(log_file=None):
        """Starts logging, to `log_file` too if it is given.  Only the first call has an effect."""
        if Vlog.__inited:
            return
        Vlog.__inited = True
        Vlog.__start_time = time.monotonic()
        for destination in DESTINATIONS:
            # The levels of modules select the messages, so the loggers let all of them pass.
            logging.getLogger(destination).setLevel(logging.DEBUG)
            # Without any handler, `logging` would write warnings to standard error.
            logging.getLogger(destination).addHandler(logging.NullHandler())
        logging.getLogger("console").addHandler(logging.StreamHandler(sys.stderr))
        Vlog.add_syslog_handler()
        if log_file:
            Vlog.__log_file = log_file
            try:
                Vlog.__open_log_file()
            except OSError as e:
                Vlog.__complain("failed to open %s for logging: %s" % (log_file, e.strerror))
        unixctl.command_register("vlog/reopen", "", 0, 0, Vlog._unixctl_vlog_reopen, None)
        unixctl.command_register("vlog/close", "", 0, 0, Vlog._unixctl_vlog_close, None)
        unixctl.command_register("vlog/set", "spec", 1, sys.maxsize, Vlog._unixctl_vlog_set, None)
        unixctl.command_register("vlog/list", "", 0, 0, Vlog._unixctl_vlog_list, None)

    @staticmethod
    def __complain(message):
        """Logs a warning of this module, which has no place in the list of levels."""
        record = _log_pattern.Record(next(Vlog.__numbers), "vlog", "WARN", message, 0, 3)
        logging.getLogger("console").warning("%s", record.text(Vlog.__log_patterns["console"]))

    @staticmethod
    def __open_log_file():
        """Opens the log file and closes the one that was open, unless opening fails."""
        handler = logging.FileHandler(Vlog.__log_file, encoding="utf-8",
                                      errors="backslashreplace")
        Vlog.close_log_file()
        logging.getLogger("file").addHandler(handler)
        Vlog.__file_handler = handler

    @staticmethod
    def set_level(module, destination, level):
        """Sets the level of a module for a destination; "any" stands for all of a kind.

        Unknown names have no effect.
        """
        module, destination, level = module.lower(), destination.lower(), level.lower()
        if level not in LEVELS or destination not in ("any",) + tuple(DESTINATIONS):
            return
        destinations = DESTINATIONS if destination == "any" else (destination,)
        modules = Vlog.__levels if module == "any" else (module,)
        if module == "any":
            Vlog.__late_levels.update(dict.fromkeys(destinations, level))
        for name in list(modules):
            if name in Vlog.__levels:
                Vlog.__levels[name].update(dict.fromkeys(destinations, level))

    @staticmethod
    def set_pattern(destination, pattern):
        """Sets the pattern of a destination; "any" stands for all of them."""
        destination = destination.lower()
        for name in DESTINATIONS:
            if destination in (name, "any"):
                Vlog.__log_patterns[name] = pattern

    @staticmethod
    def add_syslog_handler(facility=None):
        """Makes the system log receive messages as those of `facility`.

        Without it, they belong to the facility of the last call.  There is no system log when the
        environment variable OVS_SYSLOG_METHOD is "null".
        """
        global syslog_facility, syslog_handler
        if os.environ.get("OVS_SYSLOG_METHOD") == "null":
            return
        if facility is not None:
            syslog_facility = facility
        elif syslog_handler:
            return
        logger = logging.getLogger("syslog")
        if syslog_handler:
            logger.removeHandler(syslog_handler)
            syslog_handler.close()
        syslog_handler = _SysLogHandler(_SYSLOG_SOCKET, syslog_facility)
        logger.addHandler(syslog_handler)

    @staticmethod
    def set_levels_from_string(s):
        """Sets levels, a pattern or the facility from the text of an option.

        The text consists of words that colons or spaces separate: a module, a destination and a
        level in any order; or "PATTERN", a destination and the pattern; or "FACILITY" and its
        name.  Returns None, or the text of an error.
        """
        words = re.split("[ :]", s)
        first = words[0].upper()
        if first == "PATTERN":
            return Vlog.__set_pattern_from_string(s)
        if first == "FACILITY":
            facility = words[1] if len(words) > 1 else ""
            if facility not in FACILITIES:
                return "Facility %s is invalid" % facility
            Vlog.add_syslog_handler(facility)
            return None

        level = module = destination = None
        for word in (word.lower() for word in words):
            if word == "any":
                continue
            if word in LEVELS:
                if level:
                    return "cannot specify multiple levels"
                level = word
            elif word in DESTINATIONS:
                if destination:
                    return "cannot specify multiple destinations"
                destination = word
            elif word in Vlog.__levels:
                if module:
                    return "cannot specify multiple modules"
                module = word
            else:
                return 'no destination, level, or module "%s"' % word
        if level:
            Vlog.set_level(module or "any", destination or "any", level)
        return None

    @staticmethod
    def __set_pattern_from_string(s):
        # Only the first two separators count; the pattern may hold others.
        words = re.split("[ :]", s, maxsplit=2)
        if len(words) > 1 and words[1].lower() not in ("any",) + tuple(DESTINATIONS):
            return "Destination %s does not exist" % words[1]
        if len(words) < 3 or not words[2]:
            return "Please supply a valid pattern and destination"
        Vlog.set_pattern(words[1], words[2])
        return None

    @staticmethod
    def get_levels():
        """Returns a table of the levels of all modules."""
        lines = ["                 console    syslog    file\n",
                 "                 -------    ------    ------\n"]
        for name, levels in sorted(Vlog.__levels.items()):
            lines.append("%-16s  %4s       %4s       %4s\n"
                         % (name, levels["console"], levels["syslog"], levels["file"]))
        return "".join(lines)

    @staticmethod
    def reopen_log_file():
        """Opens the log file again, which may have been moved away.

        Raises `OSError` if that is impossible; messages then go to the old file.
        """
        if Vlog.__log_file:
            Vlog.__open_log_file()

    @staticmethod
    def close_log_file():
        """Closes the log file; `reopen_log_file` opens it again."""
        if Vlog.__file_handler:
            logging.getLogger("file").removeHandler(Vlog.__file_handler)
            try:
                Vlog.__file_handler.close()
            except OSError:
                # What the file could not take is lost; the next file is none the worse.
                pass
            Vlog.__file_handler = None

    @staticmethod
    def _unixctl_vlog_reopen(conn, unused_argv, unused_aux):
        if not Vlog.__log_file:
            conn.reply("Logging to file not configured")
            return
        try:
            Vlog.reopen_log_file()
        except OSError as e:
            conn.reply_error(e.strerror)
        else:
            conn.reply(None)

    @staticmethod
    def _unixctl_vlog_close(conn, unused_argv, unused_aux):
        Vlog.close_log_file()
        conn.reply(None)

    @staticmethod
    def _unixctl_vlog_set(conn, argv, unused_aux):
        for word in argv:
            error = Vlog.set_levels_from_string(word)
            if error:
                conn.reply(error)
                return
        conn.reply(None)

    @staticmethod
    def _unixctl_vlog_list(conn, unused_argv, unused_aux):
        conn.reply(Vlog.get_levels())


class _SysLogHandler(logging.handlers.SysLogHandler):
    """Writes to the system log; a machine without one loses the messages silently."""

    def handleError(self, record):
        pass


def add_args(parser):
    """Adds the options of logging to an `argparse` parser."""
    group = parser.add_argument_group(title="Logging Options")
    group.add_argument("--log-file", nargs="?", const="default",
                       help="Logs to LOG_FILE too, or to the default log file if none is named.")
    group.add_argument("-v", "--verbose", nargs="*", action="extend",
                       help="Sets logging levels, patterns and the facility of the system log; "
                            "alone, it lets all messages through.")


def handle_args(args):
    """Starts logging as the parsed options of `add_args` ask; ends the program on a bad one."""
    if args.verbose == []:
        args.verbose = ["any:any:dbg"]
    for word in args.verbose or []:
        error = Vlog.set_levels_from_string(word)
        if error:
            util.ovs_fatal(0, 'processing "%s": %s' % (word, error))
    log_file = args.log_file
    if log_file == "default":
        log_file = os.path.join(dirs.LOGDIR, "%s.log" % util.PROGRAM_NAME)
    Vlog.init(log_file)
