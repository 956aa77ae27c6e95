#!/bin/sh
# Removes Medusa Chat of this user: names each folder and its size, and asks what goes.
set -eu
app="$HOME/Applications/Medusa Chat.app"
command="$HOME/.local/bin/medusa"

if [ -x "$app/Contents/MacOS/medusa" ]; then
    "$app/Contents/MacOS/medusa" uninstall "$@"
    # shellcheck source-path=SCRIPTDIR source=folders.sh
    . "$app/Contents/Resources/folders.sh"
    data=$(data_folder)
    if [ -d "$data/versions" ]; then
        echo "Medusa Chat stays, as you wished."
        exit 0
    fi
    # What the launcher keeps, where the rest is gone.
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
