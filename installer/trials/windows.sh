# shellcheck shell=bash
# The installer for Windows under wine: silent and visible installation, a Python from a mirror on
# loopback, the commands that it leaves behind, removal; what stays is compared with before.
#
# Needs wine, makensis, zig (python3 -m ziglang) and a screen program. WINDOWS_PYTHON names an archive
# with a Python 3.13 for Windows (a folder `python` with python.exe); without it a small program stands
# in for Python, which writes down how it was called. WINDOWS_INSTALLER names an installer that is
# built already.
. "$(dirname "$0")/common.sh"
PLACE="$WORK/windows"
HERE="$CHECKOUT/installer/windows/trial"
SHOTS="$PLACE/pictures"
export WINEPREFIX="$PLACE/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winedbg.exe="
export PATH="$PATH:/usr/lib/wine"
export UV_HTTP_TIMEOUT=600 UV_HTTP_RETRIES=0 # wine writes files slowly
CHILDREN=()
SYSTEM="$WINEPREFIX/drive_c/windows/system32"

main() {
    need makensis:nsis wine:wine Xvfb:xvfb xdotool:xdotool import:imagemagick
    rm -rf "$PLACE"
    mkdir -p "$PLACE/dist" "$SHOTS"
    trap finish EXIT
    SETUP=${WINDOWS_INSTALLER:-}
    if [ -z "$SETUP" ]; then
        step "build the installer" python3 "$CHECKOUT/installer" package --windows --out "$PLACE/dist"
        SETUP=$(echo "$PLACE"/dist/*.exe)
    fi
    note "installer" "" "$(size_of "$SETUP")"
    start_display
    step "a Windows that nothing is on" new_windows
    LOCAL=$(echo "$WINEPREFIX"/drive_c/users/*/AppData/Local)
    PROGRAM="$LOCAL/Programs/Medusa Chat"
    step "things of the user's own" own_things
    step "without a network the installation fails and says so" no_network
    step "a mirror of Pythons on loopback" start_mirror
    step "bytes that uv doesn't know are refused" unknown_bytes
    export UV_PYTHON_DOWNLOADS_JSON_URL=$MIRROR_ADDRESS/list.json
    step "silent installation" install_silently
    note "program" "" "$(size_of "$PROGRAM")"
    step "medusa in a terminal" run_command
    step "the shortcut of the window" run_shortcut
    step "silent removal" remove_silently
    step "visible installation" install_visibly
    step "an update while it is installed" win "$SETUP" /S
    step "visible removal leaves what was there before" remove_visibly
    echo "  pictures: $SHOTS"
}

finish() {
    wineserver -k || wineserver64 -k || true
    for child in "${CHILDREN[@]}"; do kill "$child" || true; done
} 2> /dev/null

start_display() {
    exec 3< <(exec Xvfb -displayfd 1 -screen 0 1000x750x24 2> /dev/null)
    CHILDREN+=($!)
    read -r display <&3
    export DISPLAY=":$display"
}

# Python under wine takes pipes, but neither /dev/null nor files.
win() {
    : | wine "$@" 2>&1 | cat
    return "${PIPESTATUS[1]}"
}

compile() {
    if command -v python-zig > /dev/null; then
        python-zig cc -target x86_64-windows-gnu -O2 -s "$@"
    else
        python3 -m ziglang cc -target x86_64-windows-gnu -O2 -s "$@"
    fi
}

# holds FILE TEXT...
holds() {
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$file" || { cat "$file"; echo "There is no: $text"; return 1; }
    done
}

wait_for_window() {
    for _ in $(seq 240); do
        xdotool search --onlyvisible --name "$1" > /dev/null 2>&1 && sleep 3 && return
        sleep 1
    done
    echo "No window $1 came up."
    return 1
}

shot() { import -window root "$SHOTS/$1.png"; }

# Files of the user, and what Windows knows of programs. The uninstaller runs from a copy in ~nsu.tmp,
# which Windows removes at its next start; keys that a real Windows always has are of no matter.
state() {
    find "$WINEPREFIX/drive_c/users" -type f -not -path '*/~nsu*' | sort
    for key in 'Software\Classes' Environment 'Software\Microsoft\Windows\CurrentVersion\Uninstall'; do
        win reg query "HKCU\\$key" /s | tr -d '\r' | sed '/^$/d; /^reg: /d' || true
    done
}

