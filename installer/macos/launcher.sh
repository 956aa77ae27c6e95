#!/bin/sh
# Contents/MacOS/medusa-chat and, for terminals, Contents/MacOS/medusa: runs launch.py with the Python
# that install.command has fetched.
program=$(cd "$(dirname "$0")/../Resources" && pwd -P) || exit 1
for python in "$program"/python/cpython-3.*/bin/python3; do
    [ -x "$python" ] || continue
    exec "$python" -E -s -X utf8 "$program/launch.py" "$(basename "$0")" "$@"
done
words="Medusa Chat isn't completely installed. Open install.command, which came with it."
[ -t 2 ] || osascript - "$words" >/dev/null 2>&1 <<'APPLESCRIPT'
on run {words}
    display dialog words with title "Medusa Chat" buttons {"OK"} default button 1 with icon stop
end run
APPLESCRIPT
printf '%s\n' "$words" >&2
exit 2
