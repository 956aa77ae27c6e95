"""Time drafting beside a step: `python -m tests.benchmarks.draft_levels MODEL [--heads FOLDER]`.

Heads without a folder are random: their drafts are useless, but take as long as those of trained
ones. As in decoding, a step of the target and an observation of new states precede each draft.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path

import torch
from safetensors.torch import save_file

from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.runner.choice import between_passes
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    ReadsStates,
    Source,
    source_registry,
)
from medusa_core.speculation.rules.sample import Sample
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.hydra_files import write_hydra

KINDS = ("hydra", "medusa", "medusa-shared", "eagle")
_ROWS = 16
_LEVELS = 4
_TEXT_TOKENS = 64
_HEADS = 4
_NEVER = float("inf")


@dataclass(slots=True)
class LevelTimes:
    """Milliseconds of drafting with a source; the least of all drafts.

    Attributes:
        step: A step of one row.
        start: Observing a decided token and starting a step, with all that heads compute then.
        levels: Each level.
    """

    step: float = _NEVER
    start: float = _NEVER
    levels: list[float] = field(default_factory=list)

    def add(self, step: float, start: float, levels: Sequence[float]) -> None:
        """Add a draft."""
        self.step, self.start = min(self.step, step), min(self.start, start)
        pairs = zip_longest(self.levels, levels, fillvalue=_NEVER)
        self.levels = [min(pair) for pair in pairs]

    @property
    def text(self) -> str:
        """Return the times for a table."""
        levels = " ".join(f"{ms:5.2f}" for ms in self.levels)
        return f"step {self.step:6.2f}  start {self.start:5.2f}  levels {levels}"


def random_heads(kind: str, model: ModelFiles, columns: int, folder: Path) -> Path:
    """Write random heads with a draft vocabulary of `columns` tokens; returns their folder."""
    config = model.config
    hidden, generator = config.hidden_size, torch.Generator().manual_seed(1)

    def normal(rows: int, width: int) -> torch.Tensor:
        """Return a random matrix."""
        return (torch.randn(rows, width, generator=generator) / width**0.5).bfloat16()

    if kind == "eagle":
        layers = config.num_layers
        spec = EagleSpec(
            "eagle3",
            hidden=hidden,
            heads=config.num_heads,
            kv_heads=config.num_kv_heads,
            inner=config.intermediate_size,
            vocab=config.vocab_size,
            columns=columns,
            taps=(1, layers // 2, layers - 2),
        )
        return write_eagle(folder, spec)
    tensors: dict[str, torch.Tensor] = {}
    for head in range(_HEADS):
        name = f"hydra_mlp.{head}.0.linear" if kind == "hydra" else f"blocks.{head}.layers.0"
        tensors[f"{name}.weight"] = normal(hidden, (head + 2 if kind == "hydra" else 1) * hidden)
        tensors[f"{name}.bias"] = torch.zeros(hidden).bfloat16()
        if kind == "medusa":
            tensors[f"lm_heads.{head}.weight"] = normal(columns, hidden)
    if kind != "medusa-shared":
        ids = torch.randperm(config.vocab_size, generator=generator)[:columns]
        tensors["token_map"] = ids.sort().values
    if kind == "hydra":
        return write_hydra(folder, {**tensors, "lm_head.weight": normal(columns, hidden)})
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    settings = {"medusa_num_heads": _HEADS, "medusa_num_layers": 1}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def measure(target: Target, repeats: int, num_paths: int, temperature: float) -> LevelTimes:
    """Time the source of a target's heads.

    Args:
        target: A target with heads.
        repeats: Number of drafts.
        num_paths: Paths per level.
        temperature: Temperature of sampling; 0 for greedy decoding.
    """
    heads = target.heads
    assert heads is not None
    spec = next(one for one in source_registry().specs if one.of_heads and one.serves(target))
    source, size = spec.build(target, RowBudget(_ROWS)), target.config.hidden_size
    width = (1 + len(heads.taps)) * size
    text = torch.randint(200, min(8000, target.config.vocab_size), (_TEXT_TOKENS,)).tolist()
    source.begin(text)
    if isinstance(source, ReadsStates):
        source.resume(text, {})
        source.read(0, *_split(torch.randn(_TEXT_TOKENS, width), size))
    settings = GenerateSettings(rule="sample", temperature=temperature, top_p=0.95, seed=1)
    rule = Sample(settings) if temperature else None
    kv, times = target.allocate_cache(2 * _TEXT_TOKENS), LevelTimes()
    target.runner.extend(text, kv)
    for index in range(repeats):
        root_id, position = text[index % _TEXT_TOKENS], _TEXT_TOKENS + index
        started = time.perf_counter()
        logits = target.runner.logits(target.runner.extend([root_id], kv))
        step_ms = 1e3 * (time.perf_counter() - started)
        kv.truncate(_TEXT_TOKENS)
        states, deep = _split(torch.randn(1, width), size)
        chance = None if rule is None else rule.chance(position)
        if rule is not None:  # the rule draws with the same noise
            for place in range(_LEVELS):
                rule._sampler.draw(logits[0], position + place)
        with between_passes(target.runner):
            started = time.perf_counter()
            source.observe(Observation([root_id], states, (0,), chance, deep))
            source.start(root_id, _ROWS)
            start_ms = 1e3 * (time.perf_counter() - started)
            times.add(step_ms, start_ms, _levels_ms(source, num_paths))
    del kv
    return times


def _split(states: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Split states into the final ones and those of the tapped layers, if any."""
    return states[:, :size], states[:, size:] if states.shape[1] > size else None


