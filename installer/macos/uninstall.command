#!/bin/sh
# Removes Medusa Chat of this user: names each folder and its size, and asks what goes.
set -eu
app="$HOME/Applications/Medusa Chat.app"
command="$HOME/.local/bin/medusa"

if [ -x "$app/Contents/MacOS/medusa" ]; then
    "$app/Contents/MacOS/medusa" uninstall "$@"
    if [ "${1:-}" != --yes ]; then
        printf 'Remove the application, too? [y/N] '
        read -r answer || answer=n
        case $answer in [yY]*) ;; *) echo "Medusa Chat.app stays." && exit 0 ;; esac
    fi
    rm -rf "$app"
fi
if grep -qs "Medusa Chat.app" "$command"; then
    rm -f "$command"
fi
echo "Medusa Chat is removed."
