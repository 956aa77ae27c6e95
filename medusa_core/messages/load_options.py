"""How a target is to be loaded: the one record of it, from a user's choice to the loader."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from medusa_core.messages.policy import Policy
from medusa_core.messages.records import WeightFormats


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a target is to be loaded.

    Attributes:
        dtype: `float64`, `float32`, `bfloat16` or `float16`, to compute in; empty for the best on
            this device with these formats.
        device: A torch device name; empty for CUDA where there is one, else the CPU.
        formats: Weight formats.
        context_tokens: Longest prompt plus answer; 0 for what fits, up to 8,192.
        ignores_plan: Load although the plan says that it doesn't fit.
        sessions: Conversations that have room for a whole context at once.
        memory_gib: How much of the device's memory it may take; 0 for what is free.
        tier_disk: Folder for layers that have no room in memory; None where none may lie on a disk.
        assistant_dir: Folder of a smaller model that drafts for it, or its GGUF file; or None.
        adapter_dir: Folder of a LoRA that changes its weights, in PEFT's layout, or None.
        phrases_dir: Folder of its phrase table; None for the model's own.
        datastore_dir: Folder where what models say is kept for drafts; None keeps nothing.
        quantized_dir: Folder where quantized models are kept for the next load; None keeps nothing.
        takes_own_heads: Heads that lie in its own files serve where no others are named.
        cluster: HOST:PORT of machines that have its layers; empty where all of them lie here.
        is_raw: No chat template is used: the texts are read as they stand, end to end.
        policy: Where weights, cache and activations lie, and in what blocks answers are computed;
            None for weights alone below the device, where they have no room.
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
    quantized_dir: Path | None = None
    takes_own_heads: bool = True
    cluster: str = ""
    is_raw: bool = False
    policy: Policy | None = None

    @property
    def has_disk(self) -> bool:
        """May layers lie on a disk?"""
        return self.tier_disk is not None

    def with_layers_in(self, folder: Path | None) -> LoadOptions:
        """The same, with this folder for layers that have no room in memory."""
        return replace(self, tier_disk=folder)

    def carrying_out(self, policy: Policy) -> LoadOptions:
        """The same, as a policy wants it."""
        formats = self.formats._replace(cache=policy.cache_format, attended=policy.attended)
        return replace(self, policy=policy, formats=formats)

    def read_as(self, formats: WeightFormats, context_tokens: int) -> LoadOptions:
        """The same, in other formats and with another context."""
        return replace(self, formats=formats, context_tokens=context_tokens)
