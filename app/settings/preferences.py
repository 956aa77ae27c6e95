"""What the window remembers from one start to the next: every key is declared here, once."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.i18n.words import QT_TRANSLATE_NOOP
from app.settings.declaration import Declaration, SettingsPage, declarations, setting
from app.settings.kinds import (
    ChoiceKind,
    DeviceKind,
    FolderKind,
    FontKind,
    NumberKind,
    RecordKind,
    TextKind,
    ToggleKind,
)
from app.theme.appearance import ThemeChoice
from app.theme.fonts import MAX_ZOOM, MIN_ZOOM, ZOOM_STEP
from app.theme.text_style import Marking
from medusa_core.api import read_json, replace_text, with_home, without_home
from medusa_core.errors import CheckpointError
from medusa_core.loading.choice import (
    ModelChoice,
    as_json,
    first_choice,
    from_json,
)

log = logging.getLogger(__name__)

FILE_NAME = "preferences.json"
_MOST_MINUTES = 10_000.0


def _texts_from(raw: Any) -> Mapping[str, str]:
    if not isinstance(raw, dict) or not all(isinstance(text, str) for text in raw.values()):
        raise TypeError("texts by name are expected")
    return dict(raw)


@dataclass(frozen=True, slots=True)
class Preferences:
    """The user's choices.

    Attributes:
        theme: A `ThemeChoice`.
        zoom: 1.0 for the normal size.
        marking: How accepted tokens are marked: `off`, `accepted` or `heads`.
        has_read_hint: Whether the user has read what this is.
        model: The model that was loaded last.
        unload_minutes: Idle time after which a model's memory is given back; 0 for never.
        models_dir: Where downloads go; empty for the cache that programs share.
        layers_dir: Folder for layers of models that are larger than memory; empty for the usual.
        device: What models run on, by torch's name or as a cluster; empty for the best there is.
        records: Whether the steps of answers are recorded.
        is_offline: No request may leave.
        learns: Drafts are learned from answers of conversations that are kept.
        language: `system` or the code of a language.
        font_family: Font of all text; empty for the shipped one.
        restores_window: The window opens where it was.
        notifies: The desktop says when a long job ends.
        names_in_notices: It says which one, too.
        shows_panel: The side panel is open.
        has_seen_welcome: The page of the first start was shown.
        has_declined_first_model: The user does without the model of the first start.
        download_mb_per_s: Speed of the last download; 0 before the first one.
        seen_version: The version whose news the user knows; empty before the first start.
        shortcuts: Keys of commands, by their names, where they aren't the usual ones.
        draft_models: Folders of draft models, by those of the models they draft for.
        serves: Other programs on this computer may use the model.
        server_port: Where they find it.
    """

    theme: str = setting(
        ChoiceKind(
            (
                (ThemeChoice.SYSTEM.value, QT_TRANSLATE_NOOP("Settings", "Like the system")),
                (ThemeChoice.LIGHT.value, QT_TRANSLATE_NOOP("Settings", "Light")),
                (ThemeChoice.DARK.value, QT_TRANSLATE_NOOP("Settings", "Dark")),
                (ThemeChoice.CONTRAST.value, QT_TRANSLATE_NOOP("Settings", "High contrast")),
            )
        ),
        ThemeChoice.SYSTEM.value,
        page=SettingsPage.APPEARANCE,
        label=QT_TRANSLATE_NOOP("Settings", "Theme"),
        sentence=QT_TRANSLATE_NOOP("Settings", "The colours of the window."),
        effect="appearance",
    )
    zoom: float = setting(
        NumberKind(MIN_ZOOM, MAX_ZOOM, ZOOM_STEP, " %", is_brought_back=True, scale=100),
        1.0,
        page=SettingsPage.APPEARANCE,
        label=QT_TRANSLATE_NOOP("Settings", "Size"),
        sentence=QT_TRANSLATE_NOOP("Settings", "Makes text and everything else larger."),
        effect="appearance",
    )
    marking: str = setting(
        ChoiceKind(tuple((marking.value, marking.value) for marking in Marking)),
        Marking.HEADS.value,
        label=QT_TRANSLATE_NOOP("Settings", "Marked tokens"),
        effect="marking",
    )
    has_read_hint: bool = setting(ToggleKind(), False, effect="hint")
    model: ModelChoice = setting(  # noqa: RUF009 - a declared field
        RecordKind(from_json, as_json), make_default=first_choice
    )
    unload_minutes: float = setting(
        NumberKind(
            0, _MOST_MINUTES, 5, " min", word_for_least=QT_TRANSLATE_NOOP("Settings", "Never")
        ),
        0.0,
        page=SettingsPage.MODELS,
        label=QT_TRANSLATE_NOOP("Settings", "Unload when idle"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings", "An idle model frees its memory; the next message loads it again."
        ),
        effect="idle",
    )
    models_dir: str = setting(
        FolderKind(),
        "",
        page=SettingsPage.MODELS,
        label=QT_TRANSLATE_NOOP("Settings", "Download location"),
        sentence=QT_TRANSLATE_NOOP("Settings", "Empty: the folder that other programs share."),
        effect="hub",
    )
    layers_dir: str = setting(
        FolderKind(),
        "",
        page=SettingsPage.MODELS,
        label=QT_TRANSLATE_NOOP("Settings", "Folder for layers"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings",
            "Layers of a model that is larger than memory are read from here for every step: name "
            "one on the fastest disk. Empty: among the program's own files.",
        ),
        effect="layers",
    )
    device: str = setting(
        DeviceKind(r"|cpu|cuda(:\d{1,2})?|cluster:[^\s/]{1,64}:\d{1,5}"),
        "",
        page=SettingsPage.MODELS,
        label=QT_TRANSLATE_NOOP("Settings", "Run on"),
        sentence=QT_TRANSLATE_NOOP("Settings", "What models compute on."),
        effect="device",
    )
    records: bool = setting(
        ToggleKind(),
        True,
        page=SettingsPage.GENERAL,
        label=QT_TRANSLATE_NOOP("Settings", "Record steps"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings", "Tree and Steps show the last 20,000 steps; takes up to 41 MB."
        ),
        effect="records",
    )
    is_offline: bool = setting(
        ToggleKind(),
        False,
        page=SettingsPage.MODELS,
        label=QT_TRANSLATE_NOOP("Settings", "Offline"),
        sentence=QT_TRANSLATE_NOOP("Settings", "Nothing leaves this computer."),
        effect="hub",
    )
    learns: bool = setting(
        ToggleKind(),
        True,
        page=SettingsPage.STORAGE,
        label=QT_TRANSLATE_NOOP("Settings", "Learn from answers"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings",
            "What a model said makes its next answers faster. It is kept on this computer, up to "
            "5 MB for each model, and goes with its conversation. Off: all of it is deleted.",
        ),
        effect="learning",
    )
    language: str = setting(
        ChoiceKind(
            (
                ("system", QT_TRANSLATE_NOOP("Settings", "Like the system")),
                ("en", "English"),
                ("de", "Deutsch"),
            )
        ),
        "system",
        page=SettingsPage.GENERAL,
        label=QT_TRANSLATE_NOOP("Settings", "Language"),
        sentence=QT_TRANSLATE_NOOP("Settings", "Takes effect at the next start."),
    )
    font_family: str = setting(
        FontKind(),
        "",
        page=SettingsPage.APPEARANCE,
        label=QT_TRANSLATE_NOOP("Settings", "Font"),
        sentence=QT_TRANSLATE_NOOP("Settings", "The font of all text but code."),
        effect="appearance",
    )
    restores_window: bool = setting(
        ToggleKind(),
        True,
        page=SettingsPage.GENERAL,
        label=QT_TRANSLATE_NOOP("Settings", "Open where it was"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings", "The window keeps its place, its size and its open panels."
        ),
    )
    notifies: bool = setting(
        ToggleKind(),
        True,
        page=SettingsPage.GENERAL,
        label=QT_TRANSLATE_NOOP("Settings", "Notifications"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings",
            "While you look at another window, the desktop says when a long answer, a batch, a "
            "download or a training ends.",
        ),
    )
    names_in_notices: bool = setting(
        ToggleKind(),
        False,
        page=SettingsPage.STORAGE,
        label=QT_TRANSLATE_NOOP("Settings", "Names in notifications"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings",
            "Notifications show the conversation’s title, the model’s or the file’s name. Others "
            "who see your screen can read them.",
        ),
    )
    has_declined_first_model: bool = setting(ToggleKind(), False)
    has_seen_welcome: bool = setting(ToggleKind(), False)
    download_mb_per_s: float = setting(NumberKind(0, 100_000, 0.1, ""), 0.0)
    seen_version: str = setting(TextKind(r"[\w.+-]{0,40}"), "")
    shows_panel: bool = setting(
        ToggleKind(),
        False,
        label=QT_TRANSLATE_NOOP("Settings", "Settings of a chat are shown"),
        effect="panel",
    )
    shortcuts: Mapping[str, str] = setting(
        RecordKind(_texts_from, dict),
        make_default=dict,
        label=QT_TRANSLATE_NOOP("Settings", "Shortcuts"),
        effect="shortcuts",
    )
    draft_models: Mapping[str, str] = setting(RecordKind(_texts_from, dict), make_default=dict)
    serves: bool = setting(
        ToggleKind(), False, label=QT_TRANSLATE_NOOP("Settings", "Server"), effect="server"
    )
    server_port: float = setting(
        NumberKind(1024, 65535, 1, ""),
        8642.0,
        label=QT_TRANSLATE_NOOP("Settings", "Port of the server"),
        effect="server",
    )

    @property
    def drafted_model(self) -> ModelChoice:
        """The model that was loaded last, with the draft model that is remembered for it."""
        return self.model.drafted_by(self.draft_models)


DECLARATIONS: Mapping[str, Declaration] = {one.name: one for one in declarations(Preferences)}
EFFECTS = frozenset(one.effect for one in DECLARATIONS.values() if one.effect)


def load_preferences(folder: Path) -> Preferences:
    """Read the choices; each that is missing or makes no sense is as at the first start.

    A file that can't be read at all is set aside, so that nothing of it is written over.
    """
    path = folder / FILE_NAME
    try:
        saved = with_home(read_json(path)) if path.exists() else {}
    except (CheckpointError, OSError) as error:
        log.warning("%s is set aside: %s", path, error)
        with suppress(OSError):  # on a disk that can't be written it stays where it is
            path.replace(path.with_suffix(".damaged"))
        return Preferences()
    chosen: dict[str, Any] = {}
    for name, declared in DECLARATIONS.items():
        try:
            if name in saved:
                chosen[name] = declared.kind.read(saved[name])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            log.warning("%s: %s is as at the first start: %s", path, name, error)
    return Preferences(**chosen)


def save_preferences(preferences: Preferences, folder: Path) -> None:
    """Write the choices atomically; if the disk is full they are lost, and the window goes on.

    Keys that this version doesn't know are those of a newer one, and are kept.
    """
    path = folder / FILE_NAME
    try:
        saved = _unknown(path) | {
            name: declared.kind.write(getattr(preferences, name))
            for name, declared in DECLARATIONS.items()
        }
        replace_text(path, json.dumps(without_home(saved), indent=1) + "\n")
    except OSError as error:
        log.warning("%s can't be written: %s", path, error)


def _unknown(path: Path) -> dict[str, Any]:
    """What the file holds beside our keys."""
    try:
        saved = read_json(path)
    except CheckpointError:  # there is none yet, or it was damaged since it was read
        return {}
    return {name: value for name, value in saved.items() if name not in DECLARATIONS}
