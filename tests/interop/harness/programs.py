"""Where the programs are: the ones under test and the reference ones.

The programs under test come from the environment; a variable that is unset stands for the reference program, which
is how the suites prove themselves. The reference programs are those of the system packages, searched in the system's
own directories so that a build directory in PATH can never take their place. `INTEROP_PEERS` names a directory whose
programs come first: peers that were built with our library, for example.
"""

import os
import shutil

SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
if os.environ.get("INTEROP_PEERS"):
    SYSTEM_PATH = f"{os.path.abspath(os.environ['INTEROP_PEERS'])}:{SYSTEM_PATH}"

VSWITCH_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
NB_SCHEMA = "/usr/share/ovn/ovn-nb.ovsschema"
SB_SCHEMA = "/usr/share/ovn/ovn-sb.ovsschema"

VARIABLES = {
    "ovsdb-server": "OVSDB_SERVER_UNDER_TEST",
    "ovsdb-client": "OVSDB_CLIENT_UNDER_TEST",
    "ovsdb-tool": "OVSDB_TOOL_UNDER_TEST",
    "ovs-appctl": "OVS_APPCTL_UNDER_TEST",
}


def reference(name):
    """Path of the reference program `name`, or None when its package is not installed."""
    return shutil.which(name, path=SYSTEM_PATH)


def under_test(name):
    """Path of the program under test; the reference program when the environment names none."""
    path = os.environ.get(VARIABLES[name])
    if not path:
        return reference(name)
    return os.path.abspath(path)


def toolbox(directory, tested):
    """Makes `directory` hold the programs under test (or the reference ones) by their own names; returns it.

    Program names matter: pidfiles, control sockets, messages and the checks of stock scripts depend on them.
    """
    os.makedirs(directory, exist_ok=True)
    for name in VARIABLES:
        link = os.path.join(directory, name)
        if not os.path.lexists(link):
            os.symlink(under_test(name) if tested else reference(name), link)
    return directory


def environment(rundir, extra=None):
    """The environment of every child: stock directories moved into `rundir`, system programs first in PATH."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("OVS_", "OVN_"))}
    env.update(
        PATH=SYSTEM_PATH,
        LC_ALL="C",
        TZ="UTC",
        OVS_RUNDIR=rundir,
        OVS_LOGDIR=rundir,
        OVS_DBDIR=rundir,
        OVS_SYSCONFDIR=rundir,
        OVN_RUNDIR=rundir,
        OVN_LOGDIR=rundir,
        OVN_DBDIR=rundir,
        # Not the system log of the machine that runs the tests.
        OVS_SYSLOG_METHOD="null",
    )
    env.update(extra or {})
    return env
