"""A unit of the packages of OVN: `ovn-ctl run_nb_ovsdb` becomes the server, in the foreground, and `ovn-ctl stop_nb_ovsdb` ends it."""

import os
import re
import subprocess
import time

from daemon import Daemon
from harness import programs

OVN_CTL = "/usr/share/ovn/scripts/ovn-ctl"


def foreground(suite, base, env):
    """Run, look at it through its unencrypted port too, stop; and run again over what is left."""
    daemon = Daemon(suite, env, f"{base}/run/ovnnb_db.pid", ctl=f"{base}/run/ovnnb_db.ctl", log=f"{base}/log/ovsdb-server-nb.log", sock=f"{base}/run/ovnnb_db.sock")
    for round in ("first", "second"):
        process = subprocess.Popen(
            [OVN_CTL, "--db-nb-create-insecure-remote=yes", "--db-nb-port=0", "--db-nb-addr=127.0.0.1", "run_nb_ovsdb"],
            env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < deadline:
                if daemon.shell(f"ovsdb-client -t 1 wait unix:{daemon.sock} OVN_Northbound connected").returncode == 0:
                    break
            suite.equal(daemon.pid(), process.pid, f"{round} run: the script has become the server")
            running = os.path.realpath(f"/proc/{process.pid}/exe")
            suite.equal(running, os.path.realpath(programs.under_test("ovsdb-server")), f"{round} run: the program under test")
            with open(daemon.log) as log:
                port = re.findall(r"0:127\.0\.0\.1: listening on port (\d+)", log.read())[-1]
            daemon.works(f"ovn-nbctl --db=tcp:127.0.0.1:{port} --may-exist ls-add sw0", f"{round} run: its port serves")
            suite.equal(daemon.works(f"{OVN_CTL} status_ovnnb", quiet=False).strip(), "running/active", f"{round} run: status")
            # It waits until the server is gone, which is our child.
            stopping = subprocess.Popen([OVN_CTL, "stop_nb_ovsdb"], env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            suite.equal(process.wait(timeout=60), 0, f"{round} run: told to stop, it ends well")
            suite.equal(stopping.wait(timeout=60), 0, f"{round} run: and so does the script that told it")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
