#!/bin/sh
# Installs the allocators that `make bench-allocators` loads before servers. Tests do not need them.
cd "$(dirname "$0")" && . ./retry.sh && . ./install.sh

# shellcheck disable=SC2046
install_packages "some allocators" $(missing_of libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0)
exit 0
