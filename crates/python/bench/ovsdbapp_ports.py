"""What ovsdbapp's transactions cost with the `ovs` of this interpreter: 1,000 ports in a switch of 10,000.

Usage: ovsdbapp_ports.py REMOTE NAME, with the remote of a server of OVN_Northbound and a name that no run before had. Run it with each library in turn, on one
server. The ports stay: the original needs minutes to delete them.
"""

import resource
import sys
import time

from ovsdbapp.backend.ovs_idl import connection
from ovsdbapp.schema.ovn_northbound import impl_idl

PORTS = 10_000
NEW = 1_000


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(what, work):
    began, before = time.perf_counter(), cpu()
    work()
    print(f"{what}: {time.perf_counter() - began:.3f} s, CPU {cpu() - before:.3f} s")


def fill(api, names):
    with api.transaction(check_error=True) as txn:
        for name in names:
            txn.add(api.lsp_add("big", name))


def main(remote, name):
    idl = connection.OvsdbIdl.from_server(remote, "OVN_Northbound")
    api = impl_idl.OvnNbApiIdlImpl(connection.Connection(idl, 120))
    api.ls_add("big", may_exist=True).execute(check_error=True)
    for part in range(len(api.lsp_list("big").execute()) // NEW, PORTS // NEW):
        fill(api, [f"port{part}-{number}" for number in range(NEW)])

    def one_by_one():
        for number in range(NEW):
            api.lsp_add("big", f"{name}{number}").execute(check_error=True)

    measure(f"{NEW} ports, a transaction each", one_by_one)
    measure(f"{NEW} ports in one transaction", lambda: fill(api, [f"{name}-{number}" for number in range(NEW)]))


main(*sys.argv[1:])
