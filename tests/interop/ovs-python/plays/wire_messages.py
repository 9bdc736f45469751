"""Messages of a replica in the log, when the program wants those of the module jsonrpc at level DBG."""
# needs: server inventory-1.ovsschema

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import ovs.db.idl  # noqa: E402
import ovs.vlog  # noqa: E402
from idl_transcript import connected, say  # noqa: E402

lines = []
ovs.vlog.Vlog.dbg = lambda self, message, *arguments, **keywords: lines.append((self.name, message))


def shown(part):
    """The messages about transactions: the others are those of each library's own way to monitor."""
    for name, message in lines:
        if part in message:
            yield name, re.sub(r"id=\d+", "id=N", message)


def main():
    ovs.vlog.Vlog.set_level("jsonrpc", "any", "info")
    idl = connected("inventory-1.ovsschema")

    def insert(name):
        txn = ovs.db.idl.Transaction(idl)
        row = txn.insert(idl.tables["Note"], new_uuid=None)
        row.text = name
        txn.add_comment("a comment of " + name)
        say(name, txn.commit_block())
        del lines[:-200]

    insert("silent")
    say("messages at level INFO:", len([name for name, _ in lines if name == "jsonrpc"]))
    ovs.vlog.Vlog.set_level("jsonrpc", "any", "dbg")
    insert("shown")
    for name, message in shown("a comment of shown"):
        # Our library gives the transaction an id, for a server that executes ids once.
        say(name, message[: message.index("params")].replace("transact_once", "transact"))
    say("replies:", any(name == "jsonrpc" and "received reply, result=[" in message for name, message in lines))
    say("of the remote:", all(message.startswith("unix:") for name, message in lines if name == "jsonrpc"))
    ovs.vlog.Vlog.set_level("jsonrpc", "any", "info")
    del lines[:]
    insert("silent again")
    say("messages at level INFO:", len([name for name, _ in lines if name == "jsonrpc"]))


main()
