"""The schema of a database: its tables, their columns, and the indexes that make rows unique.

It owns parsing a schema from JSON with the checks of RFC 7047 and printing it again.  It knows no
rows: the replica adds attributes such as `rows` to a `TableSchema` and `alert` to a
`ColumnSchema`.
"""

import re
import sys

from . import error
from . import parser
from . import types

_version_re = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+$")


def _check_id(name, json):
    """Raises an error about `json` unless `name` may name a table or a column."""
    if name.startswith("_"):
        raise error.Error('names beginning with "_" are reserved', json)
    if not parser.is_identifier(name):
        raise error.Error("name must be a valid id", json)


class DbSchema(object):
    """Schema for an OVSDB database.

    Attributes:
        name: The name of the database.
        version: The version "x.y.z", or None.
        tables: The tables by name.
    """

    def __init__(self, name, version, tables, allow_extensions=False):
        self.name = name
        self.version = version
        self.tables = tables

        # Without any root table there would be no rows that keep others alive, so that such a
        # schema means the absence of garbage collection.
        if self._root_set_size() == 0:
            for table in self.tables.values():
                table.is_root = True

        for table in self.tables.values():
            for column in table.columns.values():
                self._follow_ref_table(column, column.type.key, "key")
                self._follow_ref_table(column, column.type.value, "value")

    def _root_set_size(self):
        return sum(1 for table in self.tables.values() if table.is_root)

    def _follow_ref_table(self, column, base, base_name):
        """Lets a reference point to the table that it names."""
        if not base or base.type is not types.UuidType or not base.ref_table_name:
            return
        base.ref_table = self.tables.get(base.ref_table_name)
        if not base.ref_table:
            raise error.Error("column %s %s refers to undefined table %s"
                              % (column.name, base_name, base.ref_table_name),
                              tag="syntax error")
        # The server keeps a row of a table outside the root set only as long as a stored column
        # refers to it.
        if base.is_strong_ref() and not base.ref_table.is_root:
            column.persistent = True

    @staticmethod
    def from_json(json, allow_extensions=False):
        """Returns the schema that `json` describes.

        With `allow_extensions`, tables and columns may have the "extensions" member of the files
        from which bindings are generated.
        """
        p = parser.Parser(json, "database schema")
        name = p.get("name", ["id"])
        version = p.get_optional("version", [str])
        p.get_optional("cksum", [str])
        tables_json = p.get("tables", [dict])
        p.finish()

        if version is not None and not _version_re.match(version):
            raise error.Error('schema version "%s" not in format x.y.z' % version)

        tables = {}
        for table_name, table_json in tables_json.items():
            _check_id(table_name, json)
            tables[table_name] = TableSchema.from_json(table_json, table_name, allow_extensions)
        return DbSchema(name, version, tables)

    def to_json(self):
        """Returns the schema as JSON."""
        # "isRoot" is written only where it differs from the value that its absence everywhere
        # would mean.
        default_is_root = self._root_set_size() == len(self.tables)
        json = {"name": self.name,
                "tables": {table.name: table.to_json(default_is_root)
                           for table in self.tables.values()}}
        if self.version:
            json["version"] = self.version
        return json

    def copy(self):
        """Returns a schema that shares nothing with this one."""
        return DbSchema.from_json(self.to_json())


class IdlSchema(DbSchema):
    """A schema with the members that direct the generation of C bindings."""

    def __init__(self, name, version, tables, idlPrefix, idlHeader, cDecls, hDecls):
        DbSchema.__init__(self, name, version, tables)
        self.idlPrefix = idlPrefix
        self.idlHeader = idlHeader
        self.cDecls = cDecls
        self.hDecls = hDecls

    @staticmethod
    def from_json(json):
        """Returns the schema that `json` describes, which always may have extensions."""
        p = parser.Parser(json, "IDL schema")
        idlPrefix = p.get("idlPrefix", [str])
        idlHeader = p.get("idlHeader", [str])
        cDecls = p.get_optional("cDecls", [str], "")
        hDecls = p.get_optional("hDecls", [str], "")

        rest = {name: value for name, value in json.items() if name not in p.used}
        schema = DbSchema.from_json(rest, allow_extensions=True)
        return IdlSchema(schema.name, schema.version, schema.tables,
                         idlPrefix, idlHeader, cDecls, hDecls)


def column_set_from_json(json, columns):
    """Returns the members of `columns`, a dict by name, that the JSON array `json` names.

    Without `json` (None) that is every column.
    """
    if json is None:
        return tuple(columns.values())
    if not isinstance(json, list):
        raise error.Error("array of distinct column names expected", json)
    for name in json:
        if not isinstance(name, str):
            raise error.Error("array of distinct column names expected", json)
        if name not in columns:
            raise error.Error("%s is not a valid column name" % name, json)
    if len(set(json)) != len(json):
        # Each name must be distinct, or an index over them would be ambiguous.
        raise error.Error("array of distinct column names expected", json)
    return tuple(columns[name] for name in json)


