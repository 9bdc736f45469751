"""Values of every type: conditions with every operator, writes of right and wrong values, the functions of idlutils."""

import inspect
import uuid

from ovsdbapp import api as ovsdbapp_api
from ovsdbapp.backend.ovs_idl import command, idlutils, rowview

from transcript import plain
from types_api import KINDS, ONE, OTHER, populate, scalar

OPERATORS = ("=", "!=", "<", "{>=}", "nosuch")
OPERANDS = ([], {}, "", None, 0, True, 7, 1.5, "one", ["one"], [7], {"k": "one"}, {"k": 7}, {"nosuch": "x"}, ("one",), ONE["uuid"], [ONE["uuid"]])


def matching(play):
    """Every operator with every kind of operand on every column of a full row and of a bare one."""
    play.scene("conditions")
    table = play.idl.tables["Everything"]
    for name in ("full", "bare"):
        row = play.api.lookup("Everything", name)
        for column in [*sorted(table.columns), "_uuid", "nosuch"]:
            for operator in OPERATORS:
                found = []
                for operand in OPERANDS if operator in ("=", "!=") else OPERANDS[:1] + OPERANDS[-2:]:
                    found.append(f"{play.show(operand)}: {outcome(play, idlutils.condition_match, row, (column, operator, operand))}")
                play.say(f"  {name}.{column} {operator} {'; '.join(found)}")
            own = outcome(play, own_value, row, column)
            play.say(f"  {name}.{column} is {own}")


def own_value(row, column):
    value = idlutils.get_column_value(row, column)
    answers = []
    for operator in ("=", "!="):
        try:
            answers.append(idlutils.condition_match(row, (column, operator, plain(value))))
        except ValueError as error:
            answers.append(str(error))
    return [value, *answers]


def outcome(play, function, *arguments):
    try:
        return play.show(function(*arguments))
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}({play.transcript.text(str(error))})"


def writing(play):
    """Right and wrong values for every column.

    A map takes dictionaries only, or the original leaves its transaction open. Integers beyond 64 bits and bools for
    integers are left out: ours refuses them like other bad values, the original leaves that to the server.
    """
    play.scene("values of every type")
    do = play.do
    for kind in KINDS:
        right = (ONE[kind], OTHER[kind], [ONE[kind]], (OTHER[kind],), {ONE[kind]})
        wrong = (b"bytes", object, [ONE[kind], OTHER[kind]], [], "text", 2**63 - 1, -1.5, 2.0, float("1e300"))
        for value in (*right, *wrong):
            if kind == "boolean" or not isinstance(value, bool):
                do.db_set("Everything", "bare", (scalar(kind), value))
        for value in (ONE[kind], [OTHER[kind]], [ONE[kind], OTHER[kind]], [], (), "text", 5, [None]):
            do.db_set("Everything", "bare", (f"maybe_{kind}", value))
        for value in (ONE[kind], [OTHER[kind], ONE[kind], OTHER[kind]], {ONE[kind]}, (), ["text", ONE[kind]], [5]):
            do.db_set("Everything", "bare", (f"set_{kind}", value))
            do.db_set("Everything", "bare", (f"map_{kind}", {"k": value if type(value) not in (list, set, tuple) else ONE[kind]}))
        do.db_set("Everything", "bare", (f"map_of_{kind}", {ONE[kind]: "a", OTHER[kind]: "b"}))
        do.db_set("Everything", "bare", (f"map_of_{kind}", {ONE[kind]: "c"}))
        do.db_add("Everything", "bare", f"set_{kind}", ONE[kind], OTHER[kind])
        do.db_remove("Everything", "bare", f"set_{kind}", OTHER[kind])
        do.db_add("Everything", "bare", f"map_{kind}", {"n": ONE[kind]})
        do.db_remove("Everything", "bare", f"map_{kind}", "n", "k")
        for column in (scalar(kind), f"maybe_{kind}", f"set_{kind}", f"map_{kind}", f"map_of_{kind}"):
            do.db_get("Everything", "bare", column)
            do.db_clear("Everything", "bare", column)
    for value in ([1, 2, 3], [1, 2, 3, 4], [0], [10], 5, [], [5, 5]):
        # Set from empty each time: the original drops a difference of more elements than the column may have.
        do.db_clear("Everything", "bare", "small")
        do.db_set("Everything", "bare", ("small", value))
    for value in ("green", "blue", "", ["red"]):
        do.db_set("Everything", "bare", ("choice", value))
    do.db_set("Everything", "full", ("fixed", "changed"))
    references(play)
    play.contents()


