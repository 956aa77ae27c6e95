"""Evaluation of heads: accuracy per rank, tokens per step, and speed."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from medusa_core.engine.direct import generate
from medusa_core.engine.session import Session
from medusa_core.errors import RequestError, TrainingError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, GenerationDone, Role
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    ReadsStates,
    Source,
    SourceSpec,
    source_registry,
)
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.jobs.heads_gain import HeadsGain
from medusa_core.system.prompts import BenchPrompt

ROWS = (4, 8, 16, 64)
NUM_RANKS = 10
_DEPTHS = 5  # depths of heads without a limit
_PLAIN, _OWN = "none", "heads"  # 0: the engine's own choice

OnEvalPrompt = Callable[[int, int], None]


class EvalText(NamedTuple):
    """Tokens of a prompt and of the target's own answer."""

    prompt_ids: tuple[int, ...]
    answer_ids: tuple[int, ...]


class AdapterEffect(NamedTuple):
    """Effect of an adapter on a model: bits per byte of the questions.

    Attributes:
        without: Bits per byte of the model alone.
        with_it: Bits per byte with the adapter.
    """

    without: float
    with_it: float

    @property
    def text(self) -> str:
        """Return the effect as a sentence."""
        change = self.with_it / self.without - 1
        return (
            f"bits per byte of the questions: {self.without:.4f} without the adapter, "
            f"{self.with_it:.4f} with it ({change:+.2%})"
        )


@dataclass(frozen=True, slots=True)
class HeadsEval:
    """Results of an evaluation.

    Attributes:
        top: For each depth, how often rank 0, 1, ... held the target's own token, given that the
            drafts before were right. [depths][10]
        tau: Tokens per step by number of tree rows.
        tokens_per_s: Speed without heads ("none") and with them ("heads").
        by_category: Tokens per step and speedup of each category.
    """

    top: tuple[tuple[float, ...], ...]
    tau: dict[str, float]
    tokens_per_s: dict[str, float]
    by_category: dict[str, dict[str, float]]

    @property
    def gain(self) -> HeadsGain:
        """Speedup with the engine's own trees, and the mean tokens per step of all categories."""
        taus = [row["tau"] for row in self.by_category.values()]
        x_plain = self.tokens_per_s[_OWN] / max(1e-9, self.tokens_per_s[_PLAIN])
        return HeadsGain(round(sum(taus) / max(1, len(taus)), 3), round(x_plain, 3))

    def as_json(self) -> dict[str, Any]:
        """Return the results under the names that `eval heads` documents."""
        return {
            "heads": [{"top": list(shares)} for shares in self.top],
            "tau": self.tau,
            "tokens_per_s": self.tokens_per_s,
            "by_category": self.by_category,
        }


@dataclass(slots=True)
class _Sums:
    """Totals over several answers."""

    tokens: int = 0
    steps: int = 0
    seconds: float = 0.0

    def add(self, done: GenerationDone) -> None:
        """Add an answer's tokens, steps and decoding time."""
        self.tokens += sum(done.accept_lengths)
        self.steps += len(done.accept_lengths)
        self.seconds += done.decode_s

    @property
    def tau(self) -> float:
        """Mean tokens per step."""
        return self.tokens / max(1, self.steps)

    @property
    def tokens_per_s(self) -> float:
        """Decoding speed in tokens per second."""
        return self.tokens / max(1e-9, self.seconds)


def heads_source(target: Target) -> SourceSpec:
    """Return the source that drafts with a target's heads.

    Raises:
        RequestError: It has none.
    """
    found = [spec for spec in source_registry().specs if spec.of_heads and spec.serves(target)]
    if not found:
        raise RequestError(f"{target.name} has no heads.", "Name some with --heads.")
    return found[0]


