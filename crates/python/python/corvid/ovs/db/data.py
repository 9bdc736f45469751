"""The values of OVSDB: atoms, and datums, which are what the columns of rows hold.

It owns the conversion of values from and to JSON and Python, the check of constraints, the order
of values and their textual form.  It knows nothing of rows: callers pass functions that translate
between rows and UUIDs.  Replicas create atoms and datums in their hottest loops, so both have
`__slots__`, and the conversions below avoid work that the common types do not need.
"""

import json as _json
import operator
import re
import uuid

from .. import jsonrpc, ovsuuid, poller, reconnect, socket_util, stream, timeval  # noqa: F401 - programs reach them through this module
from . import error
from . import parser
from .types import BooleanType, IntegerType, RealType, StringType, UuidType
from .types import escapeCString, returnUnchanged  # noqa: F401 (public names of this module)

# UUIDs compare like their numbers, and numbers compare much faster.
_by_value = operator.attrgetter("value")
_by_uuid_number = operator.attrgetter("value.int")

_uuid_re = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

# The strings that print without quotes.  Digits need quotes, although the server prints them
# without, because programs compare the output of this module with text that always had them.
_bare_string_re = re.compile("(?!true|false)[_a-zA-Z][-._a-zA-Z]*")


class ConstraintViolation(error.Error):
    """A value that its type does not allow."""

    def __init__(self, msg, json=None):
        error.Error.__init__(self, msg, json, tag="constraint violation")


def _uuid_from_json(json, symtab):
    """Returns the UUID that `json` stands for.

    A non-empty `symtab` maps names to UUIDs and allows ["named-uuid", NAME]; a new name is given
    a random UUID.
    """
    if isinstance(json, (list, tuple)) and len(json) == 2 and isinstance(json[1], str):
        kind, text = json
        if kind == "uuid":
            if _uuid_re.fullmatch(text):
                return uuid.UUID(text)
            raise error.Error('"%s" is not a valid UUID' % text, json)
        if kind == "named-uuid" and symtab:
            if text not in symtab:
                symtab[text] = uuid.uuid4()
            return symtab[text]
    raise error.Error('expected ["uuid", <string>]', parser.float_to_int(json))


