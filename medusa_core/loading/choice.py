"""Which model is loaded, and as what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from medusa_core.messages import WeightFormats
from medusa_core.system.resources import (
    FIRST_MODEL_LICENCE,
    FIRST_MODEL_NAME,
    demo_heads_dir,
    demo_model_dir,
    first_heads_dir,
    first_model_file,
)

DEMO_NOTE = "small built-in demo"
DEMO_NAME = "Llama-Pebble"


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model as the user wants it loaded.

    Attributes:
        name: Name to show.
        model_dir: Folder of the model, or its GGUF file.
        heads_dir: Folder of its Medusa heads, or None.
        formats: Weight formats.
        context_tokens: Longest prompt plus answer; 0 for what fits.
        ignores_plan: Load although it shouldn't fit.
        memory_gib: How much of the device's memory it may take; 0 for what is free.
        tier_disk: Folder for layers that have no room in memory; None where none may lie on a disk.
        note: What one must know about it.
        assistant_dir: Folder of a smaller model that drafts for it, or its GGUF file; or None.
        adapter_dir: Folder of a LoRA that changes its weights, or None.
    """

    name: str
    model_dir: Path
    heads_dir: Path | None = None
    formats: WeightFormats = field(default_factory=WeightFormats)
    context_tokens: int = 0
    ignores_plan: bool = False
    note: str = ""
    assistant_dir: Path | None = None
    adapter_dir: Path | None = None
    memory_gib: float = 0.0
    tier_disk: Path | None = None

    def loaded_as(self, formats: WeightFormats, context_tokens: int) -> ModelChoice:
        """The same model in other formats."""
        return replace(self, formats=formats, context_tokens=context_tokens)

    def drafted_by(self, draft_models: Mapping[str, str]) -> ModelChoice:
        """The same model with the draft model that is remembered for it, if that is still here.

        Args:
            draft_models: Folders of draft models by those of the models they draft for.
        """
        folder = draft_models.get(str(self.model_dir), "")
        is_here = bool(folder) and Path(folder).exists()
        return replace(self, assistant_dir=Path(folder) if is_here else None)

    @property
    def is_demo(self) -> bool:
        """Is it the built-in model?"""
        return self.model_dir == demo_model_dir()


def demo_choice() -> ModelChoice:
    """The built-in model."""
    return ModelChoice(DEMO_NAME, demo_model_dir(), demo_heads_dir(), note=DEMO_NOTE)


def first_choice() -> ModelChoice:
    """The model of the first start: SmolLM2 where it was fetched, else the demo."""
    path = first_model_file()
    if path is None:
        return demo_choice()
    return ModelChoice(FIRST_MODEL_NAME, path, first_heads_dir(), note=FIRST_MODEL_LICENCE)


def ready_choices() -> tuple[ModelChoice, ...]:
    """The models that are here without a download, that of the first start first."""
    first, demo = first_choice(), demo_choice()
    return (demo,) if first.is_demo else (first, demo)


def as_json(choice: ModelChoice) -> dict[str, Any]:
    """A choice as it is remembered; that of the first start is remembered as nothing."""
    if replace(choice, ignores_plan=False, assistant_dir=None) == first_choice():
        return {}
    return {
        "name": choice.name,
        "model_dir": str(choice.model_dir),
        "heads_dir": "" if choice.heads_dir is None else str(choice.heads_dir),
        "adapter_dir": "" if choice.adapter_dir is None else str(choice.adapter_dir),
        "formats": choice.formats._asdict(),
        "context_tokens": choice.context_tokens,
        "memory_gib": choice.memory_gib,
        "tier_disk": "" if choice.tier_disk is None else str(choice.tier_disk),
    }


def from_json(saved: Mapping[str, Any]) -> ModelChoice:
    """A remembered choice; that of the first start if its files are gone.

    Raises:
        ValueError: A number can't be read.
        KeyError: A key is missing.
        TypeError: A value has another type.
    """
    if not saved:
        return first_choice()
    model_dir, heads = Path(saved["model_dir"]), str(saved["heads_dir"])
    tier_disk = str(saved.get("tier_disk", ""))
    if not model_dir.exists():
        return first_choice()
    heads_dir = Path(heads) if heads and Path(heads).is_dir() else None
    adapter = str(saved.get("adapter_dir") or "")
    known = next((one for one in ready_choices() if one.model_dir == model_dir), None)
    return ModelChoice(
        name=str(saved["name"]),
        model_dir=model_dir,
        note="" if known is None else known.note,
        heads_dir=heads_dir,
        adapter_dir=Path(adapter) if adapter and Path(adapter).is_dir() else None,
        formats=WeightFormats(**saved["formats"]),
        context_tokens=int(saved["context_tokens"]),
        memory_gib=float(saved.get("memory_gib", 0.0)),
        tier_disk=Path(tier_disk) if tier_disk else None,
    )