def evaluate_heads(
    target: Target,
    prompts: Sequence[BenchPrompt],
    max_new_tokens: int,
    on_prompt: OnEvalPrompt,
    most_s: float = float("inf"),
) -> HeadsEval:
    """Answer prompts greedily without heads and with all tree sizes, alternating.

    Args:
        target: A target with heads.
        prompts: Prompts, of which the first turns are used.
        max_new_tokens: Length of the answers.
        on_prompt: Called with the number of finished prompts, and the total.
        most_s: Seconds after which no further prompt is started.

    Raises:
        RequestError: The target has no heads.
        TrainingError: No prompt fits its context.
    """
    spec = heads_source(target)
    row_policy = RowPolicy(target, measure_costs(target))
    modes = {_PLAIN: (_PLAIN, 0), _OWN: (spec.name, 0)}
    modes |= {str(rows): (spec.name, rows) for rows in ROWS}
    sums: dict[str, dict[str, _Sums]] = defaultdict(lambda: defaultdict(_Sums))
    texts, started = [], time.monotonic()
    for number, prompt in enumerate(prompts, start=1):
        messages = (ChatMessage(Role.USER, prompt.turns[0]),)
        try:
            for mode, (drafter, rows) in modes.items():
                settings = GenerateSettings(
                    drafter=drafter, tree_rows=rows, max_new_tokens=max_new_tokens
                )
                with closing(Session(target)) as session:
                    done = generate(
                        target, messages, settings, session=session, row_policy=row_policy
                    )
                    prompt_ids = tuple(session.token_ids[: done.num_prompt_tokens])
                sums[mode][prompt.category].add(done)
        except RequestError:  # longer than the context
            continue
        texts.append(EvalText(prompt_ids, done.token_ids))
        on_prompt(number, len(prompts))
        if time.monotonic() - started > most_s:
            break
    if not texts:
        raise TrainingError("No prompt fits the model's context.", "Name shorter ones.")
    whole = {mode: _whole(by_category.values()) for mode, by_category in sums.items()}
    return HeadsEval(
        top=rank_shares(target, spec, texts),
        tau={str(rows): round(whole[str(rows)].tau, 4) for rows in ROWS},
        tokens_per_s={name: round(whole[name].tokens_per_s, 3) for name in (_PLAIN, _OWN)},
        by_category={
            category: {
                "tau": round(sums[_OWN][category].tau, 3),
                "x_plain": round(
                    sums[_OWN][category].tokens_per_s / sums[_PLAIN][category].tokens_per_s, 3
                ),
            }
            for category in sorted(sums[_PLAIN])
        },
    )


def _whole(parts: Iterable[_Sums]) -> _Sums:
    """Return the totals of several categories."""
    whole = _Sums()
    for part in parts:
        whole.tokens += part.tokens
        whole.steps += part.steps
        whole.seconds += part.seconds
    return whole


@torch.inference_mode()
def rank_shares(
    target: Target, spec: SourceSpec, texts: Sequence[EvalText]
) -> tuple[tuple[float, ...], ...]:
    """Return the accuracy of each rank, given that the drafts before were right. [depths][10]

    Args:
        spec: The source to measure.
        texts: Texts that the target wrote.
    """
    is_deep = target.heads is not None and target.heads.num_heads > 1
    depths = target.heads.num_heads if is_deep and target.heads is not None else _DEPTHS
    right = [[0] * NUM_RANKS for _ in range(depths)]
    tried = [0] * depths
    for text in texts:
        source = spec.build(target, RowBudget(64))
        for place in _reported(target, source, text):
            later = text.answer_ids[place + 1 :]
            for depth in range(min(depths, len(later))):
                path = later[:depth]
                found = source.candidates(Paths(1, depth, array("i", path)))
                if found is None:
                    break
                tried[depth] += 1
                rank = _rank(found, later[depth])
                if rank is not None and rank < NUM_RANKS:
                    right[depth][rank] += 1
    return tuple(
        tuple(round(count / max(1, number), 4) for count in row)
        for row, number in zip(right, tried, strict=True)
        if number
    )


def _reported(target: Target, source: Source, text: EvalText) -> Iterable[int]:
    """Feed a text to a source as decoding would; yield each position of the answer as a root."""
    whole = [*text.prompt_ids, *text.answer_ids]
    states = target.runner.extend(whole, target.runner.new_cache(len(whole)))
    size, start = target.config.hidden_size, len(text.prompt_ids)
    final, deep = states[:, :size], states[:, size:] if states.shape[1] > size else None
    source.begin(text.prompt_ids)
    if isinstance(source, ReadsStates):
        source.resume(text.prompt_ids, {})
        source.read(0, final[:start], None if deep is None else deep[:start])
    for place, root_id in enumerate(text.answer_ids):
        row = start + place - 1
        source.observe(Observation((root_id,), final, (row,), None, deep))
        source.start(root_id, 64)
        yield place


def _rank(candidates: Candidates, token_id: int) -> int | None:
    """Return the rank of a token among candidates; None if it isn't one."""
    ranked = sorted(
        zip(candidates.chances, candidates.token_ids, strict=True), key=lambda pair: -pair[0]
    )
    ids = [candidate for _, candidate in ranked]
    return ids.index(token_id) if token_id in ids else None


def eval_text(results: HeadsEval) -> str:
    """Return the results as text."""
    lines = [f"{'ahead':>6}{'top 1':>8}{'top 5':>8}{'top 10':>8}"]
    for depth, shares in enumerate(results.top, start=1):
        cells = [sum(shares[:count]) for count in (1, 5, 10)]
        lines.append(f"{depth:6}" + "".join(f"{cell:8.3f}" for cell in cells))
    taus = ", ".join(f"{rows} rows {tau:.2f}" for rows, tau in results.tau.items())
    plain, own = results.tokens_per_s[_PLAIN], results.tokens_per_s[_OWN]
    lines += [
        f"tokens per step: {taus}",
        f"tokens/s: {plain:.2f} without heads, {own:.2f} with them ({own / plain:.2f} ×)",
    ]
    return "\n".join(lines)
