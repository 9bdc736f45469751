"""A client for programs with an event loop of their own: it says what to wait for, and works when
it is called.
"""

from __future__ import annotations

import select
from typing import NamedTuple, Optional

from . import _native
from .conditions import Condition
from .database import Database, check, forward_log


class Wait(NamedTuple):
    """The events before which there is nothing to do."""

    #: The descriptor; None if there is none now.
    fd: Optional[int]
    #: ``select.POLLIN`` and ``select.POLLOUT``.
    events: int
    #: Seconds; None for ever.
    timeout: Optional[float]


class Client(Database):
    """A client that never waits. Call :meth:`run`, look at the replica, and wait for
    :meth:`wait`.
    """

    def run(self) -> bool:
        """Does all work that needs no waiting, within bounds. Returns whether something changed."""
        is_changed = self.native.run()
        forward_log()
        return is_changed

    def wait(self) -> Wait:
        """The events to wait for before the next :meth:`run`."""
        fd, readable, writable, timeout = self.native.wait()
        events = (select.POLLIN if readable else 0) | (select.POLLOUT if writable else 0)
        return Wait(fd, events, timeout)

    def close(self) -> None:
        """Ends the session. Rows can still be read."""
        self.native.close()

    def begin(self) -> "_native.Transaction":
        """Opens a transaction. :meth:`~corvid.Transaction.commit` sends it; its status changes in
        :meth:`run`.
        """
        return self.native.begin()

    @staticmethod
    def check(txn: "_native.Transaction") -> None:
        """Raises the error of a transaction that has ended without success."""
        check(txn)

    def set_condition(self, table: str, condition: Condition) -> int:
        """Chooses the rows of a table that are replicated. Returns the number that
        :attr:`condition_seqno` reaches when the server applies it.
        """
        return self._set_condition(table, condition)

    @property
    def condition_seqno(self) -> int:
        """The number up to which conditions are in force: compare with ``>=``."""
        return self.native.condition_seqno

    def watch(self, *tables: str) -> "_native.Watch":
        """The changes of these tables (of all, if none is named) from now on: call
        :meth:`~corvid.Watch.take` after :meth:`run`.
        """
        return self._watch(tables)
