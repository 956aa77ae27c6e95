"""Presets: named settings. Built-in ones are read-only, but can be copied."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from medusa_core.chats.setting import SettingGroup
from medusa_core.chats.settings import SETTINGS, ChatSettings
from medusa_core.errors import MedusaError, PresetError
from medusa_core.i18n import tr
from medusa_core.messages import Advice
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.files.json_file import read_json

log = logging.getLogger(__name__)

FILE_NAME = "presets.json"
_FORMAT = 1
_MOST_NAME_CHARS = 60
_MOST_PRESETS = 500
# A preset resets the sampling settings that it doesn't set.
_SAMPLING: Mapping[str, Any] = {
    "seed": None,
    **{
        name: setting.default
        for name, setting in SETTINGS.items()
        if setting.group is SettingGroup.SAMPLING
    },
}


@dataclass(frozen=True, slots=True)
class Preset:
    """Named settings.

    Attributes:
        name: Name of the preset.
        values: Settings in the form of `ChatSettings.as_json`; others stay unchanged.
        meaning: Description of a built-in preset, in one sentence.
    """

    name: str
    values: Mapping[str, Any] = field(hash=False)
    meaning: str = ""

    @property
    def is_builtin(self) -> bool:
        """Whether the preset is built in."""
        return bool(self.meaning)

    def applied(self, settings: ChatSettings) -> ChatSettings:
        """Return `settings` overridden by the values of the preset."""
        return settings.with_json(self.values)


_EXACT = Preset(
    "Exact",
    {**_SAMPLING, "rule": "greedy"},
    "The likeliest token each time: the same question gets the same answer.",
)
_BALANCED = Preset(
    "Balanced",
    {**_SAMPLING, "rule": "sample", "top_p": 0.95},
    "Draws among likely tokens: varied, and still to the point.",
)
_CREATIVE = Preset(
    "Creative",
    {**_SAMPLING, "rule": "sample", "temperature": 1.1, "min_p": 0.05},
    "Lets rarer tokens come: for stories and ideas.",
)
BUILTIN = (_EXACT, _BALANCED, _CREATIVE)


RECOMMENDED = Preset(
    "Recommended",
    {**_SAMPLING, "rule": "sample"},
    "As advised for this model, by its makers or after trials with it.",
)


def recommended(advice: Advice) -> Preset:
    """Return the preset of a model's recommended sampling settings."""
    return replace(RECOMMENDED, values={**RECOMMENDED.values, **advice._asdict()})


