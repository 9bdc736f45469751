"""The peer: ovsdbapp over the `ovs` package from PyPI, as Neutron uses it. Argument: the remote of the server.

Prints one line for each finding, `ok` or `FAILED`; exit status 1 when one failed.
"""

import json
import logging
import subprocess
import sys
import threading

from ovsdbapp.backend.ovs_idl import connection, event, idlutils
from ovsdbapp.schema.open_vswitch import impl_idl as vswitch
from ovsdbapp.schema.ovn_northbound import impl_idl as northbound
from ovsdbapp.schema.ovn_southbound import impl_idl as southbound

REMOTE, CLIENT = sys.argv[1:3]
TIMEOUT_S = 20
# Commands that must fail would print their traces; what counts is the exception.
logging.getLogger("ovsdbapp").setLevel(logging.CRITICAL)
failures = 0


def check(holds, what, detail=""):
    global failures
    failures += not holds
    print(f"{'ok' if holds else 'FAILED'}: {what} {'' if holds else detail}", flush=True)
    return holds


def fails(what, command, *kinds):
    """`command` must raise one of `kinds`."""
    try:
        command.execute(check_error=True)
    except kinds or (RuntimeError,):
        return check(True, what)
    return check(False, what, "no error")


class Waiter(event.RowEvent):
    """Sets `seen` when a row that fits comes by."""

    def __init__(self, table, kind, conditions):
        self.seen = threading.Event()
        self.event_name = "Waiter"
        super().__init__((kind,), table, conditions)

    def run(self, _event, row, old):
        self.seen.set()

    def wait(self, what):
        check(self.seen.wait(TIMEOUT_S), what, "the event did not come")


class Watched(connection.OvsdbIdl):
    """An Idl whose changes go to a row event handler."""

    def __init__(self, *arguments, **options):
        self.notify_handler = event.RowEventHandler()
        super().__init__(*arguments, **options)

    def notify(self, kind, row, updates=None):
        self.notify_handler.notify(kind, row, updates)


def open_database(name, api):
    idl = Watched.from_server(REMOTE, name)
    return api(connection.Connection(idl=idl, timeout=TIMEOUT_S)), idl


def server_rows(database, table, columns):
    """The rows of `table` as ovsdb-client reads them over a connection of its own, without uuids."""
    query = json.dumps([database, {"op": "select", "table": table, "where": [], "columns": columns}])
    done = subprocess.run([CLIENT, "transact", REMOTE, query], capture_output=True, text=True, check=True, timeout=30)
    return sorted(json.dumps(row, sort_keys=True) for row in json.loads(done.stdout)[0]["rows"])


def replica_rows(idl, table, columns):
    rows = idl.tables[table].rows.values()
    return sorted(json.dumps({column: row._data[column].to_json() for column in columns}, sort_keys=True) for row in rows)


