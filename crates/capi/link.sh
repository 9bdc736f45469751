#!/bin/sh
# Links the shared library from the archive that cargo makes: link.sh ARCHIVE DIRECTORY makes libcorvid.so.0 and the link libcorvid.so there.
# The linker is called here and not by rustc, because rustc gives it a list of symbols without versions, beside which no other list may stand.
# The library stays when a program closes it (nodelete): a thread of the library that looks a host
# name up may still run then.
set -e
here=$(dirname "$0")
# shellcheck disable=SC2086
${CC:-cc} -shared -o "$2/libcorvid.so.0" ${CORVID_LINK_FLAGS-} \
    -Wl,-soname,libcorvid.so.0 -Wl,--version-script="$here/libcorvid.map" -Wl,--gc-sections -Wl,-z,relro,-z,now,-z,nodelete -Wl,--no-undefined \
    -Wl,--whole-archive "$1" -Wl,--no-whole-archive -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
ln -sf libcorvid.so.0 "$2/libcorvid.so"
