"""Performs the plays: every command of every API of ovsdbapp, over whichever `ovs` the interpreter finds.

Arguments: the file for the transcript, the remote as ovsdbapp names it, the address (a path, or HOST:PORT) where the
harness connects, then the names of plays (all when there are none). A play may have the server restarted: the line
RESTART goes to standard output and a line on standard input says that it serves again.
"""

import os
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from harness.connection import Connection as Wire  # noqa: E402
from ovsdbapp.backend.ovs_idl import vlog  # noqa: E402
from ovsdbapp.schema.hardware_vtep import impl_idl as hardware_vtep_api  # noqa: E402
from ovsdbapp.schema.open_vswitch import impl_idl as open_vswitch_api  # noqa: E402
from ovsdbapp.schema.ovn_ic_northbound import impl_idl as interconnection_api  # noqa: E402
from ovsdbapp.schema.ovn_northbound import impl_idl as northbound_api  # noqa: E402
from ovsdbapp.schema.ovn_southbound import impl_idl as southbound_api  # noqa: E402

import backend  # noqa: E402
import conditions  # noqa: E402
import connections  # noqa: E402
import events  # noqa: E402
import hardware_vtep  # noqa: E402
import interconnection  # noqa: E402
import northbound_routers  # noqa: E402
import northbound_services  # noqa: E402
import northbound_switches  # noqa: E402
import open_vswitch  # noqa: E402
import rivals  # noqa: E402
import southbound  # noqa: E402
from stage import Play  # noqa: E402
from transcript import Transcript  # noqa: E402
from types_api import TypesApi  # noqa: E402

APIS = {
    "northbound": (northbound_api.OvnNbApiIdlImpl, [northbound_switches, northbound_routers, northbound_services]),
    "southbound": (southbound_api.OvnSbApiIdlImpl, [southbound]),
    "open_vswitch": (open_vswitch_api.OvsdbIdl, [open_vswitch]),
    "hardware_vtep": (hardware_vtep_api.HwVtepApiIdlImpl, [hardware_vtep]),
    "interconnection": (interconnection_api.OvnIcNbApiIdlImpl, [interconnection]),
}
# Plays of the inherited machinery, over a database of their own: those over a connection of the usual kind, and those
# that make their own.
TYPES = {"conditions": conditions.perform, "events": events.perform, "rivals": rivals.perform}
CONNECTIONS = {
    "tables": connections.some_tables,
    "failures": connections.failures,
    "early_locks": connections.early_locks,
    "messages": connections.messages,
    "reconnections": connections.reconnections,
}


def restart_server():
    print("RESTART", flush=True)
    sys.stdin.readline()


def perform_api(name, transcript, remote, address):
    api, plays = APIS[name]
    play = Play(transcript, name, remote, address, api)
    for module in plays:
        module.perform(play)
    backend.everyday(play)
    play.coverage.report(transcript)
    play.finish()


def perform_types(name, transcript, remote, address):
    play = Play(transcript, name, remote, address, TypesApi)
    TYPES[name](play)
    play.finish()


def wipe(address):
    """Empties the database of the plays, in which a play that broke off may have left rows."""
    with Wire(address) as wire:
        tables = wire.call("get_schema", "Types")["tables"]
        wire.transact("Types", *[{"op": "delete", "table": table, "where": []} for table in tables if tables[table].get("isRoot")])


def main(path, remote, address, *chosen):
    if ":" in address:
        host, port = address.rsplit(":", 1)
        address = (host, int(port))
    transcript = Transcript(open(path, "w", encoding="utf-8"), [(remote, "REMOTE")])
    failed = False
    for name in chosen or [*APIS, *TYPES, *CONNECTIONS]:
        begin = time.monotonic()
        try:
            wipe(address)
            if name in APIS:
                perform_api(name, transcript, remote, address)
            elif name in TYPES:
                perform_types(name, transcript, remote, address)
            else:
                CONNECTIONS[name](transcript, remote, address, restart_server)
        except Exception:  # noqa: BLE001 - a play that breaks off is a difference; the others still go on
            failed = True
            transcript.say(f"BROKE OFF {name}: " + transcript.text(traceback.format_exc().strip().split("\n")[-1]))
            traceback.print_exc()
        print(f"{name}: {time.monotonic() - begin:.1f} s", file=sys.stderr)
    # Threads of ovsdbapp that a broken play left behind must not keep the process.
    sys.stdout.flush()
    os._exit(1 if failed else 0)


if __name__ == "__main__":
    vlog.use_python_logger(max_level=vlog.WARN)
    main(*sys.argv[1:])
