"""The list of what models can compute on."""

from __future__ import annotations

import asyncio

from PySide6.QtGui import QStandardItemModel
from PySide6.QtWidgets import QComboBox

from app.control.said import said
from app.settings.editors import Choose, Editor
from medusa_core.api import DeviceOffer


class DeviceBox(QComboBox):
    """Devices by their names; what can't be used says why.

    Attributes:
        editor: This, as an editor.
    """

    def __init__(self, choose: Choose) -> None:
        super().__init__()
        self._device = ""
        self._asked: asyncio.Task[None] | None = None
        self.editor = Editor(self, self._show)
        self.setAccessibleName(self.tr("Run on"))
        self.addItem(self.tr("Automatic"), "")
        self.activated.connect(lambda _row: self._choose(choose))

    def ask(self) -> None:
        """Look what there is; the list follows."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.ensure_future(self._fill())

    def offer(self, offers: tuple[DeviceOffer, ...]) -> None:
        """Show what there is; a device that is gone stays in the list, so that it can be left."""
        self.clear()
        model = self.model()
        for row, offer in enumerate(offers):
            name = said(offer.label)
            text = name if offer.device else self.tr("Automatic ({0})").format(name)
            self.addItem(text, offer.device)
            if offer.lack and isinstance(model, QStandardItemModel):
                model.item(row).setEnabled(False)
                model.item(row).setToolTip(said(offer.lack))
        self._show(self._device)

    async def _fill(self) -> None:
        from medusa_core.api import offered_devices

        self.offer(await asyncio.to_thread(offered_devices))

    def _show(self, device: str) -> None:
        self._device = device
        if self.findData(device) < 0:
            self.addItem(self.tr("{0} (not here)").format(device), device)
        self.setCurrentIndex(self.findData(device))

    def _choose(self, choose: Choose) -> None:
        self._device = str(self.currentData())
        choose(self._device)
