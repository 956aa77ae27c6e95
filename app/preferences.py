"""What the window remembers from one start to the next."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from app.markdown.formats import Marking
from app.theme.appearance import ThemeChoice
from app.theme.fonts import MAX_ZOOM, MIN_ZOOM
from medusa_core.model_choice import ModelChoice, as_json, demo_choice, from_json

log = logging.getLogger(__name__)

FILE_NAME = "preferences.json"


@dataclass(frozen=True, slots=True)
class Preferences:
    """The user's choices.

    Attributes:
        theme: `system`, `light` or `dark`.
        zoom: 1.0 for the normal size.
        marking: How accepted tokens are marked: `off`, `accepted` or `heads`.
        has_read_hint: Whether the user has read what this is.
        model: The model that was loaded last.
        models_dir: Where downloads go; empty for the cache that programs share.
        records: Whether the steps of answers are recorded.
        unload_minutes: Idle time after which a model's memory is given back; 0 for never.
    """

    theme: str = ThemeChoice.SYSTEM.value
    zoom: float = 1.0
    marking: str = Marking.HEADS.value
    has_read_hint: bool = False
    model: ModelChoice = field(default_factory=demo_choice)
    unload_minutes: float = 0.0
    models_dir: str = ""
    records: bool = True


def load_preferences(folder: Path) -> Preferences:
    """Read the choices; what is missing or makes no sense is as at the first start."""
    path = folder / FILE_NAME
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        theme = ThemeChoice(saved["theme"]).value
        zoom = min(MAX_ZOOM, max(MIN_ZOOM, float(saved["zoom"])))
        return Preferences(
            theme,
            zoom,
            Marking(saved["marking"]).value,
            bool(saved["has_read_hint"]),
            from_json(saved["model"]),
            max(0.0, float(saved["unload_minutes"])),
            str(saved["models_dir"]),
            bool(saved["records"]),
        )
    except FileNotFoundError:
        return Preferences()
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s can't be read and is ignored: %s", path, error)
        return Preferences()


def save_preferences(preferences: Preferences, folder: Path) -> None:
    """Write the choices at once or not at all; a full disk costs them, not the window."""
    path = folder / FILE_NAME
    part = path.with_suffix(".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        saved = {
            "theme": preferences.theme,
            "zoom": preferences.zoom,
            "marking": preferences.marking,
            "has_read_hint": preferences.has_read_hint,
            "model": as_json(preferences.model),
            "unload_minutes": preferences.unload_minutes,
            "models_dir": preferences.models_dir,
            "records": preferences.records,
        }
        part.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        log.warning("%s can't be written: %s", path, error)
