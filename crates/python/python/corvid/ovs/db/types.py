"""The types of OVSDB columns: atomic types, base types with constraints, and column types.

It owns parsing types from JSON, printing them as JSON and in English, and the predicates that
programs ask of a type.  The atomic types are constants that compare by identity.  Values belong to
`ovs.db.data`, which imports this module; this module imports it only inside functions.
"""

import sys
import uuid

from . import error
from . import parser

# The types of Python values that a real column accepts.
REAL_PYTHON_TYPES = (int, float)


def returnUnchanged(x):
    """Returns its argument; the default escape function of the English texts."""
    return x


_C_ESCAPES = {"\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n",
              "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def escapeCString(src):
    """Returns `src` escaped for use between the quotes of a C string literal."""
    return "".join(_C_ESCAPES.get(c) or ("\\%03o" % ord(c) if ord(c) < 32 else c) for c in src)


def commafy(x):
    """Returns integer `x` in decimal, with a comma before each group of three digits."""
    return _commafy("%d" % x)


def _commafy(s):
    if s.startswith("-"):
        return "-" + _commafy(s[1:])
    head = len(s) % 3
    groups = [s[:head]] if head else []
    groups.extend(s[i:i + 3] for i in range(head, len(s), 3))
    return ",".join(groups)


def _plural_ending(noun):
    """Returns the letters that turn `noun`, whose last word is a type or a table, into a plural."""
    word = noun.split(" ")[-1].lower()
    if word == "chassis":
        return ""
    return "es" if word.endswith("s") else "s"


class AtomicType(object):
    """One of the types of atoms.

    Attributes:
        name: The name in a schema.
        default: The value of a column that was never set.
        python_types: The types of Python values that represent atoms of this type.

    The only instances are the constants below, so that `is` compares types.
    """

    def __init__(self, name, default, python_types):
        self.name = name
        self.default = default
        self.python_types = python_types

    @staticmethod
    def from_string(s):
        """Returns the atomic type that a schema calls `s`."""
        if s != "void":
            for atomic_type in ATOMIC_TYPES:
                if s == atomic_type.name:
                    return atomic_type
        raise error.Error('"%s" is not an atomic-type' % (s,), s)

    @staticmethod
    def from_json(json):
        """Returns the atomic type that the JSON string `json` names."""
        if not isinstance(json, str):
            raise error.Error("atomic-type expected", json)
        return AtomicType.from_string(json)

    def __str__(self):
        return self.name

    def __reduce__(self):
        # Copies and unpickled types must stay identical to the constants.
        for name, value in globals().items():
            if value is self:
                return name
        return object.__reduce__(self)

    def to_string(self):
        return self.name

    def to_json(self):
        return self.name

    def default_atom(self):
        """Returns a new atom with the default value."""
        from . import data
        return data.Atom(self, self.default)


VoidType = AtomicType("void", None, ())
IntegerType = AtomicType("integer", 0, (int,))
RealType = AtomicType("real", 0.0, REAL_PYTHON_TYPES)
BooleanType = AtomicType("boolean", False, (bool,))
StringType = AtomicType("string", "", (str,))
UuidType = AtomicType("uuid", uuid.UUID(int=0), (uuid.UUID,))

ATOMIC_TYPES = [VoidType, IntegerType, RealType, BooleanType, StringType, UuidType]


class BaseType(object):
    """An atomic type and the constraints on its atoms.

    Attributes:
        type: The atomic type.
        enum: A `Datum` with the allowed values, or None.
        min, max: The inclusive bounds of integers and reals, or None.
        min_length, max_length: The inclusive bounds of the length of strings, in code points.
        ref_table_name: The table that a UUID refers to, or None.
        ref_type: "strong" or "weak" for a reference, else None.
        ref_table: The `TableSchema` that `ref_table_name` names, once a `DbSchema` has found it.
    """

    def __init__(self, type_, enum=None, min=None, max=None,
                 min_length=0, max_length=sys.maxsize, ref_table_name=None):
        assert isinstance(type_, AtomicType)
        self.type = type_
        self.enum = enum
        self.min = min
        self.max = max
        self.min_length = min_length
        self.max_length = max_length
        self.ref_table_name = ref_table_name
        self.ref_type = "strong" if ref_table_name else None
        self.ref_table = None

    def _constraints(self):
        return (self.enum, self.min, self.max, self.min_length, self.max_length,
                self.ref_table_name)

    def __eq__(self, other):
        if not isinstance(other, BaseType):
            return NotImplemented
        return self.type is other.type and self._constraints() == other._constraints()

    def __ne__(self, other):
        if not isinstance(other, BaseType):
            return NotImplemented
        return not self == other

    __hash__ = None

    def default(self):
        """Returns a new atom with the default value of the atomic type."""
        return self.type.default_atom()

    @staticmethod
    def get_enum_type(atomic_type):
        """Returns the type of the "enum" member of a base type of `atomic_type`."""
        return Type(BaseType(atomic_type), None, 1, sys.maxsize)

    @staticmethod
    def from_json(json):
        """Returns the base type that a schema writes as `json`."""
        if isinstance(json, str):
            return BaseType(AtomicType.from_json(json))

        p = parser.Parser(json, "ovsdb type")
        base = BaseType(AtomicType.from_json(p.get("type", [str])))

        # A null stands for the absence of the member here, as it always did.
        enum = p.get_optional("enum", [])
        if enum is not None:
            from . import data
            base.enum = data.Datum.from_json(BaseType.get_enum_type(base.type), enum)
        elif base.type is IntegerType or base.type is RealType:
            if base.type is IntegerType:
                suffix, types = "Integer", [int]
            else:
                suffix, types = "Real", [int, float]
            base.min = p.get_optional("min" + suffix, types)
            base.max = p.get_optional("max" + suffix, types)
            if base.min is not None and base.max is not None and base.min > base.max:
                raise error.Error("min%s exceeds max%s" % (suffix, suffix), json)
        elif base.type is StringType:
            base.min_length = BaseType._length_from_json(p, "minLength", 0)
            base.max_length = BaseType._length_from_json(p, "maxLength", sys.maxsize)
            if base.min_length > base.max_length:
                raise error.Error("minLength exceeds maxLength", json)
        elif base.type is UuidType:
            base.ref_table_name = p.get_optional("refTable", ["id"])
            if base.ref_table_name:
                base.ref_type = p.get_optional("refType", [str], "strong")
                if base.ref_type not in ("strong", "weak"):
                    raise error.Error('refType must be "strong" or "weak" (not "%s")'
                                      % base.ref_type)
        p.finish()
        return base

    @staticmethod
    def _length_from_json(p, name, default):
        value = p.get_optional(name, [int])
        if value is None:
            return default
        if not 0 <= value <= sys.maxsize:
            raise error.Error("%s out of valid range 0 to 4294967295" % name, value)
        return value

    def to_json(self):
        """Returns the JSON that a schema writes for this base type."""
        if not self.has_constraints():
            return self.type.to_json()

        json = {"type": self.type.to_json()}
        if self.enum:
            json["enum"] = self.enum.to_json()

        if self.type is IntegerType or self.type is RealType:
            suffix = "Integer" if self.type is IntegerType else "Real"
            if self.min is not None:
                json["min" + suffix] = self.min
            if self.max is not None:
                json["max" + suffix] = self.max
        elif self.type is StringType:
            if self.min_length != 0:
                json["minLength"] = self.min_length
            if self.max_length != sys.maxsize:
                json["maxLength"] = self.max_length
        elif self.type is UuidType:
            if self.ref_table_name:
                json["refTable"] = self.ref_table_name
                if self.ref_type != "strong":
                    json["refType"] = self.ref_type
        return json

    def copy(self):
        """Returns a base type with the same constraints.

        The copy names the same table as a reference, but `ref_table` is not resolved in it.
        """
        base = BaseType(self.type, None if self.enum is None else self.enum.copy(),
                        self.min, self.max, self.min_length, self.max_length,
                        self.ref_table_name)
        base.ref_type = self.ref_type
        return base

    def is_valid(self):
        """Returns False if the constraints exclude every atom by their bounds."""
        if self.type is VoidType or self.type is BooleanType or self.type is UuidType:
            return True
        if self.type is StringType:
            return self.min_length <= self.max_length
        return self.min is None or self.max is None or self.min <= self.max

    def has_constraints(self):
        return (self.enum is not None or self.min is not None or self.max is not None
                or self.min_length != 0 or self.max_length != sys.maxsize
                or self.ref_table_name is not None)

    def without_constraints(self):
        """Returns the base type of the same atomic type that allows every atom."""
        return BaseType(self.type)

    def is_ref(self):
        return self.type is UuidType and self.ref_table_name is not None

    def is_strong_ref(self):
        return self.is_ref() and self.ref_type == "strong"

    def is_weak_ref(self):
        return self.is_ref() and self.ref_type == "weak"

    def toEnglish(self, escapeLiteral=returnUnchanged):
        """Returns a noun phrase for this type; table names pass through `escapeLiteral`."""
        if self.type is UuidType and self.ref_table_name:
            name = escapeLiteral(self.ref_table_name)
            return "weak reference to " + name if self.ref_type == "weak" else name
        return self.type.to_string()

    def constraintsToEnglish(self, escapeLiteral=returnUnchanged, escapeNumber=returnUnchanged):
        """Returns a phrase for the constraints, or "" when there are none.

        Strings pass through `escapeLiteral` and numbers through `escapeNumber`.
        """
        if self.enum:
            return self._enum_to_english(escapeLiteral)
        if self.type is IntegerType or self.type is RealType:
            return self._range_to_english(escapeNumber)
        if self.type is StringType:
            return self._length_to_english()
        return ""

    def _enum_to_english(self, escapeLiteral):
        literals = sorted(atom.toEnglish(escapeLiteral) for atom in self.enum.values)
        if len(literals) == 1:
            return "must be %s" % literals[0]
        if len(literals) == 2:
            return "either %s or %s" % tuple(literals)
        return "one of %s, or %s" % (", ".join(literals[:-1]), literals[-1])

    def _range_to_english(self, escapeNumber):
        to_text = commafy if self.type is IntegerType else lambda x: "%g" % x
        if self.min is not None and self.max is not None:
            return "in range %s to %s" % (escapeNumber(to_text(self.min)),
                                          escapeNumber(to_text(self.max)))
        if self.min is not None:
            return "at least %s" % escapeNumber(to_text(self.min))
        if self.max is not None:
            return "at most %s" % escapeNumber(to_text(self.max))
        return ""

    def _length_to_english(self):
        if self.min_length and self.max_length != sys.maxsize:
            if self.min_length == self.max_length:
                return "exactly %s characters long" % commafy(self.min_length)
            return "between %s and %s characters long" % (commafy(self.min_length),
                                                          commafy(self.max_length))
        if self.min_length:
            return "at least %s characters long" % commafy(self.min_length)
        if self.max_length != sys.maxsize:
            return "at most %s characters long" % commafy(self.max_length)
        return ""


class Type(object):
    """The type of a column.

    Attributes:
        key: The base type of the elements, or of the keys of a map.
        value: The base type of the values of a map, or None.
        n_min, n_max: The inclusive bounds of the number of elements; `sys.maxsize` stands for
            unlimited.
    """

    DEFAULT_MIN = 1
    DEFAULT_MAX = 1

    def __init__(self, key, value=None, n_min=DEFAULT_MIN, n_max=DEFAULT_MAX):
        self.key = key
        self.value = value
        self.n_min = n_min
        self.n_max = n_max

    def copy(self):
        """Returns a type with copies of the base types."""
        return Type(self.key.copy(), None if self.value is None else self.value.copy(),
                    self.n_min, self.n_max)

    def __eq__(self, other):
        if not isinstance(other, Type):
            return NotImplemented
        return (self.key == other.key and self.value == other.value
                and self.n_min == other.n_min and self.n_max == other.n_max)

    def __ne__(self, other):
        if not isinstance(other, Type):
            return NotImplemented
        return not self == other

    __hash__ = None

    def is_valid(self):
        """Returns False if a schema may not contain this type."""
        return (self.key.type is not VoidType and self.key.is_valid()
                and (self.value is None
                     or (self.value.type is not VoidType and self.value.is_valid()))
                and self.n_min <= 1 <= self.n_max)

    def is_scalar(self):
        return self.n_min == 1 and self.n_max == 1 and not self.value

    def is_optional(self):
        return self.n_min == 0 and self.n_max == 1

    def is_composite(self):
        return self.n_max > 1

    def is_set(self):
        return self.value is None and (self.n_min != 1 or self.n_max != 1)

    def is_map(self):
        return self.value is not None

    def is_smap(self):
        """Returns True for a map from strings to strings."""
        return self.is_map() and self.key.type is StringType and self.value.type is StringType

    def is_optional_pointer(self):
        """Returns True for an optional string or reference, which C represents as a pointer."""
        return (self.is_optional() and not self.value
                and (self.key.type is StringType or bool(self.key.ref_table_name)))

    @staticmethod
    def _n_from_json(json, default):
        if json is None:
            return default
        if isinstance(json, int) and 0 <= json <= sys.maxsize:
            return json
        raise error.Error("bad min or max value", json)

    @staticmethod
    def from_json(json):
        """Returns the type that a schema writes as `json`."""
        if isinstance(json, str):
            return Type(BaseType.from_json(json))

        p = parser.Parser(json, "ovsdb type")
        key_json = p.get("key", [dict, str])
        value_json = p.get_optional("value", [dict, str])
        min_json = p.get_optional("min", [int])
        max_json = p.get_optional("max", [int, str])
        p.finish()

        key = BaseType.from_json(key_json)
        value = BaseType.from_json(value_json) if value_json else None
        n_min = Type._n_from_json(min_json, Type.DEFAULT_MIN)
        if max_json == "unlimited":
            n_max = sys.maxsize
        else:
            n_max = Type._n_from_json(max_json, Type.DEFAULT_MAX)

        type_ = Type(key, value, n_min, n_max)
        if not type_.is_valid():
            raise error.Error("ovsdb type fails constraint checks", json)
        return type_

    def to_json(self):
        """Returns the JSON that a schema writes for this type."""
        if self.is_scalar() and not self.key.has_constraints():
            return self.key.to_json()

        json = {"key": self.key.to_json()}
        if self.value is not None:
            json["value"] = self.value.to_json()
        if self.n_min != Type.DEFAULT_MIN:
            json["min"] = self.n_min
        if self.n_max == sys.maxsize:
            json["max"] = "unlimited"
        elif self.n_max != Type.DEFAULT_MAX:
            json["max"] = self.n_max
        return json

    def toEnglish(self, escapeLiteral=returnUnchanged):
        """Returns a noun phrase for this type; table names pass through `escapeLiteral`."""
        name = self.key.toEnglish(escapeLiteral)
        if self.value:
            name = "%s-%s" % (name, self.value.toEnglish(escapeLiteral))
        if self.is_scalar():
            return name
        if self.is_optional():
            return "optional %s%s" % (name, " pair" if self.value else "")

        if self.n_max == sys.maxsize:
            quantity = "%s or more " % commafy(self.n_min) if self.n_min else ""
        elif self.n_min:
            quantity = "%s to %s " % (commafy(self.n_min), commafy(self.n_max))
        else:
            quantity = "up to %s " % commafy(self.n_max)
        if self.value:
            return "map of %s%s pairs" % (quantity, name)
        return "set of %s%s%s" % (quantity, name, _plural_ending(self.key.toEnglish()))

    def constraintsToEnglish(self, escapeLiteral=returnUnchanged, escapeNumber=returnUnchanged):
        """Returns a phrase for the constraints of keys and values, or "" when there are none."""
        key = self.key.constraintsToEnglish(escapeLiteral, escapeNumber)
        if not self.value:
            return key
        value = self.value.constraintsToEnglish(escapeLiteral, escapeNumber)
        return ", ".join(["key " + key] * bool(key) + ["value " + value] * bool(value))


# At the end, because it imports the names above.
from . import data  # noqa: E402, F401 - programs reach it through this module
