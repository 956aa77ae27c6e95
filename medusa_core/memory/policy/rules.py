"""What of a placement the engine can carry out for a model: nothing else is searched."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.errors import RequestError
from medusa_core.messages import Policy, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import SharedRows

MAX_BATCH = 256


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be done.

    Attributes:
        cache_below: Keys and values may lie below the device; else all is one batch.
        overlaps: Moving and computing run at the same time; else one after the other.
        attended_below: Attention may be computed where rows lie, by the processor behind a card.
        most_together: Sequences of a block.
        lies_below: Something does, as all has no room on the device.
    """

    cache_below: bool = True
    overlaps: bool = True
    attended_below: bool = False
    most_together: int = MAX_BATCH
    lies_below: bool = False


def rules_of(config: ModelConfig, device: str, *, has_adapter: bool = False) -> Rules:
    """What the engine can do for a model.

    Args:
        config: Its sizes.
        device: `cpu` or `cuda`.
        has_adapter: An adapter lies beside its weights.
    """
    return Rules(
        cache_below=not (has_adapter or why_cache_stays(config)), attended_below=device == "cuda"
    )


def why_cache_stays(config: ModelConfig) -> str:
    """Why keys and values of a model all lie on the device; empty where they needn't."""
    if not config.is_ours:
        return "It runs through transformers"
    if config.state_layers:
        return "It has recurrent layers"
    if any(isinstance(shape, SharedRows) for shape in config.layers):
        return "Its layers share keys and values"
    return "" if config.traits.per_layer is None else "It has per-layer embeddings"


def check_policy(policy: Policy, config: ModelConfig, device: str, has_disk: bool) -> None:
    """See that the engine can carry a policy out.

    Args:
        policy: The policy.
        config: Sizes of the model.
        device: `cpu` or `cuda`.
        has_disk: A folder on a disk is named.

    Raises:
        RequestError: It can't.
    """
    shares = (policy.weights, policy.cache, policy.activations)
    if device == "cpu" and any(share.memory for share in shares):
        raise RequestError(
            "The policy places something in memory below the device, but memory is the device "
            "here.",
            "Write its shares as device and disk.",
        )
    if device == "cpu" and policy.attention != Tier.DEVICE.value:
        raise RequestError(
            "Attention is computed by the processor anyhow.", 'Write "attention": "device".'
        )
    if any(share.disk for share in shares) and not has_disk:
        raise RequestError(
            "The policy places something on a disk.", "Name a folder with --tier-disk."
        )
    if policy.cache.memory and policy.cache.disk:
        raise RequestError(
            "The policy places cached keys and values both in memory and on a disk.",
            'Give "cache" a share of "memory" or of "disk", not of both.',
        )
    why = why_cache_stays(config)
    if policy.weights.below and not config.is_ours:
        raise RequestError(
            f"{why}: its layers stay on the device.", 'Write "weights": {"device": 1.0}.'
        )
    if why and (policy.cache.below or policy.num_batches > 1):
        raise RequestError(
            f"{why}: its keys and values stay on the device, and all is one batch.",
            'Write "cache": {"device": 1.0} and "num_batches": 1.',
        )
