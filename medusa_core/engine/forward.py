"""One forward pass of the target for many sequences, so that weights are read once for all.

With offloaded layers this is FlexGen's block schedule: a loaded layer computes the rows of all
sequences.

Sources: Sheng et al., "FlexGen" (2023), section 4.1; Agrawal et al., "SARATHI" (2023), section 4,
for prompt chunks that share the passes of decoding sequences.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import PlacedTree, Runner, Waited
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import cuda


class Chunk(NamedTuple):
    """Consecutive tokens of a prompt (chunked prefill), whose rows the pass commits.

    Attributes:
        token_ids: The tokens. [n]
        kv: The cache that their rows are appended to.
        is_last: The prompt ends with this chunk, so the last token's logits are computed.
        needs_states: Return the states of all tokens, not of the last one alone.
    """

    token_ids: Sequence[int]
    kv: KvCache
    is_last: bool
    needs_states: bool

    @property
    def placed(self) -> PlacedTree:
        """The chunk as a tree: a chain of decided tokens."""
        shape = TreeShape.chain(len(self.token_ids))
        tree = TokenTree(shape, tuple(self.token_ids))
        return PlacedTree(tree, self.kv, decided=True, only_last=not self.needs_states)

    @property
    def num_wanted(self) -> int:
        """Number of tokens whose states are returned."""
        return len(self.token_ids) if self.needs_states else 1


class Output(NamedTuple):
    """The target's results for one sequence of a pass.

    Attributes:
        states: Final hidden states. [n, hidden]
        deep: Inputs of the tapped layers; None without taps. [n, taps · hidden]
        logits: Logits of all rows of a tree, or of a prompt's last token. [n, vocabulary]
        seconds: Duration of the pass, which other sequences may share.
        waited: Part of it spent waiting for offloaded layers, KV rows or other machines.
    """

    states: Tensor
    deep: Tensor | None
    logits: Tensor
    seconds: float
    waited: Waited


def forward(
    runner: Runner, trees: Sequence[PlacedTree], chunks: Sequence[Chunk], traces: bool = False
) -> tuple[list[Output], list[Output]]:
    """Run the target once on the trees and prompt chunks of many sequences.

    Args:
        runner: The target's runner.
        trees: Drafted trees, whose rows stay uncommitted.
        chunks: Prompt chunks, whose rows are committed.
        traces: Copy the logits to the CPU at once, as a trace will read them.

    Returns:
        The results for each tree, and for each chunk.
    """
    if not trees and not chunks:
        return [], []
    started, waited = time.perf_counter(), runner.waited
    states = _states(runner, trees, chunks)
    num_nodes = [placed.tree.shape.num_nodes for placed in trees]
    parts = torch.split(states, [*num_nodes, *(chunk.num_wanted for chunk in chunks)])
    scored = [*num_nodes, *(int(chunk.is_last) for chunk in chunks)]
    logits = _logits(runner, states, parts, scored) if chunks else runner.logits(states)
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
    return outputs[: len(trees)], outputs[len(trees) :]


def _states(runner: Runner, trees: Sequence[PlacedTree], chunks: Sequence[Chunk]) -> Tensor:
    """Run all layers. [n, (1 + taps) · hidden]"""
    if not trees and len(chunks) == 1:  # `extend` is faster for a single chain
        ((token_ids, kv, _, needs_states),) = chunks
        return runner.extend(token_ids, kv, only_last=not needs_states)
    states = runner.verify(*trees, *(chunk.placed for chunk in chunks))
    for chunk in chunks:
        chunk.kv.commit(range(len(chunk.token_ids)))
    return states


def _logits(
    runner: Runner, states: Tensor, parts: Sequence[Tensor], scored: Sequence[int]
) -> Tensor:
    """Logits of the last `scored[i]` rows of each part. [n, vocabulary]"""
    if not any(scored):
        return states.new_empty(0, 0)
    pairs = zip(parts, scored, strict=True)
    return runner.logits(torch.cat([part[len(part) - count :] for part, count in pairs]))
