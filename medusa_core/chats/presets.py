"""Presets: settings under a name. Those that come with the program can't be changed, but copied."""

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
from medusa_core.messages import Advice
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.json_file import read_json

log = logging.getLogger(__name__)

FILE_NAME = "presets.json"
_FORMAT = 1
_MOST_NAME_CHARS = 60
_MOST_PRESETS = 500
# What a preset doesn't name goes back to its default.
_SAMPLING: Mapping[str, Any] = {
    "seed": None,
    **{name: one.default for name, one in SETTINGS.items() if one.group is SettingGroup.SAMPLING},
}


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings under a name.

    Attributes:
        name: What it is called.
        values: Settings as in `ChatSettings.as_json`; those that it lacks stay as they are.
        meaning: One sentence, for those that come with the program.
    """

    name: str
    values: Mapping[str, Any] = field(hash=False)
    meaning: str = ""

    @property
    def is_builtin(self) -> bool:
        """Whether it comes with the program."""
        return bool(self.meaning)

    def applied(self, settings: ChatSettings) -> ChatSettings:
        """These settings under the preset."""
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
    """The preset of a model whose makers give advice."""
    return replace(RECOMMENDED, values={**RECOMMENDED.values, **advice._asdict()})


class Presets:
    """The presets of this user, kept in a file; what can't be written is kept until the end.

    Attributes:
        own: The user's presets, by name.
        new_chats: What new conversations begin with, where the user chose that; else None.
        advised: The preset of the model at hand; None where its makers don't say how to draw.
        trouble: What was wrong with the file, to be told once; or None.
    """

    def __init__(self, folder: Path | None) -> None:
        """Read them; a file that can't be read is set aside.

        Args:
            folder: Where the file is; None keeps nothing.
        """
        self._path = None if folder is None else folder / FILE_NAME
        self.own: dict[str, Preset] = {}
        self.new_chats: ChatSettings | None = None
        self.advised: Preset | None = None
        self._usual = _BALANCED
        self.trouble: PresetError | None = None
        self._load()

    @property
    def all(self) -> tuple[Preset, ...]:
        """All presets, those of the model and of the program first."""
        advised = () if self.advised is None else (self.advised,)
        return (
            *advised,
            *BUILTIN,
            *sorted(self.own.values(), key=lambda preset: preset.name.casefold()),
        )

    @property
    def beginning(self) -> ChatSettings:
        """What a new conversation begins with: the user's choice, else the makers' advice.

        Where they give none it draws: small models repeat themselves if they never do.
        """
        if self.new_chats is not None:
            return self.new_chats
        return (self.advised or self._usual).applied(ChatSettings())

    def apply_advice(self, advice: Advice | None) -> None:
        """Take what the makers of the model at hand advise."""
        self.advised = recommended(advice) if advice is not None and advice.temperature else None
        self._usual = _BALANCED if advice is None else _EXACT

    def matching(self, settings: ChatSettings) -> Preset | None:
        """The preset that changes nothing of these settings."""
        return next((p for p in self.all if p.applied(settings) == settings), None)

    def save(self, name: str, settings: ChatSettings) -> Preset:
        """Keep settings under a name, in place of what it was the name of.

        Raises:
            PresetError: It is the name of a preset of the program, no name, or not to be written.
        """
        return self._keep(Preset(checked_name(name), settings.as_json()))

    def rename(self, preset: Preset, name: str) -> Preset:
        """Give a preset of the user's another name.

        Raises:
            PresetError: As `save`; or another one has that name.
        """
        if name.strip() == preset.name:
            return preset
        renamed = Preset(self._free(checked_name(name)), preset.values)
        del self.own[preset.name]
        return self._keep(renamed)

    def duplicate(self, preset: Preset) -> Preset:
        """Copy a preset, one of the program's, too."""
        return self._keep(Preset(self.unused_name(preset.name), preset.values))

    def delete(self, preset: Preset) -> None:
        """Forget a preset of the user's."""
        del self.own[preset.name]
        self._write()

    def use_for_new_chats(self, settings: ChatSettings) -> None:
        """Let new conversations begin with these settings.

        Raises:
            PresetError: They can't be written.
        """
        self.new_chats = settings
        self._write()

    def unused_name(self, name: str) -> str:
        """The name, with a number behind it where it is in use."""
        used = {preset.name.casefold() for preset in (*self.all, RECOMMENDED)}
        stem = name.strip()[: _MOST_NAME_CHARS - 5] or "Preset"
        names = (stem, *(f"{stem} {number}" for number in range(2, _MOST_PRESETS + 10)))
        return next(name for name in names if name.casefold() not in used)

    def export(self, preset: Preset, path: Path) -> None:
        """Write a preset to a file of its own.

        Raises:
            PresetError: It can't be written.
        """
        _write_json({"format": _FORMAT, "presets": [_raw(preset)]}, path)

    def add_from(self, path: Path) -> tuple[Preset, ...]:
        """Read presets that were exported; names that are in use get a number.

        Raises:
            PresetError: There is none in the file.
        """
        try:
            found = _presets(read_json(path))
        except MedusaError as error:
            raise PresetError(error.message, "Choose a file that was exported here.") from error
        if not found:
            raise PresetError(
                f"{path.name} holds no preset.", "Choose a file that was exported here."
            )
        return tuple(self._keep(Preset(self.unused_name(p.name), p.values)) for p in found)

    def replace_own(self, own: Iterable[Preset], new_chats: ChatSettings | None) -> None:
        """Keep these presets in place of the user's own, and let new chats begin so.

        Raises:
            PresetError: There are too many, or they can't be written; then nothing has changed.
        """
        before = self.own, self.new_chats
        self.own, self.new_chats = {preset.name: preset for preset in own}, new_chats
        try:
            if len(self.own) > _MOST_PRESETS:
                raise PresetError(
                    f"{len(self.own)} presets are too many.", f"Keep at most {_MOST_PRESETS}."
                )
            self._write()
        except PresetError:
            self.own, self.new_chats = before
            raise

    def _free(self, name: str) -> str:
        if name in self.own:
            raise PresetError(f"There is a preset {name} already.", "Choose another name.")
        return name

    def _keep(self, preset: Preset) -> Preset:
        self.own[preset.name] = preset
        self._write()
        return preset

    def _load(self) -> None:
        if self._path is None or not self._path.exists():
            return
        try:
            raw = read_json(self._path)
            self.own = {preset.name: preset for preset in _presets(raw)}
        except MedusaError as error:
            log.warning("%s is set aside: %s", self._path, error.message)
            aside = self._path.with_suffix(".damaged")
            with suppress(OSError):  # on a disk that can't be written it stays where it is
                self._path.replace(aside)
            self.trouble = PresetError(
                "Your presets can't be read.",
                f"Those of Medusa Chat are still there; the damaged file is now {aside}.",
            )
            return
        kept = raw.get("new_chats")
        if isinstance(kept, dict):
            self.new_chats = ChatSettings().with_json(kept)

    def _write(self) -> None:
        if self._path is None:
            return
        presets = [_raw(preset) for preset in self.own.values()]
        new_chats = None if self.new_chats is None else self.new_chats.as_json()
        raw = {"format": _FORMAT, "new_chats": new_chats, "presets": presets}
        _write_json(raw, self._path)


def checked_name(name: str) -> str:
    """A name for a preset of the user's, without spaces around it.

    Raises:
        PresetError: It is none, or that of a preset of the program.
    """
    name = name.strip()
    if not name or len(name) > _MOST_NAME_CHARS or not name.isprintable():
        raise PresetError(
            "That is no name for a preset.", f"Choose 1 to {_MOST_NAME_CHARS} characters."
        )
    if name.casefold() in {preset.name.casefold() for preset in (*BUILTIN, RECOMMENDED)}:
        raise PresetError(
            f"{name} comes with Medusa Chat and can't be changed.", "Choose another name."
        )
    return name


def _raw(preset: Preset) -> dict[str, Any]:
    return {"name": preset.name, "settings": dict(preset.values)}


def _presets(raw: Mapping[str, Any]) -> list[Preset]:
    """What makes sense of a file's presets.

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
    """Write at once or not at all."""
    try:
        replace_text(path, json.dumps(raw, indent=1, ensure_ascii=False) + "\n")
    except OSError as error:
        raise PresetError(
            f"{path.name} can't be written: {error.strerror}.",
            "Make room on the disk, or choose another folder; until then it is kept in memory.",
        ) from error
