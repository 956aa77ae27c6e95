"""The model manager's window: three tabs over one library, and one for other machines."""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QSize, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QHBoxLayout,
    QPushButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.chat.compose.composer import files_of
from app.i18n.engine_texts import error_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.models.discover_tab import DiscoverTab
from app.models.downloads_tab import DownloadsTab
from app.models.installed_tab import InstalledTab
from app.models.machines_tab import MachinesTab
from app.state.library import LibraryState
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.training.gain_words import gain_text
from app.training.train_dialog import TrainDialog
from app.widgets.closing import close_by_key
from app.widgets.dropping import (
    IS_MODEL,
    accept_copy,
    is_model,
)
from app.widgets.live_label import LiveLabel
from app.widgets.questions import confirms
from medusa_core.api import (
    DownloadJob,
    Installed,
    JobState,
    PairOffer,
    converting,
)
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import ModelChoice
from medusa_core.messages import cluster_of, local_device
from medusa_core.system.jobs.heads_gain import read_gain

log = logging.getLogger(__name__)

_SIZE = QSize(1200, 740)
_PICKLE_QUESTION = QT_TRANSLATE_NOOP(
    "Library",
    "The heads of this pair are published as a pickle, a kind of file that can run code when it is "
    "opened. Medusa Chat converts it once, in a process of its own, and refuses everything but "
    "plain tensors.",
)


