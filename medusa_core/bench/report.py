"""Figures of a race, as JSON and as a table."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Iterable, Sequence

import torch

from medusa_core.bench.divergence import Divergence, find_divergence
from medusa_core.bench.race import RaceConversation, RaceResult, Totals
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.system import compute_threads, cuda

Figures = dict[str, float | int | None]
BenchReport = dict[str, object]


def machine(target: Target) -> dict[str, str | int]:
    """Describe machine, model and dtype."""
    device = target.precision.device
    name = cuda.name(device) if device.type == "cuda" else platform.processor()
    return {
        "system": platform.platform(),
        "device": str(device),
        "device_name": name or platform.machine(),
        "threads": compute_threads.count(),
        "torch": str(torch.__version__),
        "dtype": target.precision.name,
        "model": target.name,
        **({"runner": target.runner_note} if target.runner_note else {}),
        **({"not_compiled": target.not_compiled} if target.not_compiled else {}),
        **({"cache": note} if (note := target.plan.cache_note) else {}),
        **({"cpu_parts": parts.summary} if (parts := target.plan.cpu_parts) else {}),
    }


def make_report(
    race: RaceResult, modes: Sequence[str], peers: Sequence[str], target: Target
) -> BenchReport:
    """Return all figures of a race.

    Args:
        race: The answers.
        modes: Names of this engine's modes.
        peers: Names of the peers.
        target: The target of all.
    """
    reference = _flat(race, modes[0]) if "none" not in modes else _flat(race, "none")
    figures = {name: _figures(_flat(race, name), reference) for name in (*modes, *peers)}
    plain = figures.get("none")
    for name in (*modes, *peers):
        figures[name]["speedup_vs_none"] = _ratio(figures[name], plain)
    for name in modes:
        figures[name]["num_skipped"] = race.num_skipped
        figures[name]["num_prompts"] = len(race.results[name][0])
    for name in peers:
        figures[name] = {key: figures[name][key] for key in _PEER_KEYS}
    return {
        "machine": machine(target),
        "modes": {name: figures[name] for name in modes},
        "peers": {name: figures[name] for name in peers},
        "categories": _categories(race, modes, peers),
    }


_PEER_KEYS = ("tokens_per_s", "decode_tokens_per_s", "identical_outputs", "speedup_vs_none")


def divergences(
    race: RaceResult, name: str, target: Target, settings: GenerateSettings
) -> list[Divergence]:
    """Find where answers diverge from plain decoding's; one entry per prompt."""
    found: dict[str, Divergence] = {}
    for answered, plain in zip(_flat(race, name), _flat(race, "none"), strict=True):
        divergence = find_divergence(target, answered, plain, settings)
        if divergence is not None:
            found.setdefault(divergence.prompt_id, divergence)
    return [found[prompt_id] for prompt_id in sorted(found)]


def table(report: BenchReport) -> str:
    """Format the figures for a terminal."""
    titles = (("tokens/s", 10), ("decode", 10), ("tau", 7), ("step ms", 9), ("x none", 8))
    machine_ = report["machine"]
    assert isinstance(machine_, dict)
    notes = [machine_["runner"]] if "runner" in machine_ else []
    lines = [
        *notes,
        " " * 22 + "".join(f"{title:>{width}}" for title, width in titles) + "  identical",
    ]
    for group in ("modes", "peers"):
        rows = report[group]
        assert isinstance(rows, dict)
        lines += [_line(name, figures) for name, figures in rows.items()]
    return "\n".join(lines)


def category_table(report: BenchReport) -> str:
    """Format tokens per step, and speed relative to plain decoding, by category."""
    categories, modes, peers = report["categories"], report["modes"], report["peers"]
    assert isinstance(categories, dict)
    assert isinstance(modes, dict)
    assert isinstance(peers, dict)
    names = [name for name in (*modes, *peers) if name != "none"]
    lines = [f"{'tau, x none':20}" + "".join(f"{name:>16}" for name in names)]
    for category, figures in categories.items():
        cells = [_cell(figures[name]) for name in names]
        lines.append(f"{category:20}" + "".join(f"{cell:>16}" for cell in cells))
    return "\n".join(lines)


