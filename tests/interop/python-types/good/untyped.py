"""A program without a generated module, with a class of its own for rows."""

import asyncio
from typing import Iterator, Mapping, Optional

import corvid
import corvid.aio
import corvid.polled


class Switch(corvid.Row):
    __slots__ = ()

    name: str
    external_ids: Mapping[str, str]

    def owner(self) -> Optional[str]:
        return self.external_ids.get("owner")


class Client(corvid.Client):
    def switches(self) -> Iterator[Switch]:
        return iter(self.Logical_Switch)


db = corvid.connect("unix:socket", "OVN_Northbound", client_class=Client, row_classes={"Logical_Switch": Switch}, leader_only=False)
for switch in db.switches():
    print(switch.owner(), switch["name"])
with db.transaction() as txn:
    row = txn.insert("Logical_Switch", name="s")
    row.name = "t"
    txn.add(row, "ports", row)
print(txn.inserted(row).name, db["ACL"].find(name="x"), db.ACL.c.name == "x")
for change in db.changes():
    change_of_row: corvid.Change = change
    print(change_of_row.row.name)
index: corvid.Index = db.ACL.index("name")
polled = corvid.polled.Client(db.schema, "unix:socket", ["ACL"], retry=False)


async def main() -> None:
    client = await corvid.aio.connect("unix:socket", "OVN_Northbound", timeout=None)
    async with client.transaction() as txn:
        txn.delete(row)


asyncio.run(main())
try:
    corvid.connect("unix:socket", "OVN_Northbound")
except corvid.Refused as error:
    tag: Optional[str] = error.tag
