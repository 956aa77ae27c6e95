"""Sidebar with the user's conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from PySide6.QtCore import QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QListView,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.history.list_delegate import ListDelegate
from app.history.list_model import ROW, ListModel, ListRow
from app.theme.appearance import Appearance
from app.widgets.live_label import LiveLabel
from app.widgets.search_edit import SearchEdit
from medusa_core.api import ConversationInfo

_SEARCH_AFTER_MS = 120
WIDTH_EM = 17


class ConversationListView(QListView):
    """The list.

    Signals:
        delete_pressed: The user presses Delete.
        undo_pressed: The user presses the keys for Undo.
        opened: The user opens a row by click or Enter; its index.
    """

    delete_pressed = Signal()
    undo_pressed = Signal()
    opened = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("conversationList")
        self.setAccessibleName(self.tr("Conversations"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.clicked.connect(lambda index: self._open(index.row()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_pressed.emit()
        elif event.matches(QKeySequence.StandardKey.Undo):
            self.undo_pressed.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._open(self.currentIndex().row())
        else:
            super().keyPressEvent(event)

    def _open(self, place: int) -> None:
        if place >= 0 and len(self.selectedIndexes()) == 1:
            self.opened.emit(place)


class Sidebar(QWidget):
    """Search, list of conversations, and trash.

    Attributes:
        search_edit: Search words.
        list: Conversations, or search results.
        model: Model of the list.
        trash_button: Shows the trash.
        empty_button: Empties the trash.
        more_button: Import and export.
        notice_label: Notices, such as that nothing was found.

    Signals:
        search_changed: The search words changed.
        opened: The user opens a `ConversationInfo` or `SearchHit`.
        menu_requested: The user opens the menu of the selection; its position.
        trash_requested: The user moves the selection to the trash.
        undo_requested: The user undoes the last move to the trash.
        trash_shown: The user shows or leaves the trash.
        empty_requested: The user empties the trash.
        new_requested: The user starts a new conversation.
    """

    search_changed = Signal(str)
    opened = Signal(object)
    menu_requested = Signal(QPoint)
    trash_requested = Signal()
    undo_requested = Signal()
    trash_shown = Signal(bool)
    empty_requested = Signal()
    new_requested = Signal()

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self.setObjectName("sidebar")
        self._appearance = appearance
        self.model = ListModel()
        self.list = ConversationListView()
        self.list.setModel(self.model)
        self._delegate = ListDelegate(self.model, appearance)
        self.list.setItemDelegate(self._delegate)
        self.search_edit = SearchEdit(self.tr("Search conversations"))
        self.new_button = _tool(self.tr("New chat"), self.tr("New chat (Ctrl+N)"))
        self.trash_button = _tool(self.tr("Trash"), self.tr("Show the trash"))
        self.trash_button.setCheckable(True)
        self.more_button = _tool(self.tr("More"), self.tr("Import and export"))
        self.more_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.empty_button = QPushButton(self.tr("Empty trash…"))
        self.empty_button.hide()
        self.notice_label = LiveLabel()
        self.notice_label.setObjectName("sidebarNotice")
        self.notice_label.hide()
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_SEARCH_AFTER_MS)
        self._build()
        self._connect()
        self.restyle()

    @property
    def chosen(self) -> tuple[ConversationInfo, ...]:
        """The selected conversations."""
        rows = (index.data(ROW) for index in self.list.selectedIndexes())
        return tuple(row for row in rows if isinstance(row, ConversationInfo))

    def show_rows(self, rows: tuple[ListRow, ...], notice: str = "") -> None:
        """Show rows, or a notice if there are none."""
        self.model.show(rows)
        self.show_notice(notice)

    @contextmanager
    def keeping_place(self) -> Iterator[None]:
        """Keep selection and scroll position while the rows are replaced."""
        chosen, current = [one.id for one in self.chosen], self.list.currentIndex().data(ROW)
        scrolled = self.list.verticalScrollBar().value()
        yield
        if chosen:
            self._select(chosen)
        if isinstance(current, ConversationInfo):
            index = self.model.index(self.model.place_of(current.id))
            selection = self.list.selectionModel()
            selection.setCurrentIndex(index, selection.SelectionFlag.NoUpdate)
        self.list.verticalScrollBar().setValue(scrolled)

    def show_notice(self, notice: str) -> None:
        """Show a notice under the list; an empty text hides it."""
        self.notice_label.setText(notice)
        self.notice_label.setVisible(bool(notice))

    def select(self, conversation_id: str) -> None:
        """Select the open conversation."""
        self._select([conversation_id])
        place = self.model.place_of(conversation_id)
        if place >= 0:
            self.list.setCurrentIndex(self.model.index(place))

    def _select(self, conversation_ids: Sequence[str]) -> None:
        """Select exactly these conversations, if they are listed."""
        selection = self.list.selectionModel()
        selection.clearSelection()
        for name in conversation_ids:
            place = self.model.place_of(name)
            if place >= 0:
                selection.select(self.model.index(place), selection.SelectionFlag.Select)

    def search(self) -> None:
        """Focus the search field."""
        self.show()
        self.search_edit.setFocus()
        self.search_edit.selectAll()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, muted = self._appearance.scale, self._appearance.theme.muted
        self._column.setContentsMargins(scale.px(0.6), scale.px(0.6), scale.px(0.3), scale.px(0.6))
        self._column.setSpacing(scale.px(0.5))
        icons = (
            (self.new_button, "plus"),
            (self.trash_button, "trash"),
            (self.more_button, "dots"),
        )
        for button, icon in icons:
            button.setIcon(self._appearance.icon(icon, muted, 1.1))
            button.setIconSize(QSize(scale.px(1.1), scale.px(1.1)))
        self.setMinimumWidth(scale.px(11))
        self.model.layoutChanged.emit()

    def _build(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self.search_edit, 1)
        top.addWidget(self.new_button)
        bottom = QHBoxLayout()
        bottom.addWidget(self.trash_button)
        bottom.addWidget(self.empty_button)
        bottom.addStretch(1)
        bottom.addWidget(self.more_button)
        self._column = column = QVBoxLayout(self)
        column.addLayout(top)
        column.addWidget(self.list, 1)
        column.addWidget(self.notice_label)
        column.addLayout(bottom)

    def _connect(self) -> None:
        self.search_edit.textChanged.connect(lambda _: self._pause.start())
        self._pause.timeout.connect(lambda: self.search_changed.emit(self.search_edit.text()))
        self.list.opened.connect(lambda place: self.opened.emit(self.model.rows[place]))
        self.list.delete_pressed.connect(self.trash_requested)
        self.list.undo_pressed.connect(self.undo_requested)
        self.list.customContextMenuRequested.connect(
            lambda at: self.menu_requested.emit(self.list.viewport().mapToGlobal(at))
        )
        self.new_button.clicked.connect(self.new_requested)
        self.trash_button.toggled.connect(self._show_trash)
        self.empty_button.clicked.connect(self.empty_requested)

    def _show_trash(self, is_shown: bool) -> None:
        self.empty_button.setVisible(is_shown)
        self.trash_button.setToolTip(
            self.tr("Back to the conversations") if is_shown else self.tr("Show the trash")
        )
        self.trash_shown.emit(is_shown)


def _tool(name: str, tooltip: str) -> QToolButton:
    button = QToolButton()
    button.setProperty("class", "action")
    button.setAccessibleName(name)
    button.setToolTip(tooltip)
    return button
