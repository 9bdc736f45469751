"""Tests of the drop-in on a server."""

import time

import ovs.db.idl
import ovs.poller

from .zoo import PATIENCE, ZooTest


class DropInTest(ZooTest):
    """A test with clients of `ovs.db.idl`."""

    def drop_in(self, table, columns):
        """A client with the contents of some columns of a table."""
        helper = ovs.db.idl.SchemaHelper(f"{self.server.directory}/zoo.ovsschema")
        helper.register_columns(table, list(columns))
        idl = ovs.db.idl.Idl(self.server.remote, helper)
        self.addCleanup(idl.close)
        self.run_until(idl, idl.has_ever_connected)
        return idl

    def run_until(self, idl, holds):
        """Runs a client until something holds."""
        end = time.monotonic() + PATIENCE
        while True:
            idl.run()
            if holds():
                return
            self.assertLess(time.monotonic(), end)
            poller = ovs.poller.Poller()
            idl.wait(poller)
            poller.timer_wait(1000)
            poller.block()
