"""A script run against the server under test and against the reference, the two transcripts compared.

This is the shape of most suites: a function that takes a session and issues commands.
"""

import os

from . import programs, transcript
from .server import Server, create


def servers(suite, schemas, *, tcp=False, options=(), name="db"):
    """(server under test, reference server), each in a directory of its own with a fresh file per schema."""
    made = []
    for side, binary in (("test", programs.under_test("ovsdb-server")), ("reference", programs.reference("ovsdb-server"))):
        directory = suite.subdirectory(f"{name}-{side}")
        files = [create(os.path.join(directory, f"{file}.db"), schema) for file, schema in schemas.items()]
        made.append(Server(binary, directory, files, tcp=tcp, options=options, name=name))
    return made


def run(suite, schemas, databases, script, *, env=None, **options):
    """Runs `script(session)` on both servers and checks that transcripts, contents and complaints agree.

    `env` is a function from the server to additional environment variables.
    """
    pair = servers(suite, schemas, **options)
    sessions, contents = [], []
    for server in pair:
        with server:
            session = transcript.Session(server, databases, env(server) if env else None)
            script(session)
            if server.process.poll() is None:
                contents.append(session.contents())
            sessions.append(session)
        transcript.write(session, os.path.join(server.directory, "transcript"))
    commands = sum(1 for entry in sessions[0].entries if entry.startswith("$"))
    suite.check(not (seen := transcript.compare(*sessions)), f"{commands} commands print the same", seen)
    if contents:
        same = len(contents) == 2 and contents[0].fingerprint() == contents[1].fingerprint()
        suite.check(same, "final contents are equal up to uuids")
    suite.no_new_complaints(*pair)
    return sessions
