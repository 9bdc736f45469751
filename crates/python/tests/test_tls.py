"""Connections with TLS."""

import re
import shutil
import subprocess
import time
import unittest

import corvid

from .zoo import PATIENCE, ZooTest


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Tls(ZooTest):
    def files(self, name):
        """A key and a certificate that is its own authority."""
        key, certificate = (f"{self.server.directory}/{name}.{kind}" for kind in ("key", "pem"))
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", key, "-out", certificate],
            check=True,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return key, certificate

    def port(self):
        """The port that the system has given the server, which logs it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with open(f"{self.server.directory}/log") as log:
                found = re.search(r"listening on port (\d+)", log.read())
            if found:
                return found.group(1)
            time.sleep(0.01)
        self.fail("the server logs no port")

    def test_a_connection_with_certificates(self):
        key, certificate = self.files("server")
        own_key, own_certificate = self.files("client")
        self.server.stop()
        options = [f"--private-key={key}", f"--certificate={certificate}", f"--ca-cert={own_certificate}", "--remote=pssl:0:127.0.0.1", f"--log-file={self.server.directory}/log"]
        self.server.start(*options)
        port = self.port()
        remote = f"ssl:127.0.0.1:{port}"
        files = {"private_key": own_key, "certificate": own_certificate, "ca_cert": certificate}
        with corvid.connect(remote, "Zoo", timeout=PATIENCE, **files) as db:
            with db.transaction() as txn:
                txn.insert("Cage", name="c")
            self.assertEqual(len(db.Cage), 1)
        with self.assertRaises(corvid.TimedOut) as caught:
            corvid.connect(remote, "Zoo", timeout=1, **{**files, "ca_cert": own_certificate})
        self.assertRegex(str(caught.exception), "TLS: .*certificate verify failed")
        nothing = f"{self.server.directory}/nothing"
        mistakes = [
            ({**files, "ca_cert": nothing}, rf"CA certificate \({nothing}: No such file or directory\)"),
            ({**files, "private_key": nothing}, rf"Private key \({nothing}: No such file or directory\)"),
            ({**files, "private_key": own_certificate}, rf"Private key \({own_certificate}: no unencrypted private key in PEM form\)"),
            ({**files, "private_key": key}, rf"Private key \({key}: key values mismatch\)"),
            ({**files, "certificate": own_key}, rf"Certificate \({own_key}: no certificate in PEM form\)"),
            ({"private_key": own_key}, "TLS lacks: Certificate, CA certificate"),
            ({}, "TLS needs a private key, a certificate and a CA certificate"),
        ]
        for files, reason in mistakes:
            with self.subTest(reason=reason), self.assertRaisesRegex(corvid.RemoteError, reason):
                corvid.connect(remote, "Zoo", timeout=1, **files)

    def test_a_server_that_trusts_another_authority_is_told_of(self):
        key, certificate = self.files("server")
        own_key, own_certificate = self.files("client")
        self.server.stop()
        log = f"{self.server.directory}/log"
        self.server.start(f"--private-key={key}", f"--certificate={certificate}", f"--ca-cert={certificate}", "--remote=pssl:0:127.0.0.1", f"--log-file={log}")
        remote = f"ssl:127.0.0.1:{self.port()}"
        with self.assertRaises(corvid.TimedOut) as caught:
            corvid.connect(remote, "Zoo", timeout=1, private_key=own_key, certificate=own_certificate, ca_cert=certificate)
        self.assertRegex(str(caught.exception), "TLS: .*alert")
