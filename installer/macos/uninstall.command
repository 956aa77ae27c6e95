#!/bin/sh
# Removes Medusa Chat of this user: names each folder and its size, and asks what goes.
set -eu
app="$HOME/Applications/Medusa Chat.app"
command="$HOME/.local/bin/medusa"

if [ -x "$app/Contents/MacOS/medusa" ]; then
    "$app/Contents/MacOS/medusa" uninstall "$@"
    # What the launcher keeps, where the rest is gone.
    data="$HOME/Library/Application Support/medusa-chat-program"
    if [ ! -d "$data/python" ]; then
        rm -rf "$data/log" "$data/python-mirror.txt"
        rmdir "$data" 2>/dev/null || true
    fi
    rm -rf "$app"
fi
if grep -qs "Medusa Chat.app" "$command"; then
    rm -f "$command"
fi
echo "Medusa Chat is removed."
