"""Values of a wrong type, and what may be read only."""

import northbound

db = northbound.connect("unix:socket")
with db.transaction() as txn:
    port = txn.insert("Logical_Switch_Port", name=5)  # error
    switch = txn.insert("Logical_Switch", name="s")
    txn.insert("Logical_Switch", name="s", ports=[switch])  # error
    txn.insert("ACL", direction="sideways")  # error
    txn.insert("Logical_Switch", external_ids={"a": 1})  # error
    txn.insert("Logical_Switch", external_ids=["a"])  # error
    txn.add(switch, "ports", switch)  # error
    txn.set_key(switch, "external_ids", "owner", 5)  # error
    switch.ports.add(port)  # error
    switch.name = None  # error
    switch.ports = {switch}  # error
    switch.external_ids["owner"] = "me"  # error
    switch.uuid = switch.uuid  # error
number: int = switch.name  # error
db.Logical_Switch.find(name=5)  # error
db.set_condition("Logical_Switch", db.Logical_Switch.c.name == 5)  # error
db.set_condition("ACL", db.ACL.c.priority >= "high")  # error
switch.owner()  # error
found = db.Logical_Switch.find(name="s")
print(found.name)  # error