def _levels_ms(source: Source, num_paths: int) -> list[float]:
    """Query a source level by level; returns the milliseconds of each."""
    found: list[float] = []
    paths = Paths(1, 0, array("i"))
    for _ in range(_LEVELS):
        started = time.perf_counter()
        candidates = source.candidates(paths)
        if candidates is None or not candidates.token_ids:
            break
        found.append(1e3 * (time.perf_counter() - started))
        paths = _next_paths(paths, candidates, num_paths)
    return found


def _next_paths(paths: Paths, candidates: Candidates, num_paths: int) -> Paths:
    """Continue the root by its best candidates, and each path by the best one."""
    has_own = candidates.counts is not None
    count = len(candidates.token_ids) // (paths.num if has_own else 1)
    continued: list[Sequence[int]] = []
    for path in range(paths.num):
        first = path * count if has_own else 0
        best = candidates.token_ids[first : first + (1 if paths.level else num_paths)]
        continued += [(*paths.path(path), token_id) for token_id in best]
    return Paths(len(continued), paths.level + 1, array("i", chain.from_iterable(continued)))


def main() -> None:
    """Print the milliseconds of each kind of heads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--heads", type=Path, help="folder of trained heads, beside random ones")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of random heads")
    parser.add_argument("--columns", type=int, default=8192, help="size of the draft vocabulary")
    parser.add_argument("--format", default="", help="weight format of the heads")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--paths", default="1,4", help="paths per level")
    parser.add_argument("--temperatures", default="0,0.7")
    parser.add_argument("--repeats", type=int, default=100)
    asked = parser.parse_args()
    files = ModelFiles.open(asked.model)
    with tempfile.TemporaryDirectory() as root:
        folders = {} if asked.heads is None else {"trained": asked.heads}
        for kind in filter(None, asked.kinds.split(",")):
            folders[kind] = random_heads(kind, files, asked.columns, Path(root) / kind)
        for kind, folder in folders.items():
            formats = WeightFormats(heads=asked.format)
            options = LoadOptions(device="cpu", formats=formats, context_tokens=1024)
            target = load_target(asked.model, folder, options)
            for threads in map(int, asked.threads.split(",")):
                target.runner.use_threads(threads, threads)
                for temperature in map(float, asked.temperatures.split(",")):
                    for num_paths in map(int, asked.paths.split(",")):
                        times = measure(target, asked.repeats, num_paths, temperature)
                        print(
                            f"{kind:14} {threads} threads  temperature {temperature:3.1f}  "
                            f"{num_paths} paths  {times.text}",
                            flush=True,
                        )
            target.runner.leave()


if __name__ == "__main__":
    main()
