"""The text of the status with which a process ended."""

import os
import signal


def _signal_status_msg(type_, signr):
    try:
        name = " (%s)" % signal.Signals(signr).name
    except ValueError:
        name = ""
    return "%s by signal %d%s" % (type_, signr, name)


def status_msg(status):
    """Returns a text for a status that `os.waitpid` returned."""
    if os.WIFEXITED(status):
        text = "exit status %d" % os.WEXITSTATUS(status)
    elif os.WIFSIGNALED(status):
        text = _signal_status_msg("killed", os.WTERMSIG(status))
    elif os.WIFSTOPPED(status):
        text = _signal_status_msg("stopped", os.WSTOPSIG(status))
    else:
        text = "terminated abnormally (%x)" % status
    if os.WCOREDUMP(status):
        text += ", core dumped"
    return text
