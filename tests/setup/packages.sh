#!/bin/sh
# Installs the reference implementation and its clients, valgrind, which counts instructions, and shells for their completions. The tests start
# every server themselves.
cd "$(dirname "$0")" && . ./retry.sh && . ./install.sh

missing=$(missing_of openvswitch-common openvswitch-switch ovn-common ovn-central python3-openvswitch)
# Only the module's parts that a bare interpreter lacks on Debian are asked for.
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
# shellcheck disable=SC2086
install_packages "the reference implementation" $missing
command -v valgrind >/dev/null 2>&1 || install_packages "the guard of instruction counts" valgrind
command -v openssl >/dev/null 2>&1 || install_packages "odd certificates" openssl
[ -x /usr/bin/chromium ] && [ -x /usr/bin/chromedriver ] || install_packages "pages of the console in a browser" chromium chromium-driver
command -v groff >/dev/null 2>&1 || install_packages "sound manual pages" groff-base
command -v pkg-config >/dev/null 2>&1 || install_packages "the installed library for C" pkg-config
for shell in zsh fish; do
    command -v "$shell" >/dev/null 2>&1 || install_packages "completions of $shell" "$shell"
done
exit 0
