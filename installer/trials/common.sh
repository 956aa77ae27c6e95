# shellcheck shell=bash
# What all trials share. The environment names CHECKOUT, WORK, TABLE, SECTION and MIRROR (a folder
# of wheels, or empty).
set -eu
LOGS="$WORK/log/$SECTION"
mkdir -p "$LOGS"
num_steps=0

# step WHAT COMMAND...: run it, and note how long that took; if it fails, show why and stop.
step() {
    local what=$1 began log
    shift
    num_steps=$((num_steps + 1))
    log="$LOGS/$(printf %02d "$num_steps")-$(echo "$what" | tr -cs 'a-zA-Z0-9\n' -).log"
    began=$(date +%s.%N)
    if ! "$@" > "$log" 2>&1; then
        echo "  FAILED: $what; the end of $log:" >&2
        tail -n 30 "$log" >&2
        note "$what: failed" "$(seconds_since "$began")" ""
        exit 1
    fi
    note "$what" "$(seconds_since "$began")" ""
}

# check WHAT COMMAND...: as step, without a place in the table.
check() {
    local what=$1
    shift
    if ! "$@" > "$LOGS/check.log" 2>&1; then
        echo "  FAILED: $what" >&2
        tail -n 30 "$LOGS/check.log" >&2
        note "$what: failed" "" ""
        exit 1
    fi
    echo "  $what"
}

# note WHAT SECONDS SIZE: a line of the table.
note() {
    printf '%s\t%s\t%s\t%s\n' "$SECTION" "$1" "$2" "$3" >> "$TABLE"
    echo "  $1${2:+: $2 s}${3:+: $3}"
}

seconds_since() {
    awk -v from="$1" -v to="$(date +%s.%N)" 'BEGIN { printf "%.1f", to - from }'
}

# size_of PATH...: what files and folders take, as MB.
size_of() {
    du -sm --apparent-size --total "$@" 2> /dev/null | awk 'END { print $1 " MB" }'
}

# need PROGRAM:PACKAGE...: stop where a program is missing.
need() {
    local one missing=""
    for one in "$@"; do
        PATH="$PATH:/usr/sbin:/sbin" command -v "${one%%:*}" > /dev/null || missing="$missing ${one##*:}"
    done
    if [ -n "$missing" ]; then
        echo "  This needs: sudo apt-get install$missing" >&2
        exit 1
    fi
}
