"""Workload of a batch in bytes and rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from medusa_core.runtime.kv.size import ROUND_ROWS

MANY = 8  # with so many sequences, a row for each yields more tokens than drafts of a few do
JUDGED_ROWS = 4  # logits that a rule works with at once, for each row of a step
TREE_ROWS = 16  # of a step, if fewer conversations are answered at once and there is room


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model and the prompts of a batch.

    Attributes:
        num_layers: Layers of the model.
        layer_bytes: Weights of the largest layer.
        piece_bytes: Size of a buffer for the largest layer.
        fixed_bytes: Weights that are always on the device: embeddings, output projection, norms.
        row_bytes: Keys and values of one token in one layer.
        slots: KV rows of each sequence, in descending order; further ones have as many as the last.
        most_slots: KV rows that the cache of the longest sequence has.
        state_bytes: Activations of one row between two layers.
        scratch_bytes: Scratch of a pass, whatever its rows.
        scratch_row_bytes: Scratch of each row that is computed at once.
        scored_row_bytes: Scratch of each row whose logits are computed.
        num_prompts: Number of prompts.
        prompt_tokens: Tokens of each prompt.
        new_tokens: Tokens of each answer.
        rows_at_once: Upper limits of prompt rows that are computed at once, to try.
    """

    num_layers: int
    layer_bytes: int
    piece_bytes: int = 0
    fixed_bytes: int = 0
    row_bytes: int = 0
    slots: tuple[int, ...] = (0,)
    most_slots: int = 1
    state_bytes: int = 0
    scratch_bytes: int = 0
    scratch_row_bytes: int = 0
    scored_row_bytes: int = 0
    num_prompts: int = 1
    prompt_tokens: int = 1
    new_tokens: int = 1
    rows_at_once: tuple[int, ...] = (1,)

    def num_slots(self, num_sequences: int) -> int:
        """KV rows for the longest sequences, rounded up to caches of the longest one."""
        rows = sum(self.slots[:num_sequences])
        rows += max(0, num_sequences - len(self.slots)) * self.slots[-1]
        return -(-rows // self.most_slots) * self.most_slots

    @property
    def mean_tokens(self) -> float:
        """Mean context of a decoding step."""
        return self.prompt_tokens + self.new_tokens / 2


@dataclass(frozen=True, slots=True)
class BatchBlock:
    """Sequences that share each loaded layer (FlexGen's block), and how they are computed.

    Attributes:
        batch: Sequences that are computed at once.
        num_batches: Batches that are computed with a loaded layer, one after another.
        at_once: Prompt rows that are computed at once.
        prompt_rows: Prompt rows of a pass.
    """

    batch: int
    num_batches: int
    at_once: int
    prompt_rows: int

    @property
    def num_sequences(self) -> int:
        """Sequences of all batches of the block."""
        return self.batch * self.num_batches

    def num_rounds(self, workload: Workload) -> int:
        """Number of blocks that answer all prompts."""
        return math.ceil(workload.num_prompts / self.num_sequences)

    def activation_bytes(self, workload: Workload) -> int:
        """Bytes between two layers in the largest pass."""
        prompts = min(self.prompt_rows, self.num_sequences * workload.prompt_tokens)
        return max(self.num_sequences, prompts) * workload.state_bytes

    def cache_layer_bytes(self, workload: Workload) -> int:
        """Bytes of the keys and values of one layer."""
        return workload.num_slots(self.num_sequences) * workload.row_bytes

    def fixed_bytes(self, workload: Workload) -> int:
        """Bytes that are on the device, wherever everything else is."""
        scratch = (
            workload.scratch_bytes + max(self.batch, self.at_once) * workload.scratch_row_bytes
        )
        scored = self.num_sequences + JUDGED_ROWS
        return workload.fixed_bytes + scratch + scored * workload.scored_row_bytes


@dataclass(frozen=True, slots=True)
class Passes:
    """Passes of one kind through all layers.

    Attributes:
        num_passes: Number of passes.
        num_rows: New rows of all passes together.
        num_visits: How often each layer is computed.
        rows_read: KV rows of earlier passes that each layer reads.
        num_reads: Reads of a sequence's KV rows by each layer.
        row_pairs: Pairs of prompt rows of which one attends to the other.
        num_scored: Rows of each pass whose logits are computed.
    """

    num_passes: int
    num_rows: int
    num_visits: int
    rows_read: float
    num_reads: float
    row_pairs: float
    num_scored: float


def prefill_passes(workload: Workload, block: BatchBlock) -> Passes:
    """Return the prefill passes of a block, each in chunks of `at_once` rows at most."""
    sequences, tokens = block.num_sequences, workload.prompt_tokens
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


def decode_step(workload: Workload, block: BatchBlock) -> Passes:
    """Return the pass of one decoding step for all sequences of a block."""
    sequences = block.num_sequences
    # The newest rows of each sequence stay on the device until a panel of them is full.
    read = sequences * (workload.mean_tokens - (ROUND_ROWS - 1) / 2)
    return Passes(1, sequences, block.num_batches, max(0.0, read), sequences, 0.0, sequences)


def single_pass(rows: int) -> Passes:
    """Return a pass of `rows` rows with an empty context, all of them scored."""
    return Passes(1, rows, 1, 0.0, 0.0, 0.0, rows)
