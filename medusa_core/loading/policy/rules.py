"""Restrictions of policies: what the engine can offload of a model."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.messages import Policy, Shares, Tier
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import SharedRows

MAX_SEQUENCES = 256


@dataclass(frozen=True, slots=True)
class Rules:
    """Restrictions of a search.

    Attributes:
        may_offload_cache: KV rows may be offloaded; otherwise a block is one batch.
        overlaps: Transfers and computing run at the same time.
        cpu_attention: The CPU may attend to KV rows in host memory for a card.
        max_sequences: Upper limit of a block's sequences.
        must_offload: Something is offloaded, since everything together didn't fit the device.
    """

    may_offload_cache: bool = True
    overlaps: bool = True
    cpu_attention: bool = False
    max_sequences: int = MAX_SEQUENCES
    must_offload: bool = False


def rules_of(config: ModelConfig, device: str, *, has_adapter: bool = False) -> Rules:
    """Return what the engine can do for a model.

    Args:
        config: Configuration of the model.
        device: `cpu` or `cuda`.
        has_adapter: A LoRA adapter is applied without merging.
    """
    return Rules(
        may_offload_cache=not (has_adapter or why_cache_stays(config)),
        cpu_attention=device == "cuda",
    )


def why_cache_stays(config: ModelConfig) -> str:
    """Return why KV rows of a model can't be offloaded; empty if they can."""
    if not config.has_native_family:
        return tr("It runs through transformers")
    if config.state_layers:
        return tr("It has recurrent layers")
    if any(isinstance(shape, SharedRows) for shape in config.layers):
        return tr("Its layers share keys and values")
    return "" if config.per_layer_embeddings is None else tr("It has per-layer embeddings")


def check_policy(policy: Policy, config: ModelConfig, device: str, has_disk: bool) -> None:
    """Check that the engine can carry a policy out.

    Args:
        policy: The policy.
        config: Configuration of the model.
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
    if policy.weights.below and not config.has_native_family:
        raise RequestError(
            tr("{0}: its layers stay on the device.", why), 'Write "weights": {"device": 1.0}.'
        )
    if why and (policy.cache.below or policy.num_batches > 1):
        raise RequestError(
            tr("{0}: its keys and values stay on the device, and all is one batch.", why),
            'Write "cache": {"device": 1.0} and "num_batches": 1.',
        )


def offloaded_layers(shares: Shares, count: int) -> tuple[int, int]:
    """Return the number of layers in host memory, and on disk.

    Args:
        shares: Fractions of the layers per tier.
        count: Number of all layers.
    """
    offloaded = round(count * (shares.memory + shares.disk))
    on_disk = min(offloaded, round(count * shares.disk))
    return offloaded - on_disk, on_disk


def tier_of(shares: Shares) -> Tier:
    """Return the tier of activations, which are all in one."""
    return Tier.DISK if shares.disk else Tier.MEMORY if shares.memory else Tier.DEVICE
