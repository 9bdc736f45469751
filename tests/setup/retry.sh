# Sourced by the scripts beside it: runs a command that fetches something again after a failure, and reports loudly what is not installed.

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

# skipped WHAT REASON: warns that tests which need WHAT will be skipped.
skipped() {
    echo "SKIPPED setup of $1: $2" >&2
    echo "******* TESTS THAT NEED $1 WILL NOT RUN *******" >&2
}
