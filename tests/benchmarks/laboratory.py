"""Sweeps and simulations of the method, for engineers.

`python -m tests.benchmarks.laboratory NAME …`, where NAME is

- `epsilon`: tokens per step of typical acceptance against epsilon, its agreement with exact
  sampling, and how likely the model finds the text; `--plot FILE` draws it
- `rows`: trees of all sizes, sparse and dense, against the one that the engine chooses; `--plot`
- `grammar`: tokens per step with drafts that a grammar has masked, and with masked logits alone
- `sampling`: seconds of drawing a token, by filter
- `oracle`: a simulation with drafts that are accepted as often as published heads'
- `sessions`: conversations in one pass, against one alone
- `offload`: steps of a shape of which some layers are on a disk
- `accelerate`: Accelerate's disk offload of the same shape in 16 bits
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from medusa_core.bench.random_target import random_target
from medusa_core.cli.arguments import add_rule_arguments, settings_of
from medusa_core.cli.bench import AUTO, named_modes, open_for_race, random_and_peer
from medusa_core.cli.bench_arguments import print_line, show_progress
from medusa_core.cli.grammar_arguments import add_grammar_arguments, read_grammar
from medusa_core.cli.load_arguments import (
    add_model_arguments,
    open_row_policy,
    open_target,
    options_of,
    placement_options,
    ready,
)
from medusa_core.errors import MedusaError, RequestError
from medusa_core.loading.target import Target
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.system.prompts import BenchPrompt, read_prompts
from medusa_core.system.resources import prompts_dir
from tests.benchmarks.accelerate_offload import accelerate_row
from tests.benchmarks.grammar_gain import grammar_gain_text, measure_grammar_gain
from tests.benchmarks.offload_steps import measure_offload, streamed_table
from tests.benchmarks.oracle import ORACLES, simulate, simulation_text
from tests.benchmarks.plots import plot_epsilon, plot_rows
from tests.benchmarks.rows_sweep import rows_table, sweep_rows
from tests.benchmarks.sampling_cost import sampling_cost, sampling_table
from tests.benchmarks.sessions import ROOM, measure_sessions, sessions_text
from tests.benchmarks.sweep import EPSILONS, sweep_epsilon, sweep_table

_FEW = 8
_ACCELERATE_TOKENS = 8

Figures = Mapping[str, object]


def _epsilon(args: argparse.Namespace, target: Target, prompts: list[BenchPrompt]) -> Figures:
    settings = settings_of(args, "medusa", args.tree_rows)
    if not settings.temperature:
        raise RequestError("At temperature 0 every rule is greedy.", "Choose a --temperature.")
    sweep = sweep_epsilon(target, prompts, settings, args.epsilons, show_progress)
    print(sweep_table(sweep))
    if args.plot is not None:
        plot_epsilon(sweep, args.plot)
    return {"sweep": [asdict(point) for point in sweep.points], "exact": asdict(sweep.exact)}


def _rows(args: argparse.Namespace, target: Target, prompts: list[BenchPrompt]) -> Figures:
    costs = open_row_policy(args, target).costs
    if target.heads is None or costs is None:
        raise RequestError("There are no trees to compare.", "Name heads with --heads.")
    settings = settings_of(args, "medusa", 0)
    sweep = sweep_rows(target, prompts, settings, costs, args.repeats, show_progress)
    print(rows_table(sweep))
    if args.plot is not None:
        plot_rows(sweep, args.plot)
    return asdict(sweep)


def _grammar(args: argparse.Namespace, target: Target, prompts: list[BenchPrompt]) -> Figures:
    grammar, gains = read_grammar(args), []
    if not grammar:
        raise RequestError("There is no grammar.", "Name one with --grammar.")
    for name in named_modes(args, target):
        if name != AUTO and drafter_registry().get(name).drafts:
            settings = settings_of(args, name, args.tree_rows)
            gains.append(measure_grammar_gain(target, prompts, settings, grammar, show_progress))
            print(grammar_gain_text(gains[-1]))
    return {"grammar": [asdict(gain) for gain in gains]}


def _sampling(_: argparse.Namespace) -> Figures:
    costs = sampling_cost()
    print(sampling_table(costs))
    return costs


def _oracle(args: argparse.Namespace) -> Figures:
    with random_and_peer(args) as (target, _, peer):
        found = simulate(target, args.oracle, peer, print_line)
    print(simulation_text(found))
    return asdict(found)


def _sessions(args: argparse.Namespace) -> Figures:
    args.num_heads, args.context = 0, args.sessions * ROOM
    if args.shape:
        target = ready(args, random_target(args.shape, options_of(args), 0))
    else:
        target = open_target(args)
    report = measure_sessions(target, args.sessions, print_line)
    print(sessions_text(report))
    return asdict(report)


def _offload(args: argparse.Namespace) -> Figures:
    args.num_heads = 0
    with random_and_peer(args) as (target, load_s, _):
        found = measure_offload(target, placement_options(args).tier_disk, load_s, print_line)
    print(streamed_table(found))
    return asdict(found)


def _accelerate(args: argparse.Namespace) -> Figures:
    disk = placement_options(args).tier_disk
    if disk is None or not args.shape:
        raise RequestError("Accelerate's layers need a disk.", "Name --shape and --tier-disk.")
    memory = round(args.memory_gib * (1 << 30))
    row = accelerate_row(args.shape, disk, memory, _ACCELERATE_TOKENS, print_line)
    print(row)
    return asdict(row)


_WITH_PROMPTS = {"epsilon": _epsilon, "rows": _rows, "grammar": _grammar}
_ALONE = {
    "sampling": _sampling,
    "oracle": _oracle,
    "sessions": _sessions,
    "offload": _offload,
    "accelerate": _accelerate,
}


def run(arguments: list[str] | None = None) -> Figures:
    """Measure what the arguments choose, print it, and return its figures.

    Raises:
        MedusaError: It can't be measured.
    """
    parser = argparse.ArgumentParser(prog="laboratory", description=__doc__)
    parser.add_argument("name", choices=[*_WITH_PROMPTS, *_ALONE])
    parser.add_argument("--prompts", type=Path, default=prompts_dir() / "general.jsonl")
    parser.add_argument("--limit", type=int, default=_FEW)
    parser.add_argument("--max-new-tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--modes", default="")
    parser.add_argument("--plot", type=Path, help="SVG or PNG")
    parser.add_argument("--epsilons", type=_numbers, default=EPSILONS)
    parser.add_argument("--shape", help="random weights of a well-known model")
    parser.add_argument("--oracle", default=ORACLES[0])
    parser.add_argument("--peers", default="", help="llamacpp beside the oracle")
    parser.add_argument("--num-heads", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--json", type=Path)
    add_model_arguments(parser)
    add_rule_arguments(parser)
    add_grammar_arguments(parser)
    args = parser.parse_args(arguments)
    if args.name in _ALONE:
        figures = _ALONE[args.name](args)
    else:
        prompts = list(read_prompts(args.prompts, args.limit))
        with open_for_race(args) as target:
            figures = _WITH_PROMPTS[args.name](args, target, prompts)
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return figures


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split(","))


if __name__ == "__main__":
    try:
        run()
    except MedusaError as error:
        raise SystemExit(f"{error.message} {error.hint}") from error
