"""Directories of an Open vSwitch installation.

Each one can be moved with the environment variable of its name after `OVS_`.  Without it, they
are the directories of distribution packages, like the ones that the tools of Corvid use.
"""

import os

PKGDATADIR = os.environ.get("OVS_PKGDATADIR", "/usr/share/openvswitch")
RUNDIR = os.environ.get("OVS_RUNDIR", "/var/run/openvswitch")
LOGDIR = os.environ.get("OVS_LOGDIR", "/var/log/openvswitch")
BINDIR = os.environ.get("OVS_BINDIR", "/usr/bin")

DBDIR = os.environ.get("OVS_DBDIR")
if not DBDIR:
    sysconfdir = os.environ.get("OVS_SYSCONFDIR")
    DBDIR = (sysconfdir or "/etc") + "/openvswitch"
