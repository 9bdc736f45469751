"""Waiting of threads for one client: one of them polls for all."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import Any, ContextManager, Optional

from . import _native
from .database import Predicate, forward_log
from .errors import NoServer, TimedOut


class Waiter:
    """Threads that wait for a client. One polls its descriptor and takes what comes; the others are
    woken when something has come.

    A thread that begins to wait takes what is there, which may be what the polling one waits for,
    and may leave something to send: so it ends that poll once. Those that are woken take nothing,
    so threads do not wake each other for ever.
    """

    _read_end = _write_end = -1

    def __init__(self, native: "_native.Client", turn: ContextManager[Any] = contextlib.nullcontext()) -> None:
        self._native = native
        # Held while the replica takes an update.
        self._turn = turn
        self._progress = threading.Condition()
        self._is_polled = False
        # Ends a poll early.
        self._read_end, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Nobody can wait any more."""
        for end in (self._read_end, self._write_end):
            if end >= 0:
                os.close(end)
        self._read_end = self._write_end = -1

    def run(self) -> bool:
        """Takes what is there, and tells the others. Returns whether something changed."""
        # First: in a forked child a thread of the parent may have locked what comes next, and the
        # pipe is the parent's.
        self._native.check_process()
        has_changed = self._take()
        self.interrupt()
        return has_changed

    def _take(self) -> bool:
        with self._turn:
            has_changed = self._native.run()
        forward_log()
        return has_changed

    def interrupt(self) -> None:
        """Has all that wait look at the session again."""
        self._native.check_process()
        with self._progress:
            self._progress.notify_all()
            if self._is_polled:
                self._wake()

    def wait_until(self, holds: Predicate, timeout: Optional[float]) -> None:
        """Waits until ``holds()`` is true."""
        end = None if timeout is None else time.monotonic() + timeout
        self.run()
        while True:
            with self._progress:
                if holds():
                    return
                session = self._native.session
                reason = f": {session.last_failure}" if session.last_failure else ""
                if not session.is_alive:
                    raise NoServer(f"no server is left to try{reason}")
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimedOut(f"timed out after {timeout} s{reason}")
                if self._is_polled:
                    self._progress.wait(left)
                    continue
                self._is_polled = True
            try:
                self._poll(left)
                self._take()
            finally:
                with self._progress:
                    self._is_polled = False
                    # Another one polls from now on, if this thread has what it waited for.
                    self._progress.notify_all()

    def _poll(self, left: Optional[float]) -> None:
        fd, readable, writable, timeout = self._native.wait()
        if left is not None:
            timeout = left if timeout is None else min(timeout, left)
        # Only when something is there: eventlet's `read` waits in spite of O_NONBLOCK.
        if wait_for(fd, readable, writable, self._read_end, timeout):
            os.read(self._read_end, 4096)

    def _wake(self) -> None:
        try:
            os.write(self._write_end, b"x")
        except BlockingIOError:
            pass


def wait_for(fd: Optional[int], readable: bool, writable: bool, waker: int, timeout: Optional[float]) -> bool:
    """Waits for a descriptor, or until another one is readable; with a time limit in seconds.
    Returns whether the other one is.
    """
    poll = getattr(select, "poll", None)
    if poll is None:
        # eventlet leaves programs no poll, but a select that lets other green threads run.
        reads = [waker] + [fd for fd in [fd] if fd is not None and readable]
        writes = [fd for fd in [fd] if fd is not None and writable]
        return waker in select.select(reads, writes, [], timeout)[0]
    poller = poll()
    poller.register(waker, select.POLLIN)
    if fd is not None:
        poller.register(fd, (select.POLLIN if readable else 0) | (select.POLLOUT if writable else 0))
    # Rounded up, so that a time limit is not polled for again and again.
    ready = poller.poll(None if timeout is None else int(timeout * 1000) + 1)
    return any(one == waker for one, _ in ready)
