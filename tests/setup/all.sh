#!/bin/sh
# Everything that the tests need on a fresh Debian or Ubuntu machine beside Rust. Safe to run again at any time; what cannot be
# had is said loudly, and the tests that need it skip themselves as loudly.
here=$(cd "$(dirname "$0")" && pwd)
for part in packages venv promtool vtep go; do
    sh "$here/$part.sh"
done
exit 0
