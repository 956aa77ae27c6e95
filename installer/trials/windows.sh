# shellcheck shell=bash
# The installer for Windows under wine, as far as that goes without PyTorch: installation, a Python
# from a mirror on loopback, the bootstrap that it runs, removal; what stays is compared with before.
#
# WINDOWS_PYTHON names an archive with a Python 3.13 for Windows (a folder `python` with python.exe);
# without it a small program stands in for Python, and neither bootstrap nor its window are seen.
# WINDOWS_INSTALLER names one that is built already.
. "$(dirname "$0")/common.sh"
PLACE="$WORK/windows"
HERE="$CHECKOUT/installer/windows/trial"
SHOTS="$PLACE/pictures"
export WINEPREFIX="$PLACE/wine" WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml,winedbg.exe="
export PATH="$PATH:/usr/lib/wine"
export UV_HTTP_TIMEOUT=600 UV_HTTP_RETRIES=0 # wine writes files slowly
CHILDREN=()
SYSTEM="$WINEPREFIX/drive_c/windows/system32"
LONG=$(printf 'C:\\a folder %03d;' $(seq 120)) # more than NSIS reads
PORTABLE="Zoë Übel"

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
    DATA="$LOCAL/medusa-chat-program"
    step "things of the user's own" own_things
    step "silent installation" install_silently
    note "program" "" "$(size_of "$PROGRAM")"
    step "without a network it says what to do" no_network
    step "a mirror of Pythons on loopback" start_mirror
    step "bytes that uv doesn't know are refused" unknown_bytes
    step "uv fetches Python" fetch_python
    note "Python${STAND_IN:+ (a stand-in)}" "" "$(size_of "$DATA/python")"
    step "the launcher runs the bootstrap" run_launcher
    step "a portable folder with a name of its own" run_portable
    step "the window that fetches Python" fetch_window
    if [ -z "$STAND_IN" ]; then
        step "the window of the first start; no removal while it is open" first_start
        step "a failure is shown" show_failure
    fi
    step "removal with a MEDUSA_HOME that is no whole path" remove_nowhere
    step "removal of a portable folder" remove_portable
    step "visible installation" install_visibly
    step "removal leaves what was there before" remove
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

zig() {
    if command -v python-zig > /dev/null; then python-zig "$@"; else python3 -m ziglang "$@"; fi
}

compile() { zig cc -target x86_64-windows-gnu -O2 -s "$@"; }

# holds FILE TEXT...
holds() {
    local file=$1 text
    shift
    for text in "$@"; do
        grep -qF -- "$text" "$file" || { cat "$file"; echo "There is no: $text"; return 1; }
    done
}

# says STATUS TEXT COMMAND...: the command ends so, and says that.
says() {
    local wanted=$1 text=$2 status=0
    shift 2
    win "$@" > "$PLACE/said" 2>&1 || status=$?
    [ "$status" = "$wanted" ] || { cat "$PLACE/said"; echo "It ended with $status."; return 1; }
    holds "$PLACE/said" "$text"
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
    win reg add 'HKCU\Environment' /v Path /t REG_EXPAND_SZ /d "$LONG%USERPROFILE%\\x" /f &&
        state > "$PLACE/before"
}

install_silently() {
    win "$SETUP" /S && state > "$PLACE/installed" &&
        holds "$PLACE/installed" "$LONG%USERPROFILE%\\x;" '\MedusaChat.exe" "%1"' \
            "Start Menu/Programs/Medusa Chat/Medusa Chat.lnk" "Medusa Chat/installer/bootstrap/cli.py"
}

no_network() {
    says 1 "--yes" "$PROGRAM/medusa.exe" chat &&
        UV_OFFLINE=1 says 1 "UV_PYTHON_INSTALL_MIRROR" "$PROGRAM/medusa.exe" --yes
}

start_mirror() {
    local archive=${WINDOWS_PYTHON:-}
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
    UV_PYTHON_INSTALL_MIRROR=$MIRROR_ADDRESS/mirror says 1 "Hash mismatch" "$PROGRAM/medusa.exe" --yes &&
        holds "$PLACE/asked" "GET /mirror/" "x86_64-pc-windows-msvc-install_only_stripped.tar.gz"
}

fetch_python() {
    export UV_PYTHON_DOWNLOADS_JSON_URL=$MIRROR_ADDRESS/list.json
    # Nothing that makes an environment: there wine ends in a function that it lacks.
    win "$PROGRAM/medusa.exe" repair --yes > "$PLACE/said" 2>&1 || true
    cat "$PLACE/said"
    [ -n "$(find "$DATA/python" -name pythonw.exe)" ]
}

