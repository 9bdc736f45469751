"""Texts of return values, messages to the user, names of files, directories."""

# differs: pypi: ^dirs default: the directories of distribution packages are ours

import os
import subprocess
import sys

# The folder of plays may hold files with the names of modules of Python.
sys.path[0] = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)

import ovs.dirs
import ovs.util as util
import ovs.version
from transcript import attempt, say

os.chdir("/")
sys.stderr = sys.stdout

say(util.PROGRAM_NAME, util.EOF, isinstance(ovs.version.VERSION, str))
for retval in (0, 1, 2, -1, -2, 11, 98, 110, 111, 9999, "x"):
    say("retval", retval, attempt(util.ovs_retval_to_string, retval))
for dir_ in ("/a", "/a/", "a", "", None, "/"):
    for name in ("b", "/b", "", "../b", "b/", None):
        say("file", dir_, name, attempt(util.abs_file_name, dir_, name))


class Log(object):
    def err(self, message):
        say("log", message)


for number in (0, 2, -1, -7):
    for log in ((), (Log(),)):
        say("error", number, attempt(util.ovs_error, number, "text", *log))
        try:
            util.ovs_fatal(number, "text", *log)
        except SystemExit as e:
            say("fatal", number, e.code)
try:
    util.ovs_fatal(3, "text", vlog=Log())
except SystemExit as e:
    say("fatal", e.code)

NAMES = ("PKGDATADIR", "RUNDIR", "LOGDIR", "BINDIR", "DBDIR")
SHOW = "import ovs.dirs as d; print([getattr(d, n) for n in %r])" % (NAMES,)


def directories(**variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("OVS_")}
    env.update(variables)
    return subprocess.run([sys.executable, "-c", SHOW], env=env, capture_output=True,
                          text=True).stdout.strip()


say("dirs default", directories())
moved = {"OVS_" + name: "/moved/" + name.lower() for name in NAMES}
say("dirs moved", directories(**moved))
del moved["OVS_DBDIR"]
say("dirs moved", directories(OVS_SYSCONFDIR="/etc2", **moved))
say("dirs moved", directories(OVS_SYSCONFDIR="/etc2", OVS_DBDIR="", **moved))
say("dirs empty", directories(OVS_SYSCONFDIR="/etc2", OVS_RUNDIR="", OVS_LOGDIR="/l",
                              OVS_BINDIR="/b", OVS_PKGDATADIR="/p"))
