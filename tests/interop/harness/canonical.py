"""Names for rows that do not depend on their uuids.

Two databases are equal up to uuids when their reference graphs are isomorphic. A row's name starts as a digest of its
table and plain values; in each round it takes in the names of the rows it refers to and of the rows that refer to it,
until no round tells more rows apart (colour refinement). Equal multisets of names then mean equal contents: rows that
still share a name are alike in everything within any number of steps, as two unnamed ports of one switch are.

A uuid counts as a reference wherever it stands: in a column of uuids, and inside a string, where OVN keeps the uuids
of northbound rows. Several databases can be named together for that reason.
"""

import hashlib
import json
import re
from collections import Counter

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def _digest(value):
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]


def _rename(value, name_of):
    """`value` (wire notation of a datum) with every uuid replaced, sets and maps in an order that uuids do not decide."""
    if isinstance(value, str):
        return UUID.sub(lambda found: name_of(found.group(0)), value)
    if not isinstance(value, list) or not value:
        return value
    if value[0] in ("uuid", "named-uuid"):
        return ["uuid", name_of(value[1])]
    if value[0] in ("set", "map"):
        return [value[0], sorted((_rename(item, name_of) for item in value[1]), key=lambda item: json.dumps(item))]
    return [_rename(item, name_of) for item in value]


def _references(value, found):
    for text in UUID.findall(json.dumps(value)):
        found.add(text)


class Contents:
    """Rows of one or more databases: `add` them, then `name_all`, then read `names` or `render`."""

    def __init__(self):
        self.rows = {}  # uuid -> (table, {column: notation})
        self.names = {}  # uuid -> name

    def add(self, rows, drop=(), prefix=""):
        """`rows` is {table: {uuid: {column: notation}}}; `drop` is a set of (table, column) left out."""
        for table, by_uuid in rows.items():
            for uuid, row in by_uuid.items():
                kept = {column: value for column, value in row.items() if (table, column) not in drop}
                self.rows[uuid] = (prefix + table, kept)
        return self

    def name_all(self):
        outgoing, incoming = {}, {uuid: [] for uuid in self.rows}
        for uuid, (table, row) in self.rows.items():
            outgoing[uuid] = {}
            for column, value in row.items():
                targets = set()
                _references(value, targets)
                if targets:
                    outgoing[uuid][column] = targets
                for target in targets & self.rows.keys():
                    incoming[target].append((uuid, table, column))
        blank = {uuid: _digest([table, _rename_row(row, lambda _: "*")]) for uuid, (table, row) in self.rows.items()}
        names = blank
        classes = len(set(names.values()))
        while True:
            name_of = lambda uuid, names=names: names.get(uuid, "*")  # noqa: E731
            names = {
                uuid: _digest(
                    [
                        names[uuid],
                        {column: _rename(row[column], name_of) for column in outgoing[uuid]},
                        sorted([names[source], source_table, column] for source, source_table, column in incoming[uuid]),
                    ]
                )
                for uuid, (table, row) in self.rows.items()
            }
            refined = len(set(names.values()))
            if refined == classes:
                break
            classes = refined
        self.names = names
        self.blank = blank
        return self

    def label(self, uuid):
        """A short name for people: the table and its name column, or the digest of its plain values."""
        if uuid not in self.rows:
            return "unknown-row"
        table, row = self.rows[uuid]
        for column in ("name", "logical_port", "external_ids"):
            value = row.get(column)
            if isinstance(value, str) and value and not UUID.search(value):
                return f"{table} {value}"
        return f"{table} #{self.blank[uuid][:6]}"

    def render(self):
        """One line a row, references shown by label, sorted: what a difference is shown with."""
        lines = []
        for _, (table, row) in self.rows.items():
            shown = {column: _rename(value, lambda target: f"<{self.label(target)}>") for column, value in row.items()}
            lines.append(f"{table} {json.dumps(shown, sort_keys=True)}")
        return sorted(lines)

    def fingerprint(self):
        """{name: how many rows have it}; equal fingerprints are equal contents."""
        return Counter(self.names.values())


def _rename_row(row, name_of):
    return {column: _rename(value, name_of) for column, value in row.items()}


def difference(ours, theirs, limit=40):
    """Empty when the two named contents are equal up to uuids; otherwise lines that show where they differ."""
    if ours.fingerprint() == theirs.fingerprint():
        return ""
    ours_lines, theirs_lines = Counter(ours.render()), Counter(theirs.render())
    only_ours = sorted((ours_lines - theirs_lines).elements())
    only_theirs = sorted((theirs_lines - ours_lines).elements())
    if not only_ours and not only_theirs:
        return "every row is equal by itself, but rows refer to different rows that look alike"
    shown = [f"only under test: {line[:1500]}" for line in only_ours[:limit]]
    shown += [f"only reference:  {line[:1500]}" for line in only_theirs[:limit]]
    return f"{len(only_ours)} rows only under test, {len(only_theirs)} only in the reference\n" + "\n".join(shown)
