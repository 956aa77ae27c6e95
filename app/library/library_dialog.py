"""The model manager's window: three tabs over one library."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QStandardItemModel
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPushButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.library.discover_tab import DiscoverTab
from app.library.downloads_tab import DownloadsTab
from app.library.installed_tab import InstalledTab
from app.theme.appearance import Appearance
from medusa_core.api import (
    DeviceOffer,
    Job,
    Library,
    Offer,
    converting,
    save_user_token,
    with_offline,
    with_token,
)
from medusa_core.errors import MedusaError
from medusa_core.model_choice import ModelChoice

log = logging.getLogger(__name__)

_SIZE = QSize(1200, 680)
_PICKLE_QUESTION = (
    "The heads of this pair are published as a pickle, a kind of file that can run code when it is "
    "opened. Medusa Chat looks through it first, refuses everything but plain tensors, and "
    "converts it once, in a process of its own. Download and convert it?"
)


class LibraryDialog(QDialog):
    """Discover, Installed, Downloads.

    Attributes:
        discover: What there is.
        installed: What is here.
        downloads: What is on its way.
        tabs: The three of them.
        token_edit: The user's token for gated models.
        offline_box: Let no request leave.
        idle_box: After how much rest a model's memory is given back.
        device_box: What models run on.

    Signals:
        load_requested: A model is to be loaded, as a `ModelChoice`.
        idle_chosen: Minutes of rest after which a model's memory is given back; 0 for never.
        device_chosen: Torch device name that models run on from now on; empty for the best.
    """

    load_requested = Signal(object)
    idle_chosen = Signal(float)
    device_chosen = Signal(str)

    def __init__(
        self,
        library: Library,
        appearance: Appearance,
        unload_minutes: float = 0.0,
        device: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setWindowTitle("Models")
        self.resize(_SIZE)
        self._library = library
        self._appearance = appearance
        self._own_bytes = 0
        self._device = device
        self._work: set[asyncio.Task[None]] = set()
        self.discover = DiscoverTab(library, appearance)
        self.installed = InstalledTab(library, appearance)
        self.downloads = DownloadsTab(library)
        self.tabs = QTabWidget()
        self.token_edit = QLineEdit()
        self.offline_box = QCheckBox("Offline: let nothing leave this computer")
        self.idle_box = QComboBox()
        self.device_box = QComboBox()
        self.notice_label = QLabel()
        self.notice_label.setObjectName("notice")
        self.notice_label.setWordWrap(True)
        self.notice_label.setTextFormat(Qt.TextFormat.PlainText)
        self._offer_idle(unload_minutes)
        self._build()
        self._connect()
        appearance.changed.connect(self.restyle)

    def refresh(self, own_bytes: int) -> None:
        """Look again at the device's memory and at what is here.

        Args:
            own_bytes: What the loaded model holds, which another one would free.
        """
        self._own_bytes = own_bytes
        self._start(self._ask_device())
        self._start(self.installed.refresh())

    def restyle(self) -> None:
        """Take the colours of the theme."""
        self.discover.details.restyle()
        self.installed.details.restyle()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.discover.close_work()
        super().closeEvent(event)

    def _build(self) -> None:
        self.tabs.addTab(self.discover, "Discover")
        self.tabs.addTab(self.installed, "Installed")
        self.tabs.addTab(self.downloads, "Downloads")
        self.token_edit.setEchoMode(QLineEdit.EchoMode.Password)
        self.token_edit.setPlaceholderText("Hub token, for gated models")
        self.token_edit.setAccessibleName("Hub token")
        self.token_edit.setMinimumWidth(self._appearance.scale.px(16))
        self._token_button = QPushButton("Keep token")
        self.offline_box.setChecked(self._library.settings.is_offline)
        bottom = QHBoxLayout()
        bottom.addWidget(self.offline_box)
        bottom.addSpacing(self._appearance.scale.px(1.5))
        bottom.addWidget(QLabel("Run on"))
        bottom.addWidget(self.device_box)
        bottom.addSpacing(self._appearance.scale.px(1.5))
        bottom.addWidget(QLabel("Unload when idle"))
        bottom.addWidget(self.idle_box)
        bottom.addStretch(1)
        bottom.addWidget(self.token_edit)
        bottom.addWidget(self._token_button)
        column = QVBoxLayout(self)
        column.addWidget(self.tabs, 1)
        column.addWidget(self.notice_label)
        column.addLayout(bottom)

    def _offer_idle(self, chosen: float) -> None:
        self.device_box.setAccessibleName("Run on")
        self.device_box.addItem("Automatic", "")
        self.idle_box.setAccessibleName("Unload when idle")
        self.idle_box.setToolTip("A model that rests is loaded again by the next message.")
        for minutes in sorted({0.0, 10.0, 30.0, 60.0, chosen}):
            words = f"After {minutes:g} min" if minutes else "Never"
            self.idle_box.addItem(words, minutes)
        self.idle_box.setCurrentIndex(self.idle_box.findData(chosen))

    def _connect(self) -> None:
        self.idle_box.currentIndexChanged.connect(
            lambda _: self.idle_chosen.emit(float(self.idle_box.currentData()))
        )
        self.device_box.activated.connect(lambda _: self._choose_device())
        self.discover.download_requested.connect(self.download)
        self.downloads.finished.connect(self._finished)
        self.installed.load_requested.connect(self._load)
        self.offline_box.toggled.connect(self._set_offline)
        self._token_button.clicked.connect(self._keep_token)

    def download(self, offer: Offer) -> None:
        """Fetch a pair, and show it on its way."""
        if offer.is_pickled and not self._agrees_to_convert():
            return
        pair = converting(offer.pair) if offer.is_pickled else offer.pair
        job = self._library.downloads.add(pair)
        log.info("download %d of %s", job.id, offer.pair)
        self.downloads.show_jobs()
        self.downloads.table.selectRow(0)
        self.tabs.setCurrentWidget(self.downloads)

    def _agrees_to_convert(self) -> bool:
        answer = QMessageBox.question(self, "Heads in a pickle", _PICKLE_QUESTION)
        return answer is QMessageBox.StandardButton.Yes

    def _finished(self, job: Job) -> None:
        self.notice_label.setText(f"{job.pair.model} is here: load it under Installed.")
        self._start(self.installed.refresh())

    def _load(self, choice: ModelChoice) -> None:
        self.load_requested.emit(choice)
        self.close()

    def _set_offline(self, is_on: bool) -> None:
        self._library.change_settings(with_offline(self._library.settings, is_on))

    def _keep_token(self) -> None:
        token = self.token_edit.text().strip()
        try:
            save_user_token(token)
        except OSError as error:
            self.notice_label.setText(f"The token can't be kept: {error.strerror}.")
            return
        self._library.change_settings(with_token(self._library.settings, token))
        self.token_edit.clear()
        self.notice_label.setText("The token is kept, readable by you alone.")

    def _choose_device(self) -> None:
        self._device = str(self.device_box.currentData())
        self.device_chosen.emit(self._device)
        self._start(self._ask_budget())

    async def _ask_device(self) -> None:
        self._offer_devices(await self._library.devices())
        await self._ask_budget()

    def _offer_devices(self, offers: tuple[DeviceOffer, ...]) -> None:
        """Show what there is; a device that is gone stays in the list, so that it can be left."""
        self.device_box.clear()
        model = self.device_box.model()
        for row, offer in enumerate(offers):
            self.device_box.addItem(offer.label, offer.device)
            if offer.lack and isinstance(model, QStandardItemModel):
                model.item(row).setEnabled(False)
                model.item(row).setToolTip(offer.lack)
        if self.device_box.findData(self._device) < 0:
            self.device_box.addItem(f"{self._device} (not here)", self._device)
        self.device_box.setCurrentIndex(self.device_box.findData(self._device))

    async def _ask_budget(self) -> None:
        try:
            budget = await self._library.budget(self._own_bytes, self._device)
        except MedusaError as error:
            self.notice_label.setText(f"{error.message} {error.hint}")
            return
        self.discover.set_budget(budget)
        self.installed.set_budget(budget)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
