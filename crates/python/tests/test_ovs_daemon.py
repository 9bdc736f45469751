"""The parts of the modules for daemons that behave otherwise than the original.

The interop plays show the rest. Logging and signals belong to the whole process, so each test runs in a new one.
"""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

UUID = "12345678-9abc-def0-0234-56789abcdef0"


class Programs(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_program(self, text):
        """Runs a program in a directory of its own; returns its status, output and errors."""
        path = [os.path.abspath(folder) for folder in sys.path if folder]
        env = dict(os.environ, PYTHONPATH=os.pathsep.join(path), OVS_RUNDIR=self.directory, OVS_SYSLOG_METHOD="null")
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text)], env=env, cwd=self.directory, capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout, done.stderr

    def logged(self, text):
        """Runs statements with a logger `log`; returns the lines of the log file, in the form of the message."""
        begin = """
            from corvid.ovs.vlog import Vlog
            log = Vlog("test")
            Vlog.init("log")
            Vlog.set_level("any", "console", "off")
            Vlog.set_pattern("file", "%m")
        """
        status, output, errors = self.run_program(textwrap.dedent(begin) + textwrap.dedent(text))
        self.assertEqual((status, output, errors), (0, "", ""))
        with open(os.path.join(self.directory, "log")) as file:
            return file.read().splitlines()

    def test_messages_hold_no_escapes(self):
        self.assertEqual(self.logged('log.info("%c %p %%"); log.info(5)'), ["%c %p %%", "5"])

    def test_a_message_is_one_line_without_control_characters(self):
        lines = self.logged(r'log.info("a\n\tb\x1b[2J\x7f\x9bm\u202e\u2028\n")')
        self.assertEqual(lines, [r"a\n\tb\u001b[2J\u007f\u009bm\u202e\u2028"])

    def test_dates_have_all_digits(self):
        lines = self.logged("""
            import re
            Vlog.set_pattern("file", "%D{%S.###}|%d{%Y}|%9D{%m}|")
            for _ in range(200):
                log.info("x")
        """)
        for line in lines:
            self.assertRegex(line, r"^\d\d\.\d{3} \| \d{4} \|   \d\d    \||^\d\d\.\d{3} \| \d{4} \| +\d\d +\|$")

    def test_patterns_keep_colons_and_spaces(self):
        lines = self.logged("""
            assert Vlog.set_levels_from_string("PATTERN:any:a: b:%m %P") is None
            log.info("x")
        """)
        self.assertRegex(lines[0], r"^a: b: x   \d+$")

    def test_loggers_can_be_made_late_and_have_the_levels_of_all(self):
        self.assertEqual(self.logged('Vlog("late").info("x")'), ["x"])

    def test_a_log_file_that_cannot_be_opened_is_reported(self):
        status, output, errors = self.run_program("""
            from corvid.ovs.vlog import Vlog
            Vlog.init("/nonexistent/log")
        """)
        self.assertEqual((status, output), (0, ""))
        self.assertIn("failed to open /nonexistent/log for logging: No such file or directory", errors)

    def test_warnings_go_to_no_destination_that_is_absent(self):
        _, output, errors = self.run_program("""
            from corvid.ovs.vlog import Vlog
            log = Vlog("test")
            Vlog.init()
            Vlog.set_pattern("console", "%m")
            log.err("x")
        """)
        self.assertEqual((output, errors), ("", "x\n"))

    def test_all_verbose_options_count(self):
        status, output, errors = self.run_program("""
            import argparse
            from corvid.ovs import vlog
            vlog.Vlog("test")
            parser = argparse.ArgumentParser()
            vlog.add_args(parser)
            vlog.handle_args(parser.parse_args(["-vconsole:err", "-vsyslog:dbg"]))
            print(vlog.Vlog.get_levels().splitlines()[-1].split())
        """)
        self.assertEqual((status, output, errors), (0, "['test', 'err', 'dbg', 'info']\n", ""))

    def test_hooks_run_when_another_raises(self):
        status, output, _ = self.run_program("""
            import os, signal
            from corvid.ovs import fatal_signal
            fatal_signal.add_hook(lambda: 1 / 0, None, True)
            fatal_signal.add_hook(lambda: print("ran", flush=True), None, True)
            os.kill(os.getpid(), signal.SIGTERM)
        """)
        self.assertEqual((status, output), (-signal.SIGTERM, "ran\n"))

    def test_files_with_relative_names_are_removed(self):
        self.run_program("""
            import os
            from corvid.ovs import fatal_signal
            open("a", "w").close()
            fatal_signal.add_file_to_unlink("a")
            os.chdir("/")
        """)
        self.assertEqual(os.listdir(self.directory), [])

    def test_a_pidfile_that_another_process_has_replaced_stays(self):
        status, output, errors = self.run_program("""
            import os
            from corvid.ovs import daemon
            daemon.set_pidfile("mine.pid")
            daemon.daemonize()
            with open("theirs", "w") as file:
                file.write("1\\n")
            os.rename("theirs", "mine.pid")
        """)
        self.assertEqual((status, output, errors), (0, "", ""))
        with open(os.path.join(self.directory, "mine.pid")) as file:
            self.assertEqual(file.read(), "1\n")

    def test_a_daemon_that_dies_at_its_start_is_a_failure(self):
        status, _, errors = self.run_program("""
            import os, resource, signal
            from corvid.ovs import daemon
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            daemon.set_detach()
            daemon.daemonize_start()
            os.kill(os.getpid(), signal.SIGSEGV)
        """)
        self.assertEqual(status, 1)
        self.assertEqual(errors, "fork child failed to signal startup (killed by signal 11 (SIGSEGV))\n")

    def test_wrong_options_of_a_client_do_not_end_the_server(self):
        status, output, errors = self.run_program("""
            import os, socket
            from corvid.ovs.unixctl.server import UnixctlServer
            error, server = UnixctlServer.create(os.path.abspath("ctl"))
            client = socket.socket(socket.AF_UNIX)
            client.connect("ctl")
            for argument in ("--format=none", "-h", "x"):
                client.sendall(b'{"id":1,"method":"set-options","params":["%s"]}' % argument.encode())
                for _ in range(2):
                    server.run()
                print(client.recv(1000).decode())
            server.close()
        """)
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(output.count('"result":null'), 3)


class Values(unittest.TestCase):
    def test_a_newline_does_not_belong_to_a_uuid(self):
        from corvid.ovs import ovsuuid

        self.assertTrue(ovsuuid.is_valid_string(UUID))
        self.assertFalse(ovsuuid.is_valid_string(UUID + "\n"))

    def test_signals_have_their_usual_names(self):
        from corvid.ovs import process

        self.assertEqual(process.status_msg(signal.SIGHUP), "killed by signal 1 (SIGHUP)")
        self.assertEqual(process.status_msg(signal.SIGABRT), "killed by signal 6 (SIGABRT)")


if __name__ == "__main__":
    unittest.main()
