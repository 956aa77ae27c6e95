"""The model that the details show."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.api import AdapterShape, ModelConfig
from medusa_core.messages import DrafterSpeed, HeadsShape


@dataclass(frozen=True, slots=True)
class Subject:
    """The model that the details show, with heads, draft model and adapter.

    Attributes:
        title: Its name.
        note: Remark about it.
        config: Sizes of the model; None while unknown.
        heads: Sizes of its heads.
        draft_model: Sizes of a smaller model that drafts for it; None for none.
        adapter: Sizes of a LoRA; None for none.
        speeds: Measured speeds with these load options; empty if not measured.
    """

    title: str
    note: str
    config: ModelConfig | None
    heads: HeadsShape
    draft_model: ModelConfig | None = None
    adapter: AdapterShape | None = None
    speeds: tuple[DrafterSpeed, ...] = ()
