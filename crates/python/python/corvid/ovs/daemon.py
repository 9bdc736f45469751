"""Daemons: a process in the background, its pidfile with a lock, and a monitor that restarts it.

A program sets up what it wants, by the options of `add_args` or the functions `set_...`, and calls
`daemonize`, or `daemonize_start` before and `daemonize_complete` after the work of its start.
With detaching, the process that the user started ends when the start is complete, with the exit
status of a start that failed.
"""

import errno
import fcntl
import os
import resource
import signal
import sys
import time

from corvid import _native

from . import dirs
from . import poller, socket_util, timeval  # noqa: F401 - programs reach them through this module
from . import fatal_signal
from . import process
from . import util
from . import vlog as _vlog

vlog = _vlog.Vlog("daemon")

# A process that ends with this status asks its monitor for a restart.
RESTART_EXIT_CODE = 5

# The least time between two restarts.
RESTART_INTERVAL_S = 10

# A process that one of these signals killed is restarted.
_RESTART_SIGNALS = (signal.SIGABRT, signal.SIGALRM, signal.SIGBUS, signal.SIGFPE, signal.SIGILL,
                    signal.SIGPIPE, signal.SIGSEGV, signal.SIGXCPU, signal.SIGXFSZ)

_detach = False
_monitor = False
_chdir = True
_overwrite_pidfile = False

_pidfile = None
# The pidfile that this process made: device, inode, the open file that holds the lock, and the
# process, because a child inherits these variables but not the lock.
_pidfile_dev = None
_pidfile_ino = None
_pidfile_file = None
_pidfile_pid = None

# The pipe to the process that waits for the end of our start.
_daemonize_fd = None


def make_pidfile_name(name):
    """Returns the file name of a pidfile, of the program's own name if `name` is empty."""
    if not name:
        return "%s/%s.pid" % (dirs.RUNDIR, util.PROGRAM_NAME)
    return util.abs_file_name(dirs.RUNDIR, name)


def set_pidfile(name):
    """Makes `daemonize` create the pidfile that `make_pidfile_name` names."""
    global _pidfile
    _pidfile = make_pidfile_name(name)


def set_no_chdir():
    """Makes `daemonize` keep the working directory, instead of changing to the root."""
    global _chdir
    _chdir = False


def ignore_existing_pidfile():
    """Makes `daemonize` replace the pidfile of a process that is running."""
    global _overwrite_pidfile
    _overwrite_pidfile = True


def set_detach():
    """Makes `daemonize` put the process in the background."""
    global _detach
    _detach = True


def get_detach():
    """Returns whether `daemonize` puts the process in the background."""
    return _detach


def set_monitor():
    """Makes `daemonize` start a second process, which restarts this one when it dies."""
    global _monitor
    _monitor = True


def daemonize():
    """Does all that the setup asks for, for a program whose start needs no more work."""
    daemonize_start()
    daemonize_complete()


def daemonize_start():
    """Forks and creates the pidfile as the setup asks.

    The program then starts its work, and calls `daemonize_complete`, or ends with an exit status
    that the user sees.
    """
    if _detach:
        if _fork_and_wait_for_startup() > 0:
            # The hooks for the exit belong to the daemon.
            os._exit(0)
        os.setsid()

    if _monitor:
        saved_daemonize_fd = _daemonize_fd
        daemon_pid = _fork_and_wait_for_startup()
        if daemon_pid > 0:
            _fork_notify_startup(saved_daemonize_fd)
            if _detach and _chdir:
                os.chdir("/")
            _close_standard_fds()
            _monitor_daemon(daemon_pid)

    if _pidfile:
        _make_pidfile()


def daemonize_complete():
    """Ends the start: the process that the user started ends with success."""
    global _daemonize_fd
    _fork_notify_startup(_daemonize_fd)
    _daemonize_fd = None
    if _detach:
        if _chdir:
            os.chdir("/")
        _close_standard_fds()


def _fatal(msg):
    vlog.err(msg)
    sys.stderr.write("%s\n" % msg)
    sys.exit(1)


def _fork_and_wait_for_startup(inherits=True):
    """Forks.  Returns 0 in the child, and the child's pid in the parent after the child's start.

    When the child ends before, the parent ends too, with its exit status.
    """
    global _daemonize_fd
    # The child would write the contents of buffers a second time.
    for stream in (sys.stdout, sys.stderr):
        if stream:
            stream.flush()
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_fd)
        if inherits:
            # The parent waits for this process and uses no client any more.
            _native.inherit_connections()
        _daemonize_fd = write_fd
        return 0

    os.close(write_fd)
    fatal_signal.fork()
    started = os.read(read_fd, 1)
    os.close(read_fd)
    if not started:
        _, status = _waitpid(pid, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            sys.exit(os.WEXITSTATUS(status))
        sys.stderr.write("fork child failed to signal startup (%s)\n"
                         % process.status_msg(status))
        sys.exit(0 if os.WIFEXITED(status) else 1)
    return pid


def _fork_notify_startup(fd):
    """Tells the process at the other end of `fd`, if any, that the start is complete."""
    if fd is None:
        return
    try:
        os.write(fd, b"0")
    except OSError as e:
        # Nobody waits for us any more, which is no reason to fail.
        vlog.warn("pipe write failed (%s)" % e.strerror)
    os.close(fd)


def _close_standard_fds():
    """Lets standard input, output and error lead nowhere, so that no terminal is held."""
    null_fd = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null_fd, fd)
    if null_fd > 2:
        os.close(null_fd)


def _waitpid(pid, options):
    # Python itself repeats the call after a signal.
    return os.waitpid(pid, options)


def _should_restart(status):
    """Returns whether a process that ended with `status` is to be started again."""
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status) == RESTART_EXIT_CODE
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) in _RESTART_SIGNALS


