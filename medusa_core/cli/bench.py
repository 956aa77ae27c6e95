"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.cli.arguments import (
    add_rule_arguments,
    check_drafters,
    check_files,
    rule_of,
    settings_of,
)
from medusa_core.cli.bench_arguments import listed_names, show_progress, write_file
from medusa_core.cli.bench_drafters import add_race_arguments, check_race, race
from medusa_core.cli.grammar_arguments import add_grammar_arguments, read_grammar
from medusa_core.cli.load_arguments import (
    add_model_arguments,
    disk_of,
    known_of,
    model_dirs,
    open_row_policy,
    open_target,
    options_of,
    ready,
)
from medusa_core.errors import RequestError
from medusa_core.system.resources import demo_model_dir, prompts_dir

if TYPE_CHECKING:
    from medusa_core.loading.target import Target
    from medusa_core.system.prompts import BenchPrompt

AUTO = "auto"
_FEW = 8  # of the shipped prompts, where none are named

log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `bench`."""
    parser.add_argument(
        "--prompts",
        type=Path,
        help="file of prompts, JSON lines, or a folder of such (default, for --drafters and "
        "--synthetic: a few that ship)",
    )
    parser.add_argument(
        "--step-cost",
        action="store_true",
        help="instead: where the time of a step goes, against what memory allows",
    )
    parser.add_argument(
        "--sampling", action="store_true", help="instead: what drawing a token costs, by filter"
    )
    add_race_arguments(parser)
    parser.add_argument(
        "--modes",
        default="",
        help="drafters, with commas between; auto is the one that the window would choose "
        "(default: none,medusa, or none,auto without Medusa heads)",
    )
    parser.add_argument("--peers", default="", help="other programs, such as transformers")
    parser.add_argument("--shape", help="with --step-cost: random weights of a well-known model")
    parser.add_argument(
        "--oracle",
        help="with --shape, a simulation: drafts are right as often as its published heads'",
    )
    parser.add_argument(
        "--sessions",
        type=int,
        help="with --step-cost: so many conversations in one pass, against one alone",
    )
    parser.add_argument(
        "--throughput",
        type=int,
        metavar="N",
        help="N prompts of --shape or --model under the best policy, against one at a time, the "
        "forecast, and a cache on the device",
    )
    parser.add_argument(
        "--length",
        type=int,
        default=0,
        metavar="L",
        help="with --throughput: tokens of each prompt (default: those of the texts)",
    )
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="with --throughput: this one; see batch"
    )
    parser.add_argument("--num-heads", type=int, default=3, help="random Medusa heads of --shape")
    parser.add_argument("--limit", type=int, help="most prompts, in turns from each category")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="of each answer")
    parser.add_argument("--repeats", type=int, default=1, help="of every prompt")
    parser.add_argument(
        "--sweep",
        choices=("epsilon", "rows"),
        help="instead of comparing modes: tokens per step of typical acceptance against epsilon, "
        "its agreement with exact sampling and how likely the model finds the text; or trees of "
        "all sizes, sparse and dense, against the one chosen",
    )
    parser.add_argument("--plot", type=Path, help="with --sweep: draw it, as SVG or PNG")
    parser.add_argument("--epsilons", default="", help="values to sweep over, commas between")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    add_model_arguments(parser)
    add_rule_arguments(parser)
    add_grammar_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print its tables."""
    check_race(args)
    _check_counts(args)
    check_files([args.json, args.markdown, args.plot])
    _check_modes(args)
    report = _report(args)
    if args.json is not None:
        write_file(args.json, json.dumps(report, indent=2) + "\n")
    return 0


