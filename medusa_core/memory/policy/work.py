"""What a batch asks of a machine, in bytes and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from medusa_core.runtime.kv.size import ROUND_ROWS

MANY = 8  # rows of so many conversations pay more than drafts of each
JUDGED_ROWS = 4  # whose scores a rule works with at once, for each row of a step
TREE_ROWS = 16  # of a step, where fewer are answered at once and there is room


@dataclass(frozen=True, slots=True)
class BatchWork:
    """A model and the prompts that it answers.

    Attributes:
        num_layers: Its layers.
        layer_bytes: Weights of one.
        piece_bytes: What the largest takes of a buffer that it is brought into.
        fixed_bytes: What always lies on the device: token vectors, head, norms.
        row_bytes: Keys and values of one token in one layer.
        slots: Rows of sequences, of the longest ones first; further ones are as the last.
        most_slots: For which the longest has room.
        state_bytes: The state of one row between two layers.
        scratch_bytes: What a pass needs besides, however many rows it has.
        scratch_row_bytes: What it needs for each row that is computed at once.
        scored_row_bytes: What it needs for each row whose scores are wanted.
        num_prompts: Prompts.
        prompt_tokens: Tokens of each.
        new_tokens: Tokens of each answer.
        rows_at_once: Of how many rows of prompts at most are computed at once: what is tried.
    """

    num_layers: int
    layer_bytes: int
    piece_bytes: int
    fixed_bytes: int
    row_bytes: int
    slots: tuple[int, ...]
    most_slots: int
    state_bytes: int
    scratch_bytes: int
    scratch_row_bytes: int
    scored_row_bytes: int
    num_prompts: int
    prompt_tokens: int
    new_tokens: int
    rows_at_once: tuple[int, ...]

    @property
    def total_tokens(self) -> int:
        """Longest conversation."""
        return self.prompt_tokens + self.new_tokens

    def num_slots(self, num_sequences: int) -> int:
        """Rows for which the longest of these have room: as many whole contexts as hold them."""
        rows = sum(self.slots[:num_sequences])
        rows += max(0, num_sequences - len(self.slots)) * self.slots[-1]
        return -(-rows // self.most_slots) * self.most_slots

    @property
    def mean_tokens(self) -> float:
        """What a step has behind it on average."""
        return self.prompt_tokens + self.new_tokens / 2


@dataclass(frozen=True, slots=True)
class BatchBlock:
    """Sequences that share each loaded layer, and how they are computed.

    Attributes:
        batch: Sequences that are computed at once.
        num_batches: Batches that a loaded layer serves, one after the other.
        at_once: Rows of prompts that are computed at once.
        prompt_rows: Rows of prompts that a pass reads.
    """

    batch: int
    num_batches: int
    at_once: int
    prompt_rows: int

    @property
    def num_sequences(self) -> int:
        return self.batch * self.num_batches

    def num_rounds(self, work: BatchWork) -> int:
        """Blocks that it takes, one after the other."""
        return math.ceil(work.num_prompts / self.num_sequences)


@dataclass(frozen=True, slots=True)
class Passes:
    """Passes of one kind through all layers.

    Attributes:
        num_passes: Passes.
        num_rows: Rows that are new in all of them together.
        num_visits: How often a layer is computed.
        rows_read: Cached rows of earlier passes that are read in each layer.
        num_reads: Sequences of which some are read in each layer, all passes together.
        row_pairs: Pairs of a prompt's rows of which one attends to the other.
        num_scored: Rows whose scores are wanted, in each pass.
    """

    num_passes: int
    num_rows: int
    num_visits: int
    rows_read: float
    num_reads: float
    row_pairs: float
    num_scored: float


def prompt_passes(work: BatchWork, block: BatchBlock) -> Passes:
    """Those that read the prompts of a block; of one sequence each reads `at_once` rows at most."""
    sequences, tokens = block.num_sequences, work.prompt_tokens
    num_rows, chunks = sequences * tokens, math.ceil(tokens / block.at_once)
    num_passes = max(chunks, math.ceil(num_rows / block.prompt_rows))
    in_pass = num_rows / num_passes
    together = math.ceil(in_pass * chunks / tokens)  # sequences of a pass
    visits = max(math.ceil(in_pass / block.at_once), math.ceil(together / block.batch))
    return Passes(
        num_passes=num_passes,
        num_rows=num_rows,
        num_visits=num_passes * visits,
        rows_read=num_rows * (chunks - 1) / 2,
        num_reads=sequences * (chunks - 1),
        row_pairs=num_rows * tokens / 2,
        num_scored=sequences / num_passes,
    )


def step(work: BatchWork, block: BatchBlock) -> Passes:
    """A decoding step of a block."""
    sequences = block.num_sequences
    # Of each sequence the last few rows are on the device in any case.
    read = sequences * (work.mean_tokens - (ROUND_ROWS - 1) / 2)
    return Passes(1, sequences, block.num_batches, max(0.0, read), sequences, 0.0, sequences)
