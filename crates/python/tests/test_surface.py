"""What a program meets first: errors of every kind, names that were not chosen, representations, copies."""

import collections
import copy
import json
import pickle
import re
import types

import corvid
from corvid import errors

from .zoo import PATIENCE, ZooTest


class NotChosen(ZooTest):
    def test_a_column_that_was_not_chosen_raises(self):
        db = self.connect({"Cage": ["name"]})
        with db.transaction() as txn:
            new = txn.insert("Cage", name="c", tags={"a"})
            self.assertEqual((new.tags, new.photo), ({"a"}, ""), "all of a new row is known")
        [cage] = db.Cage
        self.assertEqual(cage.name, "c")
        for read in (lambda: cage.tags, lambda: cage["tags"]):
            with self.assertRaisesRegex(corvid.ColumnError, r"Cage\.tags of row .* is not replicated"):
                read()
        self.assertEqual(cage.as_dict(), {"name": "c"})
        with self.assertRaisesRegex(corvid.UsageError, "column number of table Cage is not replicated"):
            db.Cage.find(number=3)
        with db.transaction(), self.assertRaisesRegex(corvid.ColumnError, "not replicated"):
            cage.number = 7

    def test_a_table_that_was_not_chosen_raises(self):
        db = self.connect(["Cage"])
        uses = (
            lambda: len(db.Keeper),
            lambda: list(db.Keeper),
            lambda: db.Keeper.get("00000000-0000-0000-0000-000000000000"),
            lambda: db.Keeper.find(name="ann"),
            lambda: db.set_condition("Keeper", corvid.ALL),
            lambda: next(db.changes("Keeper", timeout=PATIENCE)),
        )
        for use in uses:
            with self.assertRaisesRegex(corvid.UsageError, "table Keeper is not replicated"):
                use()
        with db.transaction() as txn:
            txn.insert("Keeper", name="ann")
        self.assertEqual(len(self.connect().Keeper), 1)

    def test_tables_may_be_a_list_of_names(self):
        with self.connect().transaction() as txn:
            txn.insert("Cage", name="c", number=3)
        [cage] = self.connect(["Cage"]).Cage
        self.assertEqual((cage.name, cage.number), ("c", 3), "all columns")
        for wrong in ("Cage", {"Cage": "name"}):
            with self.assertRaises(corvid.Mismatch):
                self.connect(wrong)
        with self.assertRaises(corvid.SchemaError):
            self.connect(["Cgae"])


