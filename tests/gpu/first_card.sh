#!/usr/bin/env bash
# For the day a card is at hand: what it is, whether our kernels are right, how fast it copies, T(n)
# of a random 7B beside plan and prediction, by default and by tuned launches, the GPU tests.
#
#     tests/gpu/first_card.sh [--dry-run] [RESULTS]
#
# RESULTS is a file, or a folder for first_card_results.txt; without it $OUT, else the folder where
# this is called. Needs python3 with torch; each part says what else it lacks and fails alone. All of
# it takes less than twelve minutes. --dry-run tries the same code with small sizes on the CPU.
# PYTHON names another Python; WHEELS a folder of wheels to use beside its packages, such as
# platformdirs, llguidance, bitsandbytes and gguf.
set -uo pipefail
dry=()
if [ "${1:-}" = --dry-run ]; then
    dry=(--dry-run)
    shift
fi
results=$(realpath -m "${1:-${OUT:-.}}")
if [ -d "$results" ]; then
    results=$results/first_card_results.txt
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
: >"$results" || exit
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The user's files are neither read nor written, and platformdirs isn't needed to find them.
export MEDUSA_HOME=$work/home MEDUSA_REAL_MODELS=$work/models
export PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
num_passed=0

say() {
    echo "$*" | tee -a "$results"
}

# part NAME SECONDS COMMAND...: one part; what it printed until its time was up counts, too.
part() {
    local name=$1 limit=$2 status began=$SECONDS
    shift 2
    say "" && say "== $name (at most $limit s)"
    timeout --signal=INT --kill-after=20 "$limit" "$@" 2>&1 | tee -a "$results"
    status=${PIPESTATUS[0]}
    case $status in
    0) say "-- $name: done in $((SECONDS - began)) s" && num_passed=$((num_passed + 1)) ;;
    124 | 137) say "-- $name: STOPPED after $limit s; what is above was measured" ;;
    *) say "-- $name: FAILED (status $status)" ;;
    esac
}

say "$(date -u +%FT%TZ) $(git rev-parse --short HEAD 2>/dev/null) $(uname -srm)"
if ! "$python" -c "import torch" 2>>"$results"; then
    say "Nothing can be done: $python has no torch. Name another one by PYTHON."
    exit 1
fi
if [ ${#dry[@]} = 0 ] && ! "$python" -c "import sys, torch; sys.exit(not torch.cuda.is_available())"
then
    say "No card: torch finds no CUDA device. Try --dry-run to check this script without one."
    exit 1
fi
if [ -n "${WHEELS:-}" ]; then
    part wheels 30 "$python" -m pip install -q --no-index --no-deps --target "$work/site" "$WHEELS"/*.whl
    export PYTHONPATH=$work/site
fi
measure=("$python" tests/gpu/first_card.py)
if command -v nvidia-smi >/dev/null; then
    part nvidia-smi 10 nvidia-smi
    part "nvidia-smi, clocks and bus" 10 nvidia-smi --format=csv --query-gpu=clocks.max.sm,clocks.max.memory,pcie.link.gen.max,pcie.link.width.max,power.limit
fi
part card 30 "${measure[@]}" card "${dry[@]}"
# Correctness first: it is known after four minutes, whatever happens then.
part "our kernels are right" 60 "${measure[@]}" checks "${dry[@]}"
part "greedy tokens with and without drafts" 110 "${measure[@]}" greedy "${dry[@]}"
part "our kernels' times" 90 "${measure[@]}" kernels "${dry[@]}"
part copies 40 "${measure[@]}" copies "${dry[@]}"
part "T(n) of torch's float16 linear layers" 40 "${measure[@]}" linears "${dry[@]}"
part "T(n) of the engine, Q4_K, and launches" 110 "${measure[@]}" gguf "${dry[@]}"
part "T(n) of the engine, nf4" 100 "${measure[@]}" nf4 "${dry[@]}"
part "T(n) of the engine, fp16" 60 "${measure[@]}" fp16 "${dry[@]}"

# Without pyproject.toml, whose keys need plugins that may be missing.
cat >"$work/pytest.ini" <<INI
[pytest]
pythonpath = $PWD $PWD/resources/models/llama-pebble
addopts = --import-mode=importlib -m gpu
markers =
    gpu: needs a CUDA device
    slow: takes long
    expects_errors: provokes ERROR log records
INI
if ! "$python" -c "import pytest" 2>/dev/null; then
    say "" && say "== GPU tests: pytest isn't installed"
else
    workers=()
    if "$python" -c "import xdist" 2>/dev/null && [ ${#dry[@]} = 0 ]; then
        workers=(-n 4)
    fi
    # A file of tests whose libraries are missing is an error of its own; the others run.
    part "GPU tests" 200 "$python" -m pytest -c "$work/pytest.ini" --rootdir . -p no:cacheprovider \
        -q -rfE --tb=short --durations=10 --continue-on-collection-errors \
        "${workers[@]}" "${dry[@]/--dry-run/--collect-only}" tests/gpu
fi

say "" && say "$num_passed parts succeeded; the results are in $results"
[ "$num_passed" -gt 0 ]
