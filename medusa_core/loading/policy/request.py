"""Request of a policy: a model, and the prompts of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from medusa_core.loading.memory.placement import layer_bytes, piece_bytes, rows_at_once
from medusa_core.loading.memory.plan import (
    kv_bytes,
    scratch_bytes,
    session_states_bytes,
    states_bytes,
    weights_bytes,
)
from medusa_core.loading.policy.workload import Workload
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats
from medusa_core.runtime.kv.size import ROUND_ROWS, whole_rows

if TYPE_CHECKING:
    from medusa_core.models.precision import Precision


@dataclass(frozen=True, slots=True)
class PolicyRequest:
    """A model and the prompts of a batch.

    Attributes:
        config: Configuration of the model.
        formats: Formats of all parts.
        precision: Device and dtypes.
        num_prompts: Number of prompts.
        prompt_tokens: Tokens of each prompt.
        new_tokens: Tokens of each answer.
        num_threads: Threads of the CPU.
        lengths: Tokens of each prompt with its answer; empty if all are equally long.
    """

    config: ModelConfig
    formats: PartFormats
    precision: Precision
    num_prompts: int
    prompt_tokens: int
    new_tokens: int
    num_threads: int
    lengths: tuple[int, ...] = ()

    @property
    def mean_tokens(self) -> int:
        """Mean context of a step, rounded up to 64 so that measurements are found again."""
        return -(-(self.prompt_tokens + self.new_tokens // 2) // 64) * 64


def workload_of(request: PolicyRequest) -> Workload:
    """Return a request in bytes and rows."""
    config, formats = request.config, request.formats
    sizes, length = layer_bytes(config, formats), request.prompt_tokens + request.new_tokens
    lengths = sorted(request.lengths or (length,), reverse=True)
    longest = max(length, lengths[0])

    def scratch(rows: int, scored: int) -> int:
        """Scratch bytes of a pass of `rows` rows, `scored` of them with logits."""
        return scratch_bytes(config, formats, longest, rows, scored, 0)

    row, scored_row = scratch(2, 0) - scratch(1, 0), scratch(1, 1) - scratch(1, 0)
    return Workload(
        num_layers=config.num_layers,
        layer_bytes=max(sizes),
        piece_bytes=piece_bytes(config, formats),
        fixed_bytes=weights_bytes(config, formats) - sum(sizes),
        row_bytes=_row_bytes(config, formats, length) // config.num_layers,
        slots=tuple(-(-(each + 2) // ROUND_ROWS) * ROUND_ROWS for each in lengths),
        most_slots=whole_rows(longest),
        state_bytes=4 * config.hidden_size,
        scratch_bytes=scratch(1, 0) - row,
        scratch_row_bytes=row,
        scored_row_bytes=scored_row,
        num_prompts=request.num_prompts,
        prompt_tokens=request.prompt_tokens,
        new_tokens=request.new_tokens,
        rows_at_once=rows_at_once(formats.device),
    )


def _row_bytes(config: ModelConfig, formats: PartFormats, length: int) -> int:
    """Bytes of one token's KV rows; recurrent states of a sequence are divided among its tokens."""
    states = states_bytes(config, formats, length)
    kv_rows = (kv_bytes(config, formats, length) - states) // whole_rows(length)
    return kv_rows + session_states_bytes(config, formats) // length
