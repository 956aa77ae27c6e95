"""What the details of a model are about."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.api import AdapterShape, ModelConfig
from medusa_core.messages import DrafterSpeed, HeadsShape


@dataclass(frozen=True, slots=True)
class Subject:
    """What the details are about.

    Attributes:
        title: Its name.
        note: A word about it.
        config: Sizes of the model; None while unknown.
        heads: Sizes of its heads.
        draft_model: Sizes of a smaller model that drafts for it; None for none.
        adapter: What a LoRA changes; None without one.
        speeds: How fast it was here, where it is loaded like this and was measured.
    """

    title: str
    note: str
    config: ModelConfig | None
    heads: HeadsShape
    draft_model: ModelConfig | None = None
    adapter: AdapterShape | None = None
    speeds: tuple[DrafterSpeed, ...] = ()