def markdown(report: BenchReport) -> str:
    """Format the report as Markdown."""
    machine_ = report["machine"]
    assert isinstance(machine_, dict)
    facts = ", ".join(f"{name} {value}" for name, value in machine_.items())
    return (
        f"# Benchmark\n\n{facts}\n\n```\n{table(report)}\n```\n\n"
        f"Tokens per step, and decoding speed against plain decoding:\n\n"
        f"```\n{category_table(report)}\n```\n"
    )


def _cell(figures: Figures) -> str:
    """Tokens per step and relative speed of a table cell."""
    tau, factor = figures["mean_acceptance_length"], figures["speedup_vs_none"]
    return f"{tau:.2f}" + ("" if factor is None else f"  {factor:.2f}")


def _line(name: str, figures: Figures) -> str:
    """A contestant's line of the table."""

    def cell(key: str, width: int, digits: int) -> str:
        """Format a figure; blank if it is unknown."""
        value = figures.get(key)
        return f"{'' if value is None else format(value, f'.{digits}f'):>{width}}"

    return (
        f"{name:22}{cell('tokens_per_s', 10, 1)}{cell('decode_tokens_per_s', 10, 1)}"
        f"{cell('mean_acceptance_length', 7, 2)}{cell('step_ms', 9, 2)}"
        f"{cell('speedup_vs_none', 8, 2)}{cell('identical_outputs', 11, 0)}"
    )


def _flat(race: RaceResult, name: str) -> list[RaceConversation]:
    """A contestant's conversations of all repeats."""
    return [conversation for repeat in race.results[name] for conversation in repeat]


def _figures(
    conversations: Sequence[RaceConversation], reference: Sequence[RaceConversation]
) -> Figures:
    """Speeds, tokens per step and equality with the reference of some conversations."""
    answers = [answer for conversation in conversations for answer in conversation.answers]
    totals = Totals.of(conversations)
    num_tokens = sum(len(answer.token_ids) for answer in answers)
    wall_s = sum(answer.wall_s for answer in answers)
    return {
        "tokens_per_s": num_tokens / wall_s if wall_s else 0.0,
        "decode_tokens_per_s": totals.tokens_per_s,
        "mean_acceptance_length": totals.mean_acceptance_length,
        "step_ms": totals.decode_s / totals.num_steps * 1000 if totals.num_steps else 0.0,
        "identical_outputs": _num_identical(conversations, reference),
    }


def _num_identical(found: Iterable[RaceConversation], wanted: Iterable[RaceConversation]) -> int:
    """Count prompts whose turns equal the reference's tokens in every repeat."""
    equal: dict[str, bool] = defaultdict(lambda: True)
    for a, b in zip(found, wanted, strict=True):
        equal[a.prompt.prompt_id] &= a.token_ids == b.token_ids
    return sum(equal.values())


def _ratio(figures: Figures, plain: Figures | None) -> float | None:
    """Return the speed-up of decoding; None without plain decoding among the modes."""
    if plain is None or not plain["decode_tokens_per_s"]:
        return None
    return (figures["decode_tokens_per_s"] or 0.0) / plain["decode_tokens_per_s"]


def _categories(
    race: RaceResult, modes: Sequence[str], peers: Sequence[str]
) -> dict[str, dict[str, Figures]]:
    """Figures of each category of prompts."""
    names = sorted({c.prompt.category for c in _flat(race, modes[0])})
    return {name: _category(race, modes, peers, name) for name in names}


def _category(
    race: RaceResult, modes: Sequence[str], peers: Sequence[str], category: str
) -> dict[str, Figures]:
    """Figures of the prompts of one category."""

    def of(mode: str) -> list[RaceConversation]:
        """A contestant's conversations of the category."""
        return [c for c in _flat(race, mode) if c.prompt.category == category]

    reference = of("none" if "none" in modes else modes[0])
    figures = {name: _figures(of(name), reference) for name in (*modes, *peers)}
    for values in figures.values():
        values["speedup_vs_none"] = _ratio(values, figures.get("none"))
        values["num_prompts"] = len(reference) // len(race.results[modes[0]])
    return figures
