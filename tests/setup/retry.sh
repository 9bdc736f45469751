# Sourced by the scripts beside it: commands that fetch something are tried again, and what cannot be had is said loudly.

# retry COMMAND...: up to four attempts with growing pauses. Status of the last attempt.
retry() {
    pause=2
    for attempt in 1 2 3; do
        "$@" && return 0
        echo "setup: attempt $attempt of '$*' failed, trying again in $pause s" >&2
        sleep "$pause"
        pause=$((pause * 3))
    done
    "$@"
}

# skipped WHAT REASON: tests that need WHAT will skip themselves; nobody shall overlook it.
skipped() {
    echo "SKIPPED setup of $1: $2" >&2
    echo "******* TESTS THAT NEED $1 WILL NOT RUN *******" >&2
}
