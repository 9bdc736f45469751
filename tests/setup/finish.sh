#!/bin/sh
# Waits for the setup that `begin.sh` has started, and shows what it has printed.
here=$(cd "$(dirname "$0")" && pwd)
log=$here/../../target/setup.log
[ -e "$log" ] || exec sh "$here/all.sh"

left=1800
until tail -n 1 "$log" | grep -q '^setup: finished$'; do
    left=$((left - 1))
    if [ "$left" = 0 ]; then
        cat "$log"
        echo "setup: not finished after half an hour" >&2
        exit 1
    fi
    sleep 1
done
cat "$log"
