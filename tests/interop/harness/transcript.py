"""The same commands run against two servers, their outputs compared.

A session runs commands in the directory of one server and records what they print and how they exit. Uuids are
replaced by names that do not depend on them (see `canonical`), directories and ports by fixed words, so that two
sessions of the same script must give the same record. Where a program prints rows in the order of a hash table, the
step says how its output may be reordered: by `lines`, by `blocks` between empty lines, as a `tree` of indented lines.
"""

import difflib
import json
import os
import re
import shlex
import subprocess
import time

from . import programs
from .canonical import UUID, Contents, _rename
from .connection import Refused

LOG_PREFIX = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\|\d+\|", re.M)
LABEL_SET = re.compile(r"\[(<[^\[\]<>]*>(?:, <[^\[\]<>]*>)+)\]")
HTML_UUID = re.compile(r'<a (?:name="|href="#)([0-9a-f-]{36})">[0-9a-f]{8}</a>')
# Which of two rows with equal index values is called the first depends on their uuids.
TWINS = re.compile(r"First row, (with UUID [^.]*)\.  Second row, (with UUID [^.]*)\.")
JSON_UUID = r'\["uuid", ?"<.*?>"\]'
BARE_SET = re.compile(r"(<[^<>]*>(?: <[^<>]*>)+)")


