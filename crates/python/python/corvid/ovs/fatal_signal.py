"""Work to do when the process ends: hooks and files to remove.

It is done at the normal end of the process and on the signals that end it, which then take their
usual effect.  A signal that the program handles or ignores itself is left alone.
"""

import atexit
import os
import signal
import threading

from . import vlog as _vlog

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGALRM")

vlog = _vlog.Vlog("fatal-signal")
# Reentrant, because a signal may arrive while the main thread holds it.
mutex = threading.RLock()

_hooks = []
# The files to remove, with the open file to close before, or None.
_files = {}
_added_hook = False
_registered = False
_inited = False
_calling = False


class _Hook(object):
    def __init__(self, func, cancel, run_at_exit):
        self.func = func
        self.cancel = cancel
        self.run_at_exit = run_at_exit


def add_hook(hook, cancel, run_at_exit):
    """Makes the process call `hook()` when a signal ends it, and at its exit if `run_at_exit`.

    `cancel()`, unless it is None, is called by `fork`, which forgets the hook.
    """
    _init()
    _hooks.append(_Hook(hook, cancel, run_at_exit))


def fork():
    """Forgets all hooks and files without running the hooks.

    The process that calls it after `os.fork` ends without the work that belongs to the other one.
    """
    hooks = list(_hooks)
    del _hooks[:]
    for hook in hooks:
        if hook.cancel:
            hook.cancel()


def add_file_to_unlink(file):
    """Makes the process remove `file` when it ends."""
    add_file_to_close_and_unlink(file)


def add_file_to_close_and_unlink(file, fd=None):
    """Makes the process close the file object `fd`, if any, and remove `file` when it ends.

    With `fd`, a file that another process has put in the place of the open one stays.
    """
    global _added_hook
    if not _added_hook:
        _added_hook = True
        add_hook(_unlink_files, _cancel_files, True)
    with mutex:
        # The working directory may be another one at the end.
        _files[os.path.abspath(file)] = fd


def remove_file_to_unlink(file):
    """Makes the process keep `file` after all."""
    with mutex:
        _files.pop(os.path.abspath(file), None)


def unlink_file_now(file):
    """Removes `file` now instead of at the end; returns 0 or an errno value."""
    remove_file_to_unlink(file)
    error = _unlink(file)
    if error:
        vlog.warn('could not unlink "%s" (%s)' % (file, os.strerror(error)))
    return error


def signal_alarm(timeout):
    """Makes SIGALRM end the process after `timeout` seconds, unless that is 0 or None."""
    if timeout:
        signal.alarm(timeout)


def _unlink_files():
    for file, fd in list(_files.items()):
        is_ours = not fd or _is_same(file, fd)
        if fd:
            fd.close()
        if is_ours:
            _unlink(file)


def _is_same(file, fd):
    """Whether the name `file` leads to the open file object `fd`; true when nobody can tell."""
    try:
        return os.path.samestat(os.stat(file), os.fstat(fd.fileno()))
    except (OSError, ValueError):
        return True


def _cancel_files():
    global _added_hook
    _added_hook = False
    _files.clear()


def _unlink(file):
    try:
        os.unlink(file)
    except OSError as e:
        return e.errno
    return 0


def _init():
    """Installs the handlers of the signals and of the exit.

    Only the main thread can install handlers of signals; a call in another thread leaves them to
    the next call.
    """
    global _inited, _registered
    if not _registered:
        _registered = True
        atexit.register(_atexit_handler)
    if _inited or threading.current_thread() is not threading.main_thread():
        return
    _inited = True
    for name in _SIGNALS:
        number = getattr(signal, name)
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _signal_handler)


def _signal_handler(signr, _):
    _call_hooks(signr)
    signal.signal(signr, signal.SIG_DFL)
    os.kill(os.getpid(), signr)


def _atexit_handler():
    _call_hooks(0)


def _call_hooks(signr):
    """Calls the hooks for a signal, or those for the exit if `signr` is 0, only once."""
    global _calling
    if _calling:
        return
    _calling = True
    for hook in list(_hooks):
        if signr or hook.run_at_exit:
            try:
                hook.func()
            except Exception:
                # The other hooks must run, and the process must end.
                vlog.exception("hook failed at the end of the process")