class Values(ZooTest):
    def test_a_map_that_was_read_refuses_changes(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", name="c", labels={"k": "v"})
        cage = txn.inserted(cage)
        labels = cage.labels
        with db.transaction():
            changes = (
                lambda: labels.__setitem__("k", "x"),
                lambda: labels.__delitem__("k"),
                lambda: labels.update(k="x"),
                lambda: labels.pop("k"),
                lambda: labels.popitem(),
                lambda: labels.setdefault("l", "x"),
                lambda: labels.clear(),
                lambda: labels.__ior__({"l": "x"}),
            )
            for change in changes:
                with self.assertRaisesRegex(corvid.UsageError, "Transaction.set_key"):
                    change()
            cage.labels = {**labels, "l": "w"}
        self.assertEqual(cage.labels, {"k": "v", "l": "w"})
        self.assertEqual(json.loads(json.dumps(labels)), {"k": "v"})
        for same in (copy.copy(labels), copy.deepcopy(labels), pickle.loads(pickle.dumps(labels)), labels.copy(), dict(labels)):
            self.assertEqual(same, {"k": "v"})
        own = dict(labels)
        own["k"] = "x"

    def test_rows_show_their_contents(self):
        db = self.connect()
        with db.transaction() as txn:
            ann = txn.insert("Keeper", name="ann")
            bear = txn.insert("Animal", name="bear", weight=300.0)
            cage = txn.insert("Cage", name="c", number=3, tags={"x" * 200}, animals={bear}, keeper=ann)
        cage, ann, bear = txn.inserted(cage), txn.inserted(ann), txn.inserted(bear)
        shown = repr(cage)
        self.assertTrue(shown.startswith(f"<Cage {cage.uuid} "), shown)
        for part in ("name='c'", "number=3", f"keeper=<Keeper {ann.uuid}>", f"<Animal {bear.uuid}>", "..."):
            self.assertIn(part, shown)
        self.assertNotIn("labels", shown, "empty values are left out")
        self.assertLess(len(shown), 1000)
        values = cage.as_dict()
        self.assertEqual(set(values), {column.name for column in db.schema.columns("Cage")})
        self.assertEqual((values["name"], values["keeper"], values["animals"]), ("c", ann, {bear}))
        self.assertIn("Zoo", repr(db))
        self.assertIs(copy.copy(cage), cage)
        self.assertEqual(copy.deepcopy([cage]), [cage])
        with self.assertRaisesRegex(corvid.UsageError, "as_dict"):
            pickle.dumps(cage)

    def test_values_have_json(self):
        db = self.connect()
        with db.transaction() as txn:
            bear = txn.insert("Animal", name="bear")
            cage = txn.insert("Cage", name="c", tags={"b", "a"}, doors=[2, 1], animals={bear}, by_name={"x": bear})
        cage, bear = txn.inserted(cage), txn.inserted(bear)
        values = json.loads(json.dumps(corvid.as_json(cage.as_dict())))
        uuid = str(bear.uuid)
        self.assertEqual((values["tags"], values["doors"], values["animals"], values["by_name"]), (["a", "b"], [1, 2], [uuid], {"x": uuid}))
        self.assertEqual((values["note"], values["size"], values["mark"]), (None, 0.0, str(cage.mark)))
        self.assertEqual(json.dumps({"row": cage, "tags": cage.tags}, default=corvid.as_json), json.dumps({"row": str(cage.uuid), "tags": ["a", "b"]}))
        self.assertEqual(corvid.as_json({cage.uuid: cage, 1: True}), {str(cage.uuid): str(cage.uuid), 1: True})

    def test_any_mapping_is_a_value_of_a_map(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", name="c", labels=types.MappingProxyType({"k": "v"}))
            self.assertEqual(cage.labels, {"k": "v"})
            cage.labels = collections.ChainMap({"l": "w"}, cage.labels)
        self.assertEqual(txn.inserted(cage).labels, {"k": "v", "l": "w"})
        with db.transaction() as txn:
            with self.assertRaisesRegex(corvid.ColumnError, "expected a mapping"):
                txn.insert("Cage", name="d", labels=[("k", "v")])

    def test_a_row_tells_whether_it_exists(self):
        db = self.connect()
        with db.transaction() as txn:
            new = txn.insert("Keeper", name="ann")
            self.assertTrue(corvid.exists(new))
        ann = txn.inserted(new)
        self.assertTrue(corvid.exists(ann))
        with db.transaction() as txn:
            txn.delete(ann)
            self.assertFalse(corvid.exists(ann))
        self.assertFalse(corvid.exists(ann))
        self.assertEqual(repr(ann), f"<Keeper {ann.uuid}, gone>")
        for read in (lambda: ann.name, ann.as_dict):
            with self.assertRaises(corvid.RowError):
                read()


class Errors(ZooTest):
    def test_every_exception_is_exported(self):
        for name, found in vars(errors).items():
            if isinstance(found, type) and issubclass(found, Exception):
                self.assertTrue(issubclass(found, corvid.Error), name)
                self.assertIs(getattr(corvid, name), found)
                self.assertIn(name, corvid.__all__)

    def test_every_exception_can_be_pickled(self):
        made = [
            corvid.UsageError("text"),
            corvid.Mismatch("text"),
            corvid.RowError("text", "Cage", "uuid"),
            corvid.ColumnError("text", "Cage", "name", None),
            corvid.UnknownName("text"),
            corvid.TryAgain("text"),
            corvid.Refused("constraint violation", "details", 2),
        ]
        for error in made:
            for same in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                self.assertIs(type(same), type(error))
                self.assertEqual((str(same), same.args, vars(same)), (str(error), error.args, vars(error)))
        self.assertEqual(str(made[4]), "text", "a KeyError would show a literal")

    def test_wrong_calls_raise_errors_of_the_package(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", name="c")
            wrong = (
                lambda: db.Cgae,
                lambda: db["Cgae"],
                lambda: db.Cage.c.nmae,
                lambda: cage.nmae,
                lambda: cage["nmae"],
                lambda: setattr(cage, "nmae", 1),
                lambda: setattr(cage, "number", "1"),
                lambda: txn.insert("Cage", number=None),
                lambda: txn.add(cage, "tags", 5),
                lambda: db.Cage.get("no uuid"),
                lambda: db.Cage.get(5),
                lambda: bool(db.Cage.c.name == "c"),
                lambda: db.set_lock("no id"),
                lambda: self.connect(lock="no id"),
                lambda: corvid.connect("nowhere", "Zoo"),
            )
            for number, call in enumerate(wrong):
                with self.subTest(number=number), self.assertRaises(corvid.Error):
                    call()

    def test_messages_are_logged_for_those_who_debug(self):
        with self.assertLogs("corvid", "DEBUG") as logged:
            db = self.connect()
            with db.transaction() as txn:
                txn.insert("Keeper", name="ann")
        messages = [record.getMessage() for record in logged.records if record.levelname == "DEBUG"]
        for part in ('send request, method="transact_once"', "received reply, result=["):
            self.assertTrue(any(part in message for message in messages), messages)
        with self.assertLogs("corvid", "INFO") as logged:
            with self.connect().transaction() as txn:
                txn.insert("Keeper", name="bob")
        self.assertEqual([record for record in logged.records if " request, " in record.getMessage()], [])

    def test_the_version_is_told(self):
        self.assertTrue(re.fullmatch(r"\d+\.\d+\.\d+.*", corvid.__version__), corvid.__version__)
