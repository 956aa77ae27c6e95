# shellcheck shell=bash
# The wheel in an empty environment, as pip installs it: both commands start, a model answers.
#
# PYTHON names a Python of a version that the program supports (default: python3).
. "$(dirname "$0")/common.sh"
PYTHON=${PYTHON:-python3}
PLACE="$WORK/wheel"
PROGRAMS="$PLACE/env/bin"

main() {
    local wheel pip
    rm -rf "$PLACE"
    mkdir -p "$PLACE/dist"
    # The environment's own: nothing of the checkout is on its path.
    cd "$PLACE" || exit
    export MEDUSA_HOME="$PLACE/home"
    step "build the wheel" env -C "$CHECKOUT" "$PYTHON" installer package --wheel --out "$PLACE/dist"
    wheel=$(echo "$PLACE"/dist/medusa_chat-*.whl)
    note "wheel" "" "$(size_of "$wheel")"
    step "make an environment" "$PYTHON" -m venv env
    pip=("$PROGRAMS/python" -m pip install --quiet --constraint "$CHECKOUT/installer/constraints.txt")
    [ -z "$MIRROR" ] || pip+=(--no-index --find-links "$MIRROR")
    step "pip install" "${pip[@]}" "${wheel}[server]"
    note "environment" "" "$(size_of env)"
    check "both commands are there" test -x "$PROGRAMS/medusa" -a -x "$PROGRAMS/medusa-chat"
    check "it says its version" "$PROGRAMS/medusa" --version
    step "an answer of the demo model" answer
    step "the window comes up and closes" window
}

answer() {
    "$PROGRAMS/medusa" generate --prompt "Tell me a story." --max-new-tokens 24 > answer.txt
    test -s answer.txt
}

window() {
    local pid
    MEDUSA_STARTED_FILE="$PLACE/started" "$PROGRAMS/medusa-chat" --platform offscreen &
    pid=$!
    for _ in $(seq 300); do
        [ -e "$PLACE/started" ] && break
        sleep 0.2
    done
    kill -TERM "$pid"
    wait "$pid"
    test -e "$PLACE/started"
}

main
