#!/bin/sh
# Puts axe-core, which judges the accessibility of the console's pages, into .venv/axe.min.js. The test compares its digest
# before it runs it.
cd "$(dirname "$0")" && . ./retry.sh

version=4.10.2
target=$(cd ../.. && pwd)/.venv/axe.min.js
[ -s "$target" ] && exit 0

if ! command -v npm >/dev/null 2>&1; then
    skipped axe-core "no npm here"
    exit 0
fi
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 0
retry npm pack --silent "axe-core@$version" >/dev/null &&
    tar -xzf "axe-core-$version.tgz" package/axe.min.js &&
    mkdir -p "$(dirname "$target")" && mv package/axe.min.js "$target" ||
    skipped axe-core "the package axe-core could not be fetched"
exit 0
