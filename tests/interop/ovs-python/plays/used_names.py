"""Each name of the library that services touch, private ones included (used_names.txt): where it is, and its kind."""
# needs: server inventory-1.ovsschema
# not on: debian: the names are those of the newest version
# differs: pypi: ^ovs\.dns_resolve\.: names of services of their own; none of them imports the module
# differs: pypi: ^ovs\.stream\.\w+ __del__ : the socket closes itself
# differs: pypi: ^ovs\.json\.Parser c : the parser in C
# differs: pypi: ^(a row|a new row|ovs\.db\.idl\.Row) __getattr__ : a slot of a class of the core, which no attribute shows
# differs: pypi: ^ovs compat : a module that is there before it is imported harms nobody
# differs: pypi: ^(a condition|ovs\.db\.idl\.ConditionState) __iter__ : a name of services of their own
# differs: pypi: ^rows of a table (__setitem__|clear) : a replica changes by transactions alone
# differs: pypi: ^a (session|reconnection) of an Idl (?!probe_interval|set_probe_interval|get_probe_interval|get_name|get_num_of_remotes|is_connected|is_alive|force_reconnect|close|remotes|reconnect|rpc): the session is in the core; these names Neutron and others use
# differs: pypi: ^an Idl (_last_seqno|_lock_request_id|_monitor_request_id|_outstanding_txns) : os-ken has an Idl of its own, with these names
# differs: pypi: (Idl send_request|_substitute_uuids) : requests are made in the core; Neutron replaces the second one

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE))

import ovs.db.idl  # noqa: E402
from idl_transcript import REMOTE, helper, say, until  # noqa: E402
from owners import kind_of, modules, objects  # noqa: E402


def used():
    """Pairs of an owner and a name."""
    for line in (HERE / "used_names.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            owner, name, _ = line.split("\t")
            yield owner, name


def replica():
    """A replica with one row."""
    idl = ovs.db.idl.Idl(REMOTE, helper("inventory-1.ovsschema"))
    until(idl, lambda: idl.change_seqno)
    txn = ovs.db.idl.Transaction(idl)
    row = txn.insert(idl.tables["Site"])
    row.name = "only"
    txn.commit_block()
    until(idl, lambda: idl.tables["Site"].rows)
    return idl


def main():
    owners = {**modules(), **objects(replica())}
    for owner, name in used():
        kind = kind_of(owners[owner], name) if owner in owners else "no owner"
        say(owner, name, kind)


if __name__ == "__main__":
    main()
