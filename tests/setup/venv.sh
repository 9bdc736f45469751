#!/bin/sh
# Makes .venv at the root of the repository with the Python peers of requirements.txt. Does nothing when it is up to date.
cd "$(dirname "$0")" && . ./retry.sh

venv=$(cd ../.. && pwd)/.venv
stamp=$venv/requirements.installed
cmp -s requirements.txt "$stamp" && exit 0

if ! python3 -m venv "$venv" >/dev/null; then
    skipped ovsdbapp "python3 -m venv does not work here"
    exit 0
fi
if retry "$venv/bin/python" -m pip install -q --disable-pip-version-check -r requirements.txt && "$venv/bin/python" -c 'import ovs.db.idl, ovsdbapp, prometheus_client'; then
    cp requirements.txt "$stamp"
else
    skipped "ovsdbapp and the parser of metrics" "pip could not install what requirements.txt names"
fi
exit 0