def references(play):
    do = play.do
    play.scene("references")
    full, bare = (play.api.lookup("Everything", name) for name in ("full", "bare"))
    child = full.child[0]
    for value in (child, [child], child.uuid, [child.uuid], str(child.uuid), [], full.uuid):
        do.db_set("Everything", "bare", ("child", value))
    for value in ([child, child], (child,), full.children, [], uuid.UUID(int=5)):
        do.db_set("Everything", "bare", ("children", value))
    do.db_clear("Everything", "bare", "child")
    do.db_set("Everything", "bare", ("named", {"a": child}))
    do.db_set("Everything", "bare", ("named", {"b": child.uuid}))
    do.db_remove("Everything", "bare", "named", "a")
    do.db_set("Everything", "bare", ("friends", [full, bare]))
    do.db_set("Everything", "bare", ("friends", [uuid.UUID(int=5)]))
    do.db_get("Everything", "bare", "child")
    do.db_get("Child", "full", "name")
    do.db_get("Child", "bare", "name")
    do.db_get("Single", "anything", "count")
    do.db_get("Pair", "anything", "left")


class Functions:
    """Calls functions of idlutils and notes which."""

    def __init__(self, play):
        self.play = play
        self.called = set()

    def __call__(self, name, *arguments, **options):
        self.called.add(name)
        label = f"idlutils.{name}({', '.join([self.play.show(one) for one in arguments if not hasattr(one, 'tables') and not hasattr(one, 'columns')])})"

        def use():
            result = getattr(idlutils, name)(*arguments, **options)
            # Rows found without an index come in the order of their uuids.
            return list(result) if inspect.isgenerator(result) or hasattr(result, "__next__") else result

        return self.play.attempt(label, use, unordered=True)[1]


def functions(play):
    """Every public function of idlutils."""
    play.scene("functions of idlutils")
    use = Functions(play)
    idl, table = play.idl, play.idl.tables["Everything"]
    pairs = idl.tables["Pair"]
    full = play.api.lookup("Everything", "full")
    # Before the rows, because the original takes no rows into an index that were there before it.
    with play.connection.lock:
        pairs.rows.index_create("left_right").add_columns("left", "right")
        pairs.rows.index_create("left").add_column("left")
    for left, right in (("a", 1), ("a", 2), ("b", 1)):
        play.do.db_create("Pair", left=left, right=right, note=f"{left}{right}")
    with play.connection.lock:
        rows_found(use, idl, table, pairs)
        conditions_met(use, table, full)
        values_shown(play, use, table, full)
    schemas_read(play, use)
    use("wait_for_change", idl, 0.01, -1)
    public = {name for name, one in inspect.getmembers(idlutils, inspect.isfunction) if not name.startswith("_") and one.__module__ == idlutils.__name__}
    for name in sorted(public - use.called):
        play.say(f"GAP idlutils.{name} is called by no play")


