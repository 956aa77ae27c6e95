"""Prints the time from a command to its first token, in spans, of one or several working trees.

`python -m tests.benchmarks.first_token MODEL [--tree DIR …] [--repeats N] [--how generate | run]`

Trees take turns, and the least of all repeats is printed: other programs make a start longer, never
shorter. CPU seconds are those of all threads, which other programs hardly change.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_CHILD = "--child"
_HERE = Path(__file__).resolve()
_TREE = _HERE.parents[2]
_SPANS = {
    "Progress import": "interpreter and command",
    "Progress weights": "torch, header, tokenizer, plan",
    "ModelLoaded": "weights and heads",
    "AnswerStarted": "threads and calibration",
    "StepDone": "prompt and first token",
}


def process_age_s() -> float:
    """Seconds since this process began."""
    stat = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace")
    ticks = int(stat.rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def child(report: Path, words: list[str]) -> int:
    """Run a command, and write age, CPU seconds and peak memory at the first event of each kind."""
    from medusa_core import client  # of the tree in PYTHONPATH
    from medusa_core.__main__ import main as run_command

    receive, spans, opened = client.Client._receive, {}, []
    sys.addaudithook(
        lambda event, args: (
            opened.append(str(args[0]))
            if event == "open" and str(args[0]).endswith(".gguf")
            else None
        )
    )

    def note(self: client.Client, event: object) -> None:
        stage = getattr(event, "stage", "")
        name = f"{type(event).__name__} {stage}".rstrip()
        if name in _SPANS and name not in spans:
            used = resource.getrusage(resource.RUSAGE_SELF)
            cpu_s, peak_mb = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
            spans[name] = (process_age_s(), cpu_s, peak_mb)
            if name == "StepDone":
                report.write_text(json.dumps(spans), encoding="utf-8")
        receive(self, event)  # type: ignore[arg-type]

    client.Client._receive = note  # type: ignore[method-assign]
    return run_command(words)


def measure(tree: Path, model: Path, how: str) -> dict[str, tuple[float, float, float]]:
    """Start a command in a tree; returns age, CPU seconds and peak memory (MB) by event."""
    ask = ["--prompt", "Say hi.", "--max-new-tokens", "4"] if how == "generate" else ["Say hi."]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "spans"
        words = [how, "--model", str(model), *ask]
        subprocess.run(
            [sys.executable, str(_HERE), _CHILD, str(report), *words],
            env=os.environ | {"PYTHONPATH": str(tree)},
            cwd=tree,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        found: dict[str, tuple[float, float, float]] = json.loads(report.read_text("utf-8"))
        return found


def main() -> int:
    """Print a table of spans for each tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--tree", type=Path, action="append", default=[])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--how", choices=("generate", "run"), default="generate")
    given = parser.parse_args()
    trees = [tree.resolve() for tree in given.tree] or [_TREE]
    runs: dict[Path, list[dict[str, tuple[float, float, float]]]] = {tree: [] for tree in trees}
    for _ in range(given.repeats):
        for tree in trees:
            runs[tree].append(measure(tree, given.model.resolve(), given.how))
    print(f"{given.model.name}, {given.how}: seconds from the command, CPU seconds, peak MB")
    for tree in trees:
        print(tree)
        before = (0.0, 0.0)
        for event, title in _SPANS.items():
            if all(event in run for run in runs[tree]):
                least = [min(run[event][i] for run in runs[tree]) for i in range(3)]
                span = f"+{least[0] - before[0]:.2f} s, +{least[1] - before[1]:.2f} CPU s"
                print(f"  {title:32}{least[0]:7.2f}{least[1]:7.2f}{least[2]:7.0f}   {span}")
                before = (least[0], least[1])
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == [_CHILD]:
        del sys.path[0]  # this file's folder
        sys.exit(child(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main())
