#!/bin/bash
# Tries the packages as a newcomer gets them, in clean places, and prints sizes and times.
#
#   installer/try_packages.sh [--checkout] [--deb] [--windows] [--mirror DIR] [--work DIR] [--keep]
#
# Each section is a file of installer/trials, whose first lines say what it needs; without one all
# are tried. --checkout and --deb make a Debian root and must run as root.
#   --mirror DIR   a folder of wheels instead of the network, as `pip download` fills it
#   --work DIR     where all of it lies (default: a new folder in /var/tmp); what is there already,
#                  as packages and Debian roots, is used again
#   --keep         leave that folder behind
set -eu

CHECKOUT=$(cd "$(dirname "$0")/.." && pwd)
TRIALS="$CHECKOUT/installer/trials"
MIRROR="" WORK="" KEEP="" sections=()
while [ $# -gt 0 ]; do
    case "$1" in
        --mirror) MIRROR=$(cd "$2" && pwd); shift ;;
        --work) mkdir -p "$2"; WORK=$(cd "$2" && pwd); KEEP=yes; shift ;;
        --keep) KEEP=yes ;;
        --help|-h) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        --*)
            [ -f "$TRIALS/${1#--}.sh" ] || { echo "There is no section $1; see --help." >&2; exit 2; }
            sections+=("${1#--}") ;;
        *) echo "What is $1? See --help." >&2; exit 2 ;;
    esac
    shift
done
if [ ${#sections[@]} -eq 0 ]; then
    for file in "$TRIALS"/*.sh; do
        name=$(basename "$file" .sh)
        [ "$name" = common ] || sections+=("$name")
    done
fi
WORK=${WORK:-$(mktemp -d /var/tmp/medusa-trial.XXXXXX)}
[ -n "$KEEP" ] || trap 'rm -rf --one-file-system "$WORK"' EXIT
TABLE="$WORK/table.tsv"
export CHECKOUT MIRROR WORK TABLE
: > "$TABLE"

failed=""
for section in "${sections[@]}"; do
    echo "== $section"
    SECTION=$section bash "$TRIALS/$section.sh" || failed="$failed $section"
done

echo
awk -F'\t' 'BEGIN { printf "| package | what | seconds | size |\n|---|---|---:|---:|\n" }
    { printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$TABLE"
if [ -n "$failed" ]; then
    echo "Failed:$failed" >&2
    exit 1
fi
