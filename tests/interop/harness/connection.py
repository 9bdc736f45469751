"""A minimal OVSDB connection: enough to look into a server from outside, independent of any client library.

It knows the wire (concatenated JSON objects) and nothing of tables beyond asking the server for them.
"""

import codecs
import json
import socket
import time


class Refused(Exception):
    """The server answered with a JSON-RPC error."""


class Connection:
    """One session. `address` is a unix socket path or a (host, port) pair."""

    def __init__(self, address, timeout_s=30):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(timeout_s)
        self.socket.connect(address)
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.buffer = ""
        self.next_id = 0
        self.notifications = []

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode())

    def receive(self):
        """The next message of any kind. Raises EOFError when the server closes."""
        reader = json.JSONDecoder()
        while True:
            text = self.buffer.strip()
            # A buffer that does not end in a brace holds a message that is still arriving, so trying can wait.
            if text.endswith("}"):
                try:
                    message, end = reader.raw_decode(text)
                    self.buffer = text[end:]
                    return message
                except ValueError:
                    pass
            chunk = self.socket.recv(1 << 20)
            if not chunk:
                raise EOFError("connection closed by the server")
            self.buffer += self.decoder.decode(chunk)

    def call(self, method, *params):
        """One request and its reply; what arrives in between is kept in `notifications`, echoes are answered."""
        self.next_id += 1
        self.send({"id": self.next_id, "method": method, "params": list(params)})
        while True:
            message = self.receive()
            if message.get("method") == "echo":
                self.send({"id": message["id"], "result": message["params"], "error": None})
            elif "method" in message:
                self.notifications.append(message)
            elif message["id"] == self.next_id:
                if message["error"] is not None:
                    raise Refused(json.dumps(message["error"], sort_keys=True))
                return message["result"]

    def transact(self, database, *operations):
        return self.call("transact", database, *operations)

    def contents(self, database):
        """(schema, {table: {uuid: {column: notation}}}) of every table, read in one transaction."""
        schema = self.call("get_schema", database)
        tables = sorted(schema["tables"])
        results = self.transact(database, *[{"op": "select", "table": table, "where": []} for table in tables])
        rows = {}
        for table, result in zip(tables, results):
            rows[table] = {}
            for row in result["rows"]:
                uuid = row.pop("_uuid")[1]
                row.pop("_version", None)
                rows[table][uuid] = row
        return schema, rows


def wait_for_socket(address, process, timeout_s=30):
    """Waits until `address` accepts. Raises when `process` ends before or the time is over."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            Connection(address).close()
            return
        except OSError as error:
            if process.poll() is not None:
                raise RuntimeError(f"server ended with status {process.returncode} before it listened") from error
            if time.monotonic() > deadline:
                raise RuntimeError(f"{address}: nothing listens after {timeout_s} s") from error
            time.sleep(0.02)
