#!/usr/bin/env bash
# Tries the installer for Windows under wine, as far as that goes without PyTorch:
#     installer/windows/try.sh MedusaChat-VERSION-windows-x86_64.exe [PYTHON.tar.gz]
# PYTHON.tar.gz: a Python for Windows in the layout of uv's (a folder `python` with python.exe), 3.13;
# without it a small program stands in for Python, and the bootstrap doesn't run.
# Needs wine, Xvfb, xdotool, ImageMagick, python3 and zig (ziglang). SHOTS=DIR keeps the pictures.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
setup=$(realpath "$1")
python_archive=${2:+$(realpath "$2")}
work=$(mktemp -d)
shots=${SHOTS:-$work/shots}
mkdir -p "$shots"
export WINEPREFIX=$work/wine WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
export PATH=$PATH:/usr/lib/wine
children=()
finish() {
    status=$?
    wineserver -k 2>/dev/null || wineserver64 -k 2>/dev/null || true
    for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
    rm -rf "$work"
    [ "$status" = 0 ] && echo "windows: all as it should be." || echo "windows: FAILED."
}
trap finish EXIT
fail() {
    echo "  NOT AS IT SHOULD BE: $1"
    exit 1
}
step() {
    now=$(date +%s)
    [ -z "${begun:-}" ] || echo "  $((now - begun)) s"
    begun=$now
    echo "$1"
}
holds() { grep -qF -- "$2" "$1" || { cat "$1"; fail "$1 lacks: $2"; }; }
# wine gives a program no valid standard input of /dev/null.
win() { : | wine "$@"; }
# Waits for a file or a folder to appear, or, with "!", to go.
wait_for() {
    for _ in $(seq 240); do
        if [ "${2:-}" = ! ]; then [ -e "$1" ] || return 0; elif [ -e "$1" ]; then return 0; fi
        sleep 1
    done
    fail "waited in vain for $1"
}
shot() { import -window root "$shots/$1.png"; }
wait_for_window() {
    for _ in $(seq 240); do
        xdotool search --onlyvisible --name "$1" >/dev/null 2>&1 && sleep 2 && return 0
        sleep 1
    done
    fail "no window $1 came up"
}
zig() { "$(command -v python-zig || echo zig)" "$@"; }

