"""A client for programs with an event loop of their own: it says what to wait for, and works when
it is called.
"""

from __future__ import annotations

import json
import select
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from . import _native
from .conditions import Condition
from .database import Database, check, forward_log
from .history import Line, Moment, Pages, Question, moment_text, operations_json


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

    def read_history(self, question: "Question[Line]") -> "Reading[Line]":
        """Begins to read the past of the database: call :meth:`Reading.take` after :meth:`run` until
        :attr:`Reading.is_over`. See :meth:`corvid.blocking.Client.read_history`.
        """
        return Reading(self.native, question)

    def select_at(self, moment: Moment, *operations: Mapping[str, Any]) -> "Selection":
        """Begins to query the contents at a moment: call :meth:`Selection.take` after :meth:`run`.
        See :meth:`corvid.blocking.Client.select_at`.
        """
        return Selection(self.native.select_at(moment_text(moment), operations_json(operations)))


class Reading(Pages[Line]):
    """A reading of the history. :meth:`Client.read_history` makes one."""

    def take(self) -> List[Line]:
        """Takes the lines that have come, and asks for more. Call it after each
        :meth:`Client.run`, and wait for :meth:`Client.wait` after it. Raises
        :class:`~corvid.errors.HistoryError`.
        """
        while self._take():
            pass
        lines = list(self._lines)
        self._lines.clear()
        return lines

    @property
    def is_over(self) -> bool:
        """Whether all lines were taken, or it has failed or was closed."""
        return self._has_ended()

    def close(self) -> None:
        """Ends the reading, also at the server."""
        self._cancel()


class Selection:
    """A query of the contents at a moment. :meth:`Client.select_at` makes one."""

    def __init__(self, native: "_native.History") -> None:
        self._native = native

    def take(self) -> Optional[List[Dict[str, Any]]]:
        """Takes the results, once: None before they are there. Call it after each
        :meth:`Client.run`. Raises
        :class:`~corvid.errors.HistoryError`.
        """
        page = self._native.take()
        if page is None:
            return None
        results: List[Dict[str, Any]] = json.loads(page[0][0])
        return results

    def close(self) -> None:
        """Ends the query, also at the server."""
        self._native.cancel()

    __del__ = close
