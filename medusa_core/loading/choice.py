"""The user's choice of a model and its load options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from medusa_core.messages import EndpointModel, LoadOptions, WeightFormats
from medusa_core.system.files import record_json
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
    """A model with its load options, as chosen by the user.

    Attributes:
        name: Name to show.
        model_dir: Folder of the model, or its GGUF file.
        heads_dir: Folder of its heads, or None.
        options: Load options; device, cluster and storage folders are set when it is loaded.
        note: Note to show beside the name.
        remote: A model of another machine, which has no folders and options; else None.
    """

    name: str
    model_dir: Path
    heads_dir: Path | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    note: str = ""
    remote: EndpointModel | None = None

    @property
    def key(self) -> str:
        """Key that identifies the model, whatever its load options."""
        if self.remote is None:
            return str(self.model_dir)
        return f"{self.remote.endpoint} {self.remote.model_id}"

    def loaded_as(self, formats: WeightFormats, context_tokens: int) -> ModelChoice:
        """The same model in other formats."""
        return replace(self, options=self.options.with_formats(formats, context_tokens))

    def with_layers_in(self, folder: Path | None) -> ModelChoice:
        """The same model, with a folder for layers that don't fit into memory."""
        return replace(self, options=self.options.with_layers_in(folder))

    def drafted_by(self, draft_models: Mapping[str, str]) -> ModelChoice:
        """The same model with its saved draft model, if that still exists.

        Args:
            draft_models: Folders of draft models by folder of their target.
        """
        folder = draft_models.get(str(self.model_dir), "")
        exists = bool(folder) and Path(folder).exists()
        draft_dir = Path(folder) if exists else None
        return replace(self, options=replace(self.options, assistant_dir=draft_dir))

    @property
    def is_demo(self) -> bool:
        """Whether it is the built-in model."""
        return self.model_dir == demo_model_dir()


def remote_choice(remote: EndpointModel) -> ModelChoice:
    """A model of another machine."""
    return ModelChoice(remote.model_id, Path(), note=remote.place, remote=remote)


def demo_choice() -> ModelChoice:
    """The built-in model."""
    return ModelChoice(DEMO_NAME, demo_model_dir(), demo_heads_dir(), note=DEMO_NOTE)


def first_choice() -> ModelChoice:
    """The model of the first start: SmolLM2 if it was downloaded, else the demo."""
    path = first_model_file()
    if path is None:
        return demo_choice()
    return ModelChoice(FIRST_MODEL_NAME, path, first_heads_dir(), note=FIRST_MODEL_LICENCE)


def ready_choices() -> tuple[ModelChoice, ...]:
    """Models that need no download, that of the first start first."""
    first, demo = first_choice(), demo_choice()
    return (demo,) if first.is_demo else (first, demo)


def as_json(choice: ModelChoice) -> dict[str, Any]:
    """The choice for saving; that of the first start is saved as an empty object."""
    # The draft model is saved by itself, and a confirmation isn't saved.
    options = replace(choice.options, ignores_plan=False, assistant_dir=None)
    saved_choice = replace(choice, options=options)
    return {} if saved_choice == first_choice() else record_json.as_json(saved_choice)


def from_json(saved: Mapping[str, Any]) -> ModelChoice:
    """Parse a saved choice; the model of the first start if its files are gone.

    Raises:
        ValueError: It names what isn't known, or a value is of another type.
    """
    if not saved:
        return first_choice()
    choice = record_json.from_json(ModelChoice, saved, "the model")
    if choice.remote is not None:
        return remote_choice(choice.remote)
    if not choice.model_dir.exists():
        return first_choice()
    known = next((one for one in ready_choices() if one.model_dir == choice.model_dir), None)
    return replace(
        choice,
        note="" if known is None else known.note,
        heads_dir=_existing_folder(choice.heads_dir),
        options=replace(choice.options, adapter_dir=_existing_folder(choice.options.adapter_dir)),
    )


def _existing_folder(folder: Path | None) -> Path | None:
    """A folder if it exists; None otherwise."""
    return folder if folder is not None and folder.is_dir() else None
