"""Selection of the published drafter to download with a model."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal

from app.i18n.engine_texts import engine_text
from app.widgets.choices import NUM_CHARS, ChoiceBox, add_entry
from app.widgets.sizes import on_disk
from medusa_core.api import DRAFTER_KINDS, DrafterOffer, PairOffer

_MORE = "more"


class PublishedBox(ChoiceBox):
    """Published drafters of a model, grouped by kind.

    Signals:
        picked: The user selects a drafter, or None.
        more_requested: The user searches the Hub for more.
    """

    picked = Signal(object)
    more_requested = Signal()

    def __init__(self) -> None:
        super().__init__(NUM_CHARS)
        self._offer: PairOffer | None = None
        self.setAccessibleName(self.tr("Drafter"))
        self.activated.connect(self._apply_selection)

    def show_offer(self, offer: PairOffer | None, is_all: bool) -> None:
        """List the drafters of a model.

        Args:
            offer: The model; None for none.
            is_all: Whether the Hub was searched already.
        """
        self._offer = offer
        self.clear()
        self.addItem(self.tr("none"), None)
        for drafter in () if offer is None else offer.drafters:
            self._add(drafter)
        if not is_all:
            self.addItem(self.tr("Look for more on Hugging Face…"), _MORE)
        self._show_chosen()

    def _add(self, drafter: DrafterOffer) -> None:
        kind = DRAFTER_KINDS[drafter.kind]
        size = f" · {on_disk(drafter.nbytes)}" if drafter.nbytes else ""
        file = drafter.file.rpartition("/")[2]
        is_beside = self._offer is not None and drafter.repo == self._offer.pair.model
        where = file if is_beside else "/".join(part for part in (drafter.repo, file) if part)
        if where:
            add_entry(self, f"{kind.label} · {where}{size}", drafter)
        else:
            within = self.tr("lies in the files of {0}").format(drafter.made_for)
            add_entry(self, kind.label, drafter, within)
        row = self.count() - 1
        self.setItemData(row, engine_text(kind.text), Qt.ItemDataRole.ToolTipRole)

    def _show_chosen(self) -> None:
        chosen = None if self._offer is None else self._offer.drafter
        found = (row for row in range(self.count()) if self.itemData(row) == chosen)
        self.setCurrentIndex(next(found, 0))

    def _apply_selection(self) -> None:
        data = self.currentData()
        if data == _MORE:
            self._show_chosen()
            self.more_requested.emit()
        elif self._offer is not None and data != self._offer.drafter:
            self.picked.emit(data)
