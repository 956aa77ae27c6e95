"""Preferences of the application: declarations of all keys."""

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
    """The user's preferences.

    Attributes:
        theme: A `ThemeChoice`.
        zoom: Zoom factor.
        marking: How accepted tokens are marked: `off`, `accepted` or `heads`.
        has_read_hint: Whether the user closed the hint of the empty page.
        model: The last loaded model.
        unload_minutes: Idle time until the model is unloaded; 0 for never.
        models_dir: Download folder; empty for the shared Hugging Face cache.
        layers_dir: Folder of offloaded layers; empty for the default one.
        suffix_dir: Folder of texts to draft from; empty for none.
        device: Torch device or cluster; empty selects the best device.
        records: Whether to record the steps of answers.
        is_offline: Whether all network requests are disabled.
        learns: Whether saved conversations are added to the draft datastore.
        language: `system` or a language code.
        font_family: Font of all text; empty for the bundled one.
        restores_window: Whether to restore the window's geometry.
        notifies: Whether to show desktop notifications of completed jobs.
        names_in_notices: Whether notifications name the job.
        shows_panel: Whether the side panel is open.
        has_seen_welcome: Whether the welcome page was shown.
        has_declined_first_model: Whether the user declined the starter model.
        download_mb_per_s: Speed of the last download; 0 before the first one.
        seen_version: Version of the last shown release notes; empty before the first start.
        shortcuts: Changed shortcuts by command name.
        draft_models: Folders of draft models by folder of the target model.
        serves: Whether the API server is on.
        server_port: Port of the API server.
        embedding_model: Folder or file of the model that finds passages by meaning; empty for none.
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
        NumberKind(MIN_ZOOM, MAX_ZOOM, ZOOM_STEP, " %", is_clamped=True, scale=100),
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
            0, _MOST_MINUTES, 5, " min", minimum_text=QT_TRANSLATE_NOOP("Settings", "Never")
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
    suffix_dir: str = setting(
        FolderKind(),
        "",
        page=SettingsPage.MODELS,
        label=QT_TRANSLATE_NOOP("Settings", "Texts to draft from"),
        sentence=QT_TRANSLATE_NOOP(
            "Settings",
            "A folder of text files, such as documentation or code: where an answer repeats them, "
            "it becomes faster. They are read in the background, up to half a million tokens, and "
            "not stored. A change reloads the model. Empty: none.",
        ),
        effect="suffix",
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

    embedding_model: str = setting(TextKind(), "", effect="embedding")

    @property
    def drafted_model(self) -> ModelChoice:
        """The last loaded model with its draft model."""
        return self.model.drafted_by(self.draft_models)


DECLARATIONS: Mapping[str, Declaration] = {one.name: one for one in declarations(Preferences)}
EFFECTS = frozenset(one.effect for one in DECLARATIONS.values() if one.effect)


def load_preferences(folder: Path) -> Preferences:
    """Load the preferences; missing or invalid ones get their defaults.

    An unreadable file is renamed, so that it isn't overwritten.
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
    """Save the preferences atomically; errors of the disk are only logged.

    Unknown keys, which newer versions may have written, are kept.
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
    """Return the unknown keys of the file."""
    try:
        saved = read_json(path)
    except CheckpointError:  # there is none yet, or it was damaged since it was read
        return {}
    return {name: value for name, value in saved.items() if name not in DECLARATIONS}
