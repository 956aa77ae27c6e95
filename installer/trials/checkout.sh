# shellcheck shell=bash
# A checkout on a bare Debian root that has python3 alone: README's two commands, typed literally.
# Each failure must end in one message with one command; that command is run, then the next one.
#
# Runs as root. Needs debootstrap. SUITE names the Debian release (default: bookworm). A mirror needs
# the wheels of pip and uv, too; without one, pip's settings of this machine hold in the root.
. "$(dirname "$0")/common.sh"
SUITE=${SUITE:-bookworm}
ROOT="$WORK/bare"
TRANSCRIPT="$WORK/transcript.txt"
STARTED=/root/started
MOST_MESSAGES=1

main() {
    [ "$(id -u)" = 0 ] || { echo "  This must run as root." >&2; exit 1; }
    need debootstrap:debootstrap unshare:util-linux
    if [ ! -e "$WORK/base/etc/debian_version" ]; then
        step "make a Debian root ($SUITE)" debootstrap --variant=minbase "$SUITE" "$WORK/base"
    fi
    rm -rf --one-file-system "$ROOT"
    cp -a "$WORK/base" "$ROOT"
    mkdir -p "$ROOT/medusa" "$ROOT/mirror"
    tar -C "$CHECKOUT" -cf - --exclude=./.venv --exclude=./.git --exclude='./.*_cache' \
        --exclude=./shared . | tar -C "$ROOT/medusa" -xf -
    : > "$TRANSCRIPT"
    # Mounts and processes of the trial end with it.
    unshare --mount --pid --fork --kill-child bash "$0" inside
    rm -rf --one-file-system "$ROOT"
}

trial() {
    mount --make-rprivate /
    mount -t proc proc "$ROOT/proc"
    mount --rbind /dev "$ROOT/dev"
    mount -t tmpfs tmpfs "$ROOT/dev/shm"
    cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
    use_packages
    # As an installation of Debian leaves it: somebody has installed python3, and lists are old.
    step "python3 and nothing else" typed "apt-get update && apt-get install --yes --no-install-recommends python3"
    rm -rf "$ROOT"/var/lib/apt/lists/*
    : > "$TRANSCRIPT"
    step "python3 installer run" follow "QT_QPA_PLATFORM=offscreen python3 installer run" is_running
    note "messages before the window" "" "$(grep -c '^Install: \|^    Install: ' "$TRANSCRIPT" || true)"
    note "environment" "" "$(size_of "$ROOT/medusa/.venv")"
    step "an answer of the demo model" typed \
        ".venv/bin/medusa generate --prompt 'Tell me a story.' --max-new-tokens 24"
    if [ -z "$MIRROR" ]; then
        step "python3 installer test (one room)" follow "python3 installer test --room installer/licences"
    fi
    cp "$TRANSCRIPT" "$LOGS/transcript.txt"
    echo "  Transcript: $LOGS/transcript.txt"
}

# What pip is configured for here holds in the root; with a mirror, only that.
use_packages() {
    local path
    if [ -n "$MIRROR" ]; then
        mount --bind -o ro "$MIRROR" "$ROOT/mirror"
        SETTINGS=(PIP_NO_INDEX=1 PIP_FIND_LINKS=/mirror)
        return
    fi
    mapfile -t SETTINGS < <(env | grep '^PIP_\|^UV_\|_proxy=\|_PROXY=' || true)
    for path in /etc/pip.conf /etc/xdg/pip "$HOME/.config/pip" "${PIP_CERT:-}" ${PIP_FIND_LINKS:-} /opt/pypi /opt/pypi-more; do
        [ -e "$path" ] || continue
        mkdir -p "$ROOT$(dirname "$path")"
        cp -a "$path" "$ROOT$path"
    done
}

# typed COMMAND: in the checkout, as somebody types it.
typed() {
    echo "\$ $1" >> "$TRANSCRIPT"
    chroot "$ROOT" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive MEDUSA_STARTED_FILE="$STARTED" "${SETTINGS[@]}" \
        sh -c "cd /medusa && $1" < <(yes) 2>&1 | tee -a "$TRANSCRIPT"
    return "${PIPESTATUS[0]}"
}

# The window has come up: end it.
is_running() {
    local process
    for _ in $(seq 1800); do
        if [ -e "$ROOT$STARTED" ]; then
            sleep 2
            for process in "$ROOT"/proc/[0-9]*; do
                if tr '\0' ' ' < "$process/cmdline" | grep --quiet -- ' -m app'; then
                    kill -TERM "${process##*/}"
                fi
            done
            return
        fi
        sleep 1
    done
}

# follow COMMAND [WATCH]: do as its messages say until it succeeds.
follow() {
    local command=$1 watch=${2:-true} number install said="$LOGS/said.log" watcher status
    for number in $(seq 0 "$MOST_MESSAGES"); do
        "$watch" &
        watcher=$!
        status=0
        typed "$command" > "$said" || status=$?
        kill "$watcher" 2> /dev/null || true
        if [ "$status" = 0 ] || [ -e "$ROOT$STARTED" ]; then return 0; fi
        install=$(sed -n 's/^ *Install: //p' "$said")
        if [ -z "$install" ] || [ "$number" = "$MOST_MESSAGES" ]; then
            cat "$said"
            echo "It ended with $status after $number commands."
            return 1
        fi
        typed "$install" > "$LOGS/install.log" || { tail -n 5 "$LOGS/install.log"; return 1; }
        command=$(sed -n 's/^ *Then: *//p' "$said")
        case $1 in QT_QPA_PLATFORM=*) command="${1%% *} $command" ;; esac
    done
}

if [ "${1:-}" = inside ]; then trial; else main; fi