class TableSchema(object):
    """Schema for one table.

    Attributes:
        name: The name of the table.
        columns: The columns by name.
        mutable: Recorded, without effect.
        max_rows: The largest number of rows; `sys.maxsize` stands for unlimited.
        is_root: Whether rows live without a strong reference to them.
        indexes: One tuple of columns for each index.
        extensions: The "extensions" member of the schema.
    """

    def __init__(self, name, columns, mutable=True, max_rows=sys.maxsize, is_root=True,
                 indexes=None, extensions=None):
        self.name = name
        self.columns = columns
        self.mutable = mutable
        self.max_rows = max_rows
        self.is_root = is_root
        self.indexes = [] if indexes is None else indexes
        self.extensions = {} if extensions is None else extensions

    @staticmethod
    def from_json(json, name, allow_extensions=False):
        """Returns the schema of table `name` that `json` describes."""
        p = parser.Parser(json, "table schema for table %s" % name)
        columns_json = p.get("columns", [dict])
        mutable = p.get_optional("mutable", [bool], True)
        max_rows = p.get_optional("maxRows", [int])
        is_root = p.get_optional("isRoot", [bool], False)
        indexes_json = p.get_optional("indexes", [list], [])
        extensions = p.get_optional("extensions", [dict], {}) if allow_extensions else {}
        p.finish()

        if max_rows is None:
            max_rows = sys.maxsize
        elif max_rows <= 0:
            raise error.Error("maxRows must be at least 1", json)

        if not columns_json:
            raise error.Error("table must have at least one column", json)

        columns = {}
        for column_name, column_json in columns_json.items():
            _check_id(column_name, json)
            columns[column_name] = ColumnSchema.from_json(column_json, column_name,
                                                          allow_extensions)

        indexes = [TableSchema._index_from_json(index_json, columns, json)
                   for index_json in indexes_json]
        for index in indexes:
            if len(index) == 1:
                index[0].unique = True
        return TableSchema(name, columns, mutable, max_rows, is_root, indexes, extensions)

    @staticmethod
    def _index_from_json(index_json, columns, table_json):
        if index_json is None:
            raise error.Error("array of distinct column names expected", table_json)
        index = column_set_from_json(index_json, columns)
        if not index:
            raise error.Error("index must have at least one column", table_json)
        for column in index:
            if not column.persistent:
                raise error.Error("ephemeral columns (such as %s) may not be indexed"
                                  % column.name, table_json)
        return index

    def to_json(self, default_is_root=False):
        """Returns this table as JSON.

        `default_is_root` is the value of "isRoot" that its absence means to the reader.  The
        default suits a single table; a `DbSchema` passes the value that suits all its tables.
        """
        json = {}
        if not self.mutable:
            json["mutable"] = False
        if default_is_root != self.is_root:
            json["isRoot"] = self.is_root
        json["columns"] = {column.name: column.to_json() for column in self.columns.values()}
        if self.max_rows != sys.maxsize:
            json["maxRows"] = self.max_rows
        if self.indexes:
            json["indexes"] = [[column.name for column in index] for index in self.indexes]
        return json


class ColumnSchema(object):
    """Schema for one column.

    Attributes:
        name: The name of the column.
        mutable: Whether a row that exists may change its value.
        persistent: Whether the database stores its value.
        type: The `Type` of its values.
        unique: Whether an index consists of this column alone.
        extensions: The "extensions" member of the schema.
    """

    def __init__(self, name, mutable, persistent, type_, extensions=None):
        self.name = name
        self.mutable = mutable
        self.persistent = persistent
        self.type = type_
        self.unique = False
        self.extensions = {} if extensions is None else extensions

    @staticmethod
    def from_json(json, name, allow_extensions=False):
        """Returns the schema of column `name` that `json` describes."""
        p = parser.Parser(json, "schema for column %s" % name)
        mutable = p.get_optional("mutable", [bool], True)
        ephemeral = p.get_optional("ephemeral", [bool], False)
        type_ = types.Type.from_json(p.get("type", [dict, str]))
        extensions = p.get_optional("extensions", [dict], {}) if allow_extensions else {}
        p.finish()

        # The database itself removes weak references, which an immutable column would forbid.
        if type_.key.is_weak_ref() or (type_.value and type_.value.is_weak_ref()):
            mutable = True
        return ColumnSchema(name, mutable, not ephemeral, type_, extensions)

    def to_json(self):
        """Returns this column as JSON."""
        json = {"type": self.type.to_json()}
        if not self.mutable:
            json["mutable"] = False
        if not self.persistent:
            json["ephemeral"] = True
        if self.extensions:
            json["extensions"] = self.extensions
        return json
