"""A program of the asyncio front with a generated module."""

import asyncio
from typing import List

import corvid
import northbound


async def main() -> List[str]:
    async with await northbound.connect_aio("unix:socket", ["Logical_Switch"], timeout=5) as db:
        async with db.transaction(dry_run=True) as txn:
            txn.insert("Logical_Switch", name="s")
        await db.set_condition("Logical_Switch", db.Logical_Switch.c.name == "s")
        await db.fetch_column("Logical_Switch", "name", timeout=5)
        kinds = [await db.transact(lambda txn: txn.insert("Logical_Switch", name="t").name)]
        async for event in db.read_history(corvid.history.log(table="Logical_Switch", since="-2h")):
            if event["event"] == "commit":
                kinds.extend([event["id"], *(change["op"] for change in event["changes"])])
        [result] = await db.select_at("HEAD~1", {"op": "select", "table": "Logical_Switch", "where": []})
        kinds.extend(row["name"] for row in result["rows"])
        async for change in db.changes("Logical_Switch", timeout=1):
            kinds.append(change.row.name)
        return kinds


asyncio.run(main())
