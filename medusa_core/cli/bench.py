"""`medusa bench`: decoding modes, drafters and peers on prompts."""

from __future__ import annotations

import argparse
import json
import logging
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
from medusa_core.cli.bench_arguments import listed_names, print_line, show_progress, write_file
from medusa_core.cli.bench_drafters import add_race_arguments, check_race, race
from medusa_core.cli.load_arguments import (
    add_model_arguments,
    measurements_of,
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
    """Add the arguments of `bench`."""
    parser.set_defaults(run=run)
    parser.add_argument(
        "--prompts",
        type=Path,
        help="file of prompts, JSON lines, or a folder of such (default, for --drafters and "
        "--synthetic: a few that ship)",
    )
    parser.add_argument(
        "--step-cost",
        action="store_true",
        help="instead: time of each part of a step, compared with the memory bandwidth",
    )
    add_race_arguments(parser)
    parser.add_argument(
        "--modes",
        default="",
        help="drafters, with commas between; auto is the one that the window would choose "
        "(default: none,medusa, or none,auto without Medusa heads)",
    )
    parser.add_argument("--peers", default="", help="other programs, such as transformers")
    parser.add_argument(
        "--shape", help="with --step-cost: a well-known model's shape, with random weights"
    )
    parser.add_argument(
        "--throughput",
        type=int,
        metavar="N",
        help="N prompts of --shape or --model under the best policy, compared with one at a time, "
        "with the forecast, and with a cache on the device",
    )
    parser.add_argument(
        "--length",
        type=int,
        default=0,
        metavar="L",
        help="with --throughput: tokens of each prompt (default: those of the texts)",
    )
    parser.add_argument(
        "--policy", type=Path, metavar="FILE", help="with --throughput: use this policy; see batch"
    )
    parser.add_argument("--num-heads", type=int, default=3, help="random Medusa heads of --shape")
    parser.add_argument("--limit", type=int, help="most prompts, in turns from each category")
    parser.add_argument("--max-new-tokens", type=int, default=128, help="longest answer")
    parser.add_argument("--repeats", type=int, default=1, help="runs of every prompt")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    add_model_arguments(parser)
    add_rule_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print its tables."""
    check_race(args)
    _check_counts(args)
    check_files([args.json, args.markdown])
    _check_modes(args)
    report = _report(args)
    if args.json is not None:
        write_file(args.json, json.dumps(report, indent=2) + "\n")
    return 0


def _report(args: argparse.Namespace) -> Mapping[str, object]:
    """Run the requested kind of benchmark and return its JSON."""
    # Torch takes a second to import: `--help` and wrong arguments shouldn't wait for it.
    from medusa_core.system.prompts import read_prompts

    if args.throughput is not None:
        from medusa_core.cli.bench_throughput import run_throughput

        return run_throughput(args, print_line)
    if args.step_cost:
        return _step_cost(args)
    if args.prompts is None and not (args.drafters or args.synthetic):
        raise RequestError("There are no prompts.", "Name a file with --prompts.")
    if args.prompts is None:
        args.prompts, args.limit = prompts_dir() / "general.jsonl", args.limit or _FEW
    prompts = read_prompts(args.prompts, args.limit)
    with open_for_race(args) as target:
        return (race if args.synthetic or args.drafters else _race)(args, target, prompts)


@contextmanager
def open_for_race(args: argparse.Namespace) -> Iterator[Target]:
    """Open the target with the drafters of the app and an empty datastore."""
    from medusa_core.loading.load import load_target

    with tempfile.TemporaryDirectory(prefix="medusa-learned-") as folder:
        options = replace(options_of(args), datastore_dir=Path(folder))
        target = ready(args, load_target(*model_dirs(args), options))
        try:
            yield target
        finally:
            if target.learned is not None:
                target.learned.close()


def _step_cost(args: argparse.Namespace) -> dict[str, object]:
    """Measure the costs of steps by rows."""
    from medusa_core.bench.step_cost import as_json, measure_step_report, step_table
    from medusa_core.speculation.drafters.lineup import drafter_registry

    if args.peers:
        return _step_race(args)
    target = _random(args) if args.shape else open_target(args)
    named = [name for name in named_modes(args, target) if name != AUTO]
    modes = [name for name in named if drafter_registry().get(name).can_draft(target)]
    report = measure_step_report(target, modes, args.max_new_tokens)
    _print_notes(target)
    print(step_table(report))
    return as_json(report)


def _print_notes(target: Target) -> None:
    """Print how transformers runs a model, why it isn't compiled, and what the processor does."""
    parts = target.plan.cpu_parts
    cpu = "" if parts is None else f"{parts.summary}{parts.displaced}: {parts.why}"
    for note in filter(
        None, (target.runner_note, target.not_compiled, target.plan.cache_note, cpu)
    ):
        print(note)


def _step_race(args: argparse.Namespace) -> dict[str, object]:
    """Compare steps with llama.cpp on a GGUF file or random weights."""
    from medusa_core.bench.step_race import race_steps, race_table

    args.num_heads = 0
    with (random_and_peer if args.shape else _file_and_peer)(args) as (target, load_s, peer):
        race = race_steps(target, load_s, peer, print_line)
    print(race_table(race))
    return asdict(race)


@contextmanager
def _file_and_peer(args: argparse.Namespace) -> Iterator[tuple[Target, float, Path]]:
    """Load a GGUF file; yield the target, the load time and the file for llama.cpp."""
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
def random_and_peer(args: argparse.Namespace) -> Iterator[tuple[Target, float, Path | None]]:
    """Load random weights; yield the target, the load time and their GGUF file for the peer."""
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
            print_line("writing the weights for llama.cpp")
            write_random_gguf(shape_config(args.shape), args.quant, peer)
        print_line("making ours")
        started = time.perf_counter()
        target = _random(args)
        yield target, time.perf_counter() - started, peer


def _random(args: argparse.Namespace) -> Target:
    """Load random weights of a shape."""
    from medusa_core.bench.random_target import random_target

    return ready(args, random_target(args.shape, options_of(args), args.num_heads))


def _race(
    args: argparse.Namespace, target: Target, prompts: Sequence[BenchPrompt]
) -> dict[str, object]:
    """Run modes and peers on the prompts and print their tables."""
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

    modes, peers = named_modes(args, target), listed_names(args.peers)
    chosen = _drafters(args, target, modes)
    peer_specs = {name: peer_registry().get(name) for name in peers}
    rule, rows = rule_of(args), args.tree_rows
    row_policy = open_row_policy(args, target)
    # Each mode has its own row policy.
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
    _print_notes(target)
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
    """Return the drafter of each mode.

    Raises:
        RequestError: No mode is named, or the target lacks a drafter.
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
        chosen[AUTO] = drafter_of_window(target, measurements_of(args, target), shows_drafts)
    return chosen


def named_modes(args: argparse.Namespace, target: Target) -> list[str]:
    """Return the named modes; by default plain decoding, and Medusa or the drafter of the app."""
    from medusa_core.speculation.drafters.lineup import drafter_registry

    has_medusa = drafter_registry().get("medusa").can_draft(target)
    return listed_names(args.modes) if args.modes else ["none", "medusa" if has_medusa else AUTO]


def _check_modes(args: argparse.Namespace) -> None:
    """Check --modes and --peers before a model is loaded."""
    check_drafters([name for name in listed_names(args.modes) if name != AUTO])
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
    """Check that counts are positive."""
    if args.length < 0:
        raise RequestError(f"--length is {args.length}.", "Choose 1 or more, or 0.")
    for name in ("limit", "max_new_tokens", "repeats"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise RequestError(f"--{name.replace('_', '-')} is {value}.", "Choose 1 or more.")
