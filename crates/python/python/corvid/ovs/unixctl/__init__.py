"""Control commands of a daemon: their registry, and where the control socket of a program is.

`ovs.unixctl.server` answers the commands and `ovs.unixctl.client` sends them.
"""

import enum

from .. import util  # noqa: F401 - programs reach it through this module

COMMAND_COLUMNS = 23

commands = {}


class UnixctlOutputFormat(enum.IntFlag):
    """The form in which a client wants the results of commands."""

    TEXT = 1
    JSON = 2


class _UnixctlCommand(object):
    def __init__(self, usage, min_args, max_args, callback, aux):
        self.usage = usage
        self.min_args = min_args
        self.max_args = max_args
        self.callback = callback
        self.aux = aux


def _unixctl_help(conn, unused_argv, unused_aux):
    lines = ["The available commands are:\n"]
    for name, command in sorted(commands.items()):
        if command.usage:
            lines.append("  %-*s %s\n" % (COMMAND_COLUMNS, name, command.usage))
        else:
            lines.append("  %s\n" % name)
    conn.reply("".join(lines))


def command_register(name, usage, min_args, max_args, callback, aux):
    """Registers a command, unless one of this name exists.

    `usage` describes the arguments, at least `min_args` and at most `max_args`.  A request makes
    the server call `callback(conn, argv, aux)`, where `argv` are the arguments; at once or later,
    the program calls `conn.reply`, `conn.reply_json` or `conn.reply_error`, exactly once.
    """
    assert isinstance(name, str)
    assert isinstance(usage, str)
    assert isinstance(min_args, int)
    assert isinstance(max_args, int)
    assert callable(callback)

    if name not in commands:
        commands[name] = _UnixctlCommand(usage, min_args, max_args, callback, aux)


def socket_name_from_target(target):
    """Returns the control socket of the program `target`, as an error and a name.

    An absolute `target` is the name of the socket itself.  Any other is the name of a daemon,
    whose process is found by its pidfile.  The error is 0 or an errno value; with an error, the
    text of the error takes the place of the name.
    """
    assert isinstance(target, str)

    if target.startswith("/"):
        return 0, target

    # The daemon module uses logging, which uses this one.
    from .. import daemon
    from .. import dirs

    pidfile = "%s/%s.pid" % (dirs.RUNDIR, target)
    pid = daemon.read_pidfile(pidfile)
    if pid < 0:
        return -pid, 'cannot read pidfile "%s"' % pidfile
    return 0, "%s/%s.%d.ctl" % (dirs.RUNDIR, target, pid)


for _name in ("help", "list-commands"):
    command_register(_name, "", 0, 0, _unixctl_help, None)
