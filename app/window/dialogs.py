"""The dialogs of the application, all opened here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal
from PySide6.QtWidgets import QDialog

from app.settings.declaration import SettingsPage
from app.settings.hub import hub_settings
from app.startup.crash import LAST_DUMP_NAME
from app.startup.logs import FILE_NAME as LOG_NAME
from app.state.tasks import Tasks
from app.training.gain_words import gain_text
from app.widgets.dropping import IS_MODEL
from app.widgets.file_dialogs import choose_gguf
from app.widgets.job_button import JobButton
from app.widgets.matching import Provider
from app.widgets.questions import confirms
from app.window.parts import WindowParts
from medusa_core.api import VERSION, OwnBatches, OwnHeads, with_token
from medusa_core.system.jobs.heads_gain import read_gain

if TYPE_CHECKING:
    from app.batch.batch_dialog import BatchDialog
    from app.help.changelog import Release
    from app.help.diagnostics import DiagnosticsDialog
    from app.help.help_dialog import HelpDialog
    from app.models.library_dialog import LibraryDialog
    from app.server.server_dialog import ServerDialog
    from app.settings.dialog import SettingsDialog
    from app.training.train_dialog import TrainDialog
    from app.widgets.job_dialog import JobDialog
    from app.window.commands.palette import Palette
    from app.window.settings_exchange import SettingsExchange
    from medusa_core.api import Check, HubSettings, Library, PairOffer


class Dialogs(QObject):
    """Opens what belongs to the application rather than to a conversation.

    Dialogs are made when they are opened first: a window without them starts faster.

    Attributes:
        settings: The settings; None until they are opened.
        models: The model manager; None until it is opened, or where there is no library.
        batch: Answers files; None until it is opened, or where nothing of this user is kept.
        diagnostics: What works here; None until it is opened.
        help: The documents; None until they are opened.
        server: Lets other programs use the model; None until it is opened, or where it can't be.

    Signals:
        batch_ended: A batch (a `BatchJob`) is done, or has failed.
        training_ended: A training (a `HeadsTraining`) is done, or has failed.
        fetch_requested: A model (a `PairOffer`) is to be downloaded in the background.
    """

    batch_ended = Signal(object)
    training_ended = Signal(object)
    fetch_requested = Signal(object)

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self.settings: SettingsDialog | None = None
        self.models: LibraryDialog | None = None
        self.batch: BatchDialog | None = None
        self.diagnostics: DiagnosticsDialog | None = None
        self.help: HelpDialog | None = None
        self.server: ServerDialog | None = None
        self._training: TrainDialog | None = None
        self.imports = Tasks()

    def end_work(self) -> None:
        """The window closes: what runs beside it is ended, and can be gone on with."""
        if self.batch is not None:
            self.batch.close_job()
        if self._training is not None:
            self._training.close_run()

    # Palette, settings, help ----------------------------------------------------------------------

    @cached_property
    def palette(self) -> Palette:
        """Finds commands, models and conversations; made when it is needed first."""
        from app.window.commands.palette import Palette, command_entries

        parts = self._parts
        providers: list[Provider] = [partial(command_entries, parts.commands), parts.models.entries]
        if parts.history is not None:
            providers.append(parts.history.entries)
        return Palette(parts.appearance, parts.window, providers)

    @cached_property
    def exchange(self) -> SettingsExchange:
        """Exports and imports settings; made when it is needed first."""
        from app.window.settings_exchange import SettingsExchange

        return SettingsExchange(self._parts)

    def show_palette(self) -> None:
        """Let the user find a command."""
        self.palette.open_over(self._parts.window)

    def show_settings(self, page: str = "") -> None:
        """Open the settings, on a page if one is named."""
        if self.settings is None:
            self.settings = self._make_settings()
        if page:
            self.settings.open_page(page)
        _bring_up(self.settings)

    def show_help(self, page: str = "", heading: str = "") -> None:
        """Open the documents, on a page if one is named."""
        if self.help is None:
            from app.help.help_dialog import HelpDialog

            self.help = HelpDialog(self._parts.appearance, self._parts.window)
        if page:
            self.help.open_page(page, heading)
        _bring_up(self.help)

    def show_about(self) -> None:
        """Say what this is and whose work is in it."""
        from app.help.about import AboutDialog

        parts = self._parts
        dialog = AboutDialog(parts.resources, parts.appearance, parts.window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def show_diagnostics(self) -> None:
        """Look what works here, and offer a report."""
        if self.diagnostics is None:
            from app.help.diagnostics import DiagnosticsDialog
            from medusa_core.api import run_checks

            parts = self._parts
            self.diagnostics = DiagnosticsDialog(
                lambda: run_checks(parts.folders), self._report, parts.appearance, parts.window
            )
        _bring_up(self.diagnostics)
        self.diagnostics.look()

    def show_server(self) -> None:
        """Let other programs use the model."""
        parts = self._parts
        if parts.server is None:
            return
        if self.server is None:
            from app.server.server_dialog import ServerDialog

            settings = parts.settings
            self.server = dialog = ServerDialog(parts.server, parts.window)
            settings.follow("server", lambda now: dialog.show_port(int(now.server_port)))
            dialog.switched.connect(self._serve)
            dialog.port_chosen.connect(lambda port: settings.set(server_port=float(port)))
        _bring_up(self.server)

    def _serve(self, on: bool) -> None:
        self._parts.settings.set(serves=on)
        self._parts.settings.apply("server")  # it may have failed, and is to be tried again

    def show_welcome(self) -> None:
        """Lead through the first steps."""
        from app.help.steps import (
            FilesStep,
            ModelStep,
            WhatStep,
        )
        from app.help.welcome_dialog import WelcomeDialog

        parts, looks = self._parts, self._parts.appearance
        model = ModelStep(parts.models.open_library(), looks)
        steps = (WhatStep(looks), model, FilesStep(self._folders(), looks))
        dialog = WelcomeDialog(steps, looks, parts.window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        model.download_requested.connect(self._download)
        model.download_requested.connect(lambda _offer: dialog.accept())
        model.gguf_requested.connect(dialog.accept)
        model.gguf_requested.connect(self.open_gguf)
        parts.settings.set(has_seen_welcome=True)
        dialog.open()
        model.look()

    def greet_once(self) -> None:
        """Lead a new user through the first steps; tell others what an update brought, once."""
        settings = self._parts.settings
        chosen = settings.values
        if chosen.seen_version != VERSION:
            settings.set(seen_version=VERSION)
        if not chosen.has_seen_welcome:
            self.show_welcome()
        elif chosen.seen_version != VERSION:
            from app.help.changelog import own_releases, released_since

            news = released_since(own_releases(), chosen.seen_version, VERSION)
            if news:
                self._show_news(news)

    def show_whats_new(self) -> None:
        """Tell what all versions brought."""
        from app.help.changelog import own_releases

        self._show_news(own_releases())

    def _show_news(self, releases: tuple[Release, ...]) -> None:
        from app.help.whats_new import WhatsNewDialog

        parts = self._parts
        dialog = WhatsNewDialog(releases, parts.appearance, parts.window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _make_settings(self) -> SettingsDialog:
        from app.settings.keys_page import KeysPage
        from app.settings.storage_page import StoragePage
        from app.settings.token_box import TokenBox
        from app.window.settings_pages import settings_dialog

        parts = self._parts
        tokens = TokenBox(self._hub_settings())
        tokens.changed.connect(self._use_token)
        keys = KeysPage(SettingsPage.STORAGE, parts.settings, parts.appearance)
        storage = StoragePage(self._folders(), keys, parts.appearance)
        storage.diagnostics_requested.connect(self.show_diagnostics)
        storage.export_requested.connect(self.exchange.ask_to_export)
        storage.import_requested.connect(self.exchange.ask_to_import)
        storage.measure()
        return settings_dialog(
            parts.settings, parts.commands, parts.appearance, tokens, storage, parts.window
        )

    def _folders(self) -> dict[str, Path]:
        where = self._parts.folders
        return {
            self.tr("Conversations"): where.data,
            self.tr("Models"): self._hub_settings().cache_dir,
            self.tr("Settings"): where.config,
            self.tr("State"): where.state,
            self.tr("Logs"): where.log,
        }

    def _hub_settings(self) -> HubSettings:
        library = self._parts.models.library
        now = None if library is None else library.settings
        return hub_settings(self._parts.settings.values, now)

    def _use_token(self, token: str) -> None:
        library = self._parts.models.library
        if library is not None:
            library.change_settings(with_token(library.settings, token))

    def _report(self, checks: tuple[Check, ...]) -> str:
        from medusa_core.api import compose_report

        where, loaded_model = self._parts.folders, self._parts.loaded_model
        logs = {
            "Last errors": where.log / LOG_NAME,
            "Last crash": where.log / LAST_DUMP_NAME,
        }
        return compose_report(checks, loaded_model.choice.name, loaded_model.status, logs)

    # Folders --------------------------------------------------------------------------------------

    def open_data_folder(self) -> None:
        """Show in the file manager where conversations and other data lie."""
        self._open(self._parts.folders.data)

    def open_log_folder(self) -> None:
        """Show in the file manager what the window tells of its work."""
        self._open(self._parts.folders.log)

    def _open(self, folder: Path) -> None:
        from app.desktop.folders import show_in_files

        if not show_in_files(folder):
            self._parts.chat.errors.show_error(
                self.tr("No file manager opens the folder."), self.tr("It is {0}.").format(folder)
            )

    # Models, training, batch ----------------------------------------------------------------------

    def show_models(self) -> None:
        """Open the model manager."""
        library = self._parts.models.open_library()
        if library is None:
            return
        if self.models is None:
            self.models = self._make_models(library)
        self.models.installed.draft_box.remembered = self._parts.settings.values.draft_models
        self.models.refresh(self._parts.model_bytes)
        _bring_up(self.models)

    def open_gguf(self) -> None:
        """Ask for a GGUF file, and load it."""
        if file := choose_gguf(self._parts.window):
            self.load_model(file)

    def offer_to_load(self, path: Path) -> None:
        """Ask whether a model that was dropped or attached is to be loaded."""
        question = QCoreApplication.translate("Library", IS_MODEL)
        if confirms(self._parts.window, question, str(path)):
            self.load_model(path)

    def load_model(self, path: Path, otherwise: Callable[[], object] | None = None) -> None:
        """Take a model among those that are here, and load it.

        Args:
            path: Its file or its folder.
            otherwise: Called where it can't be loaded, once the reason is shown.
        """
        self.imports.start(self._import_and_load(path, otherwise))

    def show_batch(self) -> None:
        """Answer a file of prompts."""
        dialog = self._need_batch()
        if dialog is not None:
            dialog.form.offer_disk(self._parts.layers_dir)
            parts = self._parts
            if parts.loaded_model.choice.remote is not None:
                parts.chat.errors.show_error(
                    self.tr("A file is answered by a model of this computer."),
                    self.tr("Load one first: another machine's models answer in the chat alone."),
                )
                return
            rules = parts.appearance.legend.rules
            dialog.offer(parts.loaded_model.choice, parts.settings.values.device, rules)
            _bring_up(dialog)

    def go_on_with_batch(self) -> None:
        """Go on with a batch that ran when the program ended."""
        places = self._parts.places
        if places is None:
            return
        jobs = OwnBatches(places.data / "batches").unfinished()
        if any(job.was_running for job in jobs):
            dialog = self._need_batch()
            if dialog is not None and dialog.go_on():
                dialog.show()

    def _make_models(self, library: Library) -> LibraryDialog:
        from app.models.library_dialog import LibraryDialog

        parts = self._parts
        loaded_model, settings = parts.loaded_model, parts.settings
        self._training = self._make_training()
        dialog = LibraryDialog(
            library,
            parts.appearance,
            parts.window,
            self._training,
            parts.models.endpoints,
        )
        dialog.machines.changed.connect(parts.models.list_endpoints)
        dialog.load_requested.connect(loaded_model.load)
        dialog.offline_chosen.connect(lambda on: settings.set(is_offline=on))
        dialog.settings_requested.connect(lambda: self.show_settings("Models"))
        tab = dialog.installed
        tab.listed.connect(lambda: parts.models.list_installed(library, tab.items))
        tab.cache_changed.connect(lambda folder: settings.set(models_dir=folder))

        def mark_loaded() -> None:
            tab.mark_loaded(loaded_model.choice.model_dir)

        def mark_measured() -> None:
            loaded = loaded_model.status.loaded
            tab.mark_measured(
                loaded_model.choice.heads_dir, () if loaded is None else loaded.speeds
            )

        loaded_model.chosen.connect(mark_loaded)
        loaded_model.changed.connect(mark_measured)
        mark_loaded()
        mark_measured()
        for effect in ("device", "layers"):
            settings.follow(effect, lambda now: dialog.use_device(now.device))
        settings.follow("hub", lambda _now: dialog.follow_settings())
        return dialog

    def _download(self, offer: PairOffer) -> None:
        """Download in the background, unless the user must agree to convert pickled heads first."""
        if not offer.is_pickled:
            self.fetch_requested.emit(offer)
            return
        self.show_models()
        if self.models is not None:
            self.models.download(offer)

    async def _import_and_load(
        self, path: Path, otherwise: Callable[[], object] | None = None
    ) -> None:
        is_loading = await self._parts.models.import_and_load(path)
        if not is_loading and otherwise is not None:
            otherwise()
        if self.models is not None:
            await self.models.installed.refresh()

    def _make_training(self) -> TrainDialog | None:
        """Trains heads into the user's own folder; None where nothing of this user is kept."""
        parts = self._parts
        if parts.places is None:
            return None
        from app.training.train_dialog import TrainDialog

        own = OwnHeads(parts.places.data / "heads")
        history = "" if parts.history is None else str(parts.places.history)
        dialog = TrainDialog(own, parts.appearance, history, parts.window)
        dialog.room_needed.connect(parts.loaded_model.sleep)
        dialog.made.connect(self._report_heads)
        dialog.ended.connect(self.training_ended)
        self._show_job(self.tr("Training"), dialog)
        return dialog

    def _show_job(self, name: str, dialog: JobDialog) -> None:
        """Show in the header that a job goes on: its dialog may be closed meanwhile."""
        button = JobButton(name)
        self._parts.page.header.add_job(button)
        dialog.progressed.connect(button.show_progress)
        button.clicked.connect(lambda: _bring_up(dialog))

    def _report_heads(self, folder: Path) -> None:
        """The model manager may be closed by the time heads are ready: the chat says it, too."""
        gain = read_gain(folder)
        hint = self.tr("Load their model under Models to use them.")
        pays = gain is None or gain.pays
        card = self._parts.chat.errors.show_error(gain_text(gain), hint if pays else "")
        card.add_action(self.tr("Models…"), self.show_models)

    def _need_batch(self) -> BatchDialog | None:
        if self.batch is None and self._parts.places is not None:
            from app.batch.batch_dialog import BatchDialog

            own = OwnBatches(self._parts.places.data / "batches")
            self.batch = BatchDialog(
                own, self._parts.layers_dir, self._parts.appearance, self._parts.window
            )
            self.batch.room_needed.connect(self._parts.loaded_model.sleep)
            self.batch.ended.connect(self.batch_ended)
            self._show_job(self.tr("Batch"), self.batch)
        return self.batch


def _bring_up(dialog: QDialog) -> None:
    """Show a dialog above the window, wherever it was before."""
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
