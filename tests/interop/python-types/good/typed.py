"""A program of the blocking front with a generated module."""

import collections
import uuid
from typing import AbstractSet, Dict, List, Mapping, Optional

import corvid
import northbound
from northbound import Logical_Switch, Logical_Switch_Port

db = northbound.connect(
    "unix:socket",
    {"Logical_Switch": ["name", "ports"], "Logical_Switch_Port": None, "NB_Global": {"nb_cfg": "read", "options": "on_demand"}},
    leader_only=False,
    probe_interval=5,
    timeout=10,
)
tables = northbound.connect("unix:socket", ["Logical_Switch", "ACL"], lock="me", private_key="key", certificate="cert", ca_cert="ca")
everything = northbound.connect("unix:socket")


def names(ports: AbstractSet[Logical_Switch_Port]) -> List[str]:
    return sorted(port.name for port in ports)


def owner(ids: Mapping[str, str]) -> Optional[str]:
    return ids.get("owner")


for switch in db.Logical_Switch:
    print(names(switch.ports), owner(switch.external_ids), switch.uuid.hex, switch.as_dict())

with db.transaction("a comment", timeout=5) as txn:
    port = txn.insert("Logical_Switch_Port", name="p", addresses={"dynamic"}, options={"a": "b"}, tag=None)
    switch = txn.insert("Logical_Switch", name="s", ports=[port], external_ids=collections.OrderedDict(a="b"))
    acl = txn.insert("ACL", action="allow", direction="to-lport", match="1", priority=5)
    txn.add(switch, "acls", acl)
    txn.add(port, "addresses", "unknown", "router")
    txn.remove(switch, "ports", port)
    txn.remove(switch, "external_ids", "owner")
    txn.set_key(switch, "external_ids", "owner", "me")
    txn.verify(switch, "name", "ports")
    txn.increment(next(iter(db.NB_Global)), "nb_cfg", force=True)
    switch.ports = {port}
    switch.external_ids = {"owner": "me"}
    switch.name = "t"
    port.tag = None
    txn.delete(port)
inserted: Logical_Switch = txn.inserted(switch)

found: Optional[Logical_Switch] = db.Logical_Switch.find(name="s")
several: List[Logical_Switch_Port] = db["Logical_Switch_Port"].find_all(type="router", up=True)
by_name = db.Logical_Switch_Port.index("type", "-name")
first: Optional[Logical_Switch_Port] = by_name.get(("router", "p"))
ranged: List[Logical_Switch_Port] = by_name.range()

c = db.Logical_Switch.c
db.set_condition("Logical_Switch", (c.name == "s") | c.external_ids.includes({"owner": "me"}))
db.set_condition("ACL", db.ACL.c.priority >= 5)
db.set_condition("ACL", corvid.ALL)

for change in db.changes("Logical_Switch", timeout=1):
    row: Logical_Switch = change.row
    print(change.kind, row.name, change.added("ports"))
for any_change in db.changes("Logical_Switch", "ACL"):
    if isinstance(any_change.row, Logical_Switch):
        print(any_change.row.ports)
for change_of_all in db.changes():
    print(change_of_all.row.uuid)


def rename(txn: northbound.Transaction) -> int:
    txn.verify(inserted, "name")
    return 5


result: int = db.transact(rename, "a comment")


def generic(txn: corvid.Transaction, client: corvid.Client) -> Dict[str, int]:
    """Typed clients and transactions are usable where any are."""
    txn.comment("a comment")
    return client.metrics()


with db.transaction() as txn:
    generic(txn, db)
options = db.fetch(inserted, "other_config")
db.fetch_column("NB_Global", "options")
db.fetch_table("NB_Global")
handle = db.Logical_Switch.get(uuid.uuid4())
print(len(db.Logical_Switch), handle in db.Logical_Switch, corvid.exists(inserted), corvid.table_of(inserted))
