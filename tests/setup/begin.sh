#!/bin/sh
# Installs what a build needs, and starts the rest of the setup in the background. `finish.sh` waits for it.
here=$(cd "$(dirname "$0")" && pwd)
log=$here/../../target/setup.log

sh "$here/compiler.sh"
mkdir -p "$(dirname "$log")"
: >"$log"
nohup sh -c 'sh "$1"; echo "setup: finished"' sh "$here/all.sh" >"$log" 2>&1 </dev/null &
