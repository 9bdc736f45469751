"""Tests of the package, against a server: ``python3 -m unittest discover`` with the package on the path.

``OVSDB_SERVER_UNDER_TEST`` and ``OVSDB_TOOL_UNDER_TEST`` name the server and its tool; unset they are those of the system.
"""

import faulthandler

# A test that hangs says where.
faulthandler.dump_traceback_later(300, exit=True)