def _monitor_daemon(daemon_pid):
    """Waits for the daemon and restarts it.  Returns in each new daemon only."""
    last_restart = None
    while True:
        pid, status = _waitpid(daemon_pid, 0)
        message = "pid %d died, %s" % (pid, process.status_msg(status))
        if not _should_restart(status):
            vlog.info("%s, exiting" % message)
            sys.exit(0)

        if os.WCOREDUMP(status):
            # One core dump is enough to find the defect; more would fill the disk.
            try:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            except (OSError, ValueError):
                vlog.warn("failed to disable core dumps")

        if last_restart is not None:
            wait_s = last_restart + RESTART_INTERVAL_S - time.monotonic()
            if wait_s > 0:
                vlog.warn("%s, waiting until %d seconds since last restart"
                          % (message, RESTART_INTERVAL_S))
                time.sleep(wait_s)
        last_restart = time.monotonic()

        vlog.err("%s, restarting" % message)
        # The connections of the monitor are those that the daemon which died has used.
        daemon_pid = _fork_and_wait_for_startup(inherits=False)
        if daemon_pid == 0:
            return


def _make_pidfile():
    """Creates the pidfile and locks it until the process ends."""
    global _pidfile_dev, _pidfile_ino, _pidfile_file, _pidfile_pid
    if not _overwrite_pidfile:
        _check_already_running()

    # A file that gets its name after it is locked is never seen without the lock.
    temporary = "%s.tmp%d" % (_pidfile, os.getpid())
    fatal_signal.add_file_to_unlink(temporary)
    try:
        file = open(temporary, "w")
    except OSError as e:
        _fatal("%s: create failed (%s)" % (temporary, e.strerror))
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as e:
        _fatal("%s: fcntl failed: %s" % (temporary, e.strerror))
    try:
        file.write("%d\n" % os.getpid())
        file.flush()
        status = os.fstat(file.fileno())
    except OSError as e:
        _fatal("%s: write failed: %s" % (temporary, e.strerror))
    try:
        os.rename(temporary, _pidfile)
    except OSError as e:
        _fatal("failed to rename \"%s\" to \"%s\" (%s)" % (temporary, _pidfile, e.strerror))

    fatal_signal.remove_file_to_unlink(temporary)
    fatal_signal.add_file_to_close_and_unlink(_pidfile, file)
    _pidfile_dev = status.st_dev
    _pidfile_ino = status.st_ino
    _pidfile_file = file
    _pidfile_pid = os.getpid()


def _check_already_running():
    pid = _read_pidfile(_pidfile, False)
    if pid > 0:
        _fatal("%s: already running as pid %d, aborting" % (_pidfile, pid))
    elif pid < 0:
        _fatal("%s: pidfile check failed (%s), aborting" % (_pidfile, os.strerror(-pid)))


def read_pidfile(pidfile):
    """Returns the pid of the process that holds the lock of `pidfile`, or a negative errno."""
    return _read_pidfile(pidfile, True)


def _read_pidfile(pidfile, must_exist):
    """Does the work of `read_pidfile`; without `must_exist`, 0 is the result for no process."""
    try:
        # A second open file of the process that holds the lock would drop the lock when closed.
        status = os.stat(pidfile)
        if (_pidfile_pid == os.getpid() and status.st_ino == _pidfile_ino
                and status.st_dev == _pidfile_dev):
            return os.getpid()
        file = open(pidfile, "r+")
    except OSError as e:
        if e.errno == errno.ENOENT and not must_exist:
            return 0
        vlog.warn("%s: open: %s" % (pidfile, e.strerror))
        return -e.errno

    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno not in (errno.EACCES, errno.EAGAIN):
                vlog.warn("%s: fcntl: %s" % (pidfile, e.strerror))
                return -e.errno
        else:
            if not must_exist:
                return 0
            vlog.warn("%s: pid file is stale" % pidfile)
            return -errno.ESRCH

        try:
            return int(file.readline())
        except ValueError:
            vlog.warn("%s does not contain a pid" % pidfile)
            return -errno.EINVAL
        except OSError as e:
            vlog.warn("%s: read: %s" % (pidfile, e.strerror))
            return -e.errno


def usage():
    """Prints the options of `add_args`, for a program that writes its help itself."""
    sys.stdout.write("""
Daemon options:
   --detach                run in background as daemon
   --no-chdir              do not chdir to '/'
   --monitor               restart the daemon when it dies
   --pidfile[=FILE]        create pidfile (default: %s)
   --overwrite-pidfile     with --pidfile, start even if already running
""" % make_pidfile_name(None))


def add_args(parser):
    """Adds the options of daemons to an `argparse` parser."""
    pidfile = make_pidfile_name(None)
    group = parser.add_argument_group(title="Daemon Options")
    group.add_argument("--detach", action="store_true",
                       help="Puts the process in the background.")
    group.add_argument("--no-chdir", action="store_true",
                       help="Keeps the working directory instead of changing to the root.")
    group.add_argument("--monitor", action="store_true",
                       help="Starts a process that restarts %s when it dies." % util.PROGRAM_NAME)
    group.add_argument("--pidfile", nargs="?", const=pidfile,
                       help="Creates a pidfile (by default %s)." % pidfile)
    group.add_argument("--overwrite-pidfile", action="store_true",
                       help="With --pidfile, starts even if a process holds the pidfile.")


def handle_args(args):
    """Sets up what the parsed options of `add_args` ask for."""
    if args.detach:
        set_detach()
    if args.no_chdir:
        set_no_chdir()
    if args.pidfile:
        set_pidfile(args.pidfile)
    if args.overwrite_pidfile:
        ignore_existing_pidfile()
    if args.monitor:
        set_monitor()
