"""Which differences are meant: newer releases against 3.1 in rules, everything else line by line with its reason.

A rule turns what a newer release says into what 3.1 says, or takes from a text what is free. It may only touch texts that it
recognises whole.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A line whose outcome differs on purpose: why, and what ours is."""

    line: str
    why: str
    says: tuple


@dataclass(frozen=True)
class Later:
    """A command that is not built yet; compared as soon as it is there."""

    line: str


# Options that 3.1 does not have; they appear among the possibilities of an abbreviation.
NEWER_OPTIONS = ("config-file", "disable-file-no-data-conversion", "ssl-ciphersuites", "ssl-server-name")

# What names our implementation, after the line that scripts parse: a line of its own, also in the log and in a reply that is printed as JSON.
IMPLEMENTATION = re.compile(r"(?:[ !] )(?:(?:TIME\|N\|)?ovsdb_server(?:\([^)]*\))?\|INFO\|)?Corvid [\d.]+")

# Options of ours alone in a listing of options.
OWN_OPTIONS = tuple(f"  {option}" for option in (
    "--fail", "--at=ARG", "--since=ARG", "--until=ARG", "--table=ARG", "--row=ARG", "--column=ARG", "--client=ARG", "--json", "-n ARG",
))

# Lines of ours alone: a command in a listing of commands, and what a server says of damage that it has copied before it serves the rest.
OWN_COMMANDS = re.compile(r" +(?:salvage +file new \[schema\]|history +\[db\] \| .*|log +\[db\]|diff +db from to|dump +\[db \[table\]\]|restore +db new)")
SAVED = re.compile(r"! TIME\|N\|ovsdb_server\|ERR\|.*: the file ends in damaged record \d+ at offset \d+\. .* saved as .*")

FAILED = re.compile(r"! TIME\|N\|ovsdb_server\|WARN\|failed to (?:open database '.*?'|configure remotes|configure SSL/TLS): (.*)")
GAVE_UP = "! ovsdb-server: server configuration failed"


def ours(lines):
    """What ours says, in the words of 3.1."""
    found = []
    for line in lines:
        if "is ambiguous; possibilities:" in line:
            for option in NEWER_OPTIONS:
                line = line.replace(f" '--{option}'", "")
        if IMPLEMENTATION.fullmatch(line) or line in OWN_OPTIONS or OWN_COMMANDS.fullmatch(line) or SAVED.fullmatch(line):
            continue
        line = re.sub(r"\\nCorvid [\d.]+", "", line)
        found.append(line.replace("SSL/TLS protocol", "SSL protocol"))
    # Newer releases warn of the reason and then give up; 3.1 gives up with the reason.
    if GAVE_UP in found:
        at = found.index(GAVE_UP)
        reasons = [FAILED.fullmatch(line) for line in found[:at]]
        reason = next((match.group(1) for match in reasons if match), None)
        if reason is not None:
            found[at] = f"! ovsdb-server: {reason}"
            found = [line for line in found if not FAILED.fullmatch(line) and not line.endswith("|WARN|failed to configure databases")]
    return free(found)


def reference(lines):
    """What the reference says, without what is meant otherwise or free."""
    return free([line for line in lines if line != "! " and "backtrace(monitor)|WARN|Backtrace using" not in line])


def free(lines):
    """Lines without texts of libraries. What is said again at once counts once: settings are looked at several times."""
    found = []
    for line in lines:
        line = re.sub(r"error:[0-9A-F]{8}:[^:]*:[^:]*:", "", line)
        if not found or line != found[-1] or not line.startswith("! "):
            found.append(line)
    return found
