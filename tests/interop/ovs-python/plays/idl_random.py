"""Random lives: the same transactions of one client, and the notifications and contents of another one."""
# needs: server inventory-1.ovsschema
# not on: debian: it notifies of the rows of `_Server` too, and waits for ever where a notification is lost

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
from idl_transcript import connected, contents, say, show, until  # noqa: E402

SEED = 20260
ROUNDS = 150
Transaction = ovs.db.idl.Transaction


class Watching(ovs.db.idl.Idl):
    """Collects what it hears; rows of one message that belong to one table may come in any order."""

    heard = []

    def notify(self, event, row, updates=None):
        old = {name: getattr(updates, name) for name in row._table.columns if updates is not None and hasattr(updates, name)}
        old = {name: value for name, value in old.items() if name not in ("racks", "devices", "uplink", "peers")}
        name = getattr(row, "name", None) or getattr(row, "text", None)
        self.heard.append(f"{event} {row._table.name} {name} {show(old)}")


def act(dice, idl, txn, number):
    tables = idl.tables

    def some(table):
        rows = sorted(tables[table].rows.values(), key=lambda row: row.name if table != "Note" else row.text)
        return dice.choice(rows) if rows else None

    kind = dice.randrange(12)
    site, rack, device, note = some("Site"), some("Rack"), some("Device"), some("Note")
    if kind == 0 or site is None:
        row = txn.insert(tables["Site"])
        row.name, row.altitude, row.open = f"s{number}", dice.randrange(100) / 4, dice.random() < 0.5
    elif kind == 1:
        row = txn.insert(tables["Rack"])
        row.name, row.serial, row.units = f"r{number}", f"x{number}", dice.randrange(1, 60)
        site.addvalue("racks", row)
    elif kind == 2 and rack is not None:
        row = txn.insert(tables["Device"])
        row.name, row.kind = f"d{number}", dice.choice(["router", "server", "switch"])
        row.ports, row.weights = dice.sample(range(50), 5), {n: n / 2 for n in dice.sample(range(9), 3)}
        rack.devices = rack.devices + [row]
    elif kind == 3:
        row = txn.insert(tables["Note"])
        row.text, row.levels = f"n{number}", dice.sample(range(20), 4)
    elif kind == 4:
        site.labels = {str(n): str(dice.randrange(9)) for n in dice.sample(range(9), 3)}
    elif kind == 5:
        site.setkey("labels", str(dice.randrange(9)), str(number))
    elif kind == 6 and site.labels:
        site.delkey("labels", dice.choice(sorted(site.labels)))
    elif kind == 7 and device is not None:
        device.addvalue("ports", 100 + number)
        if device.ports[0] < 100:
            device.delvalue("ports", device.ports[0])
    elif kind == 8 and note is not None:
        note.delete()
    elif kind == 9 and device is not None:
        others = [other for other in idl.tables["Device"].rows.values() if other != device]
        device.uplink = dice.choice(sorted(others, key=lambda row: row.name)) if others and dice.random() < 0.7 else []
    elif kind == 10 and len(tables["Site"].rows) > 3:
        site.delete()
    elif kind == 11 and note is not None:
        note.levels, note.flags = dice.sample(range(99), 3), [dice.random() < 0.5]


def main():
    say("seed", SEED)
    dice = random.Random(SEED)
    writer = connected("inventory-1.ovsschema")
    idl = connected("inventory-1.ovsschema", kind=Watching)
    for number in range(ROUNDS):
        txn = Transaction(writer)
        for step in range(dice.randrange(1, 4)):
            act(dice, writer, txn, number * 10 + step)
        status = txn.commit_block()
        say(number, status, txn.get_error() if status == txn.ERROR else "")
        seqno = writer.change_seqno

        def same():
            return all(
                sorted(row.uuid for row in idl.tables[table].rows.values()) == sorted(row.uuid for row in writer.tables[table].rows.values())
                and all(str(row) == str(writer.tables[table].rows[row.uuid]) for row in idl.tables[table].rows.values())
                for table in idl.tables
            )

        until([writer, idl], same)
        for line in sorted(Watching.heard):
            say(" ", line)
        Watching.heard.clear()
        if number % 25 == 0:
            contents(idl)
    contents(idl)


main()