def open_vswitch():
    api, idl = open_database("Open_vSwitch", vswitch.OvsdbIdl)
    came = Waiter("Bridge", event.RowEvent.ROW_CREATE, (("name", "=", "br-app"),))
    changed = Waiter("Port", event.RowEvent.ROW_UPDATE, (("name", "=", "p3"),))
    gone = Waiter("Bridge", event.RowEvent.ROW_DELETE, (("name", "=", "br-app"),))
    idl.notify_handler.watch_events([came, changed, gone])
    api.add_br("br-app").execute(check_error=True)
    came.wait("a create event for a bridge comes")
    check(api.br_exists("br-app").execute(), "the bridge exists")
    fails("adding it again without may_exist fails", api.add_br("br-app", may_exist=False))
    with api.transaction(check_error=True) as txn:
        for n in range(10):
            txn.add(api.add_port("br-app", f"p{n}"))
            txn.add(api.db_set("Interface", f"p{n}", ("external_ids", {"iface-id": f"id{n}"}), ("type", "internal")))
    check(sorted(api.list_ports("br-app").execute(check_error=True)) == sorted(f"p{n}" for n in range(10)), "ten ports in one transaction")
    api.db_set("Port", "p3", ("tag", 7)).execute(check_error=True)
    changed.wait("an update event for a port comes")
    check(api.db_get("Port", "p3", "tag").execute(check_error=True) == 7, "a column is read back")
    found = api.db_find("Interface", ("external_ids", "=", {"iface-id": "id4"}), columns=["name"]).execute(check_error=True)
    check(found == [{"name": "p4"}], "db_find finds one row", found)
    api.db_add("Bridge", "br-app", "protocols", "OpenFlow13", "OpenFlow10").execute(check_error=True)
    api.db_remove("Interface", "p1", "external_ids", "iface-id").execute(check_error=True)
    api.db_clear("Port", "p3", "tag").execute(check_error=True)
    api.set_controller("br-app", ["tcp:127.0.0.1:6653"]).execute(check_error=True)
    check(api.get_controller("br-app").execute() == ["tcp:127.0.0.1:6653"], "the controller is set")
    fails("a row that is not there fails", api.db_get("Port", "nosuch", "tag"), idlutils.RowNotFound)
    for table, columns in (("Bridge", ["name", "ports", "protocols"]), ("Port", ["name", "tag", "interfaces"]), ("Interface", ["name", "type", "external_ids"])):
        check(replica_rows(idl, table, columns) == server_rows("Open_vSwitch", table, columns), f"replica of {table} equals the server")
    api.del_port("p0", "br-app").execute(check_error=True)
    api.del_br("br-app").execute(check_error=True)
    gone.wait("a delete event for a bridge comes")
    check(not idl.tables["Interface"].rows, "ports and interfaces are collected with the bridge")
    api.ovsdb_connection.stop(TIMEOUT_S)


def ovn_northbound():
    api, idl = open_database("OVN_Northbound", northbound.OvnNbApiIdlImpl)
    came = Waiter("Logical_Switch_Port", event.RowEvent.ROW_CREATE, (("name", "=", "port-3"),))
    idl.notify_handler.watch_event(came)
    switch = api.ls_add("net").execute(check_error=True)
    check(switch.name == "net" and api.ls_get("net").execute(check_error=True).uuid == switch.uuid, "ls_add and ls_get")
    fails("a second switch of that name fails", api.ls_add("net", may_exist=False))
    with api.transaction(check_error=True) as txn:
        for n in range(8):
            txn.add(api.lsp_add("net", f"port-{n}", addresses=[f"00:00:00:00:00:{n:02x} 10.0.0.{n + 2}"]))
    came.wait("a create event for a port comes")
    check(len(api.lsp_list("net").execute(check_error=True)) == 8, "eight ports")
    api.lsp_set_port_security("port-1", ["00:00:00:00:00:01"]).execute(check_error=True)
    check(api.lsp_get_port_security("port-1").execute(check_error=True) == ["00:00:00:00:00:01"], "port security")
    api.lsp_set_options("port-2", requested_chassis="hv1").execute(check_error=True)
    api.lr_add("router").execute(check_error=True)
    api.lrp_add("router", "lrp", "00:00:00:00:ff:01", ["10.0.0.1/24"]).execute(check_error=True)
    api.lr_route_add("router", "192.168.0.0/24", "10.0.0.254").execute(check_error=True)
    api.lr_nat_add("router", "snat", "172.16.0.1", "10.0.0.0/24").execute(check_error=True)
    api.acl_add("net", "from-lport", 1000, "ip4", "allow-related").execute(check_error=True)
    api.pg_add("pg").execute(check_error=True)
    api.pg_add_ports("pg", [api.lsp_get(f"port-{n}").execute(check_error=True).uuid for n in range(3)]).execute(check_error=True)
    api.address_set_add("addresses", ["10.0.0.1", "10.0.0.2"]).execute(check_error=True)
    api.address_set_add_addresses("addresses", ["10.0.0.3"]).execute(check_error=True)
    api.address_set_remove_addresses("addresses", ["10.0.0.1"]).execute(check_error=True)
    api.lb_add("lb", "192.168.1.1:80", ["10.0.0.2:80", "10.0.0.3:80"]).execute(check_error=True)
    api.ls_lb_add("net", "lb").execute(check_error=True)
    api.dhcp_options_add("10.0.0.0/24", owner="me").execute(check_error=True)
    api.qos_add("net", "from-lport", 100, "ip4", rate=100, burst=10).execute(check_error=True)
    row = api.lookup("Logical_Switch_Port", "port-5")
    check(row.addresses == ["00:00:00:00:00:05 10.0.0.7"], "lookup by name", row.addresses)
    check(api.lookup("Logical_Switch_Port", "nosuch", default=None) is None, "lookup of a missing row gives the default")
    for table, columns in (
        ("Logical_Switch", ["name", "ports", "acls", "load_balancer", "qos_rules"]),
        ("Logical_Switch_Port", ["name", "addresses", "port_security", "options"]),
        ("Logical_Router", ["name", "ports", "static_routes", "nat"]),
        ("Port_Group", ["name", "ports"]),
        ("Address_Set", ["name", "addresses"]),
        ("Load_Balancer", ["name", "vips"]),
    ):
        check(replica_rows(idl, table, columns) == server_rows("OVN_Northbound", table, columns), f"replica of {table} equals the server")
    api.lsp_del("port-0").execute(check_error=True)
    pg = api.pg_get("pg").execute(check_error=True)
    check(len(pg.ports) == 2, "a deleted port leaves its group by itself", len(pg.ports))
    api.ls_del("net").execute(check_error=True)
    check(not idl.tables["Logical_Switch_Port"].rows and not idl.tables["ACL"].rows, "ports and rules are collected with the switch")
    api.ovsdb_connection.stop(TIMEOUT_S)


