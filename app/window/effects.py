"""What a changed setting does at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.settings.store import SettingsStore
from app.theme.appearance import Appearance, ThemeChoice
from medusa_core.api import HubSettings, JobState, user_hub_settings, with_cache, with_offline
from medusa_core.loading.state import Phase

if TYPE_CHECKING:
    from app.window.main_window import MainWindow
    from medusa_core.api import Library

_RUNNING = (JobState.QUEUED, JobState.DOWNLOADING, JobState.VERIFYING)


class Effects(QObject):
    """Lets the parts of the window follow the settings."""

    def __init__(self, window: MainWindow, store: SettingsStore, appearance: Appearance) -> None:
        super().__init__(window)
        self._window = window
        self._store = store
        self._appearance = appearance
        self._has_started = False
        self._waiting: set[int] = set()  # downloads that wait for the Hub
        self._acts: Mapping[str, Callable[[], None]] = {
            "theme": lambda: appearance.choose(ThemeChoice(store.values.theme)),
            "zoom": lambda: appearance.zoom_to(store.values.zoom),
            "font_family": lambda: appearance.use_family(store.values.font_family),
            "records": self._record,
            "unload_minutes": lambda: window.keeper.unload_after(store.values.unload_minutes),
            "device": self._use_device,
            "is_offline": self._deal_with_hub,
            "models_dir": self._move_downloads,
            "layers_dir": self._move_layers,
        }
        store.changed.connect(self._act)

    def hub_settings(self, now: HubSettings | None = None) -> HubSettings:
        """How to deal with the Hub, by the environment and the user's choices.

        Args:
            now: What holds already, token and limits included; None for the environment's.
        """
        usual = user_hub_settings()
        chosen, known = self._store.values, now or usual
        cache = Path(chosen.models_dir) if chosen.models_dir else known.cache_dir
        is_offline = chosen.is_offline or usual.is_offline
        return with_cache(with_offline(known, is_offline), cache)

    def open_library(self, library: Library) -> None:
        """Let a library heed the settings, and go on with downloads unless that is offline."""
        library.change_settings(self.hub_settings(library.settings))
        self._let_downloads(library)

    def _let_downloads(self, library: Library) -> None:
        """Downloads run while the Hub may be asked, and wait while it may not."""
        downloads = library.downloads
        if library.settings.is_offline:
            running = [job.id for job in downloads.jobs if job.state in _RUNNING]
            if self._has_started:
                self._waiting |= set(running)
                for job_id in running:
                    downloads.pause(job_id)
        elif not self._has_started:
            self._has_started = True
            downloads.start()
        else:
            waiting, self._waiting = self._waiting, set()
            for job in downloads.jobs:
                if job.id in waiting:
                    downloads.resume(job.id)

    def _act(self, name: str) -> None:
        if (act := self._acts.get(name)) is not None:
            act()

    def _record(self) -> None:
        self._window.chat.records = self._store.values.records
        self._window.page.header.choose_recording(self._store.values.records)

    def _use_device(self) -> None:
        keeper = self._window.keeper
        keeper.use_device(self._store.values.device)
        if keeper.status.phase is not Phase.ASLEEP:
            keeper.load()
        if self._window.models is not None:
            self._window.models.use_device(self._store.values.device)

    def _move_layers(self) -> None:
        """A streamed model reads its layers from the new folder, where they are written anew."""
        library, keeper = self._window.library, self._window.keeper
        if keeper.choice.options.has_disk:
            keeper.load(keeper.choice.with_layers_in(self._window.desk.layers_dir))
        if library is not None:
            library.layers_dir = self._window.desk.layers_dir
        if self._window.models is not None:
            self._window.models.use_device(self._store.values.device)

    def _move_downloads(self) -> None:
        library = self._window.library
        if library is not None and not self._store.values.models_dir:
            usual = user_hub_settings().cache_dir
            library.change_settings(with_cache(library.settings, usual))
        self._deal_with_hub()

    def _deal_with_hub(self) -> None:
        library = self._window.library
        if library is None:
            return
        library.change_settings(self.hub_settings(library.settings))
        self._let_downloads(library)
        if self._window.models is not None:
            self._window.models.follow_settings()
