# shellcheck shell=bash
# The Debian package in a clean root: first start, an answer, a window, "Open with", upgrade with
# history kept, repair, a second user, removal, purge.
#
# Runs as root. Needs debootstrap, dpkg-dev, debhelper, dh-python, and a checkout that is set up
# (python3 installer run --no-model). SUITE names the Debian release (default: bookworm).
. "$(dirname "$0")/common.sh"
SUITE=${SUITE:-bookworm}
PYTHON=${PYTHON:-python3}
PACKAGES="$WORK/packages"
ROOT="$WORK/root"
PROMPT="Name three colours."

main() {
    [ "$(id -u)" = 0 ] || { echo "  This must run as root." >&2; exit 1; }
    need debootstrap:debootstrap unshare:util-linux dpkg-buildpackage:dpkg-dev dh:debhelper \
        dh_python3:dh-python
    AFTER=$(version_of "$CHECKOUT")
    BEFORE=$(sed -n 's/^## \([^ ]*\) (.*/\1/p' "$CHECKOUT/docs/changelog.md" | sed -n 2p)
    export AFTER BEFORE
    mkdir -p "$PACKAGES"
    build "$AFTER" "$CHECKOUT"
    build_version_before
    rm -rf --one-file-system "$ROOT"
    if [ ! -e "$WORK/base/etc/debian_version" ]; then
        step "make a Debian root ($SUITE)" debootstrap --variant=minbase "$SUITE" "$WORK/base"
    fi
    cp -a "$WORK/base" "$ROOT"
    # Mounts and processes of the trial end with it.
    unshare --mount --pid --fork --kill-child bash "$0" inside
    rm -rf --one-file-system "$ROOT"
}

version_of() {
    sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$1/medusa_core/__init__.py"
}

package() {
    echo "$PACKAGES"/medusa-chat_"$1"_*.deb
}

build() { # VERSION CHECKOUT
    if [ ! -e "$(package "$1")" ]; then
        step "build $1" env -C "$2" "$PYTHON" installer package --deb --out "$PACKAGES"
    fi
    note "package $1" "" "$(size_of "$(package "$1")")"
}

# The version before: this checkout, with its number and without what is new.
build_version_before() {
    local copy="$WORK/before"
    rm -rf "$copy"
    mkdir -p "$copy"
    tar -C "$CHECKOUT" -cf - --exclude=./.venv --exclude=./.git --exclude='./.*_cache' \
        --exclude=./shared . | tar -C "$copy" -xf -
    ln -s "$(readlink -f "$CHECKOUT/.venv")" "$copy/.venv"
    sed -i "s/^__version__ = .*/__version__ = \"$BEFORE\"/" "$copy/medusa_core/__init__.py"
    awk '/^## / { number++ } number != 1' "$CHECKOUT/docs/changelog.md" > "$copy/docs/changelog.md"
    build "$BEFORE" "$copy"
    rm -rf "$copy"
}

# Inside the root -----------------------------------------------------------------------------

in_root() {
    chroot "$ROOT" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
        LC_ALL=C.UTF-8 "$@"
}

# as USER COMMAND: in a shell of that user, without a network where a mirror is given.
as() {
    local offline=()
    [ -z "$MIRROR" ] || offline=(unshare --net)
    "${offline[@]}" chroot "$ROOT" su --login "$1" --shell /bin/sh --command \
        "export LC_ALL=C.UTF-8; $2" < /dev/null
}

# refuses WORDS COMMAND...: it fails, and says these words.
refuses() {
    local words=$1 said
    shift
    if said=$("$@" 2>&1); then
        echo "It didn't fail: $said"
        return 1
    fi
    echo "$said"
    echo "$said" | grep --quiet --fixed-strings -- "$words"
}

says() { # WORDS COMMAND...
    local words=$1
    shift
    "$@" 2>&1 | tee "$LOGS/said.log"
    grep --quiet --fixed-strings -- "$words" "$LOGS/said.log"
}

lacks() { # WORDS COMMAND...
    ! says "$@"
}

mount_all() {
    mount --make-rprivate /
    mount -t proc proc "$ROOT/proc"
    mount --rbind /dev "$ROOT/dev"
    mount -t tmpfs tmpfs "$ROOT/dev/shm"
    mount -t tmpfs tmpfs "$ROOT/tmp"
    chmod 1777 "$ROOT/tmp"
    cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
    mkdir -p "$ROOT/packages" "$ROOT/mirror"
    mount --bind -o ro "$PACKAGES" "$ROOT/packages"
    [ -z "$MIRROR" ] || mount --bind -o ro "$MIRROR" "$ROOT/mirror"
}