new_windows() {
    win wineboot -i && win winecfg -v win10 || return
    [ -e "$SYSTEM/bcryptprimitives.dll" ] ||
        compile -shared "$HERE/prng.c" -ladvapi32 -o "$SYSTEM/bcryptprimitives.dll"
}

own_things() {
    mkdir -p "$LOCAL/medusa-chat/medusa-chat" && echo mine > "$LOCAL/medusa-chat/medusa-chat/history.db"
    state > "$PLACE/before"
}

fails_with() { # STATUS
    local status=0
    win "$SETUP" /S || status=$?
    [ "$status" = "$1" ] || { echo "It ended with $status."; return 1; }
}

no_network() { UV_OFFLINE=1 fails_with 4; }

start_mirror() {
    local archive=${WINDOWS_PYTHON:-} name
    STAND_IN=""
    if [ -z "$archive" ]; then
        STAND_IN=yes archive="$PLACE/python.tar.gz"
        mkdir -p "$PLACE/python"
        for name in python pythonw; do
            compile "$HERE/python.c" -lshell32 -o "$PLACE/python/$name.exe" || return
        done
        tar -C "$PLACE" -czf "$archive" python || return
    fi
    exec 4< <(exec python3 "$HERE/mirror.py" "$archive" windows 2> "$PLACE/asked")
    CHILDREN+=($!)
    read -r MIRROR_ADDRESS <&4
}

unknown_bytes() {
    UV_PYTHON_INSTALL_MIRROR=$MIRROR_ADDRESS/mirror fails_with 4 &&
        holds "$PLACE/asked" "GET /mirror/" "x86_64-pc-windows-msvc-install_only_stripped.tar.gz"
}

install_silently() {
    win "$SETUP" /S && state > "$PLACE/installed" &&
        holds "$PLACE/installed" 'pythonw.exe" -E -s -X utf8' 'launch.py" medusa-chat "%1"' \
            "Start Menu/Programs/Medusa Chat/Medusa Chat.lnk" "Microsoft/WindowsApps/medusa.cmd" \
            "Medusa Chat/installer/bootstrap/cli.py"
}

# called TEXT...: how the stand-in was called last.
called() { [ -z "$STAND_IN" ] || holds "$WINEPREFIX/drive_c/called.txt" "$@"; }

run_command() {
    local status=0
    win cmd /c "$(winepath -w "$LOCAL/Microsoft/WindowsApps/medusa.cmd")" chat "a b" > "$PLACE/said" || status=$?
    cat "$PLACE/said"
    if [ -n "$STAND_IN" ]; then
        called '<-E>' '<-s>' '<-X>' '<utf8>' 'launch.py>' '<medusa>' '<chat>' '<a b>'
    else
        [ "$status" = 2 ] && holds "$PLACE/said" "isn't set up"
    fi
}

run_shortcut() {
    local link
    link=$(find "$WINEPREFIX/drive_c/users" -name "Medusa Chat.lnk" | head -n 1)
    win start /wait "$(winepath -w "$link")" &
    if [ -n "$STAND_IN" ]; then
        wait $! && called 'launch.py>' '<medusa-chat>'
    else
        wait_for_window "Medusa" && shot first-start && { wineserver -k || wineserver64 -k; }
    fi
}

remove_silently() {
    win "$PROGRAM/Uninstall.exe" /S "_?=C:${PROGRAM#*drive_c}" || return
    called '<uninstall>' '<--yes>' '<--keep-data>'
    rm -rf "$PROGRAM/Uninstall.exe"
    [ ! -e "$PROGRAM" ] || rmdir "$PROGRAM" && compare
}

compare() {
    rm -f "$WINEPREFIX/drive_c/called.txt"
    state > "$PLACE/after" && diff "$PLACE/before" "$PLACE/after"
}

install_visibly() {
    win "$SETUP" &
    wait_for_window "Medusa Chat Setup" || return
    shot installer-1
    xdotool key Return && sleep 3 && shot installer-2
    xdotool key Return && sleep 40 && shot installer-3
    xdotool key space key Return # without a start
    wait $!
}

remove_visibly() {
    win "$PROGRAM/Uninstall.exe" &
    wait_for_window "Medusa Chat Uninstall" || return
    shot uninstaller
    xdotool key Return
    for _ in $(seq 300); do
        [ -e "$PROGRAM" ] || break
        sleep 1
    done
    sleep 5
    xdotool key Return && sleep 5
    [ ! -e "$PROGRAM" ] && compare
}

main
