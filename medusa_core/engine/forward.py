"""One forward pass of the target over the rows of many sequences: weights are read once for all.

Where layers come from below the device, this is FlexGen's block schedule: a layer that has come
serves the rows of all sequences.

Sources: Sheng et al., "FlexGen" (2023), section 4.1; Agrawal et al., "SARATHI" (2023), section 4,
for chunks of prompts in the passes of sequences that are decoded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    Runner,
    Waited,
)
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.runtime.tree.step import Proposal
from medusa_core.system import cuda


class Draft(NamedTuple):
    """A proposed tree behind a cache, in which the pass leaves its rows uncommitted.

    Attributes:
        proposal: The tree, and what rides beside it.
        kv: The cache.
        seconds: What proposing it took.
    """

    proposal: Proposal
    kv: KvCache
    seconds: float

    @property
    def placed(self) -> PlacedTree:
        """For the runner."""
        return PlacedTree(self.proposal.rows, self.kv)


class Chunk(NamedTuple):
    """The next tokens of a prompt behind a cache, in which the pass commits their rows.

    Attributes:
        token_ids: They.
        kv: The cache.
        is_last: The answer begins behind them: scores are wanted there.
        needs_states: Of all of them, not of the last alone.
    """

    token_ids: Sequence[int]
    kv: KvCache
    is_last: bool
    needs_states: bool

    @property
    def placed(self) -> PlacedTree:
        """For the runner."""
        shape = TreeShape.chain(len(self.token_ids))
        tree = TokenTree(shape, tuple(self.token_ids))
        return PlacedTree(tree, self.kv, decided=True, only_last=not self.needs_states)

    @property
    def num_wanted(self) -> int:
        """Rows whose states are wanted."""
        return len(self.token_ids) if self.needs_states else 1


class Output(NamedTuple):
    """What the target says of the rows of one sequence.

    Attributes:
        states: Its final states. [n, hidden]
        deep: What enters the tapped layers; None where none are. [n, taps · hidden]
        logits: Its scores: at all rows of a tree, behind the last token of a chunk if at all.
            [n, vocabulary]
        seconds: Of the pass, which others may have shared.
        waited: How much of it layers, rows or other machines were waited for.
    """

    states: Tensor
    deep: Tensor | None
    logits: Tensor
    seconds: float
    waited: Waited


def forward(
    runner: Runner, drafts: Sequence[Draft], chunks: Sequence[Chunk], traces: bool = False
) -> tuple[list[Output], list[Output]]:
    """Compute the rows of all sequences at once.

    Args:
        runner: Runs the target.
        drafts: What is to be verified.
        chunks: What is to be read.
        traces: The scores of drafts will be read again.

    Returns:
        What the target says of each draft, and of each chunk.
    """
    if not drafts and not chunks:
        return [], []
    started, waited = time.perf_counter(), runner.waited
    states = _states(runner, drafts, chunks)
    left = [draft.proposal.num_rows for draft in drafts]
    parts = torch.split(states, [*left, *(chunk.num_wanted for chunk in chunks)])
    scored = [*left, *(int(chunk.is_last) for chunk in chunks)]
    logits = _scores(runner, states, parts, scored) if chunks else runner.logits(states)
    if traces:  # a card is waited for once
        logits = logits.cpu()
    if chunks:  # the time of a chunk decides how large the next one is
        cuda.wait(states.device)
    seconds, waits = time.perf_counter() - started, runner.waited.since(waited)
    size = states.shape[1] // (1 + len(runner.taps))
    outputs = [
        Output(part[:, :size], part[:, size:] if runner.taps else None, scores, seconds, waits)
        for part, scores in zip(parts, torch.split(logits, scored), strict=True)
    ]
    return outputs[: len(drafts)], outputs[len(drafts) :]


def _states(runner: Runner, drafts: Sequence[Draft], chunks: Sequence[Chunk]) -> Tensor:
    """States of all rows that come through the pass. [n, (1 + taps) · hidden]"""
    if not drafts and len(chunks) == 1:  # by itself a prompt is read faster
        ((token_ids, kv, _, needs_states),) = chunks
        return runner.extend(token_ids, kv, only_last=not needs_states)
    placed = [*(draft.placed for draft in drafts), *(chunk.placed for chunk in chunks)]
    states = runner.verify(*placed)
    for chunk in chunks:
        chunk.kv.commit(range(len(chunk.token_ids)))
    return states


def _scores(
    runner: Runner, states: Tensor, parts: Sequence[Tensor], scored: Sequence[int]
) -> Tensor:
    """Scores of the last rows of each part, as many as are wanted. [n, vocabulary]"""
    if not any(scored):
        return states.new_empty(0, 0)
    pairs = zip(parts, scored, strict=True)
    return runner.logits(torch.cat([part[len(part) - count :] for part, count in pairs]))