def ovn_southbound():
    api, idl = open_database("OVN_Southbound", southbound.OvnSbApiIdlImpl)
    came = Waiter("Chassis", event.RowEvent.ROW_CREATE, (("name", "=", "hv1"),))
    idl.notify_handler.watch_event(came)
    api.chassis_add("hv1", ["geneve", "vxlan"], "192.0.2.1", hostname="host1").execute(check_error=True)
    came.wait("a create event for a chassis comes")
    fails("a second chassis of that name fails", api.chassis_add("hv1", ["geneve"], "192.0.2.1", may_exist=False))
    chassis = api.chassis_list().execute(check_error=True)
    check([row.hostname for row in chassis] == ["host1"] and len(chassis[0].encaps) == 2, "chassis with two encapsulations")
    with api.transaction(check_error=True) as txn:
        datapath = txn.add(api.db_create_row("Datapath_Binding", tunnel_key=1))
        txn.add(api.db_create_row("Port_Binding", datapath=datapath, logical_port="lsp", tunnel_key=1))
    api.lsp_bind("lsp", "hv1").execute(check_error=True)
    check(api.lookup("Port_Binding", "lsp").chassis[0].name == "hv1", "a port is bound")
    fails("binding it again fails", api.lsp_bind("lsp", "hv1"))
    api.lsp_unbind("lsp").execute(check_error=True)
    for table, columns in (("Chassis", ["name", "hostname", "encaps"]), ("Encap", ["type", "ip", "chassis_name"]), ("Port_Binding", ["logical_port", "datapath", "chassis"])):
        check(replica_rows(idl, table, columns) == server_rows("OVN_Southbound", table, columns), f"replica of {table} equals the server")
    api.chassis_del("hv1").execute(check_error=True)
    check(not idl.tables["Encap"].rows, "encapsulations are collected with the chassis")
    api.ovsdb_connection.stop(TIMEOUT_S)


open_vswitch()
ovn_northbound()
ovn_southbound()
sys.exit(1 if failures else 0)
