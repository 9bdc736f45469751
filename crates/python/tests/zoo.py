"""A server with a small database that has columns of every kind."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import corvid

SCHEMA = {
    "name": "Zoo",
    "version": "1.0.0",
    "tables": {
        "Cage": {
            "isRoot": True,
            "indexes": [["name"]],
            "columns": {
                "name": {"type": "string"},
                "number": {"type": {"key": {"type": "integer", "minInteger": 0, "maxInteger": 1000}}},
                "size": {"type": "real"},
                "is_open": {"type": "boolean"},
                "mark": {"type": "uuid"},
                "note": {"type": {"key": "string", "min": 0, "max": 1}},
                "tags": {"type": {"key": "string", "min": 0, "max": "unlimited"}},
                "doors": {"type": {"key": "integer", "min": 0, "max": 4}},
                "labels": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}},
                "kind": {"type": {"key": {"type": "string", "enum": ["set", ["cage", "pool", ""]]}}},
                "animals": {"type": {"key": {"type": "uuid", "refTable": "Animal"}, "min": 0, "max": "unlimited"}},
                "keeper": {"type": {"key": {"type": "uuid", "refTable": "Keeper", "refType": "weak"}, "min": 0, "max": 1}},
                "by_name": {
                    "type": {
                        "key": "string",
                        "value": {"type": "uuid", "refTable": "Animal", "refType": "weak"},
                        "min": 0,
                        "max": "unlimited",
                    }
                },
                "photo": {"type": "string"},
                "built": {"type": "integer", "mutable": False},
                "uuid": {"type": "string"},
            },
        },
        "Animal": {"columns": {"name": {"type": "string"}, "weight": {"type": "real"}}},
        "Keeper": {"isRoot": True, "columns": {"name": {"type": "string"}, "count": {"type": "integer"}}},
        "index": {"isRoot": True, "maxRows": 1, "columns": {"native": {"type": "string"}}},
    },
}

#: No wait of a test is longer, s.
PATIENCE = 60


def program(variable, name):
    return os.environ.get(variable) or shutil.which(name) or f"/usr/sbin/{name}"


class Server:
    """A server in a directory of its own."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="corvid-python-")
        self.remote = f"unix:{self.directory}/db.sock"
        with open(f"{self.directory}/zoo.ovsschema", "w") as file:
            json.dump(SCHEMA, file)
        tool = program("OVSDB_TOOL_UNDER_TEST", "ovsdb-tool")
        subprocess.run([tool, "create", f"{self.directory}/zoo.db", f"{self.directory}/zoo.ovsschema"], check=True)
        self.process = None
        self.start()

    def start(self, *options):
        server = program("OVSDB_SERVER_UNDER_TEST", "ovsdb-server")
        command = [server, f"{self.directory}/zoo.db", f"--remote=p{self.remote}", f"--unixctl={self.directory}/ctl", "-vconsole:off", "--no-chdir", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE
        while not os.path.exists(self.remote[len("unix:"):]):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{server} did not start")
            time.sleep(0.01)

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        socket = self.remote[len("unix:"):]
        if os.path.exists(socket):
            os.unlink(socket)

    def remove(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class ZooTest(unittest.TestCase):
    """A test with a server and an empty database."""

    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.remove)

    def connect(self, tables=None, **settings):
        client = corvid.connect(self.server.remote, "Zoo", tables, timeout=PATIENCE, **settings)
        self.addCleanup(client.close)
        return client
