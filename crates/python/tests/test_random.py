"""Random lives: clients of all fronts write, move conditions and lose connections; in the end each replica equals the server's contents."""

import asyncio
import json
import os
import random
import socket
import subprocess
import time

import corvid

from .zoo import PATIENCE, SCHEMA, ZooTest

TABLES = [table for table in SCHEMA["tables"] if table != "index"]


def contents_of_server(path):
    """All rows by table and UUID, as JSON, by a request of its own."""
    operations = [{"op": "select", "table": table, "where": []} for table in TABLES]
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps({"id": 1, "method": "transact", "params": ["Zoo", *operations]}).encode())
        text = b""
        while True:
            text += connection.recv(1 << 20)
            try:
                results = json.loads(text)["result"]
                break
            except ValueError:
                continue
    rows = {}
    for table, result in zip(TABLES, results):
        rows[table] = {row.pop("_uuid")[1]: row for row in result["rows"]}
        for row in rows[table].values():
            del row["_version"]
    return contents_of_json(rows)


def contents_of_json(tables):
    """The same of ``{TABLE: {UUID: {COLUMN: VALUE}}}``."""
    return {
        (table, uuid): {name: plain(value, SCHEMA["tables"][table]["columns"][name]["type"]) for name, value in row.items()}
        for table, rows in tables.items()
        if table in TABLES
        for uuid, row in rows.items()
    }


def plain(value, kind):
    """A value of the wire in the form of :func:`contents_of`."""
    is_many = isinstance(kind, dict) and (kind.get("max", 1) != 1 or "value" in kind)
    if isinstance(value, list) and value[0] == "uuid":
        return frozenset([value[1]]) if is_many else value[1]
    if isinstance(value, list) and value[0] == "set":
        elements = frozenset(plain(element, "string") for element in value[1])
        return elements if is_many else next(iter(elements), None)
    if isinstance(value, list) and value[0] == "map":
        return {plain(key, "string"): plain(element, "string") for key, element in value[1]}
    return frozenset([value]) if is_many else value


def contents_of(db):
    """The same of a replica."""

    def told(value):
        if isinstance(value, corvid.Row):
            return str(value.uuid)
        if isinstance(value, frozenset):
            return frozenset(told(element) for element in value)
        if isinstance(value, dict):
            return {told(key): told(element) for key, element in value.items()}
        return value if isinstance(value, (int, float, bool, str, type(None))) else str(value)

    return {
        (table, str(row.uuid)): {name: told(row[name]) for name in SCHEMA["tables"][table]["columns"]}
        for table in TABLES
        for row in db[table]
    }


class Life:
    """What one client does."""

    def __init__(self, dice):
        self.dice = dice

    def change(self, db, txn):
        """Changes some rows in an open transaction."""
        for _ in range(self.dice.randrange(1, 5)):
            self.step(db, txn)

    def step(self, db, txn):
        dice, cages = self.dice, sorted(db.Cage, key=lambda cage: cage.uuid)
        text = dice.choice(["", "a", "b", "ä", "c" * 40])
        if not cages or dice.random() < 0.25:
            cage = txn.insert("Cage", name=f"{dice.random()}", number=dice.randrange(1000), kind=dice.choice(["cage", "pool", ""]))
        else:
            cage = dice.choice(cages)
        keepers = sorted(db.Keeper, key=lambda keeper: keeper.uuid)
        choice = dice.randrange(12)
        if choice == 0:
            txn.delete(cage)
        elif choice == 1:
            cage.note = dice.choice([None, text])
        elif choice == 2:
            cage.tags = {text, f"{dice.randrange(9)}"}
        elif choice == 3:
            txn.add(cage, "tags", *(f"{dice.randrange(60)}" for _ in range(dice.randrange(40))))
        elif choice == 4:
            txn.remove(cage, "tags", *list(cage.tags)[:2])
        elif choice == 5:
            txn.set_key(cage, "labels", f"{dice.randrange(9)}", text)
        elif choice == 6:
            txn.remove(cage, "labels", f"{dice.randrange(9)}")
        elif choice == 7:
            txn.add(cage, "animals", txn.insert("Animal", name=text, weight=dice.random()))
        elif choice == 8:
            cage.animals = list(cage.animals)[1:]
        elif choice == 9:
            cage.keeper = dice.choice([None, *keepers])
        elif choice == 10:
            txn.insert("Keeper", name=text)
        else:
            for animal in list(cage.animals)[:1]:
                txn.set_key(cage, "by_name", text, animal)
        if keepers and dice.random() < 0.1:
            txn.delete(dice.choice(keepers))


