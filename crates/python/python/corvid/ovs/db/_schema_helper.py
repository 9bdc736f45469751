"""The choice of tables and columns that an Idl replicates."""

import json
import os

from .. import dirs
from .. import json as ovs_json
from . import schema as _schema


class SchemaHelper:
    """Chooses what an Idl replicates: some columns, whole tables, or everything.

    ``location`` is a file with a schema, by default that of Open vSwitch; ``schema_json`` is a
    schema as text or as Python objects, and goes first.
    """

    def __init__(self, location=None, schema_json=None):
        if schema_json is not None:
            self.schema_json = schema_json
        else:
            if location is None:
                location = os.path.join(dirs.PKGDATADIR, "vswitch.ovsschema")
            with open(location, encoding="utf-8") as file:
                parsed = ovs_json.from_string(file.read())
            if isinstance(parsed, str):
                raise ValueError("%s: %s" % (location, parsed))
            self.schema_json = parsed
        self._tables = {}
        self._readonly = {}
        self._all = False

    def register_columns(self, table, columns, readonly=()):
        """Replicates columns of a table. Those in ``readonly`` are not sent by the server: a
        program fetches them, and cannot write them.
        """
        self._tables[table] = set(columns) | self._tables.get(table, set())
        self._readonly[table] = list(readonly)

    def register_table(self, table):
        """Replicates all columns of a table."""
        self._tables[table] = set()

    def register_all(self):
        """Replicates everything."""
        self._all = True

    def get_idl_schema(self):
        """The schema, with the chosen tables and columns alone. ``schema_json`` is gone then."""
        text_or_parsed = self.schema_json
        schema = _schema.DbSchema.from_json(json.loads(text_or_parsed) if isinstance(text_or_parsed, str) else text_or_parsed)
        self.schema_json = None
        if not self._all:
            schema.tables = {
                name: self._keep_table_columns(schema, name, columns) for name, columns in self._tables.items()
            }
        schema.readonly = self._readonly
        return schema

    def _keep_table_columns(self, schema, table_name, columns):
        assert table_name in schema.tables, "no table named %s" % table_name
        table = schema.tables[table_name]
        if columns:
            for name in columns:
                assert name in table.columns, "table %s has no column named %s" % (table_name, name)
            table.columns = {name: table.columns[name] for name in columns}
        return table
