"""The model's own answers, many at a time: what the heads learn from and what the gates judge."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.speculation.rules.sampling import gumbel_rows
from medusa_core.training.answers import OwnAnswer
from recipe.network import LayerCache, PebbleNetwork

log = logging.getLogger(__name__)

# below this share of rows still running, the finished ones leave the batch
SHRINK_BELOW = 0.7


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """How answers are made: temperature 0 is greedy; else each has a seed of its own, from `seed`.

    Drawn tokens are those that the engine would draw with that seed.
    """

    max_new_tokens: int
    end_id: int
    temperature: float = 0.0
    batch_size: int = 96
    seed: int = 0
    bf16: bool = True


@torch.inference_mode()
def generate_answers(
    network: PebbleNetwork, prompts: Sequence[Sequence[int]], options: GenerationOptions
) -> list[OwnAnswer]:
    """Answer all prompts; prompts of like length share a batch.

    Args:
        network: in evaluation mode, on the CPU or a GPU.
        prompts: token ids up to and with the mark that opens the answer, each shorter than the
            context.
        options: length, temperature, batch size.

    Returns:
        One answer per prompt, in the prompts' order.
    """
    order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))
    answers: dict[int, OwnAnswer] = {}
    started_s, num_tokens = time.monotonic(), 0
    for start in range(0, len(order), options.batch_size):
        indices = order[start : start + options.batch_size]
        seeds = [options.seed + index if options.temperature else 0 for index in indices]
        batch = _Batch(network, [prompts[i] for i in indices], seeds, options)
        with torch.autocast("cpu", torch.bfloat16, enabled=options.bf16):
            batch.run()
        for index, answer in zip(indices, batch.answers(), strict=True):
            answers[index] = answer
            num_tokens += len(answer.answer_ids)
        rate = num_tokens / (time.monotonic() - started_s)
        log.info("%d/%d answers, %.0f tokens/s", len(answers), len(prompts), rate)
    return [answers[index] for index in range(len(prompts))]


class _Batch:
    """Prompts padded on the left, decoded together; finished rows are dropped."""

    def __init__(
        self,
        network: PebbleNetwork,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        options: GenerationOptions,
    ) -> None:
        self._network, self._prompts, self._options = network, prompts, options
        self._seeds = seeds
        self._width = max(len(prompt) for prompt in prompts)
        room = network.size.max_positions - self._width
        self._num_new = min(options.max_new_tokens, max(1, room))
        self._outputs: list[list[int]] = [[] for _ in prompts]
        self._finished = [False] * len(prompts)
        self._rows = list(range(len(prompts)))
        self._padding = torch.tensor([self._width - len(prompt) for prompt in prompts])
        self._caches = self._make_caches(len(prompts))

    def _make_caches(self, num_rows: int) -> list[LayerCache]:
        size = self._network.size
        shape = (num_rows, size.num_heads, self._width + self._num_new, size.head_dim)
        dtype = torch.bfloat16 if self._options.bf16 else torch.float32
        return [
            LayerCache(torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype))
            for _ in range(size.num_layers)
        ]

    def run(self) -> None:
        """Prefill, then one token a step until all rows ended."""
        padded = [[0] * (self._width - len(prompt)) + list(prompt) for prompt in self._prompts]
        columns = torch.arange(self._width)
        positions = (columns[None] - self._padding[:, None]).clamp(min=0)
        visible = columns[None, None, :] >= self._padding[:, None, None]
        causal = columns[None, None, :] <= columns[None, :, None]
        # a padding row must see something, or its softmax is not a number
        itself = (columns[:, None] == columns[None, :])[None]
        logits = self._forward(torch.tensor(padded), positions, (visible & causal) | itself)
        for step in range(self._num_new):
            tokens = self._choose(logits)
            if self._record(tokens.tolist()) or step + 1 == self._num_new:
                return
            tokens = self._shrink(tokens)
            length = self._width + step
            positions = (length - self._padding)[:, None]
            columns = torch.arange(length + 1)
            visible = columns[None, None, :] >= self._padding[:, None, None]
            logits = self._forward(tokens[:, None], positions, visible)

    def _forward(self, ids: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        hidden = self._network.hidden_states(ids, mask[:, None], positions, self._caches)
        return self._network.logits(hidden[:, -1]).float()

    def _choose(self, logits: Tensor) -> Tensor:
        if self._options.temperature == 0.0:
            return logits.argmax(-1)
        places = [len(self._prompts[row]) + len(self._outputs[row]) for row in self._rows]
        seeds = [self._seeds[row] for row in self._rows]
        noise = gumbel_rows(seeds, places, logits.shape[-1])
        return (logits / self._options.temperature + noise).argmax(-1)

    def _record(self, tokens: list[int]) -> bool:
        """Keep the tokens of running rows; returns whether every row has ended."""
        for row, token in zip(self._rows, tokens, strict=True):
            if not self._finished[row]:
                self._outputs[row].append(token)
                self._finished[row] = token == self._options.end_id
        return all(self._finished)

    def _shrink(self, tokens: Tensor) -> Tensor:
        running = [i for i, row in enumerate(self._rows) if not self._finished[row]]
        if len(running) > SHRINK_BELOW * len(self._rows):
            return tokens
        keep = torch.tensor(running)
        for cache in self._caches:
            cache.keep(keep)
        self._padding = self._padding[keep]
        self._rows = [self._rows[i] for i in running]
        return tokens[keep]

    def answers(self) -> list[OwnAnswer]:
        """One per prompt."""
        return [
            OwnAnswer(tuple(prompt), tuple(output), finished, seed)
            for prompt, output, finished, seed in zip(
                self._prompts, self._outputs, self._finished, self._seeds, strict=True
            )
        ]
