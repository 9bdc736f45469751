"""The parts of `ovs.db` that behave otherwise than the original; the interop plays show the rest."""

import copy
import pickle
import unittest
import uuid

from corvid.ovs.db import data, error, parser, schema, types

NIL = uuid.UUID(int=0)
ONE = uuid.UUID(int=1)


def type_of(json):
    return types.Type.from_json(json)


def unchanged(value, base=None):
    return value


class Defaults(unittest.TestCase):
    def test_default_atoms_hold_plain_values(self):
        for name, plain in (("integer", 0), ("real", 0.0), ("boolean", False), ("string", ""), ("uuid", NIL)):
            type_ = types.AtomicType.from_string(name)
            for atom in (data.Atom.default(type_), data.Atom(type_), type_.default_atom()):
                self.assertEqual((atom.value, type(atom.value)), (plain, type(plain)))
                self.assertTrue(atom.is_default())
            self.assertEqual(data.Datum.default(type_of(name)), data.Datum.from_python(type_of(name), plain, unchanged))

    def test_absent_and_dangling_scalars_read_as_the_plain_default(self):
        scalar = type_of({"key": {"type": "uuid", "refTable": "T"}})
        self.assertEqual(data.Datum(scalar).to_python(unchanged), NIL)
        dangling = data.Datum.from_python(scalar, ONE, unchanged)
        self.assertEqual(dangling.to_python(lambda value, base: None), NIL)
        self.assertEqual(data.Datum(type_of("integer")).to_python(unchanged), 0)

    def test_datums_without_values_do_not_share_them(self):
        self.assertIsNot(data.Datum(type_of("integer")).values, data.Datum(type_of("integer")).values)


class Values(unittest.TestCase):
    def test_booleans_are_not_numbers(self):
        for name in ("integer", "real"):
            base = types.BaseType.from_json(name)
            with self.assertRaisesRegex(error.Error, "expected %s, got <class 'bool'>" % name):
                data.Atom.from_python(base, True)
            with self.assertRaisesRegex(error.Error, "expected %s" % name):
                data.Atom.from_json(base, True)

    def test_infinities_are_refused_as_values(self):
        base = types.BaseType.from_json("real")
        for value in (float("inf"), float("-inf"), float("nan")):
            self.assertIs(parser.float_to_int(value), value)
            with self.assertRaises(error.Error):
                data.Atom.from_python(base, value)
            with self.assertRaises(error.Error):
                data.Atom.from_json(base, value)

    def test_new_atoms_take_the_type_of_their_value(self):
        self.assertIs(data.Atom.new(True).type, types.BooleanType)
        self.assertIs(data.Atom.new(ONE).type, types.UuidType)
        with self.assertRaises(TypeError):
            data.Atom.new(None)

    def test_large_integer_bounds_are_exact_in_messages(self):
        base = types.BaseType.from_json({"type": "integer", "minInteger": 2 ** 53})
        with self.assertRaisesRegex(data.ConstraintViolation, "5 is less than minimum allowed value 9007199254740992$"):
            data.Atom.from_python(base, 5)

    def test_newline_behind_a_uuid_is_an_error(self):
        with self.assertRaisesRegex(error.Error, "is not a valid UUID"):
            data.Atom.from_json(types.BaseType.from_json("uuid"), ["uuid", str(ONE) + "\n"])

    def test_maps_and_sets_are_not_confused(self):
        strings = type_of({"key": "string", "min": 0, "max": "unlimited"})
        pairs = type_of({"key": "string", "value": "string", "min": 0, "max": "unlimited"})
        with self.assertRaisesRegex(error.Error, "expected set of strings, got <class 'dict'>"):
            data.Datum.from_python(strings, {"a": "b"}, unchanged)
        for value in (["a"], "a", 5):
            with self.assertRaisesRegex(error.Error, "expected map of string-string pairs, got"):
                data.Datum.from_python(pairs, value, unchanged)
        for type_ in (strings, pairs):
            for value in ([], {}, set()):
                self.assertEqual(data.Datum.from_python(type_, value, unchanged).values, {})
        datum = data.Datum.from_python(strings, frozenset(["a"]), unchanged)
        self.assertEqual(datum.as_list(), ["a"])
        self.assertEqual(datum.get("a", "default"), "default")

    def test_datums_sort_by_size_keys_values(self):
        pairs = type_of({"key": "string", "value": "integer", "min": 0, "max": "unlimited"})
        in_order = [data.Datum.from_python(pairs, value, unchanged) for value in (
            {}, {"a": 2}, {"b": 1}, {"b": 2}, {"a": 1, "b": 0}, {"a": 1, "b": 1})]
        self.assertEqual(sorted(reversed(in_order)), in_order)
        self.assertTrue(in_order[0] <= in_order[0] < in_order[1] and in_order[1] >= in_order[0])

    def test_difference_of_an_optional_value_leaves_the_old_one(self):
        optional = type_of({"key": "integer", "min": 0})
        old = data.Datum(optional)
        new = old.diff(data.Datum.from_python(optional, 5, unchanged))
        self.assertEqual((old.as_list(), new.as_list()), ([], [5]))


