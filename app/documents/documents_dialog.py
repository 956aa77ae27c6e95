"""The dialog of documents: collections, their files, and the embedding model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.documents.words import cells, embedding_models, model_name, summary
from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.state.documents import DocumentsState
from app.state.library import LibraryState
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key
from app.widgets.dropping import accept_copy
from app.widgets.explain import explain
from app.widgets.file_dialogs import choose_files, choose_folder
from app.widgets.live_label import LiveLabel
from app.widgets.qt_text import with_visible_controls
from app.widgets.questions import ask_for_text, confirms
from app.widgets.table import RowTable
from medusa_core.api import CollectionInfo, DocumentInfo, DocumentState, IndexProgress

_MOST_ROWS = 500  # a table measures all of its cells
_WORST_FIRST = (
    DocumentState.FAILED,
    DocumentState.CHANGED,
    DocumentState.SKIPPED,
    DocumentState.INDEXED,
)


class DocumentsDialog(QDialog):
    """Collections on one side, and the files of the selected one on the other.

    Attributes:
        collections: The collections.
        roots: Files and folders that were added to the selected collection.
        table: What was read of them.
        summary_label: Size of the selected collection.
        progress: Progress of reading it.
        model_box: The embedding model.
        problem_label: The last error.

    Signals:
        model_chosen: The user selects an embedding model: its path; empty for none.
    """

    model_chosen = Signal(str)

    def __init__(
        self,
        documents: DocumentsState,
        library: LibraryState,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self.resize(appearance.scale.px(60), appearance.scale.px(38))
        self._documents, self._library = documents, library
        self._shown: tuple[CollectionInfo, ...] = ()
        self.collections = QListWidget()
        self.collections.setAccessibleName(self.tr("Collections"))
        self.new_button = QPushButton(self.tr("New…"))
        self.rename_button = QPushButton(self.tr("Rename…"))
        self.remove_button = QPushButton(self.tr("Remove…"))
        self.summary_label = LiveLabel()
        self.roots = QListWidget()
        self.roots.setAccessibleName(self.tr("Files and folders"))
        self.files_button = QPushButton(self.tr("Add files…"))
        self.folder_button = QPushButton(self.tr("Add folder…"))
        self.root_button = QPushButton(self.tr("Take out"))
        explain(self.root_button, self.tr("Take it out of the collection; the file itself stays."))
        self.update_button = QPushButton(self.tr("Read again"))
        explain(self.update_button, self.tr("Read what is new or has changed."))
        self.stop_button = QPushButton(self.tr("Stop"))
        titles = (self.tr("Document"), self.tr("State"), self.tr("Size"))
        self.table = RowTable(self.tr("Documents"), titles)
        self.more_label = QLabel()
        self.more_label.hide()
        self.progress = QProgressBar()
        self.progress.setAccessibleName(self.tr("Reading documents"))
        self.progress_label = QLabel()
        self.progress_label.setTextFormat(Qt.TextFormat.PlainText)
        self.model_box = QComboBox()
        self.model_box.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        explain(
            self.model_box,
            self.tr(
                "A small model that finds passages by their meaning, too. It is loaded beside the "
                "chat's model, and then all passages are embedded, which takes a while."
            ),
        )
        self.problem_label = LiveLabel()
        self.problem_label.setObjectName("problem")
        self.problem_label.hide()
        self._build(appearance)
        self._connect()
        close_by_key(self)
        self._show_collections()

    @property
    def chosen(self) -> CollectionInfo | None:
        """The selected collection."""
        row = self.collections.currentRow()
        return self._shown[row] if 0 <= row < len(self._shown) else None

    def refresh(self) -> None:
        """List everything as it is now."""
        self.problem_label.hide()
        self._documents.start(self._documents.refresh())
        if self._library.open() is not None:
            self._documents.start(self._library.refresh())
        self._show_models()

    def add(self, paths: Sequence[Path]) -> None:
        """Add files and folders to the selected collection, or to a new one without any."""
        if not paths:
            return
        chosen = self.chosen
        if chosen is not None:
            self._documents.start(self._documents.add(chosen.id, paths))
            return
        only = paths[0] if len(paths) == 1 else paths[0].parent
        self._documents.start(self._create(only.stem or self.tr("Documents"), paths))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        urls = event.mimeData().urls()
        if accept_copy(event):
            self.add([Path(url.toLocalFile()) for url in urls if url.isLocalFile()])

    def _build(self, appearance: Appearance) -> None:
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.collections, 1)
        for button in (self.new_button, self.rename_button, self.remove_button):
            column.addWidget(button)
        self._right = QWidget()
        column = QVBoxLayout(self._right)
        column.setContentsMargins(appearance.scale.px(0.6), 0, 0, 0)
        column.addWidget(self.summary_label)
        self.roots.setMaximumHeight(appearance.scale.px(6))
        column.addWidget(self.roots)
        for row in (
            (self.files_button, self.folder_button, self.root_button),
            (self.update_button, self.stop_button),
        ):
            buttons = QHBoxLayout()
            for one in row:
                buttons.addWidget(one)
            buttons.addStretch(1)
            column.addLayout(buttons)
        column.addWidget(self.progress)
        column.addWidget(self.progress_label)
        column.addWidget(self.table, 1)
        column.addWidget(self.more_label)
        split = QSplitter()
        split.setChildrenCollapsible(False)
        split.addWidget(left)
        split.addWidget(self._right)
        split.setStretchFactor(1, 1)
        intro = QLabel(
            self.tr(
                "Answers can be given from your own files: add them to a collection, and attach it "
                "to a chat with the button beside the message. Files are read on this computer; "
                "only a model of another machine gets the passages that are read for it."
            )
        )
        intro.setWordWrap(True)
        form = QFormLayout()
        form.addRow(self.tr("Embedding model"), self.model_box)
        inner = QWidget()
        outer = QVBoxLayout(inner)
        outer.addWidget(intro)
        outer.addWidget(split, 1)
        outer.addLayout(form)
        outer.addWidget(self.problem_label)
        area = QScrollArea()
        area.setWidget(inner)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(area)

    def _connect(self) -> None:
        state = self._documents
        state.listed.connect(self._show_collections)
        state.updating_changed.connect(lambda _id: self._show_progress(None))
        state.progressed.connect(self._take_progress)
        state.failed.connect(self._show_problem)
        self._library.listed.connect(self._show_models)
        self.collections.currentRowChanged.connect(lambda _row: self._show_chosen())
        self.roots.currentRowChanged.connect(lambda _row: self._show_buttons())
        self.new_button.clicked.connect(self._new)
        self.rename_button.clicked.connect(self._rename)
        self.remove_button.clicked.connect(self._remove)
        self.files_button.clicked.connect(
            lambda: self.add(choose_files(self, self.tr("Add files")))
        )
        self.folder_button.clicked.connect(self._add_folder)
        self.root_button.clicked.connect(self._take_out)
        update = partial(state.update, keeps_missing=False)
        self.update_button.clicked.connect(lambda: self._on_chosen(update))
        self.stop_button.clicked.connect(lambda: self._on_chosen(state.stop))
        self.model_box.activated.connect(self._choose_model)

    # What the user does ---------------------------------------------------------------------------

    def _new(self) -> None:
        name = ask_for_text(self, self.tr("New collection"), self.tr("Name"))
        if name:
            self._documents.start(self._create(name, ()))

    async def _create(self, name: str, paths: Sequence[Path]) -> None:
        created = await self._documents.create(name, paths)
        self._select(created.id)

    def _rename(self) -> None:
        chosen = self.chosen
        if chosen is None:
            return
        name = ask_for_text(self, self.tr("Rename"), self.tr("Name"), chosen.name)
        if name:
            self._documents.start(self._documents.rename(chosen.id, name))

    def _remove(self) -> None:
        chosen = self.chosen
        if chosen is None:
            return
        question = self.tr("Remove “{0}”?").format(chosen.name)
        more = self.tr(
            "Everything that was read for it is erased. The files themselves stay, and so do the "
            "passages in earlier chats."
        )
        if confirms(self, question, more):
            self._documents.start(self._documents.remove(chosen.id))

    def _add_folder(self) -> None:
        folder = choose_folder(self, self.tr("Add folder"))
        if folder is not None:
            self.add([folder])

    def _take_out(self) -> None:
        chosen, row = self.chosen, self.roots.currentRow()
        if chosen is not None and 0 <= row < len(chosen.paths):
            self._documents.start(self._documents.remove_path(chosen.id, chosen.paths[row]))

    def _on_chosen(self, act: Callable[[str], None]) -> None:
        if (chosen := self.chosen) is not None:
            act(chosen.id)

    def _choose_model(self) -> None:
        path = self.model_box.currentData()
        if path is None:  # another one
            files = choose_files(self, self.tr("Embedding model"), self.tr("Models (*.gguf)"))
            if not files:
                self._show_models()
                return
            path = str(files[0])
        self.model_chosen.emit(path)
        self._show_models()
        self._show_chosen()

    # What is shown --------------------------------------------------------------------------------

    def _select(self, collection_id: str) -> None:
        ids = [one.id for one in self._shown]
        if collection_id in ids:
            self.collections.setCurrentRow(ids.index(collection_id))

    def _show_collections(self) -> None:
        chosen = self.chosen
        self._shown = self._documents.collections
        self.collections.blockSignals(True)
        self.collections.clear()
        self.collections.addItems([with_visible_controls(one.name) for one in self._shown])
        rows = [row for row, one in enumerate(self._shown) if chosen and one.id == chosen.id]
        self.collections.setCurrentRow(rows[0] if rows else 0 if self._shown else -1)
        self.collections.blockSignals(False)
        self._show_chosen()

    def _show_chosen(self) -> None:
        chosen = self.chosen
        row = self.roots.currentRow()
        self.roots.clear()
        if chosen is None:
            self.summary_label.setText(self.tr("Make a collection, or drop files here."))
            self._show_documents("", ())
        else:
            self.summary_label.setText(summary(chosen, self._documents.embedding_model))
            self.roots.addItems([with_visible_controls(str(path)) for path in chosen.paths])
            self.roots.setCurrentRow(min(row, len(chosen.paths) - 1))
            self._documents.start(self._list_documents(chosen.id))
        self._show_progress(None)

    async def _list_documents(self, collection_id: str) -> None:
        found = await self._documents.documents(collection_id)
        self._show_documents(collection_id, found)

    def _show_documents(self, collection_id: str, found: Sequence[DocumentInfo]) -> None:
        chosen = self.chosen
        if chosen is not None and chosen.id != collection_id:
            return
        listed = sorted(found, key=lambda one: _WORST_FIRST.index(one.state))
        self.table.show_rows([cells(one) for one in listed[:_MOST_ROWS]])
        for row, one in enumerate(listed[:_MOST_ROWS]):
            item = self.table.item(row, 0)
            if item is not None:
                item.setToolTip(with_visible_controls(str(one.path)))
        num_more = max(0, len(listed) - _MOST_ROWS)
        self.more_label.setText(self.tr("{0} more").format(f"{Number(num_more):,}"))
        self.more_label.setVisible(num_more > 0)

    def _take_progress(self, collection_id: str, progress: IndexProgress) -> None:
        if (chosen := self.chosen) is not None and chosen.id == collection_id:
            self._show_progress(progress)

    def _show_progress(self, progress: IndexProgress | None) -> None:
        is_updating = self.chosen is not None and self._documents.is_updating(self.chosen.id)
        self.progress.setVisible(is_updating)
        self.progress_label.setVisible(is_updating)
        if progress is None:
            self.progress.setRange(0, 0)
            self.progress_label.setText(self.tr("Looking for files…"))
        else:
            self.progress.setRange(0, max(1, progress.num_total))
            self.progress.setValue(progress.num_done)
            words = (
                self.tr("{0} of {1} passages embedded")
                if progress.is_embedding
                else self.tr("{0} of {1} files read")
            )
            counts = words.format(
                f"{Number(progress.num_done):,}", f"{Number(progress.num_total):,}"
            )
            name = with_visible_controls(progress.name)
            self.progress_label.setText(f"{counts} · {name}" if name else counts)
        self._show_buttons()

    def _show_buttons(self) -> None:
        chosen = self.chosen
        is_updating = chosen is not None and self._documents.is_updating(chosen.id)
        for button in (self.rename_button, self.remove_button):
            button.setEnabled(chosen is not None)
        self.root_button.setEnabled(self.roots.currentRow() >= 0 and not is_updating)
        has_files = chosen is not None and bool(chosen.paths)
        self.update_button.setEnabled(has_files and not is_updating)
        self.stop_button.setEnabled(is_updating)

    def _show_models(self) -> None:
        """Offer the embedding models that are installed, and the chosen one."""
        current, installed = self._documents.embedding_model, self._library.installed
        found = {one.path: one.title or one.name for one in embedding_models(installed)}
        if current is not None:
            found.setdefault(current, model_name(current, installed))
        self.model_box.clear()
        self.model_box.addItem(self.tr("None: find by words alone"), "")
        for path, name in found.items():
            self.model_box.addItem(with_visible_controls(name), str(path))
        self.model_box.addItem(self.tr("Another file…"), None)
        self.model_box.setCurrentIndex(
            max(0, self.model_box.findData("" if current is None else str(current)))
        )

    def _show_problem(self, message: str, hint: str) -> None:
        text = " ".join(filter(None, (engine_text(message), engine_text(hint))))
        self.problem_label.setText(text)
        self.problem_label.show()
