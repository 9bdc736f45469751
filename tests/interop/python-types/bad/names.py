"""Names that the schema does not have, or has elsewhere."""

import asyncio

import corvid
import northbound

db = northbound.connect("unix:socket")
northbound.connect("unix:socket", leader_onyl=True)  # error
northbound.connect("unix:socket", ["Logical_Swich"])  # error
northbound.connect("unix:socket", {"Logical_Swich": ["name"]})  # error
northbound.connect("unix:socket", {"Logical_Switch": ["nmae"]})  # error
northbound.connect("unix:socket", {"Logical_Switch": {"name": "raed"}})  # error
corvid.connect("unix:socket", "OVN_Northbound", probe_intreval=5)  # error

for switch in db.Logical_Switch:
    print(switch.nmae)  # error
    for port in switch.ports:
        print(port.adresses)  # error
print(db.Logical_Swich)  # error
print(db["Logical_Swich"])  # error

with db.transaction() as txn:
    txn.insert("Logical_Swich", name="s")  # error
    txn.insert("Logical_Switch", nmae="s")  # error
    port = txn.insert("Logical_Switch_Port", name="p")
    switch = txn.insert("Logical_Switch", name="s", ports={port})
    txn.add(switch, "prots", port)  # error
    txn.add(switch, "name", "s")  # error
    txn.remove(switch, "externel_ids", "owner")  # error
    txn.set_key(switch, "ports", "owner", "me")  # error
    txn.set_key(switch, "externel_ids", "owner", "me")  # error
    txn.verify(switch, "name", "addresses")  # error
    txn.increment(switch, "name")  # error
    txn.insret("Logical_Switch")  # error
    switch.nmae = "s"  # error

db.Logical_Switch.find(nmae="s")  # error
db.Logical_Switch.find_all(addresses="s")  # error
db.Logical_Switch.index("nmae")  # error
db.Logical_Switch.index("+name")  # error
db.set_condition("Logical_Swich", corvid.ALL)  # error
db.set_condition("Logical_Switch", db.Logical_Switch.c.nmae == "s")  # error
db.changes("Logical_Swich")  # error
db.changes("Logical_Switch", "Logical_Swich")  # error
for change in db.changes("Logical_Switch"):
    print(change.row.nmae)  # error
    print(change.knid)  # error
for event in db.read_history(corvid.history.log()):
    if event["event"] == "commit":
        print(event["di"])  # error
db.read_history(corvid.history.log(form="-2h"))  # error
db.fetch(switch, "nmae")  # error
db.fetch_column("Logical_Switch", "nmae")  # error
db.fetch_table("Logical_Swich")  # error


async def main() -> None:
    await northbound.connect_aio("unix:socket", leader_onyl=True)  # error
    async with await northbound.connect_aio("unix:socket") as client:
        async with client.transaction() as txn:
            txn.insert("Logical_Switch", nmae="s")  # error
        async for change in client.changes("Logical_Swich"):  # error
            print(change)


asyncio.run(main())