class Types(unittest.TestCase):
    def test_copies_without_enum(self):
        for json in ("integer", {"key": {"type": "uuid", "refTable": "T", "refType": "weak"}, "min": 0}):
            type_ = type_of(json)
            self.assertEqual(type_.copy(), type_)
            self.assertEqual(type_.copy().to_json(), json)

    def test_atomic_types_keep_their_identity_in_copies(self):
        for atomic in types.ATOMIC_TYPES:
            self.assertIs(copy.deepcopy(atomic), atomic)
            self.assertIs(pickle.loads(pickle.dumps(atomic)), atomic)

    def test_allowed_uuids_in_english(self):
        base = types.BaseType.from_json({"type": "uuid", "enum": ["uuid", str(ONE)]})
        self.assertEqual(base.constraintsToEnglish(), "must be %s" % ONE)

    def test_optional_pointers(self):
        for json, expected in (({"key": {"type": "uuid", "refTable": "T"}, "min": 0}, True),
                               ({"key": "string", "min": 0}, True), ({"key": "uuid", "min": 0}, False)):
            self.assertIs(type_of(json).is_optional_pointer(), expected)


class Errors(unittest.TestCase):
    def test_pickled_errors_stay_the_same(self):
        for e in (error.Error("text", [1]), error.Error("text", None, "tag"), data.ConstraintViolation("text")):
            again = pickle.loads(pickle.dumps(e))
            self.assertEqual((type(again), str(again), vars(again)), (type(e), str(e), vars(e)))

    def test_values_without_json_have_a_text(self):
        self.assertEqual(str(error.Error("text", b"x")), "syntax \"b'x'\": syntax error: text")

    def test_members_in_excess_are_named_in_order(self):
        with self.assertRaisesRegex(error.Error, "Member 'a' and 2 other members are present"):
            parser.Parser({"c": 1, "a": 2, "b": 3}, "thing").finish()


class Schemas(unittest.TestCase):
    def test_null_index_is_an_error(self):
        columns = {"a": {"type": "integer"}}
        with self.assertRaisesRegex(error.Error, "array of distinct column names expected"):
            schema.TableSchema.from_json({"columns": columns, "indexes": [None]}, "T")
        parsed = schema.TableSchema.from_json({"columns": columns}, "T").columns
        self.assertEqual(schema.column_set_from_json(None, parsed), (parsed["a"],))

    def test_tables_and_columns_do_not_share_defaults(self):
        a, b = schema.TableSchema("a", {}), schema.TableSchema("b", {})
        self.assertIsNot(a.indexes, b.indexes)
        self.assertIsNot(a.extensions, b.extensions)
