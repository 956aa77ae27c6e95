"""Effects of settings, run at startup and when one of their settings changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.chat.chat_page import ChatPage
from app.chat.controller import ChatController
from app.engine.loaded_model import LoadedModel
from app.server.server_switch import ServerSwitch
from app.settings.hub import hub_settings
from app.settings.preferences import Preferences
from app.settings.store import SettingsStore
from app.state.documents import DocumentsState
from app.state.library import LibraryState
from app.theme.appearance import Appearance, ThemeChoice
from app.theme.text_style import Marking
from app.window.commands.table import CommandTable
from medusa_core.api import JobState

if TYPE_CHECKING:
    from medusa_core.api import Library

_RUNNING = (JobState.QUEUED, JobState.DOWNLOADING, JobState.VERIFYING)


def apply_appearance(settings: SettingsStore, appearance: Appearance) -> None:
    """Apply the appearance settings to existing and later widgets."""
    settings.follow(
        "appearance",
        lambda now: appearance.use(ThemeChoice(now.theme), zoom=now.zoom, family=now.font_family),
    )
    settings.follow("marking", lambda now: appearance.mark_tokens(Marking(now.marking)))


def apply_to_chat(
    settings: SettingsStore, page: ChatPage, chat: ChatController, commands: CommandTable
) -> None:
    """Connect chat and shortcuts to the settings, in both directions."""
    page.header.recording_chosen.connect(lambda on: settings.set(records=on))
    page.strip.marking_chosen.connect(lambda marking: settings.set(marking=marking.value))
    page.panel_wanted.connect(lambda is_open: settings.set(shows_panel=is_open))
    page.empty.hint_dismissed.connect(lambda: settings.set(has_read_hint=True))
    commands.keys_chosen.connect(lambda keys: settings.set(shortcuts=keys))

    def record(now: Preferences) -> None:
        chat.records = now.records
        page.header.show_recording(now.records)

    settings.follow("records", record)
    settings.follow("panel", lambda now: page.show_panel(now.shows_panel))
    settings.follow("hint", lambda now: page.empty.show_hint(not now.has_read_hint))
    settings.follow("shortcuts", lambda now: commands.use_keys(now.shortcuts))


def apply_to_server(settings: SettingsStore, server: ServerSwitch) -> None:
    """Start or stop the server by the settings; the engine must be running."""
    settings.follow("embedding", lambda _: server.restart())
    settings.follow(
        "server",
        lambda now: server.turn_on(int(now.server_port)) if now.serves else server.turn_off(),
    )


def apply_to_documents(settings: SettingsStore, documents: DocumentsState) -> None:
    """Embed documents by the model of the settings."""

    def embed(now: Preferences) -> None:
        documents.embedding_model = Path(now.embedding_model) if now.embedding_model else None

    settings.follow("embedding", embed)


class ModelEffects(QObject):
    """Applies settings to the model, the library and its downloads."""

    def __init__(
        self,
        settings: SettingsStore,
        loaded_model: LoadedModel,
        models: LibraryState,
        layers_dir: Callable[[], Path],
    ) -> None:
        """Connect the effects.

        Args:
            settings: The settings.
            loaded_model: The model.
            models: Opens the library.
            layers_dir: Default folder of offloaded layers.
        """
        super().__init__()
        self._settings, self._loaded_model, self._models = settings, loaded_model, models
        self._layers_dir = layers_dir
        self._has_started = False
        self._own_cache_dir: Path | None = None  # of the library, before a setting moves it
        self._paused: set[int] = set()  # downloads that go on once the Hub may be asked
        settings.follow("idle", lambda now: loaded_model.unload_after(now.unload_minutes))
        settings.follow("device", lambda now: loaded_model.use_device(now.device))
        settings.follow("suffix", self._draft_from)
        settings.follow("layers", lambda _now: self._use_layers_dir())
        settings.follow("hub", self._use_hub)
        models.opened.connect(self._library_opened)
        loaded_model.chosen.connect(self._remember_model)

    def _library_opened(self, library: Library) -> None:
        self._own_cache_dir = library.settings.cache_dir
        library.layers_dir = self._layers_dir()
        self._settings.apply("hub")

    def _remember_model(self) -> None:
        """Remember the model and its draft model for the next start."""
        choice = self._loaded_model.choice
        if choice.remote is not None:
            self._settings.set(model=choice)
            return
        model, drafts = str(choice.model_dir), dict(self._settings.values.draft_models)
        drafts.pop(model, None)
        if (draft := choice.options.assistant_dir) is not None:
            drafts[model] = str(draft)
        self._settings.set(model=choice, draft_models=drafts)

    def _draft_from(self, now: Preferences) -> None:
        self._loaded_model.draft_from(Path(now.suffix_dir) if now.suffix_dir else None)

    def _use_layers_dir(self) -> None:
        """Move the layers of an offloaded model to this folder."""
        if (library := self._models.library) is not None:
            library.layers_dir = self._layers_dir()
        self._loaded_model.move_layers(self._layers_dir())

    def _use_hub(self, now: Preferences) -> None:
        library = self._models.library
        self._loaded_model.go_offline(hub_settings(now).is_offline)
        if library is not None:
            library.change_settings(hub_settings(now, library.settings, self._own_cache_dir))
            self._control_downloads(library)

    def _control_downloads(self, library: Library) -> None:
        """Pause downloads in offline mode, else resume them."""
        downloads = library.downloads
        if library.settings.is_offline:
            running = [job.id for job in downloads.jobs if job.state in _RUNNING]
            if self._has_started:
                self._paused |= set(running)
                for job_id in running:
                    downloads.pause(job_id)
        elif not self._has_started:
            self._has_started = True
            downloads.start()
        else:
            paused, self._paused = self._paused, set()
            for job in downloads.jobs:
                if job.id in paused:
                    downloads.resume(job.id)