prepare() {
    mount_all
    in_root useradd --create-home ann
    in_root useradd --create-home bob
    in_root apt-get update
    # What every desktop has, and this root hasn't.
    in_root apt-get install --yes --no-install-recommends shared-mime-info desktop-file-utils \
        xdg-utils libglib2.0-bin xvfb xauth xdotool scrot procps
}

install_package() { # VERSION
    in_root apt-get install --yes --no-install-recommends "/packages/$(basename "$(package "$1")")"
}

set_up() { # USER
    as "$1" "medusa update --yes ${MIRROR:+--mirror /mirror}"
}

answer() { # USER
    as "$1" "medusa generate --prompt '$PROMPT' --max-new-tokens 24 > answer.txt; cat answer.txt
        test -s answer.txt"
}

# Write all conversations into a file; there must be some.
export_history() { # USER FILE
    as "$1" "rm -f $2.md && medusa history export $2.md && grep -q '$PROMPT' $2.md"
}

# on_screen USER SCRIPT: on a screen of its own, whose pictures are kept.
on_screen() {
    as "$1" "
        set -e
        Xvfb :7 -screen 0 1280x900x24 -nolisten tcp > xvfb.log 2>&1 &
        screen=\$!
        export DISPLAY=:7 QT_QPA_PLATFORM=xcb
        for _ in \$(seq 100); do xdotool getdisplaygeometry > /dev/null 2>&1 && break; sleep 0.1; done
        find_window() { timeout 180 xdotool search --sync --onlyvisible --name '^Medusa Chat' | head -n 1; }
        $2
        kill \$screen
    "
}

# The window comes up, a second start hands it a file, a prompt is typed, it ends by itself.
window() { # USER FILE
    on_screen "$1" "
        began=\$(date +%s.%N)
        medusa-chat > window.log 2>&1 &
        launcher=\$!
        xdotool windowfocus --sync \$(find_window)
        awk -v from=\$began -v to=\$(date +%s.%N) 'BEGIN { printf \"%.1f\n\", to - from }' > window.seconds
        medusa-chat $2
        for _ in \$(seq 300); do grep -qr $2 .config/medusa-chat && break; sleep 1; done
        medusa ps
        grep -r $2 .config/medusa-chat
        xdotool key Escape type '$PROMPT'
        xdotool key Return
        for _ in \$(seq 60); do
            medusa history export said.md > /dev/null && grep -q '$PROMPT' said.md && break
            sleep 2
        done
        scrot --overwrite handed-over.png
        grep '$PROMPT' said.md
        kill -TERM \$(pgrep -P \$launcher)
        wait \$launcher
    "
}

# The first start in the small window: its button is pressed, then the chat's window opens.
first_start_in_a_window() { # USER
    local program=.local/share/medusa-chat-program
    # As somebody who looks after computers leaves it behind.
    [ -z "$MIRROR" ] || as "$1" "mkdir -p $program; echo '{\"mirror\": \"/mirror\", \"torch\": \"auto\"}' > $program/settings.json"
    on_screen "$1" "
        medusa-chat > window.log 2>&1 &
        launcher=\$!
        xdotool windowfocus --sync \$(find_window)
        sleep 2
        scrot --overwrite first-start.png
        xdotool key Return
        sleep 8
        scrot --overwrite progress.png
        for _ in \$(seq 1800); do [ -e $program/current.json ] && break; kill -0 \$launcher; sleep 1; done
        for _ in \$(seq 300); do
            grep -qs '\"model\": \"[^\"]' .local/state/medusa-chat/loaded/* && break
            sleep 1
        done
        medusa ps | grep -i smollm2
        scrot --overwrite chat.png
        kill -TERM \$(pgrep -P \$launcher)
        wait \$launcher
    "
}

# What the window loads misses no library of the system.
find_missing_libraries() { # USER
    local found
    found=$(as "$1" "cd .local/share/medusa-chat-program/versions/$BEFORE
        find . -regextype posix-extended -regex \\
            '.*/(libQt6(Core|Gui|Widgets|Network|DBus|Svg|XcbQpa|WaylandClient).so.6|libq(xcb|wayland[a-z-]*).so)' \\
            | xargs ldd | grep 'not found' | sort -u")
    echo "$found"
    [ -z "$found" ]
}