class Presets:
    """The presets of a user, saved in a file; if that fails, they last until the program ends.

    Attributes:
        own: The user's presets by name.
        new_chats: The user's settings for new conversations; None for the default.
        advised: The preset of the loaded model; None without recommended settings.
        trouble: Error of reading the file, to be shown once; or None.
    """

    def __init__(self, folder: Path | None) -> None:
        """Read the presets; a damaged file is renamed.

        Args:
            folder: Folder of the file; None to save nothing.
        """
        self._path = None if folder is None else folder / FILE_NAME
        self.own: dict[str, Preset] = {}
        self.new_chats: ChatSettings | None = None
        self.advised: Preset | None = None
        self._default = _BALANCED
        self.trouble: PresetError | None = None
        self._load()

    @property
    def all(self) -> tuple[Preset, ...]:
        """All presets: the model's, the built-in ones, then the user's by name."""
        advised = () if self.advised is None else (self.advised,)
        return (
            *advised,
            *BUILTIN,
            *sorted(self.own.values(), key=lambda preset: preset.name.casefold()),
        )

    @property
    def beginning(self) -> ChatSettings:
        """Settings of new conversations: the user's, else those recommended for the model.

        Without a recommendation they sample, since small models repeat themselves otherwise.
        """
        if self.new_chats is not None:
            return self.new_chats
        return (self.advised or self._default).applied(ChatSettings())

    def apply_advice(self, advice: Advice | None) -> None:
        """Set the recommended settings of the loaded model."""
        self.advised = recommended(advice) if advice is not None and advice.temperature else None
        self._default = _BALANCED if advice is None else _EXACT

    def matching(self, settings: ChatSettings) -> Preset | None:
        """Return the preset that equals these settings; None if there is none."""
        return next((p for p in self.all if p.applied(settings) == settings), None)

    def save(self, name: str, settings: ChatSettings) -> Preset:
        """Save settings under a name, in place of an earlier preset.

        Raises:
            PresetError: The name is invalid or built in, or the file can't be written.
        """
        return self._save_preset(Preset(checked_name(name), settings.as_json()))

    def rename(self, preset: Preset, name: str) -> Preset:
        """Rename a preset of the user.

        Raises:
            PresetError: See `save`; or another preset has that name.
        """
        if name.strip() == preset.name:
            return preset
        renamed = Preset(self._free(checked_name(name)), preset.values)
        del self.own[preset.name]
        return self._save_preset(renamed)

    def duplicate(self, preset: Preset) -> Preset:
        """Copy a preset, which may be built in."""
        return self._save_preset(Preset(self.unused_name(preset.name), preset.values))

    def delete(self, preset: Preset) -> None:
        """Delete a preset of the user."""
        del self.own[preset.name]
        self._write()

    def use_for_new_chats(self, settings: ChatSettings) -> None:
        """Set the settings for new conversations.

        Raises:
            PresetError: The file can't be written.
        """
        self.new_chats = settings
        self._write()

    def unused_name(self, name: str) -> str:
        """Return the name, with a number appended if it is in use."""
        used = {preset.name.casefold() for preset in (*self.all, RECOMMENDED)}
        stem = name.strip()[: _MOST_NAME_CHARS - 5] or "Preset"
        names = (stem, *(f"{stem} {number}" for number in range(2, _MOST_PRESETS + 10)))
        return next(name for name in names if name.casefold() not in used)

    def export(self, preset: Preset, path: Path) -> None:
        """Export a preset to a file.

        Raises:
            PresetError: The file can't be written.
        """
        _write_json({"format": _FORMAT, "presets": [_raw(preset)]}, path)

    def add_from(self, path: Path) -> tuple[Preset, ...]:
        """Import presets; a number is appended to names in use.

        Raises:
            PresetError: The file has no presets.
        """
        try:
            found = _presets(read_json(path))
        except MedusaError as error:
            raise PresetError(error.message, "Choose a file that was exported here.") from error
        if not found:
            raise PresetError(
                tr("{0} holds no preset.", path.name), "Choose a file that was exported here."
            )
        return tuple(self._save_preset(Preset(self.unused_name(p.name), p.values)) for p in found)

    def replace_own(self, presets: Iterable[Preset], new_chats: ChatSettings | None) -> None:
        """Replace the user's presets and the settings for new conversations.

        Raises:
            PresetError: There are too many, or the file can't be written; nothing changes then.
        """
        before = self.own, self.new_chats
        self.own, self.new_chats = {preset.name: preset for preset in presets}, new_chats
        try:
            if len(self.own) > _MOST_PRESETS:
                raise PresetError(
                    tr("{0} presets are too many.", len(self.own)),
                    tr("Keep at most {0}.", _MOST_PRESETS),
                )
            self._write()
        except PresetError:
            self.own, self.new_chats = before
            raise

    def _free(self, name: str) -> str:
        """Refuse a name that is in use."""
        if name in self.own:
            raise PresetError(tr("There is a preset {0} already.", name), "Choose another name.")
        return name

    def _save_preset(self, preset: Preset) -> Preset:
        """Add a preset and write the file."""
        self.own[preset.name] = preset
        self._write()
        return preset

    def _load(self) -> None:
        """Read the file; a damaged one is renamed."""
        if self._path is None or not self._path.exists():
            return
        try:
            raw = read_json(self._path)
            self.own = {preset.name: preset for preset in _presets(raw)}
        except MedusaError as error:
            log.warning("%s is renamed to .damaged: %s", self._path, error.message)
            damaged = self._path.with_suffix(".damaged")
            with suppress(OSError):  # on a read-only disk it stays
                self._path.replace(damaged)
            self.trouble = PresetError(
                "Your presets can't be read.",
                tr("Those of Medusa Chat are still there; the damaged file is now {0}.", damaged),
            )
            return
        kept = raw.get("new_chats")
        if isinstance(kept, dict):
            self.new_chats = ChatSettings().with_json(kept)

    def _write(self) -> None:
        """Write the file."""
        if self._path is None:
            return
        presets = [_raw(preset) for preset in self.own.values()]
        new_chats = None if self.new_chats is None else self.new_chats.as_json()
        raw = {"format": _FORMAT, "new_chats": new_chats, "presets": presets}
        _write_json(raw, self._path)


def checked_name(name: str) -> str:
    """Check a preset's name, and strip spaces around it.

    Raises:
        PresetError: The name is invalid or built in.
    """
    name = name.strip()
    if not name or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise PresetError(
            "That is no name for a preset.", tr("Choose 1 to {0} characters.", _MOST_NAME_CHARS)
        )
    if name.casefold() in {preset.name.casefold() for preset in (*BUILTIN, RECOMMENDED)}:
        raise PresetError(
            tr("{0} comes with Medusa Chat and can't be changed.", name), "Choose another name."
        )
    return name


def _raw(preset: Preset) -> dict[str, Any]:
    """Return a preset as JSON."""
    return {"name": preset.name, "settings": dict(preset.values)}


def _presets(raw: Mapping[str, Any]) -> list[Preset]:
    """Parse the presets of a file, without invalid values.

    Raises:
        PresetError: The file has another form.
    """
    found, version = raw.get("presets"), raw.get("format")
    if not isinstance(found, list) or version != _FORMAT:
        raise PresetError("This file holds no presets that can be read.", "Choose another file.")
    presets = []
    for item in found[:_MOST_PRESETS]:
        pair = item if isinstance(item, dict) else {}
        name, values = pair.get("name"), pair.get("settings")
        if isinstance(name, str) and name.strip() and isinstance(values, dict):
            sound = ChatSettings().with_json(values).as_json()
            kept = {key: value for key, value in sound.items() if key in values}
            presets.append(Preset(name.strip()[:_MOST_NAME_CHARS], kept))
    return presets


def _write_json(raw: Mapping[str, Any], path: Path) -> None:
    """Write a file atomically."""
    with disk_errors(
        PresetError,
        path.name,
        tr("Make room on the disk, or choose another folder; until then it is kept in memory."),
    ):
        replace_text(path, json.dumps(raw, indent=1, ensure_ascii=False) + "\n")
