"""An API over the plays' own database `Types`, which has a column of every type, and rows to begin with."""

import uuid

from ovsdbapp import api
from ovsdbapp.backend import ovs_idl
from ovsdbapp.backend.ovs_idl import command, idlutils

KINDS = ("integer", "real", "boolean", "string", "uuid")
ONE = {
    "integer": 7,
    "real": 1.5,
    "boolean": True,
    "string": "one",
    "uuid": uuid.UUID("11111111-1111-4111-8111-111111111111"),
}
OTHER = {
    "integer": -3,
    "real": 0.25,
    "boolean": False,
    "string": "other",
    "uuid": uuid.UUID("22222222-2222-4222-8222-222222222222"),
}


def scalar(kind):
    """The column of one atom of `kind`; a row has an attribute `uuid` of its own."""
    return "ident" if kind == "uuid" else kind


class TypesApi(ovs_idl.Backend, api.API):
    schema = "Types"
    lookup_table = {
        "Everything": idlutils.RowLookup("Everything", "name", None),
        "Late": idlutils.RowLookup("Late", "name", None),
        "Single": idlutils.RowLookup("Single", None, None),
        "Pair": idlutils.RowLookup(None, None, None),
        "Child": idlutils.RowLookup("Everything", "name", "child"),
    }


class Acting(command.BaseCommand):
    """A command of one function of the transaction; the result of the function is the command's."""

    def __init__(self, api_, label, function):
        super().__init__(api_)
        self.label = label
        self.function = function

    def run_idl(self, txn):
        self.result = self.function(txn)

    def __str__(self):
        return f"Acting({self.label})"


def full_row():
    """Values for every column of Everything that is no reference."""
    values = {"name": "full", "small": [1, 9], "choice": "green", "fixed": "fixed"}
    for kind in KINDS:
        values |= {
            scalar(kind): ONE[kind],
            f"maybe_{kind}": OTHER[kind],
            f"set_{kind}": [ONE[kind], OTHER[kind]],
            f"map_{kind}": {"k": ONE[kind], "l": OTHER[kind]},
            f"map_of_{kind}": {ONE[kind]: "k", OTHER[kind]: "l"},
        }
    return values


def populate(play):
    """Rows `full` (all columns set), `bare` (all but two at their defaults) and a Single."""
    api_ = play.api
    with api_.transaction(check_error=True) as txn:
        children = [txn.add(api_.db_create("Child", name=f"child{number}", count=number)) for number in (1, 2, 3)]
        full = txn.add(api_.db_create("Everything", child=children[0], children=children[1:], named={"x": children[0], "y": children[2]}, **full_row()))
        bare = txn.add(api_.db_create("Everything", name="bare", choice="red"))
        txn.add(api_.db_set("Everything", full, ("friends", [bare, full])))
        txn.add(api_.db_create("Single", count=1))
    play.settle()
    play.contents()
