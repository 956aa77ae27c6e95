"""Context menu of the selected conversations."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QCoreApplication, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu

from app.chat.error_board import ErrorBoard
from app.history.files import ConversationFiles
from app.history.journal import Journal
from app.history.reading import read_or_show
from app.history.sidebar import Sidebar
from app.state.documents import DocumentsState
from app.widgets.questions import ask_for_text, confirms
from medusa_core.api import ConversationInfo, Folder, History
from medusa_core.chats.conversation import new_id


class ConversationMenu(QObject):
    """Context menu of the list, with its actions.

    Attributes:
        documents: Collections of documents for folders; None for none.

    Signals:
        changed: Conversations or folders changed.
        trashed: Conversations (`tuple[str, ...]`) were moved to the trash.
        duplicated: A conversation was copied; the copy's id.
    """

    changed = Signal()
    trashed = Signal(object)
    duplicated = Signal(str)

    def __init__(
        self,
        sidebar: Sidebar,
        history: History,
        journal: Journal,
        files: ConversationFiles,
        errors: ErrorBoard,
    ) -> None:
        """Create the menu.

        Args:
            sidebar: The list with the selection.
            history: Stored conversations.
            journal: Queue of writes to it.
            files: Exports conversations.
            errors: Shows errors.
        """
        super().__init__(sidebar)
        self._sidebar, self._history, self._journal = sidebar, history, journal
        self._files, self._errors = files, errors
        self._last_trashed: tuple[str, ...] = ()
        self.documents: DocumentsState | None = None

    def popup(self, place: QPoint) -> None:
        """Open the menu at a position."""
        menu = self.menu()
        if menu.actions():
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(place)

    def menu(self) -> QMenu:
        """Return the menu of the selection; empty without one."""
        chosen = self._chosen
        menu = QMenu(self._sidebar)
        if not chosen:
            return menu
        if chosen[0].trashed_s is not None:
            menu.addAction(QCoreApplication.translate("History", "Restore"), self.restore_chosen)
            menu.addAction(
                QCoreApplication.translate("History", "Delete for good…"),
                lambda: self._delete(chosen),
            )
            return menu
        if len(chosen) == 1:
            menu.addAction(
                QCoreApplication.translate("History", "Rename…"), lambda: self.rename(chosen[0])
            )
            menu.addAction(
                QCoreApplication.translate("History", "Duplicate"),
                lambda: self.duplicate(chosen[0]),
            )
        is_pinned = all(one.is_pinned for one in chosen)
        menu.addAction(
            QCoreApplication.translate("History", "Unpin")
            if is_pinned
            else QCoreApplication.translate("History", "Pin"),
            lambda: self._pin(chosen, not is_pinned),
        )
        self._add_folders(menu, chosen)
        self._add_documents(menu, chosen)
        menu.addAction(
            QCoreApplication.translate("History", "Export…"), lambda: self._export(chosen)
        )
        menu.addSeparator()
        menu.addAction(
            QCoreApplication.translate("History", "Move to trash")
            # A click opens a conversation and goes on to the message field, where Del is another.
            + ("\tDel" if self._sidebar.list.hasFocus() else ""),
            self.trash_chosen,
        )
        return menu

    @property
    def _chosen(self) -> tuple[ConversationInfo, ...]:
        return self._sidebar.chosen

    def trash_chosen(self) -> None:
        """Move the selection to the trash; in the trash, delete it permanently."""
        chosen = self._chosen
        if chosen and chosen[0].trashed_s is not None:
            self._delete(chosen)
        elif chosen:
            ids = tuple(one.id for one in chosen)
            self._journal.write(lambda h: h.trash(ids))
            self._last_trashed = ids
            self.trashed.emit(ids)
            self._sidebar.show_notice(_trashed_words(chosen))

    def restore_chosen(self) -> None:
        """Restore the selection from the trash."""
        ids = tuple(one.id for one in self._chosen)
        self._journal.write(lambda h: h.restore(ids))
        self.changed.emit()

    def undo_trash(self) -> None:
        """Restore what was last moved to the trash."""
        ids, self._last_trashed = self._last_trashed, ()
        if ids:
            self._journal.write(lambda h: h.restore(ids))
            self.changed.emit()
            self._sidebar.select(ids[0])
            self._sidebar.show_notice(
                QCoreApplication.translate("History", "It is back.")
                if len(ids) == 1
                else QCoreApplication.translate("History", "They are back.")
            )

    def empty_trash(self) -> None:
        """Empty the trash after a confirmation."""
        self._delete(None)

    def rename(self, one: ConversationInfo) -> None:
        """Ask for a new title."""
        title = ask_for_text(
            self._sidebar,
            QCoreApplication.translate("History", "Rename"),
            QCoreApplication.translate("History", "Title"),
            one.title,
        )
        if title:
            self._journal.write(lambda h: h.rename(one.id, title))
            self.changed.emit()

    def duplicate(self, one: ConversationInfo) -> None:
        """Copy a conversation with all its branches, and show the copy."""
        copy_id = new_id()
        title = QCoreApplication.translate("History", "{0} (copy)").format(one.title)
        self._journal.write(lambda h: h.duplicate(one.id, copy_id, title))
        self.changed.emit()
        if not self._journal.is_waiting:
            self.duplicated.emit(copy_id)

    def _add_folders(self, menu: QMenu, chosen: tuple[ConversationInfo, ...]) -> None:
        into = menu.addMenu(QCoreApplication.translate("History", "Move to folder"))
        for folder in read_or_show(self._history.folders, self._errors) or ():
            into.addAction(folder.name, partial(self._move, chosen, folder))
        into.addAction(
            QCoreApplication.translate("History", "New folder…"), lambda: self._move_to_new(chosen)
        )
        if any(one.folder_id is not None for one in chosen):
            into.addSeparator()
            into.addAction(
                QCoreApplication.translate("History", "No folder"), lambda: self._move(chosen, None)
            )

    def _add_documents(self, menu: QMenu, chosen: tuple[ConversationInfo, ...]) -> None:
        """Add the collections of documents that the folder of the selection has."""
        folder_ids = {one.folder_id for one in chosen}
        folders = read_or_show(self._history.folders, self._errors) or ()
        folder = next((one for one in folders if {one.id} == folder_ids), None)
        documents = self.documents
        if folder is None or documents is None or not documents.collections:
            return
        read = partial(self._history.folder_collections, folder.id)
        attached = read_or_show(read, self._errors) or ()
        title = QCoreApplication.translate("History", "Documents of the folder “{0}”")
        inner = menu.addMenu(title.format(folder.name.replace("&", "&&")))
        for info in documents.collections:
            entry = inner.addAction(info.name.replace("&", "&&"))
            entry.setCheckable(True)
            entry.setChecked(info.id in attached)
            others = tuple(one for one in attached if one != info.id)
            changed = others if info.id in attached else (*others, info.id)
            entry.triggered.connect(partial(self._set_documents, folder.id, changed))

    def _set_documents(
        self, folder_id: str, collection_ids: tuple[str, ...], _is_checked: bool
    ) -> None:
        self._journal.write(lambda h: h.set_folder_collections(folder_id, collection_ids))
        self.changed.emit()

    def _export(self, chosen: tuple[ConversationInfo, ...]) -> None:
        name = chosen[0].title if len(chosen) == 1 else "conversations"
        self._files.ask_to_export([one.id for one in chosen], name)

    def _pin(self, chosen: tuple[ConversationInfo, ...], is_pinned: bool) -> None:
        for one in chosen:
            self._journal.write(partial(_pin, one.id, is_pinned))
        self.changed.emit()

    def _move(self, chosen: tuple[ConversationInfo, ...], folder: Folder | None) -> None:
        folder_id = None if folder is None else folder.id
        for one in chosen:
            self._journal.write(partial(_move, one.id, folder_id))
        self.changed.emit()

    def _move_to_new(self, chosen: tuple[ConversationInfo, ...]) -> None:
        name = ask_for_text(
            self._sidebar,
            QCoreApplication.translate("History", "New folder"),
            QCoreApplication.translate("History", "Name"),
        )
        if name:
            add = partial(self._history.add_folder, name)
            folder = read_or_show(add, self._errors)
            if folder is not None:
                self._move(chosen, folder)

    def _delete(self, chosen: tuple[ConversationInfo, ...] | None) -> None:
        """Delete permanently after a confirmation, whose default is No."""
        num = (
            QCoreApplication.translate("History", "everything in the trash")
            if chosen is None
            else _count(chosen)
        )
        copies = self._history.set_aside()
        text = QCoreApplication.translate(
            "History", " Damaged copies of the history, which may hold it, go too ({0})."
        ).format(len(copies))
        question = QCoreApplication.translate("History", "Delete {0} for good?").format(num)
        more = QCoreApplication.translate("History", "It can't be brought back.")
        if confirms(self._sidebar, question, more + (text if copies else "")):
            ids = None if chosen is None else tuple(one.id for one in chosen)
            self._journal.write(lambda h: h.empty_trash(ids))
            if copies:
                read_or_show(self._history.remove_set_aside, self._errors)
            self.changed.emit()


def _pin(conversation_id: str, is_pinned: bool, history: History) -> None:
    history.pin(conversation_id, is_pinned)


def _move(conversation_id: str, folder_id: str | None, history: History) -> None:
    history.move(conversation_id, folder_id)


def _count(chosen: tuple[ConversationInfo, ...]) -> str:
    return (
        f"“{chosen[0].title}”"
        if len(chosen) == 1
        else QCoreApplication.translate("History", "{0} conversations").format(len(chosen))
    )


def _trashed_words(chosen: tuple[ConversationInfo, ...]) -> str:
    """Say that conversations are in the trash, and how to undo that."""
    undo = QKeySequence(QKeySequence.StandardKey.Undo).toString(
        QKeySequence.SequenceFormat.NativeText
    )
    if len(chosen) == 1:
        words = QCoreApplication.translate("History", "“{0}” is in the trash. {1} brings it back.")
        return words.format(chosen[0].title, undo)
    words = QCoreApplication.translate(
        "History", "{0} conversations are in the trash. {1} brings them back."
    )
    return words.format(len(chosen), undo)
