"""The three pages of the welcome dialog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import error_text
from app.models.proposal_card import proposal_words
from app.models.suggestion import (
    fit_words,
    fits,
    in_order,
    proposed,
)
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.widgets.live_label import LiveLabel
from app.widgets.plain_label import plain_label
from app.widgets.sizes import on_disk
from app.widgets.table import RowTable
from medusa_core.api import Budget, Library, PairOffer
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import first_choice


class WelcomeStep(QWidget):
    """Page with a title, a text, and further widgets.

    Attributes:
        column: Layout for further widgets.
    """

    def __init__(self, title: str, words: str, appearance: Appearance) -> None:
        super().__init__()
        scale = appearance.scale
        self.column = QVBoxLayout(self)
        self.column.setSpacing(scale.px(0.9))
        heading = QLabel(title)
        heading.setObjectName("heroTitle")
        self.column.addWidget(heading)
        for paragraph in words.split("\n"):
            self.column.addWidget(plain_label(paragraph))


class WhatStep(WelcomeStep):
    """Page about the program."""

    def __init__(self, appearance: Appearance) -> None:
        super().__init__(
            self.tr("Chat on your own computer"),
            self.tr(
                "Medusa Chat runs a language model here. What you write stays on this computer.\n"
                "The next words are drafted, and the model checks all of them in one step. Where "
                "drafts are accepted it answers up to several times faster, always with the same "
                "words.\n"
                "Accepted draft tokens are tinted and underlined, so that you can watch it work."
            ),
            appearance,
        )
        self.column.addStretch(1)


class ModelStep(WelcomeStep):
    """Page with models that fit this computer.

    Attributes:
        table: Built-in model, then models of the catalog that fit.
        offers: Offers of the rows after the first.
        download_button: Downloads the selected model.
        gguf_button: Opens a local GGUF file.

    Signals:
        download_requested: The user downloads a `PairOffer`.
        gguf_requested: The user opens a GGUF file.
    """

    download_requested = Signal(object)
    gguf_requested = Signal()

    def __init__(self, library: Library | None, appearance: Appearance) -> None:
        first = first_choice()
        ready = self.tr("{0} ({1}) is here, and ready.").format(first.name, first.note)
        if first.is_demo:
            ready = self.tr("A small demo model is built in, and ready: it tells simple stories.")
        more = self.tr("For more, download one of these, now or later under Models.")
        super().__init__(self.tr("Choose a model"), f"{ready} {more}", appearance)
        self._library = library
        self._tasks = Tasks(self)
        self.offers: tuple[PairOffer, ...] = ()
        self.table = RowTable(
            self.tr("Models that fit"),
            (self.tr("Model"), self.tr("On this computer"), self.tr("Download")),
        )
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.note = LiveLabel(self.tr("Checking what fits this computer…"))
        self.download_button = QPushButton(self.tr("Download"))
        self.column.addWidget(self.table, 1)
        self.column.addWidget(self.note)
        self.gguf_button = QPushButton(self.tr("Open a GGUF file…"))
        buttons = QHBoxLayout()
        buttons.addWidget(self.download_button)
        buttons.addWidget(self.gguf_button)
        buttons.addStretch(1)
        self.column.addLayout(buttons)
        self.table.currentCellChanged.connect(lambda *_: self._choose())
        self.download_button.clicked.connect(self._download)
        self.gguf_button.clicked.connect(self.gguf_requested)
        self._show_offers(None)

    def look(self) -> None:
        """Start to determine which models fit; the table is filled later."""
        if self._library is not None and not (self._tasks.is_running or self.offers):
            self._tasks.start(self._load_budget(self._library))

    def show_budget(self, library: Library, budget: Budget) -> None:
        """Show the models that fit a device."""
        self.offers = in_order([o for o in library.catalog() if fits(o, budget)], budget)
        self.note.clear()
        self._show_offers(budget)
        best = proposed(self.offers, budget)
        if best is not None:
            self.table.selectRow(1 + self.offers.index(best))
            words = proposal_words(best, 0.0, 0.0)
            self.note.setText(self.tr("Proposed for this computer: {0}").format(words))

    async def _load_budget(self, library: Library) -> None:
        try:
            self.show_budget(library, await library.budget())
        except MedusaError as error:
            self.note.setText(error_text(error))

    def _show_offers(self, budget: Budget | None) -> None:
        here = (first_choice().name, self.tr("Ready"), "–")
        self.table.show_rows([here, *(_cells(one, budget) for one in self.offers)])
        self._choose()

    def _choose(self) -> None:
        self.download_button.setEnabled(self.table.currentRow() > 0)

    def _download(self) -> None:
        row = self.table.currentRow() - 1
        if 0 <= row < len(self.offers):
            self.download_requested.emit(self.offers[row])


class FilesStep(WelcomeStep):
    """Page about the folders of files."""

    def __init__(self, folders: Mapping[str, Path], appearance: Appearance) -> None:
        super().__init__(
            self.tr("Where your files are"),
            self.tr(
                "Conversations, settings and models lie in these folders. Other places can be "
                "chosen in the settings (Ctrl+,)."
            ),
            appearance,
        )
        form = QFormLayout()
        for name, folder in folders.items():
            line = QLineEdit(str(folder))
            line.setReadOnly(True)
            line.setCursorPosition(0)
            line.setAccessibleName(name)
            form.addRow(name, line)
        self.column.addLayout(form)
        promise = QLabel(
            self.tr("Nothing is sent anywhere by itself. Hugging Face is asked when you search.")
        )
        promise.setWordWrap(True)
        self.column.addWidget(promise)
        self.column.addStretch(1)


def _cells(offer: PairOffer, budget: Budget | None) -> tuple[str, ...]:
    words = fit_words(offer.config, offer.heads, budget) or "–"
    return (offer.title, words, on_disk(offer.download_bytes))
