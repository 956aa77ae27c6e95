"""Selector of the compute device: local devices or a cluster."""

from __future__ import annotations

import asyncio

from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox, QInputDialog

from app.i18n.engine_texts import error_text
from app.i18n.setting_texts import setting_text
from app.settings.editors import Choose, Editor
from app.state.tasks import Tasks
from medusa_core.api import DeviceOffer
from medusa_core.errors import ClusterError
from medusa_core.messages import CLUSTER, cluster_of

_ANOTHER = "another cluster"


class DeviceBox(QComboBox):
    """Combo box of devices; unavailable ones show the reason.

    A cluster is one more entry, selected by the addresses of its machines.

    Attributes:
        editor: Editor interface of the box.
    """

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self._device = ""
        self.tasks = Tasks(self)
        self.editor = Editor(self, self._show)
        self.setAccessibleName(self.tr("Run on"))
        self.addItem(self.tr("Automatic"), "")
        self.addItem(self.tr("Cluster…"), _ANOTHER)
        self.activated.connect(lambda _row: self._choose(choose))

    def ask(self) -> None:
        """Look for devices in the background and update the list."""
        if not self.tasks.is_running:
            self.tasks.start(self._fill())

    def offer(self, offers: tuple[DeviceOffer, ...]) -> None:
        """Show devices; a selected device that is gone stays listed until deselected."""
        self.clear()
        model = self.model()
        for row, offer in enumerate(offers):
            name = setting_text(offer.label)
            text = name if offer.device else self.tr("Automatic ({0})").format(name)
            self.addItem(text, offer.device)
            if offer.lack and isinstance(model, QStandardItemModel):
                model.item(row).setEnabled(False)
                model.item(row).setToolTip(setting_text(offer.lack))
        self.addItem(self.tr("Cluster…"), _ANOTHER)
        self._show(self._device)

    async def _fill(self) -> None:
        from medusa_core.api import offered_devices

        self.offer(await asyncio.to_thread(offered_devices))

    def _show(self, device: str) -> None:
        self._device = device
        if self.findData(device) < 0:
            address = cluster_of(device)
            words = self.tr("Cluster at {0}") if address else self.tr("{0} (not here)")
            self.insertItem(self.count() - 1, words.format(address or device), device)
        self.setCurrentIndex(self.findData(device))

    def _choose(self, choose: Choose) -> None:
        device = str(self.currentData())
        if device == _ANOTHER:
            device = self._chose_cluster()
        self._show(device)
        choose(device)

    def _chose_cluster(self) -> str:
        """Ask for a cluster; keep the previous selection if the user cancels."""
        words = self.tr(
            "Address of the cluster, such as 192.168.1.5:6379. Start serve-layers on its machines "
            "first, with the model that you use here, and copy their token to this computer."
        )
        from medusa_core.api import split_address

        typed = cluster_of(self._device)
        while True:
            typed, is_named = QInputDialog.getText(
                self, self.tr("Cluster"), words, text=typed or "127.0.0.1:6379"
            )
            typed = typed.strip()
            if not is_named:
                return self._device
            try:
                split_address(typed)
                return CLUSTER + typed
            except ClusterError as error:
                words = error_text(error)
