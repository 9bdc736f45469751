"""Two rows of one UUID, as they exist while the reply to an insertion is outstanding.

Exit status 77, for a skipped play, from an original that keeps one row for a UUID.
"""

import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))

import ovs.db.custom_index as custom_index
import ovs.db.schema as schema
from transcript import attempt, say, text

table = schema.TableSchema.from_json({"columns": {"name": {"type": "string"}}}, "Bridge")
table.rows = rows = custom_index.IndexedRows(table)


class Row(object):
    def __init__(self, number, name):
        self.uuid = uuid.UUID(int=number)
        self.name = name
        self._table = table


index = rows.index_create("by_name")
index.add_column("name")


def show():
    say(len(rows), [r.name for r in rows.values()], [(str(u), r.name) for u, r in rows.items()],
        [r.name for r in index], [e.name for e in index.values],
        [len(stack) for stack in rows.data.values()])


one, two, other = Row(1, "one"), Row(1, "two"), Row(2, "other")
rows[one.uuid] = one
if not isinstance(rows.data[one.uuid], list):
    sys.exit(77)
rows[other.uuid] = other
show()
rows[two.uuid] = two
show()
say(rows[one.uuid] is two, rows.get(one.uuid) is two, one.uuid in rows)
say(text([r.name for r in index.irange(rows.IndexEntry(name="one"), rows.IndexEntry(name="one"))]))
del rows[one.uuid]
show()
say(rows[one.uuid] is one)
del rows[one.uuid]
show()
say(one.uuid in rows, attempt(rows.__getitem__, one.uuid), attempt(rows.__delitem__, one.uuid))
rows[one.uuid] = one
show()