class Followed:
    """The contents as the changes tell them."""

    def __init__(self, client):
        self.watch = client.watch(*TABLES)
        self.names = {}

    def follow(self):
        for change in self.watch.take():
            key = (change.table, str(change.row.uuid))
            if change.kind == "delete":
                del self.names[key]
            elif change.kind == "insert":
                assert key not in self.names, "inserted twice"
                self.names[key] = None
            else:
                assert key in self.names, "changed before it was inserted"
                assert set(change.old) == change.columns
                for column, old in change.old.items():
                    # What came and what went lead from the old value to the new one, where nothing has changed since.
                    added, removed = change.added(column), change.removed(column)
                    if isinstance(old, frozenset):
                        assert removed <= old and not (added & old), (column, old, added, removed)


class RandomLives(ZooTest):
    def test_replicas_equal_the_server(self):
        seeds = os.environ.get("CORVID_SEED")
        for seed in [int(seeds)] if seeds else [random.randrange(1 << 32) for _ in range(2)]:
            with self.subTest(seed=seed):
                print(f"CORVID_SEED={seed}")
                asyncio.run(self.live(random.Random(seed)))

    def rust_life(self, seed):
        """A client for Rust that lives beside the others, when there is one; it has its contents when this returns."""
        program = os.environ.get("RANDOM_LIFE")
        if program is None:
            print("no client for Rust beside: RANDOM_LIFE does not name it")
            return None
        command = [program, f"{self.server.directory}/zoo.ovsschema", self.server.remote, str(seed)]
        rust = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

        def end():
            rust.kill()
            rust.wait()
            rust.stdout.close()

        self.addCleanup(end)
        self.assertEqual(rust.stdout.readline(), "begun\n")
        return rust

    async def live(self, dice):
        blocking = self.connect()
        polled = corvid.polled.Client(blocking.schema, self.server.remote)
        self.addCleanup(polled.close)
        followed = Followed(polled)
        life = Life(dice)
        rust_seed = dice.randrange(1, 1 << 32)
        rust = self.rust_life(rust_seed)
        async with await corvid.aio.connect(self.server.remote, "Zoo", timeout=PATIENCE) as waiting:
            clients = [blocking, waiting]
            for _ in range(120):
                client = dice.choice(clients)
                action = dice.random()
                try:
                    if action < 0.05:
                        client.reconnect()
                    elif action < 0.1:
                        condition = dice.choice([corvid.ALL, client.Cage.c.number < dice.randrange(1000)])
                        client._set_condition("Cage", condition)
                    elif client is blocking:
                        with blocking.transaction(timeout=PATIENCE) as txn:
                            life.change(blocking, txn)
                    else:
                        async with waiting.transaction(timeout=PATIENCE) as txn:
                            life.change(waiting, txn)
                except (corvid.TryAgain, corvid.Refused, corvid.RowError, corvid.ColumnError):
                    pass
                await asyncio.sleep(0)
                polled.run()
                followed.follow()
            # The other client has to end first, since it changes rows until it has seen this one.
            with blocking.transaction(timeout=PATIENCE) as txn:
                txn.insert("Keeper", name=f"end {rust_seed}")
            if rust:
                text, _ = await asyncio.to_thread(rust.communicate, timeout=PATIENCE)
                self.assertEqual(rust.returncode, 0, text)
            expected = contents_of_server(self.server.remote[len("unix:") :])
            self.assertGreater(len(expected), 20)
            if rust:
                self.assertEqual(contents_of_json(json.loads(text)), expected)
            blocking.set_condition("Cage", corvid.ALL, PATIENCE)
            await waiting.set_condition("Cage", corvid.ALL, PATIENCE)
            for client in (blocking, waiting, polled):
                end = time.monotonic() + PATIENCE
                while contents_of(client) != expected and time.monotonic() < end:
                    for each in (blocking, polled):
                        each.run()
                    await asyncio.sleep(0.01)
                self.assertEqual(contents_of(client), expected, client)
            followed.follow()
            self.assertEqual(set(followed.names), set(expected))
