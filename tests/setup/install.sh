# Sourced by the scripts beside it, after `retry.sh`: installs packages of the system (Debian, Ubuntu).

# missing_of PACKAGE...: prints the packages that are not installed.
missing_of() {
    for package in "$@"; do
        dpkg -s "$package" >/dev/null 2>&1 || printf ' %s' "$package"
    done
}

# install_packages WHAT PACKAGE...: installs the packages and starts none of their daemons, or warns that WHAT is missing.
install_packages() {
    what=$1
    shift
    [ $# = 0 ] && return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        skipped "$what" "no apt-get here; install $* by hand"
        return 0
    fi
    if [ "$(id -u)" != 0 ]; then
        skipped "$what" "not root; run: apt-get install $*"
        return 0
    fi
    # While this file exists and exits with 101, packages start no services.
    policy=/usr/sbin/policy-rc.d
    made=
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && made=yes
    fi
    export DEBIAN_FRONTEND=noninteractive
    retry apt-get -q update
    # A setup that an earlier `make test` has started may still hold the lock.
    retry apt-get -q -y -o DPkg::Lock::Timeout=600 --no-install-recommends install "$@" || skipped "$what" "apt-get could not install $*"
    [ -n "$made" ] && rm -f "$policy"
    return 0
}