def _report(args: argparse.Namespace) -> Mapping[str, object]:
    # Torch takes a second to import: `--help` and wrong arguments shouldn't wait for it.
    from medusa_core.system.prompts import read_prompts

    if args.oracle:
        return _simulate(args)
    if args.throughput is not None:
        from medusa_core.cli.bench_throughput import run_throughput

        return run_throughput(args, _print_line)
    if args.step_cost:
        return _step_cost(args)
    if args.sampling:
        return _sampling()
    if args.prompts is None and not (args.drafters or args.synthetic):
        raise RequestError("There are no prompts.", "Name a file with --prompts.")
    if args.prompts is None:
        args.prompts, args.limit = prompts_dir() / "general.jsonl", args.limit or _FEW
    prompts = read_prompts(args.prompts, args.limit)
    with _open(args) as target:
        if grammar := read_grammar(args):
            return _measure_grammar(args, target, prompts, grammar)
        if args.synthetic or args.drafters:
            return race(args, target, prompts)
        sweeps = {"epsilon": _sweep_epsilon, "rows": _sweep_rows}
        return sweeps.get(args.sweep, _race)(args, target, prompts)


@contextmanager
def _open(args: argparse.Namespace) -> Iterator[Target]:
    """The target with all drafters that it has in the window, and nothing learned yet."""
    from medusa_core.loading.load import load_target

    with tempfile.TemporaryDirectory(prefix="medusa-learned-") as folder:
        options = replace(options_of(args), datastore_dir=Path(folder))
        target = ready(args, load_target(*model_dirs(args), options))
        try:
            yield target
        finally:
            if target.learned is not None:
                target.learned.close()


def _measure_grammar(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt], grammar: str
) -> dict[str, object]:
    from medusa_core.bench.grammar_gain import grammar_gain_text, measure_grammar_gain
    from medusa_core.speculation.drafters.lineup import drafter_registry

    gains = []
    for name in _modes(args, target):
        if name != AUTO and drafter_registry().get(name).drafts:
            settings = settings_of(args, name, args.tree_rows)
            gains.append(measure_grammar_gain(target, prompts, settings, grammar, show_progress))
            print(grammar_gain_text(gains[-1]))
    return {"grammar": [asdict(gain) for gain in gains]}


def _sampling() -> dict[str, float]:
    from medusa_core.bench.sampling_cost import sampling_cost, sampling_table

    costs = sampling_cost()
    print(sampling_table(costs))
    return costs


