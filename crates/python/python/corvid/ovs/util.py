"""Messages to the user about errors, and names of files.

It owns the texts of `ovs_retval_to_string` and the form of the messages of command line programs.
It depends on `_shown` alone.
"""

import os
import sys

from . import _shown

PROGRAM_NAME = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
EOF = -1


def abs_file_name(dir_, file_name):
    """Returns `file_name` as an absolute name, relative to `dir_` or to the working directory.

    An absolute `file_name` is returned unchanged.  The result is as relative as `dir_` is.
    """
    if file_name.startswith("/"):
        return file_name
    return os.path.join(dir_ or os.getcwd(), file_name)


def ovs_retval_to_string(retval):
    """Returns the text of a return value: 0, an errno value, or EOF."""
    if not retval:
        return ""
    if retval > 0:
        return os.strerror(retval)
    if retval == EOF:
        return "End of file"
    return "***unknown return value: %s***" % retval


def ovs_error(err_no, message, vlog=None):
    """Prints `message`, and the text of `err_no` unless it is 0, to standard error.

    The program's name precedes the message.  With a `vlog`, the message is also logged there.
    """
    text = "%s: %s" % (PROGRAM_NAME, message)
    if err_no:
        text += " (%s)" % ovs_retval_to_string(err_no)
    sys.stderr.write(_shown.one_line(text) + "\n")
    if vlog:
        vlog.err(text)


def ovs_fatal(*args, **kwargs):
    """Like `ovs_error`, with the same arguments, and ends the program with exit status 1."""
    ovs_error(*args, **kwargs)
    sys.exit(1)
