"""ovs-vswitchd of the packages with its dummy datapath: a switch without ports in the kernel, and without privileges.

Started in the foreground and ended by its pid. Who runs as root gives up what root may do beyond its own files.
"""

import os
import shutil
import subprocess
import time

from harness import programs

POLL_S = 0.02


class Switch:
    """A switch on the database at `target`; `tls` are the options for its key, certificate and CA."""

    def __init__(self, suite, directory, target, tls=()):
        self.suite = suite
        self.env = programs.environment(directory)
        self.log = os.path.join(directory, "ovs-vswitchd.log")
        self.ctl = os.path.join(directory, "ovs-vswitchd.ctl")
        argv = [programs.reference("ovs-vswitchd"), target, "--enable-dummy=override", "--disable-system", "--no-chdir"]
        argv += ["-vconsole:off", f"--log-file={self.log}", f"--unixctl={self.ctl}", "--pidfile", *tls]
        if os.geteuid() == 0 and shutil.which("setpriv"):
            argv = ["setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *argv]
        self.process = subprocess.Popen(
            argv, env=self.env, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def said(self, text, count=1, within_s=30):
        """Waits until the log holds `text` `count` times."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            if os.path.exists(self.log):
                with open(self.log, errors="replace") as log:
                    if log.read().count(text) >= count:
                        return True
            if self.process.poll() is not None:
                break
            time.sleep(POLL_S)
        return False

    def times_connected(self, target):
        with open(self.log, errors="replace") as log:
            return log.read().count(f"{target}: connected")

    def complaints(self):
        """What it logged at WARN or above, but for what losing a server is told by."""
        with open(self.log, errors="replace") as log:
            lines = [line.rstrip("\n").split("|", 2)[-1] for line in log if "|WARN|" in line or "|ERR|" in line or "|EMER|" in line]
        expected = ("send error", "connection dropped", "connection attempt failed", "Unreasonably long", "terminating with signal", "receive error", "faults:", "context switches:", "SSL_", "nonsense", "open network device p2")
        return [line for line in lines if not any(each in line for each in expected)]
