"""Tab of installed models: their disk space, verification, loading."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPushButton,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import (
    error_text,
)
from app.models.adapter_box import AdapterBox
from app.models.details import Details
from app.models.discover_tab import SPLIT
from app.models.draft_box import DraftBox
from app.models.draft_proposal import DraftProposal
from app.models.drafter_words import installed_note
from app.models.heads_box import HeadsBox
from app.models.installed_rows import (
    COLUMNS,
    cells,
    reading_cells,
)
from app.models.subject import Subject
from app.models.suggestion import has_card
from app.state.library import LibraryState
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.widgets.file_dialogs import choose_folder, choose_gguf
from app.widgets.live_label import LiveLabel
from app.widgets.questions import confirms
from app.widgets.sizes import (
    library_text,
    on_disk,
    verdict,
)
from app.widgets.table import RowTable
from medusa_core.api import Budget, Installed, Library
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import (
    ModelChoice,
    first_choice,
    ready_choices,
)
from medusa_core.messages import DrafterSpeed, Fit, HeadsShape


class InstalledTab(QWidget):
    """Models, heads and adapters on this computer.

    Attributes:
        table: One row for each item.
        details: Details of the selected model.
        heads_box: Heads for the model.
        draft_box: Draft model for it.
        proposal: Proposes a draft model.
        adapter_box: LoRA for it.
        problem_label: Error of the last action.
        train_button: Trains heads for the selected model.
        rows: The items and the built-in models, in the order of the rows.

    Signals:
        load_requested: The user loads a model, as a `ModelChoice`.
        cache_changed: The user selects another folder for downloads.
        train_requested: The user trains heads: for an `Installed`, with its weight format.
    """

    load_requested = Signal(object)
    cache_changed = Signal(str)
    train_requested = Signal(object, str)

    def __init__(self, state: LibraryState, library: Library, appearance: Appearance) -> None:
        super().__init__()
        self._state = state
        self._library = library
        self._budget: Budget | None = None
        self.tasks = Tasks(self)
        self._reading: list[Path] = []
        self.rows: tuple[Installed, ...] = ()
        columns = [library_text(name) for name in COLUMNS]
        self.table = RowTable(self.tr("Installed"), columns)
        self.details = Details(appearance, self.tr("Load"))
        self.heads_box = HeadsBox(library)
        self.details.drafts_form.addRow(self.tr("Heads"), self.heads_box)
        self.draft_box = DraftBox(library)
        self.details.drafts_form.addRow(self.tr("Draft model"), self.draft_box)
        self.proposal = DraftProposal()
        self.details.drafts_form.addRow("", self.proposal)
        self.adapter_box = AdapterBox(library)
        self.details.drafts_form.addRow(self.tr("Adapter"), self.adapter_box)
        self.verify_button = QPushButton(self.tr("Verify"))
        self.delete_button = QPushButton(self.tr("Delete"))
        self.reveal_button = QPushButton(self.tr("Show folder"))
        self.train_button = QPushButton(self.tr("Train heads…"))
        self.train_button.setToolTip(self.tr("Train heads that make this model faster."))
        self.import_button = QPushButton(self.tr("Import model…"))
        self.quantized_button = QPushButton(self.tr("Delete copies"))
        self.quantized_button.setToolTip(
            self.tr(
                "Quantized models, and layers of models that don't fit in memory: they only make "
                "the next load faster."
            )
        )
        self.folder_button = QPushButton(self.tr("Download location…"))
        self.folder_button.setToolTip(
            self.tr("The folder for downloads; other programs share the default one.")
        )
        self.problem_label = LiveLabel()
        self.problem_label.setObjectName("problem")
        self.problem_label.hide()
        self.status_label = LiveLabel()
        self._shown_speeds: tuple[DrafterSpeed, ...] = ()
        self._build()
        self._connect()

    @property
    def chosen(self) -> Installed | None:
        """The item of the selected row."""
        row = self.table.currentRow()
        return self.rows[row] if 0 <= row < len(self.rows) else None

    def set_budget(self, budget: Budget, cluster: str = "") -> None:
        """Plan for a device, and for a cluster that computes the layers."""
        self._budget = None if cluster else budget  # its machines are asked when a model is loaded
        self.details.set_budget(budget, cluster)
        self._show_items()

    @property
    def items(self) -> tuple[Installed, ...]:
        """Installed models and heads."""
        return self._state.installed

    async def refresh(self) -> None:
        """List the installed items again; an error is shown."""
        try:
            await self._state.refresh()
        except MedusaError as error:
            self._show_problem(error_text(error))

    def _show_listed(self) -> None:
        """Show what is installed, and keep the selection."""
        chosen, reads = self.chosen, self.table.currentRow() >= len(self.rows) > 0
        self.rows = (*self.items, *self._library.built_in())
        self._show_items()
        if chosen is not None:
            self._select(chosen.path)
        elif reads and self._reading:
            self.table.selectRow(self.table.rowCount() - 1)

    def _show_speeds(self) -> None:
        """Show the details again if the speeds of the selected model are other ones."""
        item = self.chosen
        if item is not None and self._speeds_of(item) != self._shown_speeds:
            self._show_subject()

    def _speeds_of(self, item: Installed) -> tuple[DrafterSpeed, ...]:
        """Measured speeds of the selected model and heads."""
        heads = self.heads_box.chosen
        if self.adapter_box.chosen is not None or self.draft_box.chosen is not None:
            return ()
        return self._state.speeds_of(item, None if heads is None else heads.path)

    def _build(self) -> None:
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.table, 1)
        column.addWidget(self.problem_label)
        of_chosen = (
            self.verify_button,
            self.delete_button,
            self.reveal_button,
            self.train_button,
        )
        of_all = (self.import_button, self.folder_button, self.quantized_button)
        for row in (of_chosen, of_all):
            buttons = QHBoxLayout()
            for button in row:
                buttons.addWidget(button)
            buttons.addStretch(1)
            column.addLayout(buttons)
        split = QSplitter()
        split.addWidget(left)
        split.addWidget(self.details)
        split.setSizes(SPLIT)
        outer = QVBoxLayout(self)
        outer.addWidget(split, 1)
        outer.addWidget(self.status_label)

    def _connect(self) -> None:
        self._state.listed.connect(self._show_listed)
        self._state.loaded_model.chosen.connect(self._show_items)
        self._state.loaded_model.changed.connect(self._show_speeds)
        self.table.currentCellChanged.connect(lambda *_: self._choose())
        self.heads_box.currentIndexChanged.connect(lambda _: self._show_subject())
        self.draft_box.currentIndexChanged.connect(lambda _: self._show_subject())
        self.draft_box.compared.connect(self._show_subject)
        self.proposal.accepted.connect(self.draft_box.choose)
        self.adapter_box.currentIndexChanged.connect(lambda _: self._show_subject())
        self.details.acted.connect(self._load)
        self.verify_button.clicked.connect(lambda: self._start(self._verify()))
        self.delete_button.clicked.connect(self._delete)
        self.reveal_button.clicked.connect(self._reveal)
        self.train_button.clicked.connect(self._train)
        menu = QMenu(self.import_button)
        menu.addAction(self.tr("Folder…"), self._import_folder)
        menu.addAction(self.tr("GGUF file…"), self.import_file)
        self.import_button.setMenu(menu)
        self.folder_button.clicked.connect(self._change_folder)
        self.quantized_button.clicked.connect(lambda: self._start(self._remove_quantized()))

    def _select(self, folder: Path) -> None:
        for row, item in enumerate(self.rows):
            if item.path == folder:
                self.table.selectRow(row)

    def _show_items(self) -> None:
        rows = [cells(item, self._budget, self._state.is_loaded(item)) for item in self.rows]
        self.table.show_rows(rows + [reading_cells(path) for path in self._reading])
        if self.rows and self.table.currentRow() < 0:
            self.table.selectRow(0)
        total, kept = sum(item.nbytes for item in self.items), self._library.kept_bytes()
        words = self.tr(" · copies for faster loading {0}").format(on_disk(kept)) if kept else ""
        self.quantized_button.setEnabled(kept > 0)
        nothing = self.tr("Nothing is downloaded yet: see Discover, or import a model.")
        empty = "" if self.items else f"{nothing} "
        self.status_label.setText(
            self.tr("{0}{1} · downloads go to {2}{3}").format(
                empty, on_disk(total), self._library.settings.cache_dir, words
            )
        )
        self._choose()

    def _choose(self) -> None:
        item = self.chosen
        for button in (self.verify_button, self.delete_button, self.reveal_button):
            button.setEnabled(item is not None)
        is_model = item is not None and item.config is not None
        self.train_button.setEnabled(is_model)
        is_others = item is not None and bool(item.owner)
        self.delete_button.setEnabled(item is not None and not item.is_built_in and not is_others)
        is_ours = item is not None and not item.is_cached
        self.delete_button.setText(self.tr("Remove from list") if is_ours else self.tr("Delete"))
        self.heads_box.offer(item, self.items)
        self.adapter_box.offer(item, self.items)
        self.draft_box.offer(item, self.rows)
        self._show_subject()

    def _show_subject(self) -> None:
        """Show the details of the chosen model, with the plan of its memory."""
        item = self.chosen
        if item is None or item.config is None:
            note = "" if item is None else item.problem or installed_note(item)
            subject = None if item is None else Subject(item.title, note, None, HeadsShape())
            self.details.show_subject(subject)
            self.details.verdict_label.clear()
            self.proposal.hide()
            self.details.action_button.setEnabled(False)
            return
        self._shown_speeds = self._speeds_of(item)
        draft, adapter = self.draft_box.chosen, self.adapter_box.chosen
        proposed = None if self.heads_box.chosen is not None else self.draft_box.proposed
        self.proposal.show_proposal(item, proposed, has_card(self._budget))
        self.details.show_subject(
            Subject(
                item.title,
                str(item.path),
                item.config,
                self.heads_box.shape,
                None if draft is None else draft.config,
                None if adapter is None else adapter.shape,
                self._shown_speeds,
            )
        )
        self.details.action_button.setEnabled(not item.problem)

    def _load(self) -> None:
        item, choice = self.chosen, self.details.choice
        if item is None:
            return
        ignores_plan = False
        if choice is not None and choice.plan.fit is Fit.NO:
            ignores_plan = confirms(
                self, self.tr("May not fit. Load anyway?"), f"{verdict(choice.plan)}."
            )
            if not ignores_plan:
                return
        ready = next((one for one in ready_choices() if one.model_dir == item.path), None)
        wanted = ready or ModelChoice(item.title.rpartition("/")[2], item.path)
        heads = self.heads_box.chosen
        adapter = self.adapter_box.chosen
        options = replace(
            wanted.options,
            ignores_plan=ignores_plan,
            assistant_dir=self.draft_box.folder,
            adapter_dir=None if adapter is None else adapter.folder,
            takes_own_heads=heads is not None,
        ).with_layers_in(self.details.layers_dir if self.details.streams else None)
        if self.details.choice is not None and adapter is None:
            options = self.details.places.apply_to(options)
        heads_dir = None if heads is None else heads.path
        wanted = replace(wanted, heads_dir=heads_dir, options=options)
        if choice is not None:
            wanted = wanted.loaded_as(choice.formats, choice.plan.context_tokens)
        self.load_requested.emit(wanted)

    def _train(self) -> None:
        item, choice = self.chosen, self.details.choice
        if item is not None:
            formats = choice.formats.linears if choice is not None else ""
            self.train_requested.emit(item, formats)

    async def _verify(self) -> None:
        item = self.chosen
        if item is None:
            return
        self.status_label.setText(self.tr("Verifying {0}: reading every byte…").format(item.title))
        try:
            problems = await self._library.verify(item)
        except MedusaError as error:
            self._show_problem(error_text(error))
            return
        self.status_label.setText(
            self.tr("{0}: {1}. Download it again to repair it.").format(
                item.title, "; ".join(problems)
            )
            if problems
            else self.tr("Verified: all files are intact.")
        )

    def _delete(self) -> None:
        item = self.chosen
        if item is None:
            return
        is_loaded = self._state.is_loaded(item)
        question = (
            self.tr("Delete {0} ({1})?").format(item.title, on_disk(item.nbytes))
            if item.is_cached
            else self.tr("Remove {0} from the list?").format(item.title)
        )
        loaded = self.tr("It is loaded now: the built-in model takes its place.")
        loaded = loaded if is_loaded else ""
        if confirms(self, question, f"{self._library.warning_for(item)} {loaded}".strip()):
            if is_loaded:
                self.load_requested.emit(first_choice())
            self._start(self._remove(item))

    async def _remove(self, item: Installed) -> None:
        try:
            freed = await self._state.remove(item)
        except MedusaError as error:
            self._show_problem(error_text(error))
            return
        self.status_label.setText(
            self.tr("{0} is deleted: {1} are free again.").format(item.title, on_disk(freed))
            if item.is_cached
            else self.tr("{0} is off the list; its files stay.").format(item.title)
        )

    def _reveal(self) -> None:
        if (item := self.chosen) is not None:
            folder = item.path if item.path.is_dir() else item.path.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    def _import_folder(self) -> None:
        title = self.tr("Folder of a model or of heads")
        if folder := choose_folder(self, title):
            self.add_folder(str(folder))

    def import_file(self) -> None:
        """Ask for a GGUF file, and load it."""
        if file := choose_gguf(self):
            self.add_folder(str(file), loads=True)

    def _change_folder(self) -> None:
        if folder := choose_folder(self, self.tr("Where downloads go")):
            self.use_cache(str(folder))

    def use_cache(self, folder: str) -> None:
        """Set the folder for downloads."""
        self.cache_changed.emit(folder)

    async def _remove_quantized(self) -> None:
        try:
            freed = await self._library.remove_quantized()
        except MedusaError as error:
            self._show_problem(error_text(error))
            return
        self._show_items()
        self.status_label.setText(
            self.tr("The copies are deleted: {0} are free.").format(on_disk(freed))
        )

    def add_folder(self, folder: str, *, loads: bool = False) -> None:
        """Import a folder or a GGUF file; its row is shown and selected at once.

        Args:
            folder: Folder of the model.
            loads: Load it once it is read, if it is a model and still selected.
        """
        self._reading.append(Path(folder))
        self._show_items()
        self.table.selectRow(self.table.rowCount() - 1)
        self._start(self._import(Path(folder), loads))

    async def _import(self, folder: Path, loads: bool) -> None:
        problem = ""
        try:
            await self._state.add(folder)
        except MedusaError as error:
            problem = error_text(error)
        is_chosen = self.table.currentRow() >= len(self.rows)
        self._reading.remove(folder)
        self._show_items()
        if is_chosen:
            self._select(folder)
        if problem:
            self._show_problem(problem)
        elif loads and self._may_load(folder):
            self._load()

    def _may_load(self, folder: Path) -> bool:
        """Whether an imported item is still selected, and a model."""
        item = self.chosen
        return item is not None and item.path == folder and item.config is not None

    def _show_problem(self, problem: str) -> None:
        """Show an error below the list; an empty text hides it."""
        self.problem_label.setText(problem)
        self.problem_label.setVisible(bool(problem))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._show_problem("")
        self.tasks.start(work)