step "A Windows that nothing is on ($(wine --version))"
exec 3< <(exec Xvfb -displayfd 1 -screen 0 1000x750x24 2>/dev/null)
children+=($!)
read -r display <&3
export DISPLAY=:$display
win wineboot -i >/dev/null 2>&1
win winecfg -v win10 >/dev/null 2>&1
user=$(echo "$WINEPREFIX"/drive_c/users/*/AppData | head -n 1)
local="$user/Local"
program="$local/Programs/Medusa Chat"
data="$local/medusa-chat-program"
build=(zig cc -target x86_64-windows-gnu -O2 -s)
if [ ! -e "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" ]; then
    echo "  this wine lacks bcryptprimitives.dll: the trial brings its own"
    "${build[@]}" -shared "$here/trial/prng.c" -ladvapi32 \
        -o "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll"
fi
long=$(printf 'C:\\a folder %03d;' $(seq 120)) # longer than NSIS reads
win reg add 'HKCU\Environment' /v Path /t REG_EXPAND_SZ /d "$long%USERPROFILE%\\x" /f >/dev/null
mkdir -p "$local/medusa-chat/medusa-chat"
echo history >"$local/medusa-chat/medusa-chat/history.db"
state() {
    find "$WINEPREFIX/drive_c/users" -type f | sort
    # Values that wine writes itself are of no matter.
    for key in 'HKCU\Software\Classes' 'HKCU\Environment' \
        'HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall'; do
        win reg query "$key" /s 2>/dev/null | tr -d '\r' || true
    done
}
state >"$work/before"

step "Silent installation ($(du -h "$setup" | cut -f1) installer)"
win "$setup" /S
for name in MedusaChat.exe medusa.exe uv.exe launch.py installer/bootstrap/launch.py; do
    [ "$name" = installer/bootstrap/launch.py ] || [ -f "$program/$name" ] || fail "$name is missing"
done
echo "  $(du -sh "$program" | cut -f1) in $(find "$program" -type f | wc -l) files"
state >"$work/installed"
holds "$work/installed" "$long%USERPROFILE%\\x;"
holds "$work/installed" 'MedusaChat.exe" "%1"'
holds "$work/installed" "Start Menu/Programs/Medusa Chat/Medusa Chat.lnk"
[ "$(cat "$local/medusa-chat/medusa-chat/history.db")" = history ] || fail "the history was touched"

step "No network, nobody who answers"
: | UV_OFFLINE=1 wine "$program/medusa.exe" chat >"$work/said" 2>&1 && fail "status 0"
holds "$work/said" "--yes"
: | UV_OFFLINE=1 UV_HTTP_RETRIES=0 wine "$program/medusa.exe" --yes >"$work/said" 2>&1 && fail "status 0"
holds "$work/said" "UV_PYTHON_INSTALL_MIRROR"

step "A Python from a mirror on loopback"
if [ -z "$python_archive" ]; then
    mkdir -p "$work/python"
    for name in python pythonw; do
        "${build[@]}" "$here/trial/python.c" -lshell32 -o "$work/python/$name.exe"
    done
    python_archive=$work/python.tar.gz
    tar -C "$work" -czf "$python_archive" python
    is_real=
else
    is_real=1
fi
exec 4< <(exec python3 "$here/trial/mirror.py" "$python_archive" windows 2>"$work/asked")
children+=($!)
read -r address <&4
export UV_HTTP_TIMEOUT=600 UV_HTTP_RETRIES=0 # wine writes files slowly
: | UV_PYTHON_INSTALL_MIRROR=$address/mirror wine "$program/medusa.exe" --yes >"$work/said" 2>&1 &&
    fail "bytes that uv doesn't know were taken"
holds "$work/said" "Hash mismatch"
grep -oE 'GET /mirror/[^ ]+' "$work/asked" | head -n 1 | sed 's/^/  uv asked: /'
export UV_PYTHON_DOWNLOADS_JSON_URL=$address/list.json
win "$program/medusa.exe" --yes chat "a b" 'ä"q' >"$work/said" 2>&1 || true
[ -n "$(find "$data/python" -name pythonw.exe)" ] || { cat "$work/said"; fail "Python isn't there"; }
echo "  $(du -sh "$data/python" | cut -f1) of Python$([ -n "$is_real" ] || echo " (a stand-in)")"

step "The launcher runs the bootstrap with what was typed"
rm -rf "$data/python/.temp"
if [ -n "$is_real" ]; then
    win "$program/medusa.exe" chat >"$work/said" 2>&1 && fail "status 0"
    holds "$work/said" "set up"
else
    win "$program/medusa.exe" chat "a b" 'ä"q' >"$work/said" 2>&1
    for word in '<utf8>' 'launch.py>' '<medusa>' '<chat>' '<a b>' '<ä"q>'; do
        holds "$work/said" "$word"
    done
fi

step "A portable folder with a name of its own"
portable="$WINEPREFIX/drive_c/Zoë Übel/x"
mkdir -p "$portable/program/python"
cp -R "$data/python/cpython-"* "$portable/program/python/"
: | MEDUSA_HOME='C:\Zoë Übel\x' wine "$program/medusa.exe" chat >"$work/said" 2>&1 || true
grep -qF "$([ -n "$is_real" ] && echo "set up" || echo "<chat>")" "$work/said" || fail "$(cat "$work/said")"
rm -rf "$WINEPREFIX/drive_c/Zoë Übel"

step "The window that fetches Python"
mv "$data/python" "$work/kept"
win "$program/MedusaChat.exe" 'C:\a b\ä.gguf' &
wait_for_window "Medusa Chat"
shot fetch-python
xdotool key Escape
wait $! && fail "status 0" || [ $? = 1 ] || fail "another status than 1"
mv "$work/kept" "$data/python"

if [ -n "$is_real" ]; then
    step "The window of the first start, and a removal that waits for it"
    win "$program/MedusaChat.exe" &
    running=$!
    wait_for_window "Medusa"
    sleep 10
    shot first-start
    win "$program/Uninstall.exe" /S "_?=C:${program#*drive_c}" && fail "it was removed while it ran"
    [ -f "$program/launch.py" ] || fail "launch.py was removed while it ran"
    xdotool search --onlyvisible --name "Medusa" windowfocus key Escape || true
    wineserver -k 2>/dev/null || wineserver64 -k
    wait "$running" || true

    step "A failure is shown"
    cp "$program/launch.py" "$work/launch.py"
    echo 'raise SystemExit("Something is broken: ä")' >"$program/launch.py"
    win "$program/MedusaChat.exe" &
    running=$!
    wait_for_window "Medusa Chat"
    shot failure
    xdotool key Return
    wait "$running" && fail "status 0"
    cp "$work/launch.py" "$program/launch.py"
fi

step "Visible installation over it, and removal"
win "$setup" &
wait_for_window "Medusa Chat Setup"
for page in welcome components finish; do
    sleep 3
    [ "$page" != finish ] || sleep 15
    shot "installer-$page"
    [ "$page" != finish ] || xdotool key space # doesn't start it
    xdotool key Return
done
wait $!
win "$program/Uninstall.exe" &
wait_for_window "Medusa Chat Uninstall"
sleep 2
shot uninstaller
xdotool key Return
wait_for "$program" !
sleep 3
xdotool key Return
sleep 3
state >"$work/after"
diff "$work/before" "$work/after" || fail "something stays, or is gone (see above)"
[ ! -e "$data" ] || fail "$data stays"
echo "  nothing stays but the conversations, which nobody asked to delete"
step "Pictures: $shots"
