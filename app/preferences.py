"""What the window remembers from one start to the next."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.markdown.formats import Marking
from app.theme.appearance import ThemeChoice
from app.theme.fonts import MAX_ZOOM, MIN_ZOOM
from medusa_core.api import read_json
from medusa_core.errors import CheckpointError
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
        device: Torch device name that models run on; empty for the best there is.
        records: Whether the steps of answers are recorded.
        unload_minutes: Idle time after which a model's memory is given back; 0 for never.
        shows_panel: Whether the side panel is open.
    """

    theme: str = ThemeChoice.SYSTEM.value
    zoom: float = 1.0
    marking: str = Marking.HEADS.value
    has_read_hint: bool = False
    model: ModelChoice = field(default_factory=demo_choice)
    unload_minutes: float = 0.0
    models_dir: str = ""
    device: str = ""
    records: bool = True
    shows_panel: bool = False


def load_preferences(folder: Path) -> Preferences:
    """Read the choices; each that is missing or makes no sense is as at the first start.

    A file that can't be read at all is set aside, so that nothing of it is written over.
    """
    path = folder / FILE_NAME
    try:
        saved = read_json(path) if path.exists() else {}
    except CheckpointError as error:
        log.warning("%s is set aside: %s", path, error.message)
        with suppress(OSError):  # on a disk that can't be written it stays where it is
            path.replace(path.with_suffix(".damaged"))
        return Preferences()
    chosen: dict[str, Any] = {}
    for name, read in _READERS.items():
        try:
            if name in saved:
                chosen[name] = read(saved[name])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            log.warning("%s: %s is as at the first start: %s", path, name, error)
    return Preferences(**chosen)


def _minutes(value: Any) -> float:
    minutes = float(value)
    if not 0 <= minutes <= _MOST_MINUTES:
        raise ValueError(f"{value!r} is no time")
    return minutes


def _device(value: Any) -> str:
    if not re.fullmatch(r"|cpu|cuda(:\d{1,2})?", str(value)):
        raise ValueError(f"{value!r} is no device")
    return str(value)


_MOST_MINUTES = 10_000.0
_READERS: dict[str, Callable[[Any], Any]] = {
    "theme": lambda value: ThemeChoice(value).value,
    "zoom": lambda value: min(MAX_ZOOM, max(MIN_ZOOM, float(value))),
    "marking": lambda value: Marking(value).value,
    "has_read_hint": bool,
    "model": from_json,
    "unload_minutes": _minutes,
    "models_dir": str,
    "device": _device,
    "records": bool,
    "shows_panel": bool,
}


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
            "device": preferences.device,
            "records": preferences.records,
            "shows_panel": preferences.shows_panel,
        }
        part.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        log.warning("%s can't be written: %s", path, error)
