"""A set of tables that changes at run time: the replica stays as it is until the next connection."""
# needs: server inventory-1.ovsschema

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
from idl_transcript import by_name, connected, say, until  # noqa: E402

Idl = ovs.db.idl.Idl


class Watching(Idl):
    """Keeps what it hears of tables that the program has."""

    heard = ()

    def notify(self, event, row, updates=None):
        if row._table.name in self.tables:
            self.heard = (*self.heard, (event, row._table.name))

    def take(self):
        heard, self.heard = self.heard, ()
        return heard


def commit(idl, change):
    txn = ovs.db.idl.Transaction(idl)
    change(txn)
    say(txn.commit_block())


def main():
    writer = connected("inventory-1.ovsschema")
    commit(writer, lambda txn: setattr(txn.insert(writer.tables["Site"]), "name", "first"))
    idl = connected("inventory-1.ovsschema", kind=Watching)
    say("contents", idl.take())
    seqno = idl.change_seqno
    del idl.tables["Note"]
    for _ in range(20):
        idl.run()
    say("a table was removed", sorted(idl.tables), idl.take(), idl.change_seqno == seqno, idl.state == Idl.IDL_S_MONITORING)
    commit(writer, lambda txn: setattr(by_name(writer, "Site", "first"), "contact", "alice"))
    until([writer, idl], lambda: by_name(idl, "Site", "first").contact == ["alice"])
    say("a change of another one", idl.take(), len(idl.tables["Site"].rows))
    seqno = idl.change_seqno
    idl.force_reconnect()
    until([writer, idl], lambda: idl.change_seqno != seqno and idl.state == Idl.IDL_S_MONITORING)
    say("after the next connection", sorted(idl.tables), len(idl.tables["Site"].rows))
    commit(writer, lambda txn: setattr(by_name(writer, "Site", "first"), "contact", "bob"))
    until([writer, idl], lambda: by_name(idl, "Site", "first").contact == ["bob"])
    say("it follows the server")


main()
