"""Values of every kind, written and read; and values that do not fit."""

import uuid

import corvid

from .zoo import ZooTest

MARK = uuid.UUID("7f3a6b1c-0000-4000-8000-000000000001")


class Values(ZooTest):
    def test_each_kind_of_column_is_read_as_it_was_written(self):
        db = self.connect()
        values = {
            "name": "Ä € 𝄞",
            "number": 7,
            "size": 2.5,
            "is_open": True,
            "mark": MARK,
            "note": "wet",
            "tags": {"a", "b"},
            "doors": [3, 1],
            "labels": {"k": "v", "": ""},
            "kind": "pool",
            "photo": "x" * 100_000,
            "built": 1907,
        }
        with db.transaction() as txn:
            cage = txn.insert("Cage", **values)
            here = {name: cage[name] for name in values}
        cage = txn.inserted(cage)
        expected = {**values, "tags": frozenset({"a", "b"}), "doors": frozenset({1, 3})}
        self.assertEqual(here, expected, "within the transaction")
        self.assertEqual({name: cage[name] for name in values}, expected)
        for name in values:
            self.assertIs(type(cage[name]), {dict: corvid.Map}.get(type(expected[name]), type(expected[name])), name)

    def test_defaults(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage")
        cage = txn.inserted(cage)
        self.assertEqual((cage.name, cage.number, cage.size, cage.is_open), ("", 0, 0.0, False))
        self.assertEqual((cage.mark, cage.note, cage.keeper), (uuid.UUID(int=0), None, None))
        self.assertEqual((cage.tags, cage.labels, cage.animals, cage.by_name), (frozenset(), {}, frozenset(), {}))

    def test_optional_values_are_set_and_unset(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", note="one")
        cage = txn.inserted(cage)
        with db.transaction():
            cage.note = None
        self.assertIsNone(cage.note)
        with db.transaction():
            cage.note = ""
        self.assertEqual(cage.note, "", "an empty value is a value")

    def test_references_are_rows(self):
        db = self.connect()
        with db.transaction() as txn:
            lion, puma = txn.insert("Animal", name="lion"), txn.insert("Animal", name="puma")
            ann = txn.insert("Keeper", name="ann")
            cage = txn.insert("Cage", name="c", animals={lion, puma}, keeper=ann, by_name={"l": lion})
            self.assertEqual(cage.animals, {lion, puma})
        cage = txn.inserted(cage)
        self.assertEqual({animal.name for animal in cage.animals}, {"lion", "puma"})
        self.assertEqual((cage.keeper.name, cage.by_name["l"].name), ("ann", "lion"))
        self.assertIn(cage.keeper, db.Keeper)
        with db.transaction() as txn:
            txn.delete(cage.keeper)
            txn.remove(cage, "animals", cage.by_name["l"])
        self.assertEqual((cage.keeper, cage.by_name), (None, {}), "weak references go with their rows")

    def test_a_reference_by_uuid(self):
        db = self.connect()
        with db.transaction() as txn:
            ann = txn.insert("Keeper", name="ann")
        ann = txn.inserted(ann)
        with db.transaction() as txn:
            txn.insert("Cage", name="a", keeper=ann.uuid)
            txn.insert("Cage", name="b", keeper=str(ann.uuid))
        self.assertEqual([cage.keeper for cage in db.Cage], [ann, ann])

    def test_values_that_do_not_fit_are_refused_with_their_place(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", name="c")
        cage = txn.inserted(cage)
        bad = [
            ("name", 3, "expected a str, not 3 of type int"),
            ("name", None, "expected a str"),
            ("number", "3", "expected an int"),
            ("number", True, "expected an int"),
            ("number", 1.0, "expected an int"),
            ("number", 2**70, "64 bits"),
            ("number", 1001, "1001"),
            ("is_open", 1, "expected a bool"),
            ("size", "x", "expected a finite float"),
            ("size", float("nan"), "expected a finite float"),
            ("mark", 5, "expected a row or a UUID"),
            ("tags", {"a", 5}, "expected a str, not 5"),
            ("tags", ["a", "a"], "duplicate"),
            ("doors", [1, 2, 3, 4, 5], "5"),
            ("labels", ["a"], "expected a mapping"),
            ("labels", {"a": 1}, "expected a str"),
            ("kind", "box", "box"),
            ("name", "a\0b", "NUL"),
            ("built", 3, "immutable"),
        ]
        for column, value, text in bad:
            with self.subTest(column=column, value=value), self.assertRaises(corvid.ColumnError) as caught:
                with db.transaction():
                    cage[column] = value
            error = caught.exception
            self.assertEqual((error.table, error.column, error.row), ("Cage", column, str(cage.uuid)))
            self.assertIn(text, str(error))
            self.assertTrue(str(error).startswith(f"Cage.{column} of row {cage.uuid}: "), str(error))
        self.assertEqual(cage.name, "c", "nothing has changed")

    def test_names_that_python_has_other_uses_for(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage", uuid="a column")
            txn.insert("index", native="x")
        cage = txn.inserted(cage)
        self.assertEqual(cage["uuid"], "a column")
        self.assertIsInstance(cage.uuid, uuid.UUID)
        self.assertEqual([row.native for row in db["index"]], ["x"])

    def test_names_that_the_schema_does_not_have(self):
        db = self.connect()
        with db.transaction() as txn:
            cage = txn.insert("Cage")
            self.assertFalse(hasattr(cage, "nmae"))
            with self.assertRaises(AttributeError):
                cage.nmae = "x"
            with self.assertRaises(KeyError):
                cage["nmae"] = "x"
            with self.assertRaises(corvid.SchemaError):
                txn.insert("Cage", nmae="x")
            with self.assertRaises(corvid.SchemaError):
                txn.insert("Cgae")
            with self.assertRaises(corvid.SchemaError):
                txn.add(cage, "nmae", "x")
        self.assertFalse(hasattr(db, "Cgae"))
        with self.assertRaises(corvid.SchemaError):
            db["Cgae"]
        with self.assertRaises(corvid.SchemaError):
            self.connect({"Cage": ["nmae"]})
        with self.assertRaises(TypeError):
            self.connect({"Cage": "name"})

    def test_rows_are_equal_by_identity_and_can_be_keys(self):
        db, other = self.connect(), self.connect()
        with db.transaction() as txn:
            txn.insert("Keeper", name="ann")
        [ann], [again] = db.Keeper, db.Keeper
        other.wait_until(lambda: len(other.Keeper) == 1, 60)
        [elsewhere] = other.Keeper
        self.assertEqual({ann: 1}[again], 1)
        self.assertNotEqual(ann, elsewhere, "another replica")
        self.assertEqual(repr(ann), f"<Keeper {ann.uuid} count=0 name='ann'>")
        self.assertIn("name", dir(ann))
        self.assertIn("Keeper", dir(db))
        self.assertEqual(corvid.table_of(ann), "Keeper")
