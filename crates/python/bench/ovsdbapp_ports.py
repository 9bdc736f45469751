"""What ovsdbapp's transactions cost with the `ovs` of this interpreter: 1,000 ports in a switch of 10,000, and 20 ACLs in one of 10,000.

Usage: ovsdbapp_ports.py REMOTE NAME, with the remote of a server of OVN_Northbound and a name that no run before had. Run it with each library in turn, on one
server. The ports stay: the original needs minutes to delete them.
"""

import resource
import sys
import time

from ovs.db.idl import Transaction
from ovsdbapp.backend.ovs_idl import connection
from ovsdbapp.schema.ovn_northbound import impl_idl

PORTS = 10_000
NEW = 1_000
ACLS = 10_000


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


def acl(number):
    """Direction, priority, match and action of an ACL of its own."""
    return "to-lport", number % 32_768, f"ip4.src == 10.{number >> 16}.{number >> 8 & 255}.{number & 255}", "allow"


def fill_acls(idl):
    """ACLs without ovsdbapp, which compares each new one with all that the switch has."""
    while not idl.has_ever_connected():
        idl.run()
    txn = Transaction(idl)
    switch = next((row for row in idl.tables["Logical_Switch"].rows.values() if row.name == "big"), None)
    if switch is None:
        switch = txn.insert(idl.tables["Logical_Switch"])
        switch.name = "big"
    for number in range(0 if getattr(switch, "acls", []) else ACLS):
        row = txn.insert(idl.tables["ACL"])
        row.direction, row.priority, row.match, row.action = acl(number)
        switch.addvalue("acls", row.uuid)
    txn.commit_block()


def main(remote, name):
    idl = connection.OvsdbIdl.from_server(remote, "OVN_Northbound")
    fill_acls(idl)
    api = impl_idl.OvnNbApiIdlImpl(connection.Connection(idl, 120))
    for part in range(len(api.lsp_list("big").execute()) // NEW, PORTS // NEW):
        fill(api, [f"port{part}-{number}" for number in range(NEW)])

    def one_by_one():
        for number in range(NEW):
            api.lsp_add("big", f"{name}{number}").execute(check_error=True)

    measure(f"{NEW} ports, a transaction each", one_by_one)
    first = 2 * ACLS + len(api.acl_list("big").execute())

    def acls_one_by_one():
        for number in range(first, first + 20):
            api.acl_add("big", *acl(number)).execute(check_error=True)

    measure(f"20 ACLs in a switch of {ACLS}, a transaction each", acls_one_by_one)
    # Each of these transactions does this once, apart from the comparisons in Python.
    switch = api.lookup("Logical_Switch", "big")
    acls = switch.acls
    measure(f"a list of the {len(acls)} ACLs, 20 times", lambda: [switch.acls for _ in range(20)])
    measure("the direction and the priority of each, 20 times", lambda: [(row.direction, row.priority) for _ in range(20) for row in acls])
    measure(f"{NEW} ports in one transaction", lambda: fill(api, [f"{name}-{number}" for number in range(NEW)]))


main(*sys.argv[1:])
