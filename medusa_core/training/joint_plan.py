"""What it takes to train heads and a LoRA of their target together: counted from the sizes."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.models.blocks.sizes import lm_head_spec
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.quant.choice import PartFormats
from medusa_core.training.adapted import kept_bytes, recomputes
from medusa_core.training.losses import CHUNK_ROWS

_OPTIMIZED = 4  # weights, gradients and two averages, all of them float32
_ON_DISK = 3  # of these in a checkpoint
_PUBLISHED_BYTES = 2  # of a number
_SCORES = 6  # copies of a chunk's, with gradients
_UNPACKED_BYTES = 10  # of a weight that is made a number, with what that is made of
_PLAIN_BYTES = 2  # of a weight that is one already, in the dtype of products
_PASSES = 4  # of the target's time to read: there, again, back, and the LoRA's own


@dataclass(frozen=True, slots=True)
class JointPlan:
    """What the second part of a run needs, beside what heads alone do.

    Attributes:
        lora_bytes: The LoRA with its gradients and averages.
        passed_bytes: What a step keeps for its gradients.
        unpacked_bytes: The largest layer as numbers.
        disk_bytes: Of its checkpoint, and of what is made.
    """

    lora_bytes: int
    passed_bytes: int
    unpacked_bytes: int
    disk_bytes: int

    @property
    def peak_bytes(self) -> int:
        """All of the device's memory."""
        return self.lora_bytes + self.passed_bytes + self.unpacked_bytes


def plan_joint(
    config: ModelConfig, formats: PartFormats, rank: int, num_texts: int, longest: int
) -> JointPlan:
    """Count it.

    Args:
        config: Of the target.
        formats: Of its parts.
        rank: Of the LoRA.
        num_texts: Texts of a step.
        longest: Tokens of the longest.
    """
    numbers = rank * sum(_sides(config))
    rows = num_texts * longest
    one = kept_bytes(config, rows) + attention_bytes(config, num_texts, longest)
    passed = config.num_layers * one
    if recomputes(config, rows):
        passed = one + config.num_layers * rows * config.hidden_size * 4
    scores = _SCORES * min(rows, CHUNK_ROWS) * config.vocab_size * 4
    largest = max(part.rows * part.columns for part in linear_parts(config))
    unpacked = largest * (_PLAIN_BYTES if formats.linears.is_dense else _UNPACKED_BYTES)
    last = lm_head_spec(config)
    head = last.rows * last.columns
    head *= _PLAIN_BYTES if formats.lm_head.is_dense else _UNPACKED_BYTES
    return JointPlan(
        lora_bytes=_OPTIMIZED * 4 * numbers,
        passed_bytes=passed + scores,
        unpacked_bytes=2 * max(unpacked, head),
        disk_bytes=numbers * (4 * _ON_DISK + _PUBLISHED_BYTES),
    )


def attention_bytes(config: ModelConfig, num_texts: int, longest: int) -> int:
    """Bytes of attention's weights that a block keeps: scores, and what they become."""
    return 2 * num_texts * config.num_heads * longest * longest * 4


def joint_step_s(collect_s: float, num_texts: int, step_s: float) -> float:
    """Seconds of a step, about.

    Args:
        collect_s: In which the target reads a text.
        num_texts: Of a step.
        step_s: Of the heads alone.
    """
    return _PASSES * collect_s * num_texts + step_s


def _sides(config: ModelConfig) -> list[int]:
    """Rows and columns of every layer that the LoRA changes, each added up."""
    sizes = {
        piece.name: piece.tensor_rows + part.columns
        for part in linear_parts(config)
        for piece in part.pieces
    }
    return list(sizes.values())
