"""Options for loading a target."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from medusa_core.messages.policy import Policy
from medusa_core.messages.records import WeightFormats


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Options for loading a target.

    Attributes:
        dtype: Compute dtype: `float64`, `float32`, `bfloat16` or `float16`; empty for the best one
            for device and formats.
        device: Torch device name; empty for CUDA if available, else the CPU.
        formats: Weight formats.
        context_tokens: Longest prompt plus answer; 0 for what fits, up to 8,192.
        ignores_plan: Whether to load although the plan says that the model doesn't fit.
        sessions: Conversations with a full context at the same time.
        memory_gib: Limit of the device's memory in GiB; 0 for all that is free.
        tier_disk: Folder for layers offloaded to disk; None to offload to memory alone.
        assistant_dir: Folder or GGUF file of a draft model, or None.
        adapter_dir: Folder of a LoRA in PEFT's layout, or None.
        phrases_dir: Folder of a phrase table; None for the model's own.
        datastore_dir: Folder of the datastore of earlier answers; None to save nothing.
        suffix_dir: Folder of text files that the suffix tree drafts from, too; or None.
        quantized_dir: Folder of the cache of quantized models; None to save nothing.
        takes_own_heads: Whether to use heads in the model's own files if no others are given.
        cluster: HOST:PORT of a cluster that has the layers; empty for none.
        is_raw: Whether to concatenate the messages without a chat template.
        policy: Offload policy of a batch; None to offload only weights that don't fit.
        experts: Place of experts of a model on a card: `ram`, so that the processor computes them,
            `card`, or `auto` for in memory as far as they don't fit the card.
        cpu_layers: Layers of a model on a card whose MLP, or experts, the processor computes, from
            the first on; None for as many as don't fit the card.
        reserved_bytes: Bytes of the device's memory that stay free for an embedding model.
    """

    dtype: str = ""
    device: str = ""
    formats: WeightFormats = field(default_factory=WeightFormats)
    context_tokens: int = 0
    ignores_plan: bool = False
    sessions: int = 1
    memory_gib: float = 0.0
    tier_disk: Path | None = None
    assistant_dir: Path | None = None
    adapter_dir: Path | None = None
    phrases_dir: Path | None = None
    datastore_dir: Path | None = None
    suffix_dir: Path | None = None
    quantized_dir: Path | None = None
    takes_own_heads: bool = True
    cluster: str = ""
    is_raw: bool = False
    policy: Policy | None = None
    experts: str = "auto"
    cpu_layers: int | None = None
    reserved_bytes: int = 0

    @property
    def has_disk(self) -> bool:
        """Whether layers may be offloaded to disk."""
        return self.tier_disk is not None

    def with_layers_in(self, folder: Path | None) -> LoadOptions:
        """Return the options with a folder for layers offloaded to disk."""
        return replace(self, tier_disk=folder)

    def with_policy(self, policy: Policy) -> LoadOptions:
        """Return the options for a policy."""
        formats = self.formats._replace(cache=policy.cache_format, attended=policy.attended)
        return replace(self, policy=policy, formats=formats)

    def with_formats(self, formats: WeightFormats, context_tokens: int) -> LoadOptions:
        """Return the options with other weight formats and another context size."""
        return replace(self, formats=formats, context_tokens=context_tokens)