class Atom(object):
    """One value of an atomic type.  An atom does not change, so that it may be a key of a dict.

    Attributes:
        value: The value: an int, float, bool, str or `uuid.UUID`.
        type: The `AtomicType`.
    """

    __slots__ = ("value", "type")

    def __init__(self, type_, value=None):
        self.type = type_
        self.value = type_.default if value is None else value

    def __cmp__(self, other):
        if not isinstance(other, Atom) or self.type is not other.type:
            return NotImplemented
        if self.value == other.value:
            return 0
        return -1 if self.value < other.value else 1

    def __eq__(self, other):
        if not isinstance(other, Atom) or self.type is not other.type:
            return NotImplemented
        return self.value == other.value

    def __lt__(self, other):
        if not isinstance(other, Atom) or self.type is not other.type:
            return NotImplemented
        return self.value < other.value

    def __le__(self, other):
        if not isinstance(other, Atom) or self.type is not other.type:
            return NotImplemented
        return self.value <= other.value

    def __gt__(self, other):
        if not isinstance(other, Atom) or self.type is not other.type:
            return NotImplemented
        return self.value > other.value

    def __ge__(self, other):
        if not isinstance(other, Atom) or self.type is not other.type:
            return NotImplemented
        return self.value >= other.value

    def __hash__(self):
        return hash(self.value)

    def __repr__(self):
        return "Atom(%s, %r)" % (self.type, self.value)

    @staticmethod
    def default(type_):
        """Returns the atom that a column of atomic type `type_` holds when it was never set."""
        return Atom(type_, type_.default)

    @staticmethod
    def new(x):
        """Returns the atom of Python value `x`, in the type that suits it."""
        if isinstance(x, bool):
            return Atom(BooleanType, x)
        for type_ in (IntegerType, RealType, StringType, UuidType):
            if isinstance(x, type_.python_types):
                return Atom(type_, x)
        raise TypeError("no type of atoms suits %s" % type(x))

    def is_default(self):
        return self.value == self.type.default

    @staticmethod
    def from_json(base, json, symtab=None):
        """Returns the atom of base type `base` that `json` stands for.

        Raises `error.Error` for JSON of another type and `ConstraintViolation` for a value that
        the constraints exclude.  For `symtab` see `_uuid_from_json`.
        """
        type_ = base.type
        if type_ is UuidType:
            value = _uuid_from_json(json, symtab)
        else:
            value = json if json.__class__ is str else parser.float_to_int(json)
            if not _has_type(value, type_):
                raise error.Error("expected %s" % type_, value)
        atom = Atom(type_, value)
        atom._check(base)
        return atom

    @staticmethod
    def from_python(base, value):
        """Returns the atom of base type `base` with Python value `value`.

        Raises the errors of `from_json`.
        """
        type_ = base.type
        value = parser.float_to_int(value)
        if not _has_type(value, type_):
            raise error.Error("expected %s, got %s" % (type_, type(value)))
        atom = Atom(type_, value)
        atom._check(base)
        return atom

    def check_constraints(self, base):
        """Raises `ConstraintViolation` if base type `base` does not allow this atom."""
        assert base.type is self.type
        self._check(base)

    def _check(self, base):
        if base.enum is not None and self not in base.enum.values:
            raise ConstraintViolation("%s is not one of the allowed values (%s)"
                                      % (self.to_string(), base.enum.to_string()))
        if self.type is StringType:
            length = len(self.value)
            if length < base.min_length:
                raise ConstraintViolation(
                    '"%s" length %d is less than minimum allowed length %d'
                    % (self.value, length, base.min_length))
            if length > base.max_length:
                raise ConstraintViolation(
                    '"%s" length %d is greater than maximum allowed length %d'
                    % (self.value, length, base.max_length))
        elif base.min is not None or base.max is not None:
            self._check_range(base)

    def _check_range(self, base):
        if self.type is IntegerType:
            number = "%d"
        elif self.type is RealType:
            number = "%.15g"
        else:
            return
        below = base.min is not None and self.value < base.min
        above = base.max is not None and self.value > base.max
        if not below and not above:
            return
        if base.min is not None and base.max is not None:
            text = "%s is not in the valid range %s to %s (inclusive)" % (number, number, number)
            raise ConstraintViolation(text % (self.value, base.min, base.max))
        if below:
            text = "%s is less than minimum allowed value %s" % (number, number)
            raise ConstraintViolation(text % (self.value, base.min))
        text = "%s is greater than maximum allowed value %s" % (number, number)
        raise ConstraintViolation(text % (self.value, base.max))

    def to_json(self):
        if self.type is UuidType:
            return ["uuid", str(self.value)]
        return self.value

    def to_string(self):
        """Returns the textual form; a string that could be mistaken gets quotes."""
        type_ = self.type
        if type_ is StringType:
            if _bare_string_re.fullmatch(self.value):
                return self.value
            return _json.dumps(self.value)
        return self._to_plain_string()

    def _to_plain_string(self):
        if self.type is IntegerType:
            return "%d" % self.value
        if self.type is RealType:
            return "%.15g" % self.value
        if self.type is BooleanType:
            return "true" if self.value else "false"
        return str(self.value)

    def toEnglish(self, escapeLiteral=returnUnchanged):
        """Returns the value for a text; strings pass through `escapeLiteral`."""
        if self.type is StringType:
            return escapeLiteral(self.value)
        return self._to_plain_string()


def _has_type(value, type_):
    """Returns whether `value` is an acceptable Python value of an atom of `type_`."""
    # A bool is an int in Python, but the server refuses a JSON boolean for a number.
    if isinstance(value, bool):
        return type_ is BooleanType
    if not isinstance(value, type_.python_types):
        return False
    # JSON has no text for infinities and not-a-number.
    return not isinstance(value, float) or value - value == 0


