"""What a replica costs in Python: this package beside the reference's, over one server. ``make bench-python`` runs it.

Each client is a process of its own; its figures are CPU time and memory of that process. Usage: compare.py SERVER TOOL SCHEMA NAME=PYTHON...
where NAME is ``corvid`` or another name for an interpreter that has ``ovs``.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import timeit

PORTS = 20_000
EVENTS = 10_000
ELEMENTS = (100, 30_000)
CHANGES = 200
READS = 100_000


def rss_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


class Corvid:
    """This package."""

    def __init__(self, remote, schema):
        import corvid

        self.corvid = corvid
        with open(schema) as file:
            self.schema = corvid.Schema(file.read())
        self.remote = remote
        self.watching = None

    def open(self):
        self.client = self.corvid.polled.Client(self.schema, self.remote)

    def step(self):
        import select

        self.client.run()
        if self.watching is not None:
            watch, handler = self.watching
            for change in watch.take():
                handler(change.row)
        fd, events, timeout = self.client.wait()
        poller = select.poll()
        if fd is not None:
            poller.register(fd, events)
        poller.poll(100 if timeout is None else min(100, timeout * 1000 + 1))

    def has_contents(self):
        return self.client.session.has_contents

    def watch(self, handler):
        self.watching = (self.client.watch("Logical_Switch_Port"), handler)

    def seqno(self):
        return self.client.seqno

    def port(self):
        return next(iter(self.client.Logical_Switch_Port))


class Ovs:
    """The reference's library."""

    def __init__(self, remote, schema):
        import ovs.db.idl
        import ovs.poller

        self.poller = ovs.poller
        helper = ovs.db.idl.SchemaHelper(location=schema)
        helper.register_all()
        outer = self

        class Idl(ovs.db.idl.Idl):
            def notify(self, event, row, updates=None):
                if outer.handler is not None and row._table.name == "Logical_Switch_Port":
                    outer.handler(row)

        self.handler = None
        self.make = lambda: Idl(remote, helper)

    def open(self):
        self.idl = self.make()

    def step(self):
        self.idl.run()
        poller = self.poller.Poller()
        self.idl.wait(poller)
        poller.timer_wait(100)
        poller.block()

    def has_contents(self):
        return self.idl.has_ever_connected()

    def watch(self, handler):
        self.handler = handler

    def seqno(self):
        return self.idl.change_seqno

    def port(self):
        return next(iter(self.idl.tables["Logical_Switch_Port"].rows.values()))


def client(kind, remote, schema):
    """The measured process: does what its input says, line by line."""
    library = (Corvid if kind == "corvid" else Ovs)(remote, schema)
    before = rss_kib()
    began, cpu = time.perf_counter(), time.process_time()
    library.open()
    while not library.has_contents():
        library.step()
    first = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu, "kib": rss_kib() - before}
    port = library.port()
    first["read"] = min(timeit.repeat(lambda: port.name, number=READS, repeat=5)) / READS * 1e6
    print(json.dumps(first), flush=True)
    names = []
    for line in sys.stdin:
        word, count = line.split()
        count = int(count)
        if word == "events":
            library.watch(lambda row: names.append(row.name))
        print("ready", flush=True)
        cpu = time.process_time()
        seqno = library.seqno()
        if word == "events":
            while len(names) < count:
                library.step()
        else:
            while library.seqno() < seqno + count:
                library.step()
        print(json.dumps({"cpu": time.process_time() - cpu}), flush=True)


def measure(kind, python, remote, schema, writer):
    command = [python, os.path.abspath(__file__), "--client", kind, remote, schema]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(word, count, work):
        process.stdin.write(f"{word} {count}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        work()
        return json.loads(process.stdout.readline())["cpu"]

    figures = json.loads(process.stdout.readline())
    for elements in ELEMENTS:
        figures[elements] = ask("changes", CHANGES, lambda: change_elements(writer, elements)) / CHANGES * 1e6
    figures["events"] = ask("events", EVENTS, lambda: insert_ports(writer, EVENTS, f"e{process.pid}-")) / EVENTS * 1e6
    process.stdin.close()
    process.wait()
    with writer.transaction() as txn:
        for port in list(writer.Logical_Switch_Port):
            if port.name.startswith("e"):
                for switch in writer.Logical_Switch:
                    txn.remove(switch, "ports", port)
    return figures


def insert_ports(db, count, prefix):
    [switch] = db.Logical_Switch
    for begin in range(0, count, 500):
        with db.transaction() as txn:
            for number in range(begin, min(begin + 500, count)):
                port = txn.insert(
                    "Logical_Switch_Port", name=f"{prefix}{number}", addresses={f"0a:00:00:00:{number >> 8:02x}:{number & 255:02x} 10.0.{number >> 8}.{number & 255}"},
                    external_ids={"neutron:port_name": f"port {number}", "neutron:revision_number": "3"}, options={"requested-chassis": f"hv{number % 500}"},
                )
                txn.add(switch, "ports", port)


def change_elements(db, elements):
    row = db.Address_Set.find(name=f"set{elements}")
    for number in range(CHANGES // 2):
        for change in ("add", "remove"):
            with db.transaction() as txn:
                getattr(txn, change)(row, "addresses", f"192.168.{number >> 8}.{number & 255}")
            time.sleep(0.005)


def main(server, tool, schema, kinds):
    import corvid

    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([tool, "create", f"{directory}/nb.db", schema], check=True)
        process = subprocess.Popen([server, f"{directory}/nb.db", f"--remote=punix:{directory}/s", f"--unixctl={directory}/ctl", "-vconsole:off"])
        try:
            while not os.path.exists(f"{directory}/s"):
                time.sleep(0.01)
            remote = f"unix:{directory}/s"
            with corvid.connect(remote, "OVN_Northbound") as db:
                with db.transaction() as txn:
                    txn.insert("Logical_Switch", name="sw")
                    for elements in ELEMENTS:
                        txn.insert("Address_Set", name=f"set{elements}", addresses={f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in range(elements)})
                insert_ports(db, PORTS, "p")
                found = {kind: measure(kind, python, remote, schema, db) for kind, python in kinds}
        finally:
            process.kill()
            process.wait()
    figures = [
        ("seconds", f"contents of {PORTS} rows, s"),
        ("cpu", "  CPU, s"),
        ("kib", "  memory, KiB"),
        (ELEMENTS[0], f"one element of {ELEMENTS[0]}: CPU, us"),
        (ELEMENTS[1], f"one element of {ELEMENTS[1]}: CPU, us"),
        ("events", f"{EVENTS} inserted rows to a handler: CPU, us/row"),
        ("read", "a read of an attribute, us"),
    ]
    print(f"{'figure':50}" + "".join(f"{kind:>14}" for kind, _ in kinds))
    for key, text in figures:
        print(f"{text:50}" + "".join(f"{found[kind][key]:14.3f}" for kind, _ in kinds))


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        client(*sys.argv[2:])
    else:
        main(*sys.argv[1:4], [word.split("=", 1) for word in sys.argv[4:]])
