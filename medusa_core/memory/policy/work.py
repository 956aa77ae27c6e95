"""What a batch asks of a machine, in bytes and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BatchWork:
    """A model and the prompts that it answers.

    Attributes:
        num_layers: Its layers.
        layer_bytes: Weights of one.
        fixed_bytes: What always lies on the device: token vectors, head, scratch.
        row_bytes: Keys and values of one token in one layer.
        state_bytes: The state of one row between two layers.
        scratch_row_bytes: What a pass needs besides for each of its rows.
        num_prompts: Prompts.
        prompt_tokens: Tokens of each.
        new_tokens: Tokens of each answer.
        prompt_rows: Most rows of prompts that one pass reads.
    """

    num_layers: int
    layer_bytes: int
    fixed_bytes: int
    row_bytes: int
    state_bytes: int
    scratch_row_bytes: int
    num_prompts: int
    prompt_tokens: int
    new_tokens: int
    prompt_rows: int

    @property
    def total_tokens(self) -> int:
        """Longest conversation."""
        return self.prompt_tokens + self.new_tokens

    @property
    def mean_tokens(self) -> float:
        """What a step has behind it on average."""
        return self.prompt_tokens + self.new_tokens / 2


@dataclass(frozen=True, slots=True)
class BatchBlock:
    """Sequences that share each loaded layer.

    Attributes:
        batch: Rows of a decoding step that are computed at once.
        num_batches: Batches that a loaded layer serves, one after the other.
    """

    batch: int
    num_batches: int

    @property
    def num_sequences(self) -> int:
        return self.batch * self.num_batches

    def num_rounds(self, work: BatchWork) -> int:
        """Blocks that it takes, one after the other."""
        return math.ceil(work.num_prompts / self.num_sequences)

    def num_prompt_passes(self, work: BatchWork) -> int:
        """Passes in which the prompts of a block are read."""
        return math.ceil(self.num_sequences * work.prompt_tokens / work.prompt_rows)
