#!/bin/sh
# Puts `promtool`, which checks metrics and alerts, into .venv/bin. It is taken out of the package of Prometheus, whose server is not installed.
cd "$(dirname "$0")" && . ./retry.sh

promtool=$(cd ../.. && pwd)/.venv/bin/promtool
command -v promtool >/dev/null 2>&1 && exit 0
"$promtool" --version >/dev/null 2>&1 && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    skipped promtool "no apt-get here; put promtool into the PATH"
    exit 0
fi
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 0
retry apt-get -q download prometheus &&
    dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool &&
    mkdir -p "$(dirname "$promtool")" && mv usr/bin/promtool "$promtool" ||
    skipped promtool "the package prometheus could not be fetched"
exit 0