def rows_found(use, idl, table, pairs):
    use("index_name", "b", "a")
    use("index_name")
    use("get_index_column", table)
    use("get_index_column", pairs)
    for name, matches in (("index_lookup_all", {"left": "a"}), ("index_lookup_all", {"left": "nosuch"}), ("index_lookup_all", {"left": "a", "right": 2}), ("index_lookup", {"left": "a", "right": 1}), ("index_lookup", {"left": "nosuch"}), ("index_lookup", {"note": "a1"})):
        use(name, pairs, **matches)
    use("table_lookup_all", pairs, "left", "a")
    use("table_lookup", pairs, "note", "b1")
    use("table_lookup", pairs, "note", "nosuch")
    use("rows_by_value", idl, "Pair", "left", "a")
    use("rows_by_value", idl, "Pair", "right", 1)
    use("row_by_value", idl, "Everything", "name", "full")
    use("row_by_value", idl, "Everything", "name", "nosuch")
    use("row_by_value", idl, "Everything", "name", "nosuch", "default")
    use("row_by_value", idl, "Everything", "nosuch", "nosuch")
    use("row_by_record", idl, "Everything", "full")
    use("row_by_record", idl, "Everything", "nosuch")
    use("row_by_record", idl, "Everything", uuid.UUID(int=5))
    use("row_by_record", idl, "Everything", str(next(iter(pairs.rows.values())).uuid))
    use("has_table", idl, "Everything")
    use("has_table", idl, "Nosuch")
    use("table_has_column", idl, "Everything", "name")
    use("table_has_column", idl, "Everything", "nosuch")
    use("table_has_column", idl, "Nosuch", "name")


def conditions_met(use, table, full):
    use("condition_index_columns", table, ("name", "=", "full"), ("name", "!=", "x"), ("integer", "=", 7))
    use("index_condition_match", table, ("name", "=", "full"), ("integer", "=", 7))
    use("index_condition_match", table, ("integer", "=", 7))
    use("index_condition_match", table, ("name", "=", "nosuch"))
    use("condition_match", full, ("integer", "=", 7))
    use("row_match", full, [("integer", "=", 7), ("string", "=", "one")])
    use("row_match", full, [("integer", "=", 8), ("nosuch", "=", "one")])
    use("row_match", full, [])
    use("circular")
    use("merge_intersection", iter([1, 2, 3, 5]), iter([2, 3, 4, 5]), iter([0, 2, 5]))


def values_shown(play, use, table, full):
    for column in [*sorted(table.columns), "_uuid"]:
        use("get_column_value", full, column)
        use("process_value_for_str", full, "uuid" if column == "_uuid" else column)
    use("rows_to_uuids", full)
    use("rows_to_uuids", full.children)
    use("rows_to_uuids", full.named)
    use("rows_to_uuids", 5)
    use("row2str", full)
    use("row2str", play.api.lookup("Everything", "bare"))
    frozen = use("frozen_row", full)
    play.attempt("fields of a frozen row", lambda: {column: plain(getattr(frozen, column)) for column in table.columns})
    play.attempt("its uuid", lambda: frozen.uuid)
    play.attempt("a field that is not there", lambda: frozen.nosuch)
    play.attempt("setting a field", lambda: setattr(frozen, "name", "x"))
    play.attempt("as a tuple", lambda: [isinstance(frozen, tuple), frozen == idlutils.frozen_row(full), hasattr(frozen, "_fields")])
    made = command.DbCreateCommand(play.api, "Pair")
    made.result = full.uuid
    for one in ([1, made], (1, made), {"k": made}, made, "text", [], full):
        use("db_replace_record", one)
    play.attempt("a command is", lambda: isinstance(made, ovsdbapp_api.Command))
    play.attempt("a view of it", lambda: str(rowview.RowView(full)))


def schemas_read(play, use):
    use("parse_connection", "tcp:127.0.0.1:1, unix:/x ,ssl:[::1]:2")
    schema = use("fetch_schema_json", play.remote, "Single") or play.schema
    use("fetch_schema_json", "unix:/nonexistent/socket", "Types")
    use("create_schema_helper", {"name": "X", "tables": {}}).register_all()
    helper = use("get_schema_helper", play.remote, "Types")
    helper.register_columns("Everything", ["name", "child"])
    made = helper.get_idl_schema()
    play.attempt("tables and columns of a helper", lambda: {name: sorted(one.columns) for name, one in made.tables.items()})
    play.say(f"  schema {schema['name']}")


def perform(play):
    populate(play)
    matching(play)
    functions(play)
    writing(play)
