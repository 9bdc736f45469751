#!/bin/sh
# Installs everything that the tests need on a fresh Debian or Ubuntu machine beside Rust. Safe to run again at any time. A part that cannot be
# installed is reported loudly, and the tests that need it report that they are skipped.
here=$(cd "$(dirname "$0")" && pwd)

# The modules for Go need no package; the packages of Python need some.
sh "$here/go.sh" &
sh "$here/compiler.sh"
sh "$here/packages.sh"
sh "$here/venv.sh" &
sh "$here/promtool.sh"
sh "$here/axe.sh"
sh "$here/vtep.sh"
wait
exit 0