class LibraryDialog(QDialog):
    """Window of the model manager.

    Attributes:
        library: Models on the Hub and on this computer.
        discover: Tab of catalog and search.
        installed: Tab of installed models.
        downloads: Tab of downloads.
        machines: Tab of other machines.
        tabs: The four tabs.
        offline_box: Switches offline mode.
        settings_button: Opens the settings of models.
        resume_button: Resumes a paused training.
        training: Starts trainings; None where trained heads can't be stored.

    Signals:
        load_requested: The user loads a model, as a `ModelChoice`.
        offline_chosen: The user switches offline mode.
        settings_requested: The user opens the settings of models.
    """

    load_requested = Signal(object)
    offline_chosen = Signal(bool)
    settings_requested = Signal()

    def __init__(
        self,
        state: LibraryState,
        appearance: Appearance,
        parent: QWidget | None = None,
        training: TrainDialog | None = None,
    ) -> None:
        super().__init__(parent)
        self.training = training
        self.setAcceptDrops(True)
        self.resize(_SIZE)
        library = state.open()
        assert library is not None, "there is a library"
        self.state, self.library = state, library
        self._appearance = appearance
        self.tasks = Tasks(self)
        self.discover = DiscoverTab(library, appearance)
        self.installed = InstalledTab(state, library, appearance)
        self.downloads = DownloadsTab(state, library)
        self.machines = MachinesTab(
            state.endpoints, appearance, lambda: library.settings.is_offline
        )
        self.tabs = QTabWidget()
        self.tabs.setUsesScrollButtons(False)  # four tabs have room, the chosen one in bold too
        self.offline_box = QCheckBox(self.tr("Offline: nothing leaves this computer"))
        self.settings_button = QPushButton(self.tr("Settings…"))
        self.settings_button.setToolTip(self.tr("Device, Hub token, download location, idle time"))
        self.notice_label = LiveLabel()
        self.resume_button = QPushButton(self.tr("Resume"))
        self.resume_button.hide()
        self._build()
        self._connect()
        close_by_key(self)
        self.notice_label.setText(library.notice)
        appearance.changed.connect(self.restyle)

    def refresh(self) -> None:
        """Read the device's free memory and the installed models again."""
        self.update_budget()
        self.tasks.start(self.installed.refresh())
        if self.training is not None and self.training.run is not None:
            paused = self.training.run.out.name
            if self.training.run.progress().stage == "paused":
                self.notice_label.setText(self.tr("Training of {0} is paused.").format(paused))
                self.resume_button.show()
            elif self.training.run.is_running:
                goes_on = self.tr("Training of {0} goes on. Train heads… shows how far it is.")
                self.notice_label.setText(goes_on.format(paused))

    def restyle(self) -> None:
        """Apply the theme's colours."""
        self.discover.details.restyle()
        self.installed.details.restyle()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(map(is_model, files_of(event.mimeData()))):
            accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if not accept_copy(event):
            return
        models = [path for path in files_of(event.mimeData()) if is_model(path)]
        self.tabs.setCurrentWidget(self.installed)
        question = QCoreApplication.translate("Library", IS_MODEL)
        if len(models) == 1 and confirms(self, question, str(models[0])):
            self.installed.add_folder(str(models[0]), loads=True)
        elif len(models) > 1:
            for path in models:
                self.installed.add_folder(str(path))

    def closeEvent(self, event: QCloseEvent) -> None:
        estimates = (self.discover.details.estimate, self.installed.details.estimate)
        for part in (self.discover, self.installed.draft_box, self.machines, *estimates):
            part.tasks.cancel()
        super().closeEvent(event)

    def _build(self) -> None:
        self.tabs.addTab(self.discover, self.tr("Discover"))
        self.tabs.addTab(self.installed, self.tr("Installed"))
        self.tabs.addTab(self.downloads, self.tr("Downloads"))
        self.tabs.addTab(self.machines, self.tr("Other machines"))
        self.tabs.setCurrentWidget(self.installed)
        self.offline_box.setChecked(self.library.settings.is_offline)
        bottom = QHBoxLayout()
        bottom.addWidget(self.offline_box)
        bottom.addStretch(1)
        bottom.addWidget(self.settings_button)
        column = QVBoxLayout(self)
        column.addWidget(self.tabs, 1)
        notice = QHBoxLayout()
        notice.addWidget(self.notice_label, 1)
        notice.addWidget(self.resume_button)
        column.addLayout(notice)
        column.addLayout(bottom)

    def _connect(self) -> None:
        self.discover.download_requested.connect(self.download)
        self.state.download_ended.connect(self._download_ended)
        self.machines.changed.connect(self.state.list_endpoints)
        self.installed.load_requested.connect(self._load)
        self.machines.load_requested.connect(self._load)
        self.installed.train_button.setVisible(self.training is not None)
        if self.training is not None:
            self.installed.train_requested.connect(self._train)
            self.training.made.connect(self._take_heads)
            self.resume_button.clicked.connect(self._resume_training)
        self.offline_box.toggled.connect(self._choose_offline)
        self.settings_button.clicked.connect(self.settings_requested)

    def _choose_offline(self, is_offline: bool) -> None:
        # The environment may be offline although the setting isn't: showing that chooses nothing.
        if is_offline != self.library.settings.is_offline:
            self.offline_chosen.emit(is_offline)

    def download(self, offer: PairOffer) -> None:
        """Download a pair, and show the tab of downloads."""
        if offer.is_pickled and not self._agrees_to_convert():
            return
        pair = converting(offer.pair) if offer.is_pickled else offer.pair
        try:
            job = self.library.downloads.add(pair)
        except MedusaError as error:  # a full disk, which can't hold the download either
            self.notice_label.setText(error_text(error))
            return
        log.info("download %d of %s", job.id, offer.pair)
        self.downloads.show_jobs()
        self.downloads.table.selectRow(0)
        self.tabs.setCurrentWidget(self.downloads)

    def _agrees_to_convert(self) -> bool:
        return confirms(
            self,
            self.tr("Download and convert these heads?"),
            QCoreApplication.translate("Library", _PICKLE_QUESTION),
        )

    def _download_ended(self, job: DownloadJob) -> None:
        if job.state is not JobState.READY:
            return
        self.notice_label.setText(
            self.tr("{0} is here: load it under Installed.").format(job.pair.model)
        )
        self.tasks.start(self.installed.refresh())

    def _train(self, item: Installed, quant: str) -> None:
        assert self.training is not None  # by `_connect`
        self.training.offer(
            item.title, str(item.path), quant, self.state.loaded_model.device, item.config
        )
        self.training.show()
        self.training.raise_()

    def _resume_training(self) -> None:
        assert self.training is not None  # by `_connect`
        self.notice_label.clear()
        self.resume_button.hide()
        self.training.resume()
        self.training.show()
        self.training.raise_()

    def _take_heads(self, folder: Path) -> None:
        """List heads that were trained here, and show their measured gain."""
        try:
            self.library.add_folder(str(folder))
        except MedusaError as error:
            self.notice_label.setText(error_text(error))
            return
        self.notice_label.setText(f"{folder.name}: {gain_text(read_gain(folder))}")
        self.tasks.start(self.installed.refresh())

    def _load(self, choice: ModelChoice) -> None:
        self.load_requested.emit(choice)
        self.close()

    def update_budget(self) -> None:
        """Plan for the device as it is chosen now."""
        self.tasks.start(self._ask_budget())

    def follow_settings(self) -> None:
        """Apply the Hub's settings, and list the models in the folder for downloads."""
        self.offline_box.setChecked(self.library.settings.is_offline)
        self.tasks.start(self.installed.refresh())

    async def _ask_budget(self) -> None:
        device = self.state.loaded_model.device
        try:
            budget = await self.state.budget()
        except MedusaError as error:
            self.notice_label.setText(error_text(error))
            return
        for tab in (self.discover, self.installed):
            tab.details.layers_dir = self.library.layers_dir
            tab.details.device = local_device(device)
            tab.set_budget(budget, cluster_of(device))