def _sweep_epsilon(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    from medusa_core.bench.plot import plot_epsilon
    from medusa_core.bench.sweep import sweep_epsilon, sweep_table

    settings = settings_of(args, "medusa", args.tree_rows)
    if not settings.temperature:
        raise RequestError("At temperature 0 every rule is greedy.", "Choose a --temperature.")
    sweep = sweep_epsilon(target, prompts, settings, _epsilons(args.epsilons), show_progress)
    print(sweep_table(sweep))
    if args.plot is not None:
        plot_epsilon(sweep, args.plot)
    return {"sweep": [asdict(point) for point in sweep.points], "exact": asdict(sweep.exact)}


def _sweep_rows(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    from medusa_core.bench.plot import plot_rows
    from medusa_core.bench.rows_sweep import rows_table, sweep_rows

    costs = open_row_policy(args, target).costs
    if target.heads is None or costs is None:
        raise RequestError("There are no trees to compare.", "Name heads with --heads.")
    settings = settings_of(args, "medusa", 0)
    sweep = sweep_rows(target, prompts, settings, costs, args.repeats, show_progress)
    print(rows_table(sweep))
    if args.plot is not None:
        plot_rows(sweep, args.plot)
    return asdict(sweep)


def _step_cost(args: argparse.Namespace) -> dict[str, object]:
    from medusa_core.bench.step_cost import as_json, measure_step_report, step_table
    from medusa_core.speculation.drafters.lineup import drafter_registry

    if args.sessions is not None:
        return _sessions(args)
    if args.peers:
        return _step_race(args)
    if args.shape and disk_of(args) is not None:
        return _offload_plan(args)
    target = _random(args) if args.shape else open_target(args)
    named = [name for name in _modes(args, target) if name != AUTO]
    modes = [name for name in named if drafter_registry().get(name).can_draft(target)]
    report = measure_step_report(target, modes, args.max_new_tokens)
    if target.runner_note:
        print(target.runner_note)
    print(step_table(report))
    return as_json(report)


def _sessions(args: argparse.Namespace) -> dict[str, object]:
    from medusa_core.bench.sessions import ROOM, measure_sessions, sessions_text

    args.num_heads, args.context = 0, args.sessions * ROOM
    target = _random(args) if args.shape else open_target(args)
    report = measure_sessions(target, args.sessions, _print_line)
    print(sessions_text(report))
    return asdict(report)


def _step_race(args: argparse.Namespace) -> dict[str, object]:
    """Steps against llama.cpp's: of one GGUF file, or of random weights of one type."""
    from medusa_core.bench.step_race import race_steps, race_table

    args.num_heads = 0
    with (_random_and_peer if args.shape else _file_and_peer)(args) as (target, load_s, peer):
        race = race_steps(target, load_s, peer, _print_line)
    print(race_table(race))
    return asdict(race)


def _offload_plan(args: argparse.Namespace) -> dict[str, object]:
    """Steps of random weights of which some layers lie on a disk."""
    from medusa_core.bench.offload import measure_offload, streamed_table

    args.num_heads = 0
    with _random_and_peer(args) as (target, load_s, _):
        found = measure_offload(target, disk_of(args), load_s, _print_line)
    print(streamed_table(found))
    return asdict(found)


def _simulate(args: argparse.Namespace) -> dict[str, object]:
    from medusa_core.bench.oracle import simulate, simulation_text

    if not args.shape:
        raise RequestError("A simulation needs a shape.", "Say --shape vicuna-7b, for example.")
    with _random_and_peer(args) as (target, _, peer):
        found = simulate(target, args.oracle, peer, _print_line)
    print(simulation_text(found))
    return asdict(found)


@contextmanager
def _file_and_peer(args: argparse.Namespace) -> Iterator[tuple[Target, float, Path]]:
    """A GGUF file loaded, the seconds that took, and the file for llama.cpp."""
    from medusa_core.loading.load import load_target

    model, _ = model_dirs(args)
    if listed_names(args.peers) != ["llamacpp"] or model.is_dir():
        raise RequestError(
            "Steps are compared with llama.cpp's alone, of a GGUF file or of random weights.",
            "Say --peers llamacpp, and --model FILE.gguf or --shape vicuna-7b --quant q4_0.",
        )
    started = time.perf_counter()
    target = load_target(model, None, options_of(args))
    load_s = time.perf_counter() - started
    yield ready(args, target), load_s, model


@contextmanager
def _random_and_peer(args: argparse.Namespace) -> Iterator[tuple[Target, float, Path | None]]:
    """Random weights loaded, the seconds that took, and the same ones as GGUF if asked for."""
    from medusa_core.bench.gguf_export import write_random_gguf
    from medusa_core.bench.random_target import shape_config

    peers = listed_names(args.peers)
    if peers not in ([], ["llamacpp"]) or not args.quant:
        raise RequestError(
            "Random weights of one type are compared with llama.cpp's alone.",
            "Say --peers llamacpp --quant q4_0, for example.",
        )
    args.lm_head_quant, args.context = args.lm_head_quant or args.quant, args.context or 1024
    with tempfile.TemporaryDirectory(prefix="medusa-gguf-") as folder:
        peer = Path(folder) / "model.gguf" if peers else None
        if peer is not None:
            _print_line("writing the weights for llama.cpp")
            write_random_gguf(shape_config(args.shape), args.quant, peer)
        _print_line("making ours")
        started = time.perf_counter()
        target = _random(args)
        yield target, time.perf_counter() - started, peer


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _random(args: argparse.Namespace) -> Target:
    from medusa_core.bench.random_target import random_target

    return ready(args, random_target(args.shape, options_of(args), args.num_heads))


def _race(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    from medusa_core.bench.contestant import Contestant, OwnMode
    from medusa_core.bench.peer import PeerOptions, peer_registry
    from medusa_core.bench.race import run_race
    from medusa_core.bench.report import (
        category_table,
        divergences,
        make_report,
        markdown,
        table,
    )
    from medusa_core.speculation.rules.rule import rule_registry
    from medusa_core.speculation.tuning.row_policy import RowPolicy
    from medusa_core.system import compute_threads

    modes, peers = _modes(args, target), listed_names(args.peers)
    chosen = _drafters(args, target, modes)
    peer_specs = {name: peer_registry().get(name) for name in peers}
    rule, rows = rule_of(args), args.tree_rows
    row_policy = open_row_policy(args, target)
    # Each mode learns for itself.
    contestants: dict[str, Contestant] = {
        name: OwnMode(target, settings_of(args, drafter, rows), RowPolicy(target, row_policy.costs))
        for name, drafter in chosen.items()
    }
    model_dir, assistant_dir = model_dirs(args)[0], options_of(args).assistant_dir
    for name, peer in peer_specs.items():
        contestants[name] = peer.build(
            PeerOptions(model_dir, target, args.max_new_tokens, assistant_dir)
        )
    race = run_race(contestants, prompts, args.repeats, show_progress)
    report = make_report(race, modes, peers, target)
    report["drafters"] = chosen
    print(table(report))
    if len(modes) > 1:
        print(category_table(report))
    print(
        f"{compute_threads.count()} threads · {rows or 'measured'} rows per step · "
        f"{race.num_skipped} prompts skipped as too long"
        + (f" · auto is {chosen[AUTO]}" if AUTO in chosen else "")
    )
    if "none" in modes and rule_registry().get(rule).choice.is_exact:
        for name in (*modes, *peers):
            drafter = chosen.get(name, name)
            for divergence in divergences(race, name, target, settings_of(args, drafter, rows)):
                print(f"{name} differs from plain decoding: {divergence}")
    if args.markdown is not None:
        write_file(args.markdown, markdown(report))
    return report


def _drafters(args: argparse.Namespace, target: Target, modes: Sequence[str]) -> dict[str, str]:
    """The drafter of each mode.

    Raises:
        RequestError: There is no mode, or the target can't use a drafter.
    """
    from medusa_core.bench.drafters import drafter_of_window
    from medusa_core.speculation.drafters.lineup import drafter_registry

    if not modes:
        raise RequestError("There is no mode to run.", "Name some with --modes none,medusa.")
    chosen = {name: name for name in modes}
    for name in modes:
        if name != AUTO and not (spec := drafter_registry().get(name)).can_draft(target):
            hint = spec.hint_for(target)
            raise RequestError(f"{target.name} can't use the drafter {name!r}.", hint)
    if AUTO in modes:
        shows_drafts = model_dirs(args)[0] == demo_model_dir()
        chosen[AUTO] = drafter_of_window(target, known_of(args, target), shows_drafts)
    return chosen


def _modes(args: argparse.Namespace, target: Target) -> list[str]:
    """Those that are named; else plain decoding, and Medusa heads or what the window chooses."""
    from medusa_core.speculation.drafters.lineup import drafter_registry

    has_medusa = drafter_registry().get("medusa").can_draft(target)
    return listed_names(args.modes) if args.modes else ["none", "medusa" if has_medusa else AUTO]


def _epsilons(text: str) -> tuple[float, ...]:
    from medusa_core.bench.sweep import EPSILONS

    try:
        return tuple(float(part) for part in text.split(",")) if text else EPSILONS
    except ValueError as error:
        raise RequestError(
            f"--epsilons {text} is no list of numbers.", "Write it as 0.05,0.1,0.3."
        ) from error


def _check_modes(args: argparse.Namespace) -> None:
    """Refuse what can't be compared before a model is loaded for it."""
    check_drafters([name for name in listed_names(args.modes) if name != AUTO])
    _epsilons(args.epsilons)
    if peers := listed_names(args.peers):
        from medusa_core.bench.peer import peer_registry

        for name in peers:
            peer_registry().get(name)
        rule = rule_of(args)
        if rule != "greedy":
            raise RequestError(
                f"Peers decode greedily: under {rule} there is nothing to compare.",
                "Leave out --peers, --rule and --temperature.",
            )
        if args.adapter:
            raise RequestError(
                "Peers load no adapters: they would run another model.", "Leave out one."
            )


def _check_counts(args: argparse.Namespace) -> None:
    if args.length < 0:
        raise RequestError(f"--length is {args.length}.", "Choose 1 or more, or 0.")
    for name in ("limit", "max_new_tokens", "repeats"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise RequestError(f"--{name.replace('_', '-')} is {value}.", "Choose 1 or more.")
