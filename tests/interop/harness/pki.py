"""Certificates as deployments make them: by ovs-pki, in a directory of its own."""

import os
import subprocess

from . import programs


class Pki:
    """Two authorities, `switch` and `controller`, and who they have signed."""

    def __init__(self, directory):
        self.directory = directory
        self.pki = os.path.join(directory, "pki")
        self._run("init")

    def _run(self, *words):
        argv = [programs.reference("ovs-pki"), "--force", f"--dir={self.pki}", f"--log={self.directory}/pki.log", *words]
        env = programs.environment(self.directory)
        done = subprocess.run(argv, env=env, cwd=self.directory, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{' '.join(argv)}: {done.stdout}{done.stderr}")

    def authority(self, kind):
        """The CA file of `switch` or `controller`."""
        return os.path.join(self.pki, f"{kind}ca", "cacert.pem")

    def signed(self, name, kind):
        """Key and certificate of somebody, signed by an authority; the common name is the name."""
        self._run("-u", "req+sign", name, kind)
        return self._own(name)

    def self_signed(self, name):
        """Key and certificate of somebody, signed by nobody else."""
        self._run("req", name)
        self._run("self-sign", name)
        return self._own(name)

    def _own(self, name):
        return os.path.join(self.directory, f"{name}-privkey.pem"), os.path.join(self.directory, f"{name}-cert.pem")


def options(own, authority):
    """The options of every program for a key, a certificate and a CA file."""
    key, certificate = own
    return [f"--private-key={key}", f"--certificate={certificate}", f"--ca-cert={authority}"]
