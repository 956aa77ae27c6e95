"""Selection of the draft model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt, Signal

from app.i18n.engine_texts import engine_text
from app.state.tasks import Tasks
from app.widgets.choices import NUM_CHARS, ChoiceBox, add_entry
from app.widgets.explain import explain
from medusa_core.api import Installed, Library

_SMALLER = 3  # times, at least, than the model that it drafts for


class DraftBox(ChoiceBox):
    """Draft models for a target; those that can't draft are disabled and say why.

    Attributes:
        remembered: Folder of the last draft model, by the folder of its target.

    Signals:
        compared: All installed models were compared; the selection may have changed.
    """

    compared = Signal()

    def __init__(self, library: Library) -> None:
        super().__init__(NUM_CHARS)
        self.remembered: Mapping[str, str] = {}
        self._library = library
        self._offered: tuple[Installed | None, Sequence[Installed]] = (None, ())
        self.tasks = Tasks(self)
        self._remembered: Path | None = None  # for the model that is being compared
        self._proposed: Installed | None = None
        self.setAccessibleName(self.tr("Draft model"))
        explain(
            self,
            self.tr(
                "A smaller model with the same vocabulary drafts the next tokens. It needs "
                "memory of its own, and helps most where the large one is slow."
            ),
        )
        self._fill((), "")

    @property
    def chosen(self) -> Installed | None:
        """The selected draft model, or None."""
        found = self.currentData()
        return found if isinstance(found, Installed) else None

    @property
    def folder(self) -> Path | None:
        """Folder of the selected draft model.

        While models are still compared, the one that was used last.
        """
        return self._remembered if self.chosen is None else self.chosen.path

    @property
    def proposed(self) -> Installed | None:
        """The smallest suitable draft model, if none is selected; else None."""
        return None if self.chosen is not None else self._proposed

    def choose(self, item: Installed) -> None:
        """Select a draft model of the list."""
        for row in range(1, self.count()):
            found = self.itemData(row)
            if isinstance(found, Installed) and found.path == item.path:
                self.setCurrentIndex(row)

    def offer(self, item: Installed | None, rows: Sequence[Installed]) -> None:
        """List draft models for a target; the same target keeps its selection."""
        if (item, rows) == self._offered:
            return
        before = self._offered[0]
        is_same = item is not None and before is not None and item.path == before.path
        chosen = str(self.chosen.path) if is_same and self.chosen is not None else ""
        self._offered = item, rows
        self.tasks.cancel()
        if not is_same:
            self._fill((), "")
            chosen = "" if item is None else self.remembered.get(str(item.path), "")
        self._remembered = self._proposed = None
        if item is not None and item.config is not None:
            self._remembered = Path(chosen) if chosen and Path(chosen).exists() else None
            self.tasks.start(self._compare(item, rows, chosen))

    async def _compare(self, item: Installed, rows: Sequence[Installed], chosen: str) -> None:
        found = await self._library.draft_models_for(item, rows)
        self._remembered = None
        suitable = [one for one, why in found if not why and one.nbytes * _SMALLER <= item.nbytes]
        self._proposed = next(iter(suitable), None)
        self._fill(found, chosen)
        self.compared.emit()

    def _fill(self, found: Sequence[tuple[Installed, str]], chosen: str) -> None:
        with QSignalBlocker(self):
            self.clear()
            self.addItem(self.tr("none"), None)
            for row, (item, reason) in enumerate(found, start=1):
                add_entry(self, item.title, item, engine_text(reason))
                self.setItemData(row, self.itemText(row), Qt.ItemDataRole.ToolTipRole)
                if not reason and str(item.path) == chosen:
                    self.setCurrentIndex(row)
