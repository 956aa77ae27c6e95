"""What a changed setting does at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.markdown.formats import Marking
from app.settings.hub import hub_settings
from app.theme.appearance import ThemeChoice
from app.window.parts import WindowParts
from medusa_core.api import JobState, user_hub_settings, with_cache
from medusa_core.loading.state import Phase

if TYPE_CHECKING:
    from medusa_core.api import Library

_RUNNING = (JobState.QUEUED, JobState.DOWNLOADING, JobState.VERIFYING)


class Effects(QObject):
    """Lets the parts of the window follow the settings."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self._has_started = False
        self._waiting: set[int] = set()  # downloads that wait for the Hub
        looks, loaded_model, store = parts.appearance, parts.loaded_model, parts.settings
        self._acts: Mapping[str, Callable[[], None]] = {
            "theme": lambda: looks.choose(ThemeChoice(store.values.theme)),
            "zoom": lambda: looks.zoom_to(store.values.zoom),
            "font_family": lambda: looks.use_family(store.values.font_family),
            "records": self._record,
            "unload_minutes": lambda: loaded_model.unload_after(store.values.unload_minutes),
            "device": self._use_device,
            "is_offline": self._deal_with_hub,
            "models_dir": self._move_downloads,
            "layers_dir": self._move_layers,
            "serves": self.serve,
            "server_port": self._move_server,
            "marking": self._mark,
            "shows_panel": lambda: parts.page.show_panel(store.values.shows_panel),
            "shortcuts": lambda: parts.commands.use_keys(store.values.shortcuts),
        }
        loaded_model.go_offline(hub_settings(store.values).is_offline)
        store.changed.connect(self._act)
        parts.models.opened.connect(self._library_opened)

    def _act(self, name: str) -> None:
        if (act := self._acts.get(name)) is not None:
            act()

    def serve(self) -> None:
        """Let programs use the model, or no longer."""
        server, chosen = self._parts.server, self._parts.settings.values
        if server is None:
            return
        if chosen.serves:
            server.turn_on(int(chosen.server_port))
        else:
            server.turn_off()

    def _move_server(self) -> None:
        """Programs find the server at another port from now on."""
        server = self._parts.server
        if server is not None and server.is_on:
            server.turn_off()
            self.serve()

    def _mark(self) -> None:
        self._parts.page.strip.choose_marking(Marking(self._parts.settings.values.marking))

    def _record(self) -> None:
        records = self._parts.settings.values.records
        self._parts.chat.records = records
        self._parts.page.header.choose_recording(records)

    def _use_device(self) -> None:
        loaded_model = self._parts.loaded_model
        loaded_model.use_device(self._parts.settings.values.device)
        if loaded_model.status.phase is not Phase.ASLEEP:
            loaded_model.load()

    def _move_layers(self) -> None:
        """An offloaded model reads its layers from the new folder, where they are written anew."""
        library, loaded_model = self._parts.models.library, self._parts.loaded_model
        layers_dir = self._parts.layers_dir
        if loaded_model.choice.options.has_disk:
            loaded_model.load(loaded_model.choice.with_layers_in(layers_dir))
        if library is not None:
            library.layers_dir = layers_dir

    def _move_downloads(self) -> None:
        library = self._parts.models.library
        if library is not None and not self._parts.settings.values.models_dir:
            default = user_hub_settings().cache_dir
            library.change_settings(with_cache(library.settings, default))
        self._deal_with_hub()

    def _library_opened(self, library: Library) -> None:
        library.layers_dir = self._parts.layers_dir
        self._deal_with_hub()

    def _deal_with_hub(self) -> None:
        library = self._parts.models.library
        self._parts.loaded_model.go_offline(hub_settings(self._parts.settings.values).is_offline)
        if library is not None:
            chosen = self._parts.settings.values
            library.change_settings(hub_settings(chosen, library.settings))
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
