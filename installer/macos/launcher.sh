#!/bin/sh
# Contents/MacOS/medusa-chat and, for terminals, Contents/MacOS/medusa: find the Python of our own, or
# fetch it, and run launch.py with it. PYTHON_VERSION is written in where the bundle is made.
set -u
python_version=PYTHON_VERSION
name=$(basename "$0")
program=$(cd "$(dirname "$0")/../Resources" && pwd -P) || exit 1

# shellcheck source-path=SCRIPTDIR source=folders.sh
. "$program/folders.sh"

# The newest complete Python of ours: 3.13.9 comes before 3.13.10. Empty where there is none.
find_python() {
    newest=-1
    found=
    for folder in "$data/python/cpython-$python_version".*-macos-aarch64-none; do
        patch=${folder##*/cpython-"$python_version".}
        patch=${patch%%-*}
        case $patch in '' | *[!0-9]*) continue ;; esac
        if [ -x "$folder/bin/python$python_version" ] && [ "$patch" -gt "$newest" ]; then
            newest=$patch
            found=$folder/bin/python$python_version
        fi
    done
    echo "$found"
}

in_window() { [ "$name" = medusa-chat ]; }

# A window with a text, a field and two buttons; prints what is in the field. Fails on Cancel.
ask_in_window() {
    osascript - "$1" "$2" <<'APPLESCRIPT'
on run {words, mirror}
    set answer to display dialog words with title "Medusa Chat" default answer mirror ¬
        buttons {"Cancel", "Fetch Python"} default button 2 cancel button 1
    return text returned of answer
end run
APPLESCRIPT
}

complain() {
    if in_window; then
        osascript - "$1" >/dev/null 2>&1 <<'APPLESCRIPT'
on run {words}
    display dialog words with title "Medusa Chat" buttons {"OK"} default button 1 with icon stop
end run
APPLESCRIPT
    else
        printf '%s\n' "$1" >&2
    fi
}

# Whether Python may be fetched; sets `mirror`.
agrees() {
    if in_window; then
        mirror=$(ask_in_window "$1

A mirror, an address or a folder, is needed only if your network needs one:" "$mirror") 2>/dev/null
        return
    fi
    printf '%s\n' "$1" >&2
    for argument; do
        [ "$argument" != --yes ] || return 0
    done
    printf 'Fetch it? [y/n] ' >&2
    if ! read -r answer; then
        printf '\nNobody answered. Run it in a terminal, or add --yes.\n' >&2
        return 1
    fi
    case $answer in [yY]*) return 0 ;; esac
    return 1
}

# A folder as the address that uv takes; an address stays as it is. A folder that holds packages too
# has its Pythons in `python`.
as_address() {
    case $1 in
    *://*)
        echo "$1"
        return
        ;;
    esac
    folder=$(cd "$1" 2>/dev/null && pwd -P) || folder=$1
    [ ! -d "$folder/python" ] || folder=$folder/python
    echo "file://$folder" | sed 's/%/%25/g; s/ /%20/g; s/#/%23/g; s/?/%3F/g'
}

fetch_python() {
    mirror=${UV_PYTHON_INSTALL_MIRROR:-}
    if [ -z "$mirror" ] && [ -r "$data/python-mirror.txt" ]; then
        read -r mirror <"$data/python-mirror.txt"
    fi
    words="Medusa Chat needs Python $python_version. It fetches a copy of its own (about 25 MB), which no \
other program uses, into
$data/python"
    while :; do
        agrees "$words" "$@" || return 1
        unset UV_PYTHON_INSTALL_MIRROR
        rm -f "$data/python-mirror.txt"
        if [ -n "$mirror" ]; then
            UV_PYTHON_INSTALL_MIRROR=$(as_address "$mirror")
            export UV_PYTHON_INSTALL_MIRROR
            # A password may be in it.
            (umask 077 && printf '%s\n' "$mirror" >"$data/python-mirror.txt")
        fi
        # shellcheck disable=SC2015  # the status of both decides
        "$program/uv" python install --no-bin --no-progress \
            "cpython-$python_version-macos-aarch64-none" >"$data/log/python.log" 2>&1 &&
            [ -n "$(find_python)" ] && return 0
        words="Python could not be fetched. Is the network reachable?
$(tail -n 8 "$data/log/python.log")"
        if ! in_window; then
            complain "$words
A mirror is named by the variable UV_PYTHON_INSTALL_MIRROR."
            return 1
        fi
    done
}

# Rosetta says x86_64 on any Mac.
if [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" != 1 ]; then
    complain "Medusa Chat needs a Mac with Apple silicon: PyTorch isn't made for Intel Macs any more."
    exit 1
fi
data=$(data_folder)
if ! mkdir -p "$data/log"; then
    complain "$data can't be written. Check its permissions and the room on the disk."
    exit 1
fi
export UV_PYTHON_INSTALL_DIR="$data/python" UV_CACHE_DIR="$data/cache"
if [ -z "$(find_python)" ]; then
    fetch_python "$@" || exit 2
fi
python=$(find_python)
if ! in_window; then
    exec "$python" -E -s -X utf8 "$program/launch.py" medusa "$@"
fi
"$python" -E -s -X utf8 "$program/launch.py" medusa-chat "$@" >"$data/log/launcher.log" 2>&1
status=$?
# 2 and 130: the user didn't want it set up, or ended it.
case $status in 0 | 2 | 130) exit "$status" ;; esac
log=$data/log/launcher.log
[ -s "$log" ] || log=$data/log/start.log
complain "Medusa Chat ended with an error ($status). In a terminal this mends what is installed; \
conversations stay:
\"$(dirname "$0")/medusa\" repair

$(tail -n 8 "$log" 2>/dev/null)"
exit "$status"
