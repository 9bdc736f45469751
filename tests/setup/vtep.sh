#!/bin/sh
# Puts the schema of the hardware VTEP database into .venv/share. It is taken out of its package, whose daemon is not installed.
cd "$(dirname "$0")" && . ./retry.sh

schema=$(cd ../.. && pwd)/.venv/share/vtep.ovsschema
[ -s /usr/share/openvswitch/vtep.ovsschema ] && exit 0
[ -s "$schema" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    skipped vtep "no apt-get here; put vtep.ovsschema into $(dirname "$schema")"
    exit 0
fi
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && cd "$folder" || exit 0
retry apt-get -q download openvswitch-vtep &&
    dpkg-deb --fsys-tarfile openvswitch-vtep_*.deb | tar -x ./usr/share/openvswitch/vtep.ovsschema &&
    mkdir -p "$(dirname "$schema")" && mv usr/share/openvswitch/vtep.ovsschema "$schema" ||
    skipped vtep "the package openvswitch-vtep could not be fetched"
exit 0
