"""Generates command lines for the database commands of a schema, right ones and wrong ones.

A line is a list of words. A word may contain `<N>`, which stands for the uuid of the row that both sides know by the
number N: each side has its own uuids. Nothing here runs a program.
"""

import json

OPERATORS = ["=", "!=", "<", ">", "<=", ">=", "{=}", "{!=}", "{<}", "{>}", "{<=}", "{>=}", "{in}", "{not-in}"]
FORMS = ["--format=table", "--format=csv", "--data=bare", "--data=json", "--bare", "--no-headings", "--oneline"]
TEXTS = ["a", "br0", "x-1", "two words", "true", "5", "", "a,b", "k=v", "q\"q", "back\\slash", "[]", "ü", "192.0.2.1", "0a:00:00:00:00:01"]

# The reference's program shows a column of these tables that it makes up itself (`hash`), so columns are named.
WITH_MADE_UP_COLUMNS = {"Logical_Flow"}


class Generator:
    """Lines for the database with this schema. `names` are the ways to name rows that the schema does not tell."""

    def __init__(self, random, schema, rows):
        self.random = random
        with open(schema) as file:
            self.tables = json.load(file)["tables"]
        # Numbers of rows by table, which the runner keeps.
        self.rows = rows
        # Maps that the line writes.
        self.written = set()
        # Tables from which the line destroys rows. The reference aborts if a later command names
        # such a row by its uuid.
        self.destroyed = set()
        # The line avoids what is known to fail.
        self.is_careful = False

    def one_of(self, items):
        return self.random.choice(list(items))

    def chance(self, percent):
        return self.random.random() * 100 < percent

    # Names

    def spelled(self, name):
        """A name, sometimes in another spelling or wrong."""
        if self.chance(80):
            return name
        if self.chance(50) or self.is_careful:
            return self.one_of([name.lower(), name.upper(), name.replace("_", "-")])
        if self.chance(70):
            return name[: self.random.randint(1, len(name))]
        return self.one_of(["nosuch", "", name + "x"])

    def columns(self, table, of=lambda type: True):
        return [name for name, column in self.tables[table]["columns"].items() if of(parts(column["type"]))]

    def column(self, table, of=lambda type: True):
        return self.one_of(self.columns(table, of) or self.columns(table))

    def is_written(self, table, column):
        """Whether the line writes the map already; if not, it does from now on.

        The reference sends single keys separately from whole maps, so that `c:k=v c={}` leaves the key; ours does what
        the line says (COMPAT 1201). So each line writes a map once.
        """
        if not parts(self.tables[table]["columns"][column]["type"])["value"]:
            return False
        is_known = (table, column) in self.written
        self.written.add((table, column))
        return is_known

    def changed(self, table, of=lambda type: True):
        """A column to write."""
        columns = self.columns(table, of) or self.columns(table)
        self.random.shuffle(columns)
        columns += self.columns(table, lambda type: not type["value"])
        return next((column for column in columns if not self.is_written(table, column)), None)

    def record(self, table, names):
        """A record of the table: by uuid, by the beginning of one, by name, or one that does not exist."""
        rows = self.existing(table)
        if not self.is_careful and self.chance(10) or not rows and not names:
            return self.one_of(["nosuch", ".", "ffff", "00000000-0000-0000-0000-000000000000"])
        if names and self.chance(50):
            return self.one_of(names)
        if not rows:
            return "."
        number = self.one_of(rows)
        return f"<{number}>" if self.chance(60) else f"<{number}:{self.one_of([4, 8, 9, 14, 20])}>"

    def existing(self, table):
        """The numbers of rows that a command may name."""
        return [] if table in self.destroyed else self.rows.get(table, [])

    # Values

    def atom(self, base):
        base = {"type": base} if isinstance(base, str) else base
        kind = base["type"]
        if not self.is_careful and self.chance(4):
            return self.one_of(["", "@nosuch", "[", "{}", "x=y", "\"open", "-", "99999999999999999999"])
        if "enum" in base and (self.is_careful or self.chance(90)):
            enum = base["enum"]
            choices = enum[1] if isinstance(enum, list) else [enum]
            return self.text(str(self.one_of(choices)))
        if kind == "integer":
            low = max(base.get("minInteger", -10), -10)
            high = min(base.get("maxInteger", 100), 4095)
            value = self.random.randint(min(low, high), high)
            return str(value if self.is_careful or self.chance(95) else self.one_of([-5, 1 << 40, -(1 << 63)]))
        if kind == "real":
            return self.one_of(["0", "1.5", "-2.25", "1e10", "0.1", "x"][: 5 if self.is_careful else 6])
        if kind == "boolean":
            return self.one_of(["true", "false", "yes", "off", "1", "maybe"][: 5 if self.is_careful or self.chance(90) else 6])
        if kind == "uuid":
            rows = self.rows.get(base.get("refTable", ""), [])
            return f"<{self.one_of(rows)}>" if rows else "00000000-0000-0000-0000-000000000001"
        return self.text(self.one_of(TEXTS))

    def text(self, text):
        """A string, quoted if it must be, and sometimes if it need not."""
        plain = text.replace("_", "").replace("-", "").replace(".", "").isalnum() and text.isascii()
        if plain and not self.chance(15):
            return text
        return json.dumps(text, ensure_ascii=self.chance(50)) if self.is_careful or self.chance(95) else text

    def value(self, type, key=False):
        """A value of a column, or of one key of a map."""
        if key:
            return self.atom(type["value"] or type["key"])
        high = 4 if type["max"] == "unlimited" else min(type["max"], 4)
        count = self.random.randint(min(type["min"], high), high) if self.is_careful or self.chance(95) else high + 1
        if count == 0:
            return "{}" if type["value"] else "[]"
        elements = [self.element(type) for _ in range(count)]
        text = self.one_of([",", ", ", " "]).join(elements)
        if self.chance(30):
            text = "{%s}" % text if type["value"] else f"[{text}]"
        return text

    def element(self, type):
        key = self.atom(type["key"])
        return f"{key}={self.atom(type['value'])}" if type["value"] else key

    def assignment(self, table, column=None, operators=("=",)):
        column = column or self.column(table, lambda type: not is_reference(type) or self.chance(40))
        type = parts(self.tables[table]["columns"][column]["type"])
        # The order of uuids is another one on each side.
        operator = self.one_of([it for it in operators if not is_reference(type) or it not in ("<", ">", "<=", ">=")])
        spelled = self.spelled(column)
        if (type["value"] and self.chance(60)) or not self.is_careful and self.chance(2):
            return f"{spelled}:{self.atom(type['key'])}{operator}{self.value(type, key=True)}"
        return f"{spelled}{operator}{self.value(type)}"

    # Commands

    def command(self, names_of):
        """One command. `names_of(table)` returns names of records."""
        known = [table for table in self.rows if self.existing(table)]
        table = self.one_of(known if self.is_careful and known else list(self.tables) + known * 2)
        kind = self.one_of("list find find get get set set set add add remove remove clear create destroy wait-until".split())
        return getattr(self, kind.replace("-", "_"))(table, names_of(table))

    def exists_option(self):
        return ["--if-exists"] if self.chance(20) else []

    def columns_option(self, table):
        if table not in WITH_MADE_UP_COLUMNS and self.chance(50):
            return []
        columns = [self.spelled(self.column(table)) for _ in range(self.random.randint(1, 4))]
        if self.chance(30):
            columns.append("_uuid")
        return ["--columns=" + self.one_of([",", ", ", " "]).join(columns)]

    def list(self, table, names):
        records = [self.record(table, names) for _ in range(self.one_of([0, 0, 1, 1, 2]))]
        return self.exists_option() + self.columns_option(table) + ["list", self.spelled(table)] + records

    def find(self, table, names):
        conditions = [self.assignment(table, operators=OPERATORS) for _ in range(self.one_of([0, 1, 1, 1, 2]))]
        return self.columns_option(table) + ["find", self.spelled(table)] + conditions

    def get(self, table, names):
        arguments = []
        for _ in range(self.random.randint(0, 3)):
            column = self.column(table)
            type = parts(self.tables[table]["columns"][column]["type"])
            keyed = type["value"] and self.chance(10 if self.is_careful else 60) or not self.is_careful and self.chance(3)
            key = f":{self.atom(type['key'])}" if keyed else ""
            arguments.append(self.spelled(column) + key)
        if self.chance(15):
            arguments.append("_uuid")
        return self.exists_option() + ["get", self.spelled(table), self.record(table, names)] + arguments

    def set(self, table, names):
        of = lambda type: not is_reference(type) or self.chance(40)  # noqa: E731
        columns = [self.changed(table, of) for _ in range(self.one_of([1, 1, 2, 3]))]
        assignments = [self.assignment(table, column) for column in columns if column]
        return self.exists_option() + ["set", self.spelled(table), self.record(table, names)] + assignments

    def add(self, table, names):
        column = self.changed(table, lambda type: type["max"] != 1)
        if column is None:
            return self.list(table, names)
        type = parts(self.tables[table]["columns"][column]["type"])
        if type["min"] == type["max"]:
            # The reference's answer depends on what else the line reads (COMPAT 1203).
            return self.list(table, names)
        values = [self.value(type) if self.chance(30) else self.element(type) for _ in range(self.one_of([1, 1, 2]))]
        record = self.record(table, names)
        return self.exists_option() + ["add", self.spelled(table), record, self.spelled(column)] + values + read_too(table, record, column, type)

    def remove(self, table, names):
        column = self.changed(table, lambda type: type["max"] != 1)
        if column is None:
            return self.list(table, names)
        type = parts(self.tables[table]["columns"][column]["type"])
        values = [self.atom(type["key"]) if self.chance(50) else self.element(type) for _ in range(self.one_of([1, 1, 2]))]
        return self.exists_option() + ["remove", self.spelled(table), self.record(table, names), self.spelled(column)] + values

    def clear(self, table, names):
        columns = [self.changed(table, lambda type: type["min"] == 0) for _ in range(self.one_of([1, 1, 2]))]
        columns = [self.spelled(column) for column in columns if column]
        return self.exists_option() + ["clear", self.spelled(table), self.record(table, names)] + columns

    def create(self, table, names):
        if self.tables[table].get("maxRows") == 1:
            # The reference's tools wait until the table is empty (COMPAT 1202).
            return self.list(table, names)
        return ["create", self.spelled(table)] + self.contents(table)

    def contents(self, table):
        """Values of a new row, with a name where the table has one."""
        columns = {self.column(table) for _ in range(self.random.randint(1, 3))}
        if "name" in self.tables[table]["columns"] and self.chance(90):
            columns.add("name")
        return [self.assignment(table, column) for column in sorted(columns)]

    def destroy(self, table, names):
        if self.tables[table].get("maxRows") == 1:
            # The reference's tools create the row again, with any command.
            return self.list(table, names)
        # Names of this table that the destroyed rows have stand for none afterwards.
        record = self.record(table, names)
        self.destroyed.add(table)
        if self.chance(6):
            return ["--all", "destroy", table] + (["."] if self.chance(20) else [])
        return self.exists_option() + ["destroy", self.spelled(table), record]

    def wait_until(self, table, names):
        """Mostly one that need not wait: a line that waits in vain ends by the time limit."""
        rows = self.existing(table)
        record = f"<{self.one_of(rows)}>" if rows else self.one_of(names or ["nosuch"])
        is_vain = not rows and not names or table in self.destroyed
        if is_vain and (self.is_careful or self.chance(97)):
            return self.list(table, names)
        conditions = [self.assignment(table, operators=["!=", "{not-in}"])] if self.chance(8) else []
        return ["wait-until", self.spelled(table), record] + conditions

    def owned(self, names_of):
        """A chain that creates a row together with a reference to it, so that it stays."""
        referring = [
            (table, column, base["refTable"])
            for table in self.tables
            for column in self.columns(table)
            for base in bases(parts(self.tables[table]["columns"][column]["type"]))
            if isinstance(base, dict) and base.get("refType", "strong") == "strong" and "refTable" in base
        ]
        reachable = [it for it in referring if self.rows.get(it[0]) or names_of(it[0])]
        reachable = [it for it in reachable if self.tables[it[2]].get("maxRows") != 1]
        if not reachable:
            return self.command(names_of)
        table, column, target = self.one_of(reachable)
        self.written.add((table, column))
        type = parts(self.tables[table]["columns"][column]["type"])
        name = "@new"
        value = f"{self.atom(type['key'])}={name}" if type["value"] else name
        create = ["--id=@new", "create", target] + self.contents(target)
        record = self.record(table, names_of(table))
        verb = ["add", table, record, column, value] + read_too(table, record, column, type)
        if type["max"] == 1:
            verb = ["set", table, record, f"{column}={value}"]
        commands = [create, verb]
        self.random.shuffle(commands)
        return commands[0] + ["--"] + commands[1]

    def line(self, names_of):
        """A whole line, a few with an option about the form of the output."""
        form = [self.one_of(FORMS)] if self.chance(10) else []
        return form + self.commands(names_of)

    def commands(self, names_of):
        self.written.clear()
        self.destroyed.clear()
        self.is_careful = self.chance(70)
        if self.chance(35):
            return ["--"] + self.owned(names_of)
        words = ["--"] + self.command(names_of)
        while self.chance(20):
            words += ["--"] + self.command(names_of)
        return words


def parts(type):
    """A type of a schema with all its members."""
    if isinstance(type, str):
        type = {"key": type}
    return {"key": type["key"], "value": type.get("value"), "min": type.get("min", 1), "max": type.get("max", 1)}


def read_too(table, record, column, type):
    """Commands after an `add` to a map.

    The reference's `add` keeps the value of a key that exists, as its manual says, only if the same line reads the
    column; otherwise it replaces the value. Ours always keeps it (COMPAT 1204).
    """
    return ["--", "--if-exists", "get", table, record, column] if type["value"] else []


def bases(type):
    return [base for base in (type["key"], type["value"]) if base is not None]


def is_reference(type):
    return any(isinstance(base, dict) and "refTable" in base for base in bases(type))
