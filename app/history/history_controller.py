"""Saves conversations to the history during the chat, and controls the list of conversations."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal

from app.chat.calls import AnswerRun
from app.chat.controller import ChatController
from app.history.chat_title import title_of
from app.history.conversation_menu import ConversationMenu
from app.history.files import ConversationFiles
from app.history.grouping import rows_of
from app.history.journal import Journal
from app.history.reading import read_or_show
from app.history.sidebar import Sidebar
from app.i18n.engine_texts import engine_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.state.chat import Draft
from app.state.documents import DocumentsState
from app.widgets.matching import (
    Entry,
    matching,
)
from medusa_core.api import (
    ConversationInfo,
    History,
    SearchHit,
    open_conversation,
    state_of,
    stored_answer,
    stored_prompt,
    stored_prompts,
)
from medusa_core.chats.conversation import (
    Answer,
    Conversation,
    Turn,
)
from medusa_core.chats.rounds import RoundCall
from medusa_core.errors import StorageError

T = TypeVar("T")

SAVE_MS = 500
_MOST_HITS = 60
_MOST_IN_PALETTE = 500
NOT_SAVED = QT_TRANSLATE_NOOP(
    "History",
    "What you write and receive stays in this window, and is saved once that is possible.",
)


log = logging.getLogger(__name__)

_LOOK_MS = 1_000


class HistoryWatch(QObject):
    """Checks the database once a second, which takes about 10 µs.

    Signals:
        changed: Another process has written.
    """

    changed = Signal()

    def __init__(self, history: History, parent: QObject) -> None:
        super().__init__(parent)
        self._history = history
        self._timer = QTimer(self)
        self._timer.setInterval(_LOOK_MS)
        self._timer.timeout.connect(self.look)
        if history.is_saved:
            self._timer.start()

    def look(self) -> None:
        """Emit `changed` if another process has written since the last call."""
        try:
            has_changed = self._history.changed_elsewhere()
        except StorageError as error:
            log.warning("what others write can't be seen: %s", error.message)
            return
        if has_changed:
            self.changed.emit()

    def stop(self) -> None:
        """Stop, before the history is closed."""
        self._timer.stop()


class HistoryController(QObject):
    """Controller of history and list of conversations.

    Attributes:
        history: Stored conversations.
        journal: Queue of writes to it.
        files: Export and import.
        sidebar: View of the list.

    Signals:
        trashed: Conversations (`tuple[str, ...]`) were moved to the trash.
        folder_documents_changed: A folder has other collections of documents, or a conversation
            another folder.
    """

    trashed = Signal(object)
    folder_documents_changed = Signal()

    def __init__(
        self,
        chat: ChatController,
        sidebar: Sidebar,
        history: History,
    ) -> None:
        """Start saving.

        Args:
            chat: Controller of the chat.
            sidebar: View of the list.
            history: Stored conversations.
        """
        super().__init__()
        self._chat, self.sidebar, self.history = chat, sidebar, history
        self._saved: dict[str, Draft] = {}  # as the history has them, by draft id
        self.journal = Journal(history)
        self._known: set[str] = set()
        self._listed: set[str] = set()
        self._num_saved: dict[str, int] = {}  # steps of answers under way
        self.files = ConversationFiles(sidebar, history)
        self._watch = HistoryWatch(history, self)
        self._merged: ConversationInfo | None = None
        self._menu = ConversationMenu(sidebar, history, self.journal, self.files, chat.errors)
        sidebar.more_button.setMenu(self.files.menu())
        self._save = QTimer(self)
        self._save.setInterval(SAVE_MS)
        self._save.timeout.connect(self.save)
        self._connect()
        self.refresh()
        self._show_draft("")
        if history.notice:
            chat.errors.show_error(history.notice, "")

    # What is kept ---------------------------------------------------------------------------------

    def save(self) -> None:
        """Save new tokens."""
        for answer in self._chat.state.pending_answers:
            if not answer.content.is_finished:
                self._save_steps(answer)
        if not self._chat.state.pending_answers:
            self._save.stop()

    def keep_drafts(self) -> None:
        """Save the unsent messages."""
        for draft_id, draft in self._chat.state.drafts.items():
            self._save_draft(draft_id, draft)

    def _save_draft(self, draft_id: str, draft: Draft) -> None:
        saved = self._saved.get(draft_id, Draft())
        self._saved[draft_id] = draft
        if draft.text != saved.text:
            self.journal.write(lambda h: h.set_draft(draft_id, draft.text))
        if draft.attachments != saved.attachments:  # which may be long
            self.journal.write(lambda h: h.set_draft_files(draft_id, draft.attachments))

    def close(self) -> None:
        """Save what is unsaved, and close the history."""
        self._watch.stop()
        self.save()
        self.keep_drafts()
        self.journal.close()

    def _prompt_sent(self, conversation: Conversation, turn: Turn) -> None:
        name = conversation.session_id
        write = self.journal.write
        if name not in self._known:
            self._known.add(name)
            title = title_of(turn.prompt.text)
            write(lambda h: h.begin(name, title))
            if collections := conversation.collections:
                write(lambda h: h.set_collections(name, collections))
            self._save_draft("", Draft())
        if turn.prompt.answers == [turn.answer]:
            prompt = stored_prompt(conversation, turn.prompt)
            write(lambda h: h.add_prompt(prompt))
        answer = stored_answer(conversation, turn)
        write(lambda h: h.begin_answer(answer))
        self.keep_drafts()
        self._save.start()
        self.refresh()

    def _passages_found(self, conversation: Conversation, turn: Turn) -> None:
        found = (turn.prompt.id, turn.prompt.passages)
        self.journal.write(lambda h: h.set_passages(*found))

    def _collections_changed(self, conversation: Conversation) -> None:
        """Save the collections of a conversation, once it is saved itself."""
        if conversation.session_id in self._known:
            changed = (conversation.session_id, conversation.collections)
            self.journal.write(lambda h: h.set_collections(*changed))

    def inherited_collections(self, conversation_id: str) -> tuple[str, ...]:
        """Return the ids of the collections that a conversation has from its folder."""
        if conversation_id not in self._known:
            return ()

        def read() -> tuple[str, ...]:
            folder_id = self.history.conversation(conversation_id).folder_id
            return self.history.folder_collections(folder_id)

        return self._read(read) or ()

    def offer_documents(self, documents: DocumentsState) -> None:
        """Offer collections of documents to folders of conversations."""
        self._menu.documents = documents

    def _round_begun(self, conversation: Conversation, turn: Turn) -> None:
        """Add the next round of an answer."""
        answer = stored_answer(conversation, turn)
        self.journal.write(lambda h: h.begin_answer(answer))
        self._save_leaf(conversation)
        self._save.start()

    def _call_changed(self, run: AnswerRun, place: int, call: RoundCall) -> None:
        """Save the state of a call."""
        round_id = run.turn.answer.id
        self.journal.write(lambda h: h.save_call(round_id, place, call))

    def _is_requested(self, round_id: str, place: int) -> bool:
        """Whether a call still waits; also if the history can't be read."""
        return self._read(lambda: self.history.is_requested(round_id, place)) is not False

    def _save_steps(self, answer: Answer) -> None:
        """Save the steps of an answer that aren't saved yet."""
        num_saved = self._num_saved.get(answer.id, 0)
        if steps := tuple(answer.content.steps[num_saved:]):
            self._num_saved[answer.id] = num_saved + len(steps)
            self.journal.write(lambda h: h.append_steps(answer.id, steps))

    def _save_model(self, answer: Answer) -> None:
        named = (answer.id, answer.model, answer.model_key)
        self.journal.write(lambda h: h.name_model(*named))

    def _reasoning_known(self, answer: Answer) -> None:
        known = (answer.id, answer.content.reasoning, answer.content.begins_inside)
        self.journal.write(lambda h: h.set_reasoning(*known))

    def _ended(self, conversation: Conversation, turn: Turn) -> None:
        answer = turn.answer
        self._save_steps(answer)
        self._num_saved.pop(answer.id, None)
        spans = tuple(answer.content.spans)
        state, calls = state_of(answer), answer.last.calls
        ended = (answer.id, answer.text, answer.done, state, spans, calls)
        self.journal.write(lambda h: h.finish_answer(*ended))
        self.refresh()

    def _save_leaf(self, conversation: Conversation) -> None:
        """Save which branch of the conversation is shown."""
        name, leaf = conversation.session_id, conversation.leaf_id
        if leaf:
            self.journal.write(lambda h: h.set_leaf(name, leaf))

    def _save_removal(self, conversation: Conversation, turn: Turn) -> None:
        self._ended(conversation, turn)
        self._save_leaf(conversation)

    # What is shown --------------------------------------------------------------------------------

    def refresh(self) -> None:
        """List the current conversations, or the search results."""
        text, history = self.sidebar.search_edit.text().strip(), self.history
        is_trash = self.sidebar.trash_button.isChecked()
        if text and not is_trash:
            hits = self._read(lambda: history.search(text, _MOST_HITS)) or ()
            self.sidebar.show_rows(
                hits, "" if hits else self.tr("Nothing was found for “{0}”.").format(text)
            )
            return
        found = self._read(lambda: history.conversations(in_trash=is_trash)) or ()
        if is_trash:
            self.sidebar.show_rows(found, "" if found else self.tr("The trash is empty."))
            return
        rows = rows_of(found, self._read(history.folders) or (), datetime.now())
        self.sidebar.show_rows(
            rows, "" if rows else self.tr("Your conversations will be listed here.")
        )
        self._known.update(one.id for one in found)
        self._listed.update(one.id for one in found)
        self._mark()

    def open(self, row: object) -> None:
        """Open a conversation of the list, or the message of a search result."""
        if isinstance(row, ConversationInfo):
            self.open_conversation(row.id)
        elif isinstance(row, SearchHit):
            self.open_conversation(row.conversation_id, row.message_id)

    def entries(self, words: str) -> tuple[Entry, ...]:
        """Return palette entries of conversations, the newest first."""
        if not words.strip():
            return ()
        found = self._read(lambda: self.history.conversations(limit=_MOST_IN_PALETTE)) or ()
        entries = [
            Entry(one.title, partial(self.open_conversation, one.id), kind=self.tr("Conversation"))
            for one in found
        ]
        return matching(words, entries)

    def open_last(self) -> None:
        """Open the conversation with the newest message."""
        last = self._read(lambda: self.history.conversations(limit=1)) or ()
        for one in last:
            self.open_conversation(one.id)

    def open_conversation(self, conversation_id: str, message_id: str = "") -> None:
        """Open a conversation at its last position, or at a message."""
        if conversation_id != self._shown_id:
            conversation = self._read(lambda: open_conversation(self.history, conversation_id))
            if conversation is None:
                return
            self._chat.state.stored.add(conversation_id)
            self._chat.open(conversation)
            if self._chat.conversation is not conversation:  # an answer of it is being written
                self._merge_shown()
        if message_id:
            self._chat.show_message(message_id)

    def forget(self, conversation_ids: tuple[str, ...]) -> None:
        """Close conversations that were moved to the trash."""
        self._listed.difference_update(conversation_ids)
        self.trashed.emit(conversation_ids)
        for name in conversation_ids:
            self._chat.forget(name)
        self.refresh()

    def _apply_external_changes(self) -> None:
        """Show changes by another process."""
        self.journal.checkpoint_later()
        with self.sidebar.keeping_place():
            self.refresh()
        there = self._read(self.history.conversations)
        if there is None or self.journal.is_waiting:
            return
        if gone := self._listed.difference(one.id for one in there):
            self.forget(tuple(gone))
        shown = next((one for one in there if one.id == self._shown_id), None)
        if shown is not None and shown != self._merged:
            self._merged = shown
            self._merge_shown()

    def _merge_shown(self) -> None:
        prompts = self._read(lambda: stored_prompts(self.history, self._shown_id, only_ended=True))
        self._chat.merge(prompts or ())

    @property
    def _shown_id(self) -> str:
        return self._chat.conversation.session_id

    def _show_conversation(self, previous: Conversation) -> None:
        state = self._chat.state
        draft_id = state.draft_id(previous.session_id)
        self._save_draft(draft_id, state.drafts.get(draft_id, Draft()))
        self._show_draft(state.draft_id(self._shown_id))
        self._mark()

    def _show_draft(self, draft_id: str) -> None:
        """Restore the unsent message of a conversation."""
        state = self._chat.state
        if state.draft != Draft():
            return  # it was written in this window
        text = self._read(lambda: self.history.draft(draft_id)) or ""
        files = self._read(lambda: self.history.draft_files(draft_id)) or ()
        self._saved[draft_id] = Draft(text, tuple(files))
        state.write(text)
        state.attach(*files)

    def _mark(self) -> None:
        self.sidebar.model.mark_running(self._chat.state.pending_sessions)
        if not self.sidebar.search_edit.text():
            self.sidebar.select(self._shown_id)

    def _show_trash(self, is_shown: bool) -> None:
        self.sidebar.search_edit.setEnabled(not is_shown)
        self.refresh()

    def _read(self, read: Callable[[], T]) -> T | None:
        return read_or_show(read, self._chat.errors)

    def _show_error(self, message: str, hint: str) -> None:
        kept = QCoreApplication.translate("History", NOT_SAVED)
        self._chat.errors.show_error(message, f"{engine_text(hint)} {kept}".strip())

    def _connect(self) -> None:
        chat, sidebar = self._chat, self.sidebar
        chat.prompt_sent.connect(self._prompt_sent)
        chat.passages_found.connect(self._passages_found)
        chat.model_replaced.connect(self._save_model)
        chat.reasoning_known.connect(self._reasoning_known)
        chat.round_begun.connect(self._round_begun)
        chat.round_ended.connect(self._ended)
        chat.ended.connect(lambda _conversation, _turn: self._mark())
        chat.calls.changed.connect(self._call_changed)
        chat.calls.is_stored = lambda: not self.journal.is_waiting
        chat.calls.is_requested = self._is_requested
        chat.calls.taken.connect(self._merge_shown)
        chat.turn_removed.connect(self._save_removal)
        chat.path_changed.connect(self._save_leaf)
        chat.state.conversation_changed.connect(self._show_conversation)
        chat.state.collections_changed.connect(self._collections_changed)
        sidebar.opened.connect(self.open)
        sidebar.new_requested.connect(chat.new_chat)
        sidebar.search_changed.connect(lambda _: self.refresh())
        sidebar.trash_shown.connect(self._show_trash)
        sidebar.menu_requested.connect(self._menu.popup)
        sidebar.trash_requested.connect(self._menu.trash_chosen)
        sidebar.undo_requested.connect(self._menu.undo_trash)
        sidebar.empty_requested.connect(self._menu.empty_trash)
        self._menu.changed.connect(self.refresh)
        self._menu.changed.connect(self.folder_documents_changed)
        self._menu.trashed.connect(self.forget)
        self._menu.duplicated.connect(self.open_conversation)
        self._watch.changed.connect(self._apply_external_changes)
        self.journal.failed.connect(self._show_error)
        self.files.imported.connect(self.refresh)
        self.files.notice.connect(sidebar.show_notice)
        self.files.failed.connect(chat.errors.show_error)
        self.journal.recovered.connect(
            lambda: self.sidebar.show_notice(self.tr("All is saved again."))
        )
