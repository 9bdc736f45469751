#!/bin/sh
# Fetches the modules of the Go peer, so that the suite itself needs no network.
cd "$(dirname "$0")" && . ./retry.sh

PATH=$PATH:/usr/local/go/bin
if ! command -v go >/dev/null 2>&1; then
    skipped "Go libovsdb" "go is not installed"
    exit 0
fi
cd ../interop/go-libovsdb || exit 1
go mod verify >/dev/null 2>&1 || retry go mod download || skipped "Go libovsdb" "its modules could not be downloaded"
exit 0
