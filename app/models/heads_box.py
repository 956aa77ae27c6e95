"""Selection of the heads for a model."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker

from app.i18n.engine_texts import engine_text
from app.training.gain_words import with_loss
from app.widgets.choices import NUM_CHARS, ChoiceBox, add_entry
from medusa_core.api import ContentsKind, Installed, Library
from medusa_core.messages import HeadsShape


class HeadsBox(ChoiceBox):
    """Heads of a model; those that don't fit are disabled and say why."""

    def __init__(self, library: Library) -> None:
        super().__init__(NUM_CHARS)
        self._library = library
        self.setAccessibleName(self.tr("Heads"))

    @property
    def chosen(self) -> Installed | None:
        """The selected heads, or the model itself if it includes heads; None for none."""
        found = self.currentData()
        return found if isinstance(found, Installed) else None

    @property
    def shape(self) -> HeadsShape:
        """Sizes of the selected heads."""
        return HeadsShape() if self.chosen is None else self.chosen.heads

    def offer(self, item: Installed | None, items: Sequence[Installed]) -> None:
        """List the installed heads for a model, and select the first that may be profitable."""
        with QSignalBlocker(self):
            self.clear()
            self.addItem(self.tr("none"), None)
            if item is None or item.config is None:
                return
            if item.kind is ContentsKind.MERGED:
                self.addItem(self.tr("its own"), item)
                self.setCurrentIndex(1)
            for heads, reason in self._library.heads_for(item, items):
                self._add(heads, engine_text(reason))

    def _add(self, heads: Installed, reason: str) -> None:
        name = self.tr("{0} (built in)").format(heads.name) if heads.is_built_in else heads.name
        words = heads.name if reason else with_loss(name, heads.gain)
        add_entry(self, words, heads, reason)
        if not reason and heads.may_pay and self.currentIndex() == 0:
            self.setCurrentIndex(self.count() - 1)
