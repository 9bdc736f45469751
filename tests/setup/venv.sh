#!/bin/sh
# Makes .venv at the root of the repository with Python's peers: those of requirements.txt, and apart from them, so that one that cannot be had
# leaves the others, those of checkers.txt and green-threads.txt. Does nothing when it is up to date.
cd "$(dirname "$0")" && . ./retry.sh

venv=$(cd ../.. && pwd)/.venv
stamp=$venv/requirements.installed
cat requirements.txt checkers.txt green-threads.txt | cmp -s - "$stamp" && exit 0

if ! python3 -m venv "$venv" >/dev/null; then
    skipped ovsdbapp "python3 -m venv does not work here"
    exit 0
fi
is_complete=yes

# install FILE WHAT PROGRAM [OPTION...]: installs what a file names; the program of Python tells whether it is there.
install() {
    file=$1 what=$2 program=$3
    shift 3
    if ! retry "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@" -r "$file" || ! retry "$venv/bin/python" -c "$program"; then
        skipped "$what" "pip could not install what $file names"
        is_complete=
    fi
}

install requirements.txt "ovsdbapp and the parser of metrics" 'import ovs.db.idl, ovsdbapp, prometheus_client'
# The first start of pyright fetches the program itself.
install checkers.txt "type checkers" 'import mypy, runpy, sys; sys.argv = ["pyright", "--version"]; runpy.run_module("pyright", run_name="__main__")'
# In a folder of their own, because the original `ovs` imports them where it can.
install green-threads.txt "eventlet and gevent" 'import sys; sys.path.insert(0, sys.prefix + "/green"); import eventlet, gevent' --upgrade --target "$venv/green"
[ -z "$is_complete" ] || cat requirements.txt checkers.txt green-threads.txt >"$stamp"
exit 0