class Session:
    """One run of a script. `databases` are the databases whose rows give uuids their names."""

    def __init__(self, server, databases, env=None, replace=()):
        self.server = server
        self.databases = list(databases)
        self.env = programs.environment(server.directory, env)
        self.replace = list(replace)
        self.entries = []
        self.labels = {}
        self.strangers = {}

    def run(self, command, order=None, stdin=None, cwd=None, timeout_s=60, out=None, note=None):
        """Runs `command` (a string in shell words, or a list) and records it. Returns the finished process.

        `out` is a function applied to standard output before it is recorded.
        """
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        try:
            done = subprocess.run(
                argv,
                env=self.env,
                cwd=cwd or self.server.directory,
                input=stdin,
                stdin=subprocess.DEVNULL if stdin is None else None,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
            )
            status, stdout, stderr = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            done, status, stdout, stderr = None, f"killed after {timeout_s} s", "", ""
        self._record(note or command, status, out(stdout) if out else stdout, stderr, order)
        return done

    def quietly(self, command):
        """Runs `command` without a record of it."""
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        subprocess.run(argv, env=self.env, cwd=self.server.directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    def spawn(self, command):
        """Starts `command` in the background; `join` waits for it and records it."""
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        return command, subprocess.Popen(
            argv,
            env=self.env,
            cwd=self.server.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def join(self, spawned, order=None, timeout_s=60):
        command, process = spawned
        try:
            stdout, stderr = process.communicate(timeout=timeout_s)
            status = process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            stdout, stderr = process.communicate()
            status = f"killed after {timeout_s} s"
        self._record(f"{command} &", status, stdout, stderr, order)

    def watch(self, command):
        """Starts `command`, which prints until it is ended; `Watch.until` follows it, `Watch.end` records it."""
        return Watch(self, command)

    def note(self, text):
        """Records a line of the script's own."""
        self.entries.append(text)

    def contents(self):
        """Records the contents of every database, row for row."""
        contents = self._look()
        self.entries.append("contents:\n" + "\n".join(f"  {line}" for line in contents.render()))
        return contents

    def _look(self):
        contents = Contents()
        try:
            with self.server.connect() as connection:
                for database in self.databases:
                    contents.add(connection.contents(database)[1])
        except (OSError, EOFError, Refused):
            return contents
        contents.name_all()
        for uuid in contents.rows:
            self.labels[uuid] = contents.label(uuid)
        return contents

    def _record(self, command, status, stdout, stderr, order):
        self._look()
        shown = command if isinstance(command, str) else shlex.join(command)
        lines = [f"$ {self.normal(shown)}"]
        stdout = self.normal(stdout, order)
        if stdout:
            lines += [f"  {line}" for line in stdout.split("\n")]
        if stderr:
            lines += [f"  ! {line}" for line in self.normal(stderr).rstrip("\n").split("\n")]
        lines.append(f"  = {status}")
        self.entries.append("\n".join(lines))

    def _name(self, uuid, numbered=True):
        if uuid in self.labels:
            return f"<{self.labels[uuid]}>"
        if not numbered:
            return "<row>"
        return "<row " + str(self.strangers.setdefault(uuid, len(self.strangers))) + ">"

    def normal(self, text, order=None):
        """`text` without uuids, directories, ports, times and, as far as `order` allows, the order of rows."""
        text = text.replace(self.server.directory, "$DIR")
        for old, new in self.replace:
            text = text.replace(old, new)
        if self.server.port:
            text = text.replace(f":{self.server.port}", ":$PORT")
        if self.server.process:
            text = re.sub(rf"(?<![-\w]){self.server.process.pid}(?![-\w])", "PID", text)  # not inside a UUID
        text = LOG_PREFIX.sub("TIME|N|", text)
        if order == "json":
            return "\n".join(self._normal_json(line) for line in text.split("\n"))
        text = HTML_UUID.sub(lambda found: found.group(1), text)
        # Uuids that are no rows are numbered as they appear, which means nothing where lines change places.
        text = UUID.sub(lambda found: self._name(found.group(0), order in (None, "exact")), text)
        text = BARE_SET.sub(lambda found: " ".join(sorted(re.findall(r"<[^<>]*>", found.group(1)))), text)
        text = LABEL_SET.sub(lambda found: "[" + ", ".join(sorted(found.group(1).split(", "))) + "]", text)
        text = re.sub(r"-{30,}", "---", text)
        for quote in ('"', '""', "&quot;", r'\\"'):
            one = JSON_UUID.replace('"', quote)
            many = f"{one}(?:, ?{one})+"
            text = re.sub(many, lambda found, one=one: ",".join(sorted(re.findall(one, found.group(0)))), text)
        text = TWINS.sub(lambda found: "First and second row, " + "; ".join(sorted(found.groups())), text)
        if order == "lines":
            text = "\n".join(sorted(text.split("\n")))
        elif order == "events":
            # Commits may reach a monitor together, under one heading: what counts is what was told, not in how many tables.
            text = "\n".join(sorted({line for line in text.splitlines() if line.strip()}))
        elif order == "blocks":
            text = "\n\n".join(sorted(text.strip("\n").split("\n\n"))) + "\n"
        elif order == "tree":
            text = sorted_tree(text)
        elif order == "words":
            text = "\n".join(" ".join(sorted(_words(line))) for line in text.split("\n"))
        return text

    def _normal_json(self, line):
        try:
            value = json.loads(line)
        except ValueError:
            return UUID.sub(lambda found: self._name(found.group(0)), line)
        value = _rename(value, self._name)
        if isinstance(value, dict):
            value = {key: _rename(item, self._name) for key, item in value.items()}
            if "data" in value:
                value["data"].sort(key=json.dumps)
        return json.dumps(value, sort_keys=True)


class Watch:
    """A command that goes on printing, such as a monitor. Its output is read from a file, so it never blocks."""

    def __init__(self, session, command):
        self.session = session
        self.command = command
        self.path = os.path.join(session.server.directory, f"watch-{len(session.entries)}-{time.monotonic_ns()}")
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        with open(self.path, "wb") as out, open(self.path + ".err", "wb") as err:
            self.process = subprocess.Popen(
                argv, env=session.env, cwd=session.server.directory, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def until(self, text, count=1, timeout_s=60):
        """Waits until the output holds `text` `count` times. A time-out is recorded, and so fails the comparison."""
        deadline = time.monotonic() + timeout_s
        while self.output().count(text) < count:
            if time.monotonic() > deadline or self.process.poll() is not None or self.session.server.ended():
                self.session.note(f"{self.command}: '{text}' did not come")
                break
            time.sleep(0.01)
        return self

    def end(self, order=None, kill=True, out=None, log=True):
        """Ends the command (or waits for its end, with `kill=False`) and records what it printed.

        With `log=False` its log lines are left out: whether a client sees a reset or an orderly close is a race.
        """
        if kill:
            self.process.terminate()
        try:
            status = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = f"did not end, killed {self.process.wait()}"
        with open(self.path + ".err", errors="replace") as err:
            stdout, stderr = self.output(), err.read()
            if not log:
                stderr = "".join(line for line in stderr.splitlines(True) if not LOG_PREFIX.match(line))
            self.session._record(f"{self.command} &", status, out(stdout) if out else stdout, stderr, order)

    def output(self):
        """What it has printed so far."""
        with open(self.path, errors="replace") as file:
            return file.read()


def _words(line):
    return re.findall(r"<[^>]*>|\S+", line)


def sorted_tree(text):
    """Lines that are indented deeper belong to the line above; siblings are sorted."""

    def parse(lines, depth):
        items = []
        while lines:
            indent = len(lines[0]) - len(lines[0].lstrip(" "))
            if indent < depth:
                break
            line = lines.pop(0)
            children = []
            if lines and len(lines[0]) - len(lines[0].lstrip(" ")) > indent:
                children = parse(lines, indent + 1)
            items.append("\n".join([line, *children]))
        return sorted(items)

    return "\n".join(parse([line for line in text.split("\n") if line], 0))


def compare(ours, theirs):
    """Empty when two sessions recorded the same; otherwise a unified difference, under test as `+`."""
    ours_lines = "\n".join(ours.entries).split("\n")
    theirs_lines = "\n".join(theirs.entries).split("\n")
    return "\n".join(difflib.unified_diff(theirs_lines, ours_lines, "reference", "under test", lineterm="", n=4))


def write(session, path):
    with open(path, "w") as file:
        file.write("\n".join(session.entries) + "\n")
    return os.path.abspath(path)
