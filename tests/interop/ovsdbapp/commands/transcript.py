"""The transcript of a play: lines of text that must be the same for every library and every server.

Owns the names of rows. A uuid is random, so a row is shown by its table and a number. Rows that appear between two
commands get their numbers in the order of their contents, because a server sends them in the order of their uuids.
Rows that look alike are told apart by the rows that refer to them. A uuid that is no row's is numbered as it appears.
"""

import re
import uuid

from ovs.db import idl as ovs_idl
from ovsdbapp import api as ovsdbapp_api
from ovsdbapp.backend.ovs_idl import rowview

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# A list of rows is sorted by uuid, so the order of its names is accidental.
UUID_LIST = re.compile(r"\[((?:UUID\('<[^<>]*>'\)|'?<[^<>]*>'?)(?:, (?:UUID\('<[^<>]*>'\)|'?<[^<>]*>'?))+)\]")
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
TXN_ID = re.compile(r"\btxn [0-9a-f]{8}\b")
# Which of two rows with equal index values a server calls the first depends on their uuids.
TWINS = re.compile(r"First row, (with UUID [^.]*)\.  Second row, (with UUID [^.]*)\.")


class Transcript:
    """Writes lines to `file`; `replace` maps texts that differ from run to run (paths, ports) to fixed words."""

    def __init__(self, file, replace=()):
        self.file = file
        self.names = {}
        self.counts = {}
        self.replace = list(replace)

    def say(self, line):
        # Each line goes out at once, so that a play that hangs shows where.
        print(line, file=self.file, flush=True)

    def text(self, text):
        """`text` with everything accidental replaced."""
        for accidental, word in self.replace:
            text = text.replace(accidental, word)
        text = UUID.sub(lambda found: f"<{self.name(uuid.UUID(found.group(0)))}>", text)
        text = UUID_LIST.sub(lambda found: "[" + ", ".join(sorted(found.group(1).split(", "))) + "]", text)
        text = TXN_ID.sub("txn <id>", ADDRESS.sub("", text))
        return TWINS.sub(lambda found: "Two rows, " + " and ".join(sorted(found.groups())) + ".", text)

    def name(self, key):
        """The name of the uuid `key`; a uuid that has none gets the next number."""
        if key.int == 0:
            return "zero"
        if key not in self.names:
            self._assign(key, "uuid")
        return self.names[key]

    def _assign(self, key, kind):
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.names[key] = f"{kind}#{self.counts[kind]}"

    def forget_order(self, tables):
        """Names every row of `tables` (name to table) that has none yet."""
        new = [row for table in tables.values() for row in list(table.rows.values()) if row.uuid not in self.names]
        if not new:
            return
        referrers = self._referrers(tables, {row.uuid for row in new})
        while new:
            keyed = sorted(((self._key(row, referrers), row) for row in new), key=lambda pair: pair[0])
            keys = [key for key, _ in keyed]
            alone = [row for key, row in keyed if keys.count(key) == 1]
            # Rows that nothing tells apart are interchangeable; naming the first may tell others apart.
            for row in alone or [keyed[0][1]]:
                self._assign(row.uuid, row._table.name)
            new = [row for row in new if row.uuid not in self.names]

    def _referrers(self, tables, wanted):
        found = {}
        for table in tables.values():
            for row in list(table.rows.values()):
                for column in table.columns:
                    for target in uuids_in(read(row, column)):
                        if target in wanted:
                            found.setdefault(target, []).append((row.uuid, column))
        return found

    def _key(self, row, referrers):
        values = [f"{column}={self._blank(read(row, column))}" for column in sorted(row._table.columns)]
        arrows = sorted(f"{self.names.get(source, '?')}.{column}" for source, column in referrers.get(row.uuid, ()))
        return (row._table.name, str(values), str(arrows))

    def _blank(self, value):
        """`value` with unnamed uuids blanked, for sorting."""
        if isinstance(value, uuid.UUID):
            return self.names.get(value, "?")
        if isinstance(value, list):
            return sorted(str(self._blank(one)) for one in value)
        if isinstance(value, dict):
            return sorted(f"{self._blank(key)}:{self._blank(one)}" for key, one in value.items())
        return value

    def show(self, value, unordered=False):
        """`value` as text, types included. `unordered`: the order of a list on top is accidental."""
        if isinstance(value, uuid.UUID):
            return f"<{self.name(value)}>"
        if isinstance(value, rowview.RowView):
            return f"RowView({self.show(value._row)})"
        if isinstance(value, ovs_idl.Row):
            return f"Row<{self.name(value.uuid)}>"
        if isinstance(value, ovsdbapp_api.Command):
            return f"{type(value).__name__}[{self.show(value.result)}]"
        if hasattr(value, "_fields"):
            return f"{type(value).__name__}({', '.join(f'{name}={self.show(getattr(value, name))}' for name in sorted(value._fields))})"
        if type(value) in (list, tuple):
            shown = [self.show(one) for one in value]
            if unordered or (type(value) is list and any(is_row(one) or isinstance(one, dict) for one in value)):
                shown.sort()
            return "[%s]" % ", ".join(shown) if type(value) is list else "(%s)" % ", ".join(shown)
        if type(value) is dict:
            return "{%s}" % ", ".join(sorted(f"{self.show(key)}: {self.show(one)}" for key, one in value.items()))
        if type(value) in (set, frozenset):
            return "%s(%s)" % (type(value).__name__, ", ".join(sorted(self.show(one) for one in value)))
        if value is None or type(value) in (bool, int, float, str):
            return self.text(repr(value))
        return f"{type(value).__name__}:{self.text(str(value))}"


def is_row(value):
    return isinstance(value, (uuid.UUID, ovs_idl.Row, rowview.RowView))


def read(row, column):
    """The value of `column` with rows as uuids; None when it cannot be read."""
    try:
        return plain(getattr(row, column))
    except AttributeError:
        return None


def plain(value):
    if isinstance(value, (ovs_idl.Row, rowview.RowView)):
        return value.uuid
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {plain(key): plain(one) for key, one in value.items()}
    return value


def uuids_in(value):
    if isinstance(value, uuid.UUID):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from uuids_in(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from uuids_in(key)
            yield from uuids_in(one)
