"""Memory and time of joint training of heads and a LoRA, computed from sizes."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.models.blocks.sizes import lm_head_spec
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import linear_parts
from medusa_core.models.quant.choice import PartFormats
from medusa_core.training.adapted import activation_bytes, recomputes
from medusa_core.training.losses import CHUNK_ROWS

_OPTIMIZED = 4  # weights, gradients and Adam's two moments in float32
_ON_DISK = 3  # of these in a checkpoint: all but gradients
_PUBLISHED_BYTES = 2  # of a number
_SCORES = 6  # copies of a chunk's, with gradients
_UNPACKED_BYTES = 10  # of a weight that is made a number, with what that is made of
_PLAIN_BYTES = 2  # of a weight that is one already, in the dtype of products
_PASSES = 4  # of a forward pass: forward, recomputed, backward, and the LoRA's own


@dataclass(frozen=True, slots=True)
class JointPlan:
    """Additional memory and disk space of joint training, over training the heads alone.

    Attributes:
        lora_bytes: LoRA weights, gradients and optimizer state.
        activation_bytes: Activations that a step saves for the backward pass.
        dequantized_bytes: The largest dequantized layer.
        disk_bytes: Checkpoint and trained adapter on disk.
    """

    lora_bytes: int
    activation_bytes: int
    dequantized_bytes: int
    disk_bytes: int

    @property
    def peak_bytes(self) -> int:
        """Total device memory."""
        return self.lora_bytes + self.activation_bytes + self.dequantized_bytes


def plan_joint(
    config: ModelConfig, formats: PartFormats, rank: int, num_texts: int, longest: int
) -> JointPlan:
    """Compute the plan.

    Args:
        config: Sizes of the target.
        formats: Weight formats of its parts.
        rank: Rank of the LoRA.
        num_texts: Texts per step.
        longest: Tokens of the longest text.
    """
    numbers = rank * sum(_summed_sizes(config))
    rows = num_texts * longest
    one = activation_bytes(config, rows) + attention_bytes(config, num_texts, longest)
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
        activation_bytes=passed + scores,
        dequantized_bytes=2 * max(unpacked, head),
        disk_bytes=numbers * (4 * _ON_DISK + _PUBLISHED_BYTES),
    )


def attention_bytes(config: ModelConfig, num_texts: int, longest: int) -> int:
    """Return the bytes of attention scores and weights that a block keeps."""
    return 2 * num_texts * config.num_heads * longest * longest * 4


def joint_step_s(collect_s: float, num_texts: int, step_s: float) -> float:
    """Return about how many seconds a step takes.

    Args:
        collect_s: Seconds of the target's forward pass over a text.
        num_texts: Texts per step.
        step_s: Seconds of a step of the heads alone.
    """
    return _PASSES * collect_s * num_texts + step_s


def _summed_sizes(config: ModelConfig) -> list[int]:
    """Return inputs + outputs of each adapted weight: its LoRA parameters per unit of rank."""
    sizes = {
        piece.name: piece.tensor_rows + part.columns
        for part in linear_parts(config)
        for piece in part.pieces
    }
    return list(sizes.values())
