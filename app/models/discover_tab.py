"""Tab of the shipped catalog and of searches on the Hub."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import (
    engine_text,
    error_text,
)
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.models.details import Details
from app.models.drafter_words import drafter_note, heads_note, kinds_of
from app.models.published_box import PublishedBox
from app.models.subject import Subject
from app.models.suggestion import (
    fit_words,
    fits,
    in_order,
    suggested,
)
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.widgets.live_label import LiveLabel
from app.widgets.naming import name_box
from app.widgets.plain_label import plain_label
from app.widgets.search_edit import SearchEdit
from app.widgets.sizes import (
    library_text,
    on_disk,
)
from app.widgets.table import RowTable
from medusa_core.api import Budget, DrafterOffer, Library, PairOffer
from medusa_core.errors import MedusaError, NetworkError
from medusa_core.messages import HeadsShape

log = logging.getLogger(__name__)

COLUMNS = (
    QT_TRANSLATE_NOOP("Library", "Model"),
    QT_TRANSLATE_NOOP("Library", "On this computer"),
    QT_TRANSLATE_NOOP("Library", "Download"),
    QT_TRANSLATE_NOOP("Library", "Drafters"),
    QT_TRANSLATE_NOOP("Library", "Licence"),
)
SORTS = (
    (QT_TRANSLATE_NOOP("Library", "Most downloads"), "downloads"),
    (QT_TRANSLATE_NOOP("Library", "Most likes"), "likes"),
    (QT_TRANSLATE_NOOP("Library", "Newest"), "last_modified"),
)
SPLIT = [740, 420]
_SEARCH_AFTER_MS = 400
_FILLED, _LOOKS_AT_ONCE = 20, 3  # rows of a search whose sizes are asked for


class DiscoverTab(QWidget):
    """Catalog and search, with details of the selected model.

    Attributes:
        search_edit: Search words.
        fits_box: Shows only models that fit.
        table: Search results.
        details: Details of the selected offer.
        file_box: GGUF file to download, if there are several.
        drafter_box: Drafter to download with the model.
        drafter_label: Description of the drafter.
        status_label: State of the search.
        offers: Offers in the order of the table's rows.

    Signals:
        download_requested: The user starts a download, of a `PairOffer`.
    """

    download_requested = Signal(object)

    def __init__(self, library: Library, appearance: Appearance) -> None:
        super().__init__()
        self._library = library
        self._budget: Budget | None = None
        self._found: tuple[PairOffer, ...] = library.catalog()
        self.tasks = Tasks(self)
        self._refused: dict[str, str] = {}
        self._requested: set[str] = set()  # models whose drafters the Hub was asked for
        self._wrong: dict[str, str] = {}  # by model: why the drafter that was picked can't be had
        self.offers: tuple[PairOffer, ...] = ()
        self.search_edit = SearchEdit(
            self.tr("Search"), self.tr("Search Hugging Face; empty shows what we recommend")
        )
        self.sort_box = QComboBox()
        name_box(self.sort_box, self.tr("Order"))
        for words, name in SORTS:
            self.sort_box.addItem(library_text(words), name)
        self.fits_box = QCheckBox(self.tr("Fits this computer"))
        columns = [library_text(name) for name in COLUMNS]
        self.table = RowTable(self.tr("Models"), columns)
        self.details = Details(appearance, self.tr("Download"))
        self.file_label = QLabel(self.tr("File"))
        self.file_box = QComboBox()
        name_box(self.file_box, self.tr("File"))
        self.details.head_row.addWidget(self.file_label)
        self.details.head_row.addWidget(self.file_box, 1)
        self.drafter_box = PublishedBox()
        self.drafter_label = plain_label(name="notice")
        self.details.drafts_form.addRow(self.tr("Drafter"), self.drafter_box)
        self.details.drafts_form.addRow("", self.drafter_label)
        self.status_label = LiveLabel()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(_SEARCH_AFTER_MS)
        self._build()
        self._connect()
        self._show_offers()

    @property
    def chosen(self) -> PairOffer | None:
        """The offer that the details show."""
        row = self.table.currentRow()
        return self.offers[row] if 0 <= row < len(self.offers) else None

    def set_budget(self, budget: Budget, cluster: str = "") -> None:
        """Plan for a device, and for a cluster that computes the layers."""
        is_first = self._budget is None
        self._budget = None if cluster else budget  # its machines are asked when a model is loaded
        self.details.set_budget(budget, cluster)
        self._show_offers()
        if is_first:
            self._choose_best()

    def _choose_best(self) -> None:
        """Select the suggested pair for this computer."""
        best = suggested(self.offers, self._budget)
        if best is not None:
            self.table.selectRow(self.offers.index(best))

    def _build(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.search_edit, 1)
        top.addWidget(self.sort_box)
        top.addWidget(self.fits_box)
        split = QSplitter()
        split.addWidget(self.table)
        split.addWidget(self.details)
        split.setSizes(SPLIT)
        column = QVBoxLayout(self)
        column.addLayout(top)
        column.addWidget(split, 1)
        column.addWidget(self.status_label)

    def _connect(self) -> None:
        self.search_edit.textChanged.connect(lambda _: self._timer.start())
        self.sort_box.currentIndexChanged.connect(lambda _: self._timer.start())
        self._timer.timeout.connect(self.search_now)
        self.fits_box.toggled.connect(self._show_offers)
        self.table.currentCellChanged.connect(lambda *_: self._choose())
        self.details.acted.connect(self._download)
        self.file_box.activated.connect(self._take_file)
        self.drafter_box.picked.connect(self._take_drafter)
        self.drafter_box.more_requested.connect(self._ask_for_drafters)

    def search_now(self) -> None:
        """Search the Hub; without words, show the catalog."""
        words = self.search_edit.text().strip()
        if not words:
            self._found = self._library.catalog()
            self.status_label.clear()
            self._show_offers()
            return
        self.status_label.setText(self.tr("Searching…"))
        self.tasks.cancel()
        self.tasks.start(self._search(words, str(self.sort_box.currentData())))

    async def _search(self, words: str, sort: str) -> None:
        try:
            found = await self._library.search(words, sort)  # type: ignore[arg-type]
        except MedusaError as error:
            self._found = _matching(self._library.catalog(), words)
            self._show_offers()
            details = f"{engine_text(error.message)} {engine_text(error.hint)}"
            recommended = self.tr("Offline: showing our recommendations.")
            is_offline = isinstance(error, NetworkError) and bool(self.offers)
            self.status_label.setText(recommended if is_offline else details)
            self.status_label.setToolTip(details)
            return
        if words != self.search_edit.text().strip():
            return  # the user has gone on typing
        self._found = found
        self._refused.clear()
        self.status_label.setText(
            "" if found else self.tr("Nothing on Hugging Face is called {0}.").format(words)
        )
        self._show_offers()
        await self._fill(found[:_FILLED])

    async def _fill(self, found: tuple[PairOffer, ...]) -> None:
        """List search results, and request their sizes in the order of the rows."""
        at_once = asyncio.Semaphore(_LOOKS_AT_ONCE)

        async def look(offer: PairOffer) -> None:
            async with at_once:
                if any(one == offer for one in self._found):  # else its details were asked for
                    await self._look_at(offer)

        async with asyncio.TaskGroup() as looks:
            for offer in found:
                looks.create_task(look(offer))

    def _show_offers(self) -> None:
        fits_only, before = self.fits_box.isChecked(), self.chosen
        shown = [one for one in self._found if not fits_only or fits(one, self._budget)]
        self.offers = in_order(shown, self._budget)
        self.table.show_rows([self._cells(offer) for offer in self.offers])
        titles = [offer.title for offer in self.offers]
        if before is not None and before.title in titles:
            self.table.selectRow(titles.index(before.title))
        elif self.offers and self.table.currentRow() < 0:
            self.table.selectRow(0)
        self._choose()

    def _cells(self, offer: PairOffer) -> tuple[str, ...]:
        return (
            offer.title,
            self._verdict(offer),
            on_disk(offer.download_bytes) if offer.download_bytes else "–",
            kinds_of(offer),
            offer.licence + (self.tr(" · gated") if offer.is_gated else ""),
        )

    def _verdict(self, offer: PairOffer) -> str:
        if offer.title in self._refused:
            return self._refused[offer.title]
        return fit_words(offer.config, offer.heads, self._budget) or "–"

    def _choose(self) -> None:
        offer = self.chosen
        self._offer_files(offer)
        self._offer_drafters(offer)
        if offer is None:
            self.details.show_subject(None)
            return
        repos = " + ".join(dict.fromkeys(repo for repo, _ in offer.pair.repos))
        pickle = (
            self.tr("The heads are a pickle, which is converted once.") if offer.is_pickled else ""
        )
        note = "\n".join(part for part in (engine_text(offer.note), pickle, repos) if part)
        if offer.is_heads:
            shape = offer.heads
            note = self.tr(
                "{0}\nFor models with a hidden size of {1:,}. After the download, choose it "
                "with such a model under Installed.\n{2}"
            ).format(heads_note(offer), Number(shape.reads_width or shape.hidden_size), note)
        self.details.show_subject(Subject(offer.title, note, offer.config, offer.heads))
        if offer.is_heads:
            self.details.verdict_label.clear()
        if offer.misfit:
            self.details.action_button.setEnabled(False)
        is_known = bool(offer.heads.num_heads) if offer.is_heads else offer.config is not None
        if not is_known and offer.title not in self._refused:
            self.tasks.start(self._look_at(offer))
        elif is_known and not offer.is_curated and not offer.is_heads:
            self._ask_for_drafters()

    def _offer_drafters(self, offer: PairOffer | None) -> None:
        """List the drafters that are published for a model, and describe the selected one."""
        is_model = offer is not None and not offer.is_heads
        self.drafter_box.show_offer(
            offer if is_model else None, offer is None or offer.pair.model in self._requested
        )
        text = ""
        if offer is not None and is_model:
            text = self._wrong.get(offer.pair.model, "") or drafter_note(offer)
        self.drafter_label.setText(text)
        self.details.drafts_form.setRowVisible(self.drafter_box, is_model)
        self.details.drafts_form.setRowVisible(self.drafter_label, bool(text))

    def _take_drafter(self, drafter: DrafterOffer | None) -> None:
        """Select another drafter for the model, or none."""
        offer = self.chosen
        if offer is None:
            return
        self._wrong.pop(offer.pair.model, None)
        if drafter is None:
            self._put(offer, offer.with_drafter(None))
        else:
            self.drafter_label.setText(self.tr("Reading sizes…"))
            self.details.drafts_form.setRowVisible(self.drafter_label, True)
            self.tasks.start(self._look_with(offer, drafter))

    async def _look_with(self, offer: PairOffer, drafter: DrafterOffer) -> None:
        """Show a model with a drafter, or why the drafter can't be used."""
        try:
            known = await self._library.look_at(offer.with_drafter(drafter))
        except MedusaError as error:
            self._wrong[offer.pair.model] = error_text(error)
            self._choose()
        else:
            self._put(offer, known)

    def _ask_for_drafters(self) -> None:
        """Search the Hub once for drafters of the selected model."""
        offer = self.chosen
        if offer is not None and offer.pair.model not in self._requested:
            self._requested.add(offer.pair.model)
            self.tasks.start(self._find_drafters(offer))

    async def _find_drafters(self, offer: PairOffer) -> None:
        try:
            found = await self._library.find_drafters(offer)
        except MedusaError as error:
            self._requested.discard(offer.pair.model)
            if offer.is_curated:  # else nobody asked
                self._wrong[offer.pair.model] = error_text(error)
                self._choose()
            return
        one = next((one for one in self._found if one.pair.model == offer.pair.model), None)
        if one is not None:
            self._put(one, replace(one, drafters=found.drafters))

    def _put(self, offer: PairOffer, wanted: PairOffer) -> None:
        """Replace an offer in its row."""
        self._found = tuple(wanted if one == offer else one for one in self._found)
        self._show_offers()

    def _offer_files(self, offer: PairOffer | None) -> None:
        """List the GGUF files of a repository, the smallest first."""
        variants = () if offer is None else offer.variants
        self.file_box.clear()
        for variant in variants:
            name = variant.file.rpartition("/")[2].removesuffix(".gguf")
            self.file_box.addItem(f"{name} · {on_disk(variant.nbytes)}", variant.file)
        if offer is not None:
            self.file_box.setCurrentIndex(self.file_box.findData(offer.pair.file))
        for widget in (self.file_label, self.file_box):
            widget.setVisible(bool(variants))

    def _take_file(self) -> None:
        """Select another file of the repository."""
        offer, file = self.chosen, str(self.file_box.currentData())
        if offer is None or file == offer.pair.file:
            return
        wanted = replace(offer, pair=replace(offer.pair, file=file), config=None, download_bytes=0)
        self._put(offer, wanted)

    async def _look_at(self, offer: PairOffer) -> None:
        try:
            known = await self._library.look_at(offer)
        except MedusaError as error:
            self._refused[offer.title] = engine_text(error.message)
            self._show_offers()
            if self.chosen == offer:
                refused = Subject(offer.title, error_text(error), None, HeadsShape())
                self.details.show_subject(refused)
                self.details.verdict_label.clear()
                self.details.action_button.setEnabled(False)
            return
        self._put(offer, known)

    def _download(self) -> None:
        if self.chosen is not None:
            self.download_requested.emit(self.chosen)


def _matching(offers: Sequence[PairOffer], words: str) -> tuple[PairOffer, ...]:
    """Return the offers whose names or notes contain all words."""
    wanted = words.lower().split()
    texts = (f"{one.title} {one.pair.model} {one.note}".lower() for one in offers)
    return tuple(
        one for one, text in zip(offers, texts, strict=True) if all(word in text for word in wanted)
    )
