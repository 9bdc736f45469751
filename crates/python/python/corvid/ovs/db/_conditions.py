"""The condition of a table, on its way to the server."""


class ConditionState:
    """A condition as it was set, as it was sent, and as the server has it. Each is a list of
    clauses and booleans, or None.
    """

    def __init__(self):
        self._new = None
        self._requested = None
        self._acked = [True]

    @property
    def new(self):
        """Set, and not sent."""
        return self._new

    @property
    def requested(self):
        """Sent, and not acknowledged."""
        return self._requested

    @property
    def acked(self):
        """Acknowledged by the server."""
        return self._acked

    @property
    def latest(self):
        """The last one that was set."""
        return self._new or self._requested or self._acked

    @staticmethod
    def is_true(condition):
        """Whether a condition wants all rows."""
        return condition == [True]

    def init(self, cond):
        """Sets a condition."""
        self._new = cond

    def request(self):
        """It was sent."""
        if self._new is not None:
            self._requested, self._new = self._new, None

    def ack(self):
        """The server has it."""
        if self._requested is not None:
            self._acked, self._requested = self._requested, None


def normalized(condition):
    """A condition as a list: a boolean alone becomes one, and an empty list wants no rows."""
    if isinstance(condition, bool):
        return [condition]
    return list(condition) or [False]
