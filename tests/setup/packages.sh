#!/bin/sh
# Installs the reference implementation and its clients, and valgrind for the guard, from the system's packages (Debian, Ubuntu). No daemon of theirs is
# left running: the tests start every server themselves.
cd "$(dirname "$0")" && . ./retry.sh

packages="openvswitch-common openvswitch-switch ovn-common ovn-central python3-openvswitch valgrind"

missing=
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
command -v cc >/dev/null 2>&1 && command -v make >/dev/null 2>&1 || missing="$missing build-essential"
# Only the module's parts that a bare interpreter lacks on Debian are asked for.
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    skipped "the reference implementation" "no apt-get here; install$missing by hand"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    skipped "the reference implementation" "not root; run: apt-get install$missing"
    exit 0
fi

# While this file is there and exits with 101, packages start no services.
policy=/usr/sbin/policy-rc.d
made=
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && made=yes
fi
export DEBIAN_FRONTEND=noninteractive
retry apt-get -q update
# shellcheck disable=SC2086
retry apt-get -q -y --no-install-recommends install $missing || skipped "the reference implementation" "apt-get could not install$missing"
[ -n "$made" ] && rm -f "$policy"
exit 0