class Datum(object):
    """The value of a column: a set of atoms, or a map from atoms to atoms.

    A scalar is a set of exactly one atom.

    Attributes:
        type: The `Type`.
        values: A dict from each element to None, or from each key of a map to its value.
    """

    __slots__ = ("type", "values")

    def __init__(self, type_, values=None):
        self.type = type_
        self.values = {} if values is None else values

    def __eq__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        return self.values == other.values

    def __ne__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        return self.values != other.values

    __hash__ = None

    def __cmp__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        if self.values == other.values:
            return 0
        return -1 if self._order() < other._order() else 1

    def __lt__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        return self._order() < other._order()

    def __le__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        return self._order() <= other._order()

    def __gt__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        return self._order() > other._order()

    def __ge__(self, other):
        if not isinstance(other, Datum):
            return NotImplemented
        return self._order() >= other._order()

    def _order(self):
        """Returns the sort key: the number of elements, then the keys, then the values."""
        items = self._sorted_items()
        return len(items), [k for k, v in items], [v for k, v in items if v is not None]

    def _sorted_keys(self):
        if len(self.values) < 2:
            return list(self.values)
        by = _by_uuid_number if self.type.key.type is UuidType else _by_value
        return sorted(self.values, key=by)

    def _sorted_items(self):
        return [(key, self.values[key]) for key in self._sorted_keys()]

    def __contains__(self, item):
        """Returns whether atom `item` is an element, or a key of a map."""
        return item in self.values

    def __repr__(self):
        return "Datum(%s)" % self.to_string()

    def __str__(self):
        return self.to_string()

    def copy(self):
        """Returns a datum of the same type with the same atoms."""
        return Datum(self.type, dict(self.values))

    @staticmethod
    def default(type_):
        """Returns the datum that a column of `type_` holds when it was never set."""
        if type_.n_min == 0:
            return Datum(type_, {})
        value = None if type_.value is None else Atom.default(type_.value.type)
        return Datum(type_, {Atom.default(type_.key.type): value})

    def is_default(self):
        if self.type.n_min == 0:
            return not self.values
        return self == Datum.default(self.type)

    def check_constraints(self):
        """Raises `ConstraintViolation` unless the type allows each atom.

        The number of elements is not checked; `conforms_to_type` does that.
        """
        type_ = self.type
        for key, value in self.values.items():
            key.check_constraints(type_.key)
            if type_.value:
                value.check_constraints(type_.value)

    def conforms_to_type(self):
        """Returns whether the number of elements is one that the type allows."""
        return self.type.n_min <= len(self.values) <= self.type.n_max

    @staticmethod
    def from_json(type_, json, symtab=None):
        """Returns the datum of `type_` that `json` stands for.

        Raises `error.Error` for malformed JSON, a wrong number of elements and duplicates, and
        `ConstraintViolation` for atoms that the constraints exclude.
        """
        if type_.value is not None:
            return Datum._map_from_json(type_, json, symtab)

        key_type = type_.key
        if not (isinstance(json, list) and json and json[0] == "set"):
            return Datum(type_, {Atom.from_json(key_type, json, symtab): None})

        values = {}
        for element in Datum._elements_from_json(type_, "set", json):
            n = len(values)
            values[Atom.from_json(key_type, element, symtab)] = None
            if len(values) == n:
                raise error.Error("set contains duplicate")
        return Datum(type_, values)

    @staticmethod
    def _map_from_json(type_, json, symtab):
        values = {}
        for element in Datum._elements_from_json(type_, "map", json):
            key_json, value_json = parser.parse_json_pair(element)
            n = len(values)
            key = Atom.from_json(type_.key, key_json, symtab)
            values[key] = Atom.from_json(type_.value, value_json, symtab)
            if len(values) == n:
                raise error.Error("map contains duplicate key")
        return Datum(type_, values)

    @staticmethod
    def _elements_from_json(type_, class_, json):
        elements = parser.unwrap_json(json, class_, (list, tuple), "array")
        if not type_.n_min <= len(elements) <= type_.n_max:
            raise error.Error("%s must have %d to %d members but %d are present"
                              % (class_, type_.n_min, type_.n_max, len(elements)), json)
        return elements

    def to_json(self):
        """Returns the JSON of this datum, with sorted elements.

        A set of one element is written as that element.
        """
        if self.type.value is not None:
            return ["map", [[k.to_json(), v.to_json()] for k, v in self._sorted_items()]]
        keys = [k.to_json() for k in self._sorted_keys()]
        if len(keys) == 1:
            return keys[0]
        return ["set", keys]

    def to_string(self):
        """Returns the textual form, in brackets or braces unless it is exactly one scalar."""
        is_map = self.type.value is not None
        if is_map:
            words = ["%s=%s" % (k.to_string(), v.to_string()) for k, v in self._sorted_items()]
        else:
            words = [k.to_string() for k in self._sorted_keys()]
        text = ", ".join(words)
        if self.type.n_max > 1 or not self.values:
            return "{%s}" % text if is_map else "[%s]" % text
        return text

    def diff(self, datum):
        """Applies `datum`, a difference that the server sent, and returns the result.

        For a type of more than one element, elements that are present are removed, others are
        added, and keys of a map whose value differs get the new value.  This datum itself is
        changed and returned.  Otherwise the result is a copy of `datum`.
        """
        if self.type.n_max <= 1:
            return datum.copy()
        values = self.values
        for key, value in datum.values.items():
            if key in values and values[key] == value:
                del values[key]
            else:
                values[key] = value
        return self

    def as_list(self):
        """Returns the Python values of the elements, or of the pairs of a map, as lists."""
        if self.type.value is not None:
            return [[k.value, v.value] for k, v in self.values.items()]
        return [k.value for k in self.values]

    def as_dict(self):
        """Returns a new dict from each key to its value, as atoms."""
        return dict(self.values)

    def as_scalar(self):
        """Returns the Python value of the only element, or None unless there is exactly one."""
        if len(self.values) != 1:
            return None
        return self.as_list()[0]

    def to_python(self, uuid_to_row):
        """Returns the value that a program sees: a scalar, a sorted list, or a dict.

        `uuid_to_row(value, base)` translates each Python value of base type `base`.  An element
        or a pair for which it returns None is left out; a scalar is then the default value.
        """
        type_ = self.type
        key_type = type_.key
        if type_.value is not None:
            value_type = type_.value
            result = {}
            for k, v in self.values.items():
                key = uuid_to_row(k.value, key_type)
                value = uuid_to_row(v.value, value_type)
                if key is not None and value is not None:
                    result[key] = value
            return result

        if type_.is_scalar():
            if len(self.values) == 1:
                for k in self.values:
                    value = uuid_to_row(k.value, key_type)
                    if value is not None:
                        return value
            return key_type.type.default

        elements = [uuid_to_row(k.value, key_type) for k in self._sorted_keys()]
        return [element for element in elements if element is not None]

    @staticmethod
    def from_python(type_, value, row_to_uuid):
        """Returns the datum of `type_` for a value that a program assigns.

        `value` is a dict for a map; for another type it is a list, tuple or set of elements, or a
        single element.  Repeated elements count once.  `row_to_uuid(x)` translates each element,
        key and value.  Raises `error.Error` for a wrong type or number of elements and
        `ConstraintViolation` for atoms that the constraints exclude.
        """
        values = {}
        if isinstance(value, dict):
            if type_.value is None and value:
                raise error.Error("expected %s, got %s" % (type_.toEnglish(), type(value)))
            for k, v in value.items():
                key = Atom.from_python(type_.key, row_to_uuid(k))
                values[key] = Atom.from_python(type_.value, row_to_uuid(v))
        else:
            if not isinstance(value, (list, tuple, set, frozenset)):
                value = (value,)
            if type_.value is not None and value:
                raise error.Error("expected %s, got %s" % (type_.toEnglish(), type(value)))
            for element in value:
                values[Atom.from_python(type_.key, row_to_uuid(element))] = None

        datum = Datum(type_, values)
        if not datum.conforms_to_type():
            raise error.Error("%d values when type requires between %d and %d"
                              % (len(values), type_.n_min, type_.n_max))
        return datum

    def __getitem__(self, key):
        """Returns the Python value that a map has for `key`, an atom or a Python value."""
        if self.type.value is None:
            raise IndexError
        if not isinstance(key, Atom):
            key = Atom.new(key)
        return self.values[key].value

    def get(self, key, default=None):
        """Returns the Python value that a map has for `key`, or `default` without such a key."""
        if self.type.value is None:
            return default
        if not isinstance(key, Atom):
            key = Atom.new(key)
        value = self.values.get(key)
        return default if value is None else value.value
