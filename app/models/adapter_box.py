"""Selection of the LoRA for a model."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker

from app.i18n.engine_texts import engine_text
from app.widgets.choices import NUM_CHARS, ChoiceBox, add_entry
from medusa_core.api import AdapterOffer, Installed, Library


class AdapterBox(ChoiceBox):
    """LoRAs of a model; those that don't fit are disabled and say why."""

    def __init__(self, library: Library) -> None:
        super().__init__(NUM_CHARS)
        self._library = library
        self.setAccessibleName(self.tr("Adapter"))
        self.setToolTip(
            self.tr("A LoRA changes what the model says; without it the model is as it was.")
        )

    @property
    def chosen(self) -> AdapterOffer | None:
        """The selected LoRA, or None."""
        offer = self.currentData()
        return offer if isinstance(offer, AdapterOffer) else None

    def offer(self, item: Installed | None, items: Sequence[Installed]) -> None:
        """List the installed LoRAs; none is preselected, since it changes the answers."""
        with QSignalBlocker(self):
            self.clear()
            self.addItem(self.tr("none"), None)
            for offer in () if item is None else self._library.adapters_for(item, items):
                add_entry(self, offer.name, offer, engine_text(offer.reason))