damage() { # USER
    as "$1" "cd .local/share/medusa-chat-program/versions/$AFTER/lib/python3*/site-packages
        rm -r numpy tokenizers medusa_core"
}

purge() {
    in_root apt-get purge --yes medusa-chat | tee "$LOGS/purge.said"
    grep --quiet /home/ann/.local/share/medusa-chat "$LOGS/purge.said"
    [ -d "$ROOT/home/ann/.local/share/medusa-chat" ]
}

trial() {
    local program=.local/share/medusa-chat-program
    step "prepare the root" prepare
    step "apt install $BEFORE with what it needs" install_package "$BEFORE"
    note "below /usr/lib/medusa-chat" "" "$(size_of "$ROOT/usr/lib/medusa-chat")"
    check "a .gguf file opens with the window" says medusa-chat.desktop \
        as ann "xdg-mime query default application/x-gguf"
    as ann "printf 'GGUF\3\0\0\0' > some.gguf"
    check "its type is known" says application/x-gguf as ann "gio info --attributes standard::content-type some.gguf"
    check "before the first start it says what to do" refuses "medusa update --yes" as ann "medusa list"

    step "first start of ann: environment and model" set_up ann
    note "environment of ann" "" "$(size_of "$ROOT/home/ann/$program/versions/$BEFORE")"
    note "all that ann's first start makes" "" "$(size_of "$ROOT/home/ann/$program")"
    check "it is version $BEFORE" says "$BEFORE" as ann "medusa --version"
    check "no library is missing" find_missing_libraries ann
    step "an answer" answer ann
    cat "$ROOT/home/ann/answer.txt"
    cp "$ROOT/home/ann/$program/models/smollm2-135m-instruct/"*.gguf "$ROOT/home/ann/handed-over.gguf"
    in_root chown ann /home/ann/handed-over.gguf
    step "window, a file handed to it, a chat" window ann /home/ann/handed-over.gguf
    note "until the window was seen" "$(cat "$ROOT/home/ann/window.seconds")" ""
    export_history ann before > /dev/null

    step "apt install $AFTER" install_package "$AFTER"
    check "the version before runs until ann updates" says "$BEFORE" as ann "medusa --version"
    step "update of ann" as ann "medusa update --yes"
    check "it is version $AFTER" says "$AFTER" as ann "medusa --version"
    step "an answer of $AFTER" answer ann
    export_history ann after > /dev/null
    check "conversations are the same" cmp "$ROOT/home/ann/before.md" "$ROOT/home/ann/after.md"
    note "both versions of ann" "" "$(size_of "$ROOT/home/ann/$program")"

    damage ann
    check "without some of its files it doesn't answer" refuses "" as ann "medusa generate --prompt a"
    step "repair" as ann "medusa repair --yes"
    step "an answer after repair" answer ann

    check "bob is told what to do" refuses "medusa update --yes" as bob "medusa list"
    step "first start of bob, in the window" first_start_in_a_window bob
    step "an answer of bob's" answer bob
    check "bob can't read what ann said" refuses "Permission denied" as bob "ls /home/ann/.local/share/medusa-chat"
    step "medusa uninstall of bob" as bob "medusa uninstall --yes"
    check "bob's program is gone, his conversations are not" test ! -e "$ROOT/home/bob/$program" \
        -a -e "$ROOT/home/bob/.local/share/medusa-chat/history.db"

    step "apt remove" in_root apt-get remove --yes medusa-chat
    check "nothing of it is left in the system" test ! -e "$ROOT/usr/lib/medusa-chat" \
        -a ! -e "$ROOT/usr/bin/medusa" -a ! -e "$ROOT/usr/share/metainfo/org.medusachat.MedusaChat.metainfo.xml"
    check ".gguf files open with it no more" lacks medusa-chat.desktop \
        as ann "xdg-mime query default application/x-gguf"
    check "purge names ann's folders, and leaves them" purge
    grep -A20 "Medusa Chat leaves" "$LOGS/purge.said"
    mkdir -p "$WORK/pictures"
    cp "$ROOT"/home/*/*.png "$WORK/pictures/"
    echo "  Pictures: $WORK/pictures"
}

if [ "${1:-}" = inside ]; then trial; else main; fi
