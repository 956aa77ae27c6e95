"""What is around the chat: settings, palette, model manager, and the window's position."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt

from app.settings.declaration import Page
from app.startup.crash import LAST_DUMP_NAME
from app.startup.logs import FILE_NAME as LOG_NAME
from app.theme.appearance import Appearance
from app.training.gain_words import ready_said
from app.widgets.asking import confirms
from app.widgets.dropping import IS_MODEL
from app.widgets.matching import (
    Entry,
    Provider,
    matching,
)
from app.window.effects import Effects
from app.window.geometry import WindowState
from app.window.remedies import Remedies
from medusa_core.api import OwnBatches, OwnHeads, Places, places, with_token
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import ModelChoice
from medusa_core.system.jobs.heads_gain import read_gain

if TYPE_CHECKING:
    from app.batch.batch_dialog import BatchDialog
    from app.engine.model_keeper import ModelKeeper
    from app.help.diagnostics import DiagnosticsDialog
    from app.models.installed_tab import InstalledTab
    from app.models.library_dialog import LibraryDialog
    from app.settings.dialog import SettingsDialog
    from app.training.train_dialog import TrainDialog
    from app.window.commands.palette import Palette
    from app.window.main_window import MainWindow
    from medusa_core.api import Check, HubSettings, Library, Offer


class Desk(QObject):
    """Opens what belongs to the application rather than to a conversation.

    Dialogs are made when they are opened first: a window without them starts faster.

    Attributes:
        effects: What changed settings do.
        remedies: What helps against failures.
        dialog: The settings; None until they are opened.
        diagnostics: What works here; None until it is opened.
        batch: Answers files; None until it is opened, or where nothing of this user is kept.
        wants_restart: The application is to start again once the window is closed.
    """

    def __init__(self, window: MainWindow, appearance: Appearance, places: Places | None) -> None:
        super().__init__(window)
        self._window = window
        self._appearance = appearance
        self._places = places
        self._providers: list[Provider] = [self._matching_commands, self._matching_models]
        self.effects = Effects(window, window.settings, appearance)
        self.remedies = Remedies(window)
        self.dialog: SettingsDialog | None = None
        self.diagnostics: DiagnosticsDialog | None = None
        self.batch: BatchDialog | None = None
        self.wants_restart = False
        self._import: asyncio.Task[None] | None = None
        self._state: WindowState | None = None
        if places is not None:
            insight = window.insight
            panels = {
                "tree": (lambda: insight.docks.is_seen(insight.tree), insight.open_tree),
                "steps": (lambda: insight.docks.is_seen(insight.steps), insight.open_steps),
                "equilibrium": (
                    lambda: insight.docks.is_seen(insight.equilibrium),
                    insight.open_equilibrium,
                ),
            }
            self._state = WindowState(window, places.state, panels)
        window.commands.keys_changed.connect(
            lambda: window.settings.remember(shortcuts=window.commands.chosen)
        )

    @cached_property
    def palette(self) -> Palette:
        """Finds commands, models, and what providers add; made when it is needed first."""
        from app.window.commands.palette import Palette

        return Palette(self._appearance, self._window, self._providers)

    @property
    def layers_dir(self) -> Path:
        """The folder for layers of models that are larger than memory."""
        chosen = self._window.settings.values.layers_dir
        return Path(chosen) if chosen else (self._places or places()).layers

    def add_provider(self, provider: Provider) -> None:
        """Let the palette ask somebody more; see `matching.Provider`."""
        self._providers.append(provider)

    def come_to_front(self) -> None:
        """Show the window above the others."""
        window = self._window
        window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
        window.show()
        window.raise_()
        window.activateWindow()

    def show_palette(self) -> None:
        """Let the user find a command."""
        self.palette.open_over(self._window)

    def show_settings(self, page: str = "") -> None:
        """Open the settings, on a page if one is named."""
        if self.dialog is None:
            self.dialog = self._make_settings()
        if page:
            self.dialog.open_page(page)
        self.dialog.show()
        self.dialog.raise_()
        self.dialog.activateWindow()

    def show_diagnostics(self) -> None:
        """Look what works here, and offer a report."""
        if self.diagnostics is None:
            from app.help.diagnostics import DiagnosticsDialog
            from medusa_core.api import run_checks

            self.diagnostics = DiagnosticsDialog(
                lambda: run_checks(self._places or places()),
                self._compose,
                self._appearance,
                self._window,
            )
        self.diagnostics.show()
        self.diagnostics.raise_()
        self.diagnostics.look()

    def show_welcome(self) -> None:
        """Lead through the first steps."""
        from app.help.steps import (
            FilesStep,
            ModelStep,
            WhatStep,
        )
        from app.help.welcome_dialog import WelcomeDialog

        library = self._window.need_library()
        model = ModelStep(library, self._appearance)
        steps = (
            WhatStep(self._appearance),
            model,
            FilesStep(self._folders(), self._appearance),
        )
        dialog = WelcomeDialog(steps, self._appearance, self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        model.download_requested.connect(self._download)
        model.download_requested.connect(lambda _offer: dialog.accept())
        model.gguf_requested.connect(dialog.accept)
        model.gguf_requested.connect(self._window.open_gguf)
        self._window.settings.remember(has_seen_welcome=True)
        dialog.open()
        model.look()

    def welcome_once(self) -> None:
        """Lead a new user through the first steps; nobody a second time."""
        if not self._window.settings.values.has_seen_welcome:
            self.show_welcome()

    def tell_of_crash(self) -> None:
        """The last run had no clean end: say so, and offer to go on or to look why."""
        card = self._window.chat.errors.show_error(
            self.tr("Medusa Chat didn't end properly last time."),
            self.tr(
                "Your conversations are kept. The last one isn't opened by itself, as it may be "
                "the cause. The diagnostics may say what happened."
            ),
        )
        card.add_action(self.tr("Open the last conversation"), self._window.continue_last)
        card.add_action(self.tr("Show diagnostics"), self.show_diagnostics)

    def restart(self) -> None:
        """Close the window, which saves everything, and start the application again."""
        self.wants_restart = True
        self._window.close()

    def open_library(self, library: Library) -> None:
        """Let the library heed the settings, and go on with downloads unless that is offline."""
        library.layers_dir = self.layers_dir
        self.effects.open_library(library)

    def adopt(self, models: LibraryDialog) -> None:
        """Connect the model manager."""
        window = self._window
        models.load_requested.connect(window.keeper.load)
        models.offline_chosen.connect(lambda on: window.settings.choose("is_offline", on))
        models.settings_requested.connect(lambda: self.show_settings("Models"))
        installed = models.installed
        installed.listed.connect(lambda: window.list_installed(models.library, installed.items))
        installed.mark_loaded(window.keeper.choice.model_dir)
        window.keeper.chosen.connect(lambda: installed.mark_loaded(window.keeper.choice.model_dir))
        window.keeper.changed.connect(lambda: _mark_measured(installed, window.keeper))
        _mark_measured(installed, window.keeper)
        installed.cache_changed.connect(lambda folder: window.settings.choose("models_dir", folder))

    def training_dialog(self) -> TrainDialog | None:
        """Trains heads into the user's own folder; None where nothing of this user is kept."""
        if self._places is None:
            return None
        from app.training.train_dialog import TrainDialog

        own = OwnHeads(self._places.data / "heads")
        history = str(self._places.history) if self._window.history is not None else ""
        dialog = TrainDialog(own, self._appearance, history, self._window)
        dialog.room_needed.connect(self._window.keeper.sleep)
        dialog.made.connect(self._tell_of_heads)
        self._window.closed.connect(dialog.close_run)
        return dialog

    def _tell_of_heads(self, folder: Path) -> None:
        """The model manager may be closed by the time heads are ready: the chat says it, too."""
        gain = read_gain(folder)
        hint = self.tr("Load their model under Models to use them.")
        pays = gain is None or gain.pays
        card = self._window.chat.errors.show_error(ready_said(gain), hint if pays else "")
        card.add_action(self.tr("Models…"), self._window.show_models)

    def offer_to_load(self, path: Path) -> None:
        """A model was dropped on the window: take it among those that are here, and load it."""
        question = QCoreApplication.translate("Library", IS_MODEL)
        if confirms(self._window, question, str(path)):
            self._import = asyncio.ensure_future(self._import_and_load(path))

    async def _import_and_load(self, path: Path) -> None:
        library = self._window.need_library()
        if library is None:
            return
        try:
            await asyncio.to_thread(library.add_folder, str(path))
            await self._window.offer_installed()
        except MedusaError as error:
            self._window.chat.errors.show_error(error.message, error.hint)
            return
        known = (one for one in self._window.known_models if one.model_dir == path)
        self._window.keeper.load(next(known, ModelChoice(path.name, path)))
        if self._window.models is not None:
            await self._window.models.installed.refresh()

    def show_batch(self) -> None:
        """Answer a file of prompts."""
        dialog = self._need_batch()
        if dialog is not None:
            keeper = self._window.keeper
            dialog.form.tiers = self.layers_dir
            dialog.offer(keeper.choice, self._window.settings.values.device)
            dialog.show()
            dialog.raise_()
            dialog.activateWindow()

    def go_on_with_batch(self) -> None:
        """Go on with a batch that ran when the program ended."""
        if self._places is None:
            return
        jobs = OwnBatches(self._places.data / "batches").unfinished()
        if any(job.was_running for job in jobs):
            dialog = self._need_batch()
            if dialog is not None and dialog.go_on():
                dialog.show()

    def _need_batch(self) -> BatchDialog | None:
        if self.batch is None and self._places is not None:
            from app.batch.batch_dialog import BatchDialog

            own = OwnBatches(self._places.data / "batches")
            dialog = BatchDialog(own, self.layers_dir, self._window)
            dialog.room_needed.connect(self._window.keeper.sleep)
            self._window.closed.connect(dialog.close_job)
            self.batch = dialog
        return self.batch

    def restore_state(self) -> None:
        """Put the window where it was, if that is wanted."""
        if self._state is not None and self._window.settings.values.restores_window:
            self._state.restore()

    def save_state(self) -> None:
        """Keep where the window is."""
        if self._state is not None:
            self._state.save()

    def _make_settings(self) -> SettingsDialog:
        from app.settings.keys_page import KeysPage
        from app.settings.storage_page import StoragePage
        from app.settings.token_box import TokenBox
        from app.window.settings_pages import settings_dialog

        store = self._window.settings
        hub = self._hub_settings()
        tokens = TokenBox(hub)
        tokens.changed.connect(self._use_token)
        keys = KeysPage(Page.STORAGE, store, self._appearance)
        storage = StoragePage(self._folders(), keys, self._appearance)
        storage.diagnostics_requested.connect(self.show_diagnostics)
        storage.measure()
        return settings_dialog(
            store, self._window.commands, self._appearance, tokens, storage, self._window
        )

    def _folders(self) -> dict[str, Path]:
        where = self._places or places()
        return {
            self.tr("Conversations"): where.data,
            self.tr("Models"): self._hub_settings().cache_dir,
            self.tr("Settings"): where.config,
            self.tr("State"): where.state,
            self.tr("Logs"): where.log,
        }

    def _hub_settings(self) -> HubSettings:
        library = self._window.library
        return self.effects.hub_settings(None if library is None else library.settings)

    def _download(self, offer: Offer) -> None:
        self._window.show_models()
        if self._window.models is not None:
            self._window.models.download(offer)

    def _compose(self, checks: tuple[Check, ...]) -> str:
        from medusa_core.api import compose_report

        where, keeper = self._places or places(), self._window.keeper
        logs = {
            "Last errors": where.log / LOG_NAME,
            "Last crash": where.log / LAST_DUMP_NAME,
        }
        return compose_report(checks, keeper.choice.name, keeper.status, logs)

    def _use_token(self, token: str) -> None:
        library = self._window.library
        if library is not None:
            library.change_settings(with_token(library.settings, token))

    def _matching_commands(self, words: str) -> Sequence[Entry]:
        table = self._window.commands
        entries = [
            Entry(one.label, table.action(one.name).trigger, table.shown_keys(one.name))
            for one in table.commands
            if one.name != "palette"
        ]
        return matching(words, entries)

    def _matching_models(self, words: str) -> Sequence[Entry]:
        keeper = self._window.keeper
        entries = [
            Entry(choice.name, partial(keeper.load, choice), kind=self.tr("Model"))
            for choice in self._window.known_models
        ]
        return matching(words, entries)


def _mark_measured(installed: InstalledTab, keeper: ModelKeeper) -> None:
    loaded = keeper.status.loaded
    installed.mark_measured(keeper.choice.heads_dir, () if loaded is None else loaded.speeds)
