#!/bin/sh
# Installs a C compiler and make: Rust links with them, and some libraries have C sources. Everything else can be installed while Rust compiles.
cd "$(dirname "$0")" && . ./retry.sh && . ./install.sh

command -v cc >/dev/null 2>&1 && command -v make >/dev/null 2>&1 && exit 0
install_packages "the build" build-essential
exit 0