run_launcher() {
    if [ -z "$STAND_IN" ]; then
        says 2 "isn't set up" "$PROGRAM/medusa.exe" chat
        return
    fi
    says 0 "<utf8>" "$PROGRAM/medusa.exe" chat "a b" 'ä"q' &&
        holds "$PLACE/said" 'launch.py>' '<medusa>' '<chat>' '<a b>' '<ä"q>'
}

run_portable() {
    local folder="$WINEPREFIX/drive_c/$PORTABLE/x"
    mkdir -p "$folder/program/python"
    cp -R "$DATA"/python/cpython-* "$folder/program/python/"
    local text="<chat>" status=0
    [ -n "$STAND_IN" ] || { text="isn't set up" status=2; }
    MEDUSA_HOME="C:\\$PORTABLE\\x" says "$status" "$text" "$PROGRAM/medusa.exe" chat || return
    rm -rf "${folder%/x}"
}

fetch_window() {
    local window status=0
    mv "$DATA/python" "$PLACE/kept"
    win "$PROGRAM/MedusaChat.exe" 'C:\a b\ä.gguf' &
    window=$!
    wait_for_window "Medusa Chat" || return
    shot fetch-python
    xdotool key Escape
    wait "$window" || status=$?
    mv "$PLACE/kept" "$DATA/python"
    [ "$status" = 1 ]
}

first_start() {
    local window
    win "$PROGRAM/MedusaChat.exe" &
    window=$!
    wait_for_window "Medusa" || return
    sleep 15
    shot first-start
    win "$PROGRAM/Uninstall.exe" /S "_?=C:${PROGRAM#*drive_c}"
    [ -f "$PROGRAM/launch.py" ] || return
    wineserver -k || wineserver64 -k
    wait "$window" || true
}

show_failure() {
    cp "$PROGRAM/launch.py" "$PLACE/launch.py"
    echo 'raise SystemExit("Something is broken: ä")' > "$PROGRAM/launch.py"
    win "$PROGRAM/MedusaChat.exe" &
    wait_for_window "Medusa Chat" || return
    shot failure
    xdotool key Return
    wait $!
    [ $? = 1 ] && cp "$PLACE/launch.py" "$PROGRAM/launch.py"
}

# uninstall HOME: silently, from the folder that a relative HOME would be relative to.
uninstall() {
    (cd "$WINEPREFIX/drive_c" && MEDUSA_HOME=$1 win "$PROGRAM/Uninstall.exe" /S "_?=C:${PROGRAM#*drive_c}")
}

remove_nowhere() {
    local folder="$WINEPREFIX/drive_c/x/program/cache" home
    mkdir -p "$folder" "$LOCAL/medusa-chat/medusa-chat/Logs" && touch "$folder/mine" || return
    for home in x 'C:x' '\x' 'C:\x" "C:\x\program' 'C:\*'; do
        uninstall "$home" || return
        if [ ! -e "$folder/mine" ] || [ ! -e "$DATA" ] || [ -e "$PROGRAM/launch.py" ]; then
            echo "MEDUSA_HOME=$home" && return 1
        fi
        win "$SETUP" /S || return
    done
    [ -e "$LOCAL/medusa-chat/medusa-chat/Logs" ] && rm -r "$WINEPREFIX/drive_c/x"
}

remove_portable() {
    local folder="$WINEPREFIX/drive_c/$PORTABLE 100%"
    mkdir -p "$folder/program/cache/x" "$folder/program/mine" "$folder/cache/x"
    uninstall "C:/$PORTABLE 100%/" || return
    [ ! -e "$folder/program/cache" ] && [ -e "$folder/program/mine" ] && [ -e "$folder/cache/x" ] &&
        [ -e "$DATA" ] && rm -r "$folder" && win "$SETUP" /S
}

install_visibly() {
    win "$SETUP" &
    wait_for_window "Medusa Chat Setup" || return
    shot installer-1
    xdotool key Return && sleep 3 && shot installer-2
    xdotool key Return && sleep 20 && shot installer-3
    xdotool key space key Return # without a start
    wait $!
}

remove() {
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
    state > "$PLACE/after"
    [ ! -e "$DATA" ] && [ ! -e "$PROGRAM" ] && diff "$PLACE/before" "$PLACE/after"
}

main
