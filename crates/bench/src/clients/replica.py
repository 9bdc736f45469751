# The client for Python, holding everything of a database. Arguments: the server's address, the file of the schema.
import sys

import ovs.db.idl
import ovs.poller

helper = ovs.db.idl.SchemaHelper(location=sys.argv[2])
helper.register_all()
idl = ovs.db.idl.Idl(sys.argv[1], helper)
synced = False
while True:
    idl.run()
    if not synced and idl.has_ever_connected():
        synced = True
        print("synced", flush=True)
    poller = ovs.poller.Poller()
    idl.wait(poller)
    poller.block()
