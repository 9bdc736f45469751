#!/bin/sh
# Figures of the library for C beside those of the client for Rust: compare.sh PROGRAMS BINDINGS ROWS ROUNDS. PROGRAMS is the folder of ovsdb-server, ovsdb-tool and ovsdb-idlc, BINDINGS that of
# libcorvid_c.a and client-figures, built alike. The clients take turns, each on a fresh server; figures are medians.
set -e
programs=$1 bindings=$2 rows=${3:-100000} rounds=${4:-5}
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'test -z "$server" || kill "$server"; rm -rf "$dir"' EXIT
schema=$here/../tests/zoo.ovsschema
"$programs/ovsdb-idlc" c "$schema" "$dir" >/dev/null
"$here/../link.sh" "$bindings/libcorvid_c.a" "$dir"
${CC:-cc} -O2 -D_GNU_SOURCE -I "$here/../include" -I "$dir" "$here/figures.c" "$dir/zoo-idl.c" -o "$dir/c" -L "$dir" -Wl,-rpath,"$dir" -lcorvid
for round in $(seq "$rounds"); do
    for client in "$dir/c" "$bindings/client-figures"; do
        rm -f "$dir/zoo.db" "$dir/socket"
        "$programs/ovsdb-tool" create "$dir/zoo.db" "$schema"
        "$programs/ovsdb-server" "$dir/zoo.db" --remote="punix:$dir/socket" --unixctl="$dir/control" -vconsole:off &
        server=$!
        while ! test -S "$dir/socket"; do sleep 0.05; done
        "$client" "$schema" "unix:$dir/socket" "$rows" >>"$dir/$(basename "$client").txt"
        kill "$server"
        wait "$server" || true
        server=
    done
done
median() { grep "^$2	" "$dir/$1.txt" | cut -f 2 | sort -g | sed -n "$(((rounds + 1) / 2))p"; }
printf '%-48s %10s %10s %8s\n' "figure, $rows rows, medians of $rounds" C Rust "C / Rust"
cut -f 1 "$dir/c.txt" | awk '!seen[$0]++' | while read -r name; do
    c=$(median c "$name") rust=$(median client-figures "${name#typed: }")
    printf '%-48s %10s %10s %8s\n' "$name" "$c" "$rust" "$(awk "BEGIN { printf \"%.2f\", $c / $rust }")"
done
