"""Widget of an answer: streamed text with token marks, and its figures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from PySide6.QtCore import QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QLabel, QMenu, QVBoxLayout, QWidget

from app.chat.estimates import estimated_text_px, rendered_text
from app.chat.find.finding import find_all
from app.chat.messages.announcer import Announcer
from app.chat.messages.answer_document import (
    AnswerDocument,
    MarkedRange,
)
from app.chat.messages.approval_form import CallQuestion
from app.chat.messages.figure_row import FigureRow
from app.chat.messages.figures import (
    cut_figures,
    empty_words,
    figures,
    stop_figure,
)
from app.chat.messages.highlights import highlight_words
from app.chat.messages.message_widgets import MessageWidget
from app.chat.messages.round_view import RoundView
from app.chat.messages.text_actions import add_text_actions
from app.chat.messages.text_view import TextView
from app.chat.messages.thought_fold import ThoughtFold
from app.theme.appearance import Appearance
from app.theme.text_style import Marking
from app.theme.tokens import Theme
from app.widgets.qt_text import passed_on
from medusa_core.chats.answer_text import NO_TOKEN, AnswerText
from medusa_core.chats.conversation import Answer
from medusa_core.messages import GenerationDone, PassagePart, StopReason

# Such an answer isn't at its end.
_CUT = (
    StopReason.MAX_TOKENS,
    StopReason.CANCELLED,
    StopReason.CONTEXT,
    StopReason.REPETITION,
)


class AnswerMessage(MessageWidget):
    """Widget of a pending or complete answer.

    Attributes:
        answer: The shown answer.

    Signals:
        regenerate_requested: The user wants to regenerate the answer.
        reroll_requested: The user wants to regenerate the answer from a token on.
        continue_requested: The user wants to continue the answer.
        branch_requested: The user wants to continue the conversation from here.
        version_chosen: The user selected another answer to the prompt (its index).
        token_hovered: The mouse is on a token (its index); −1 for none.
        token_pressed: A token was clicked (its index).
        call_decided: The user decided about a call of the last round (its index, an `Approval`
            and the arguments).
    """

    regenerate_requested = Signal()
    reroll_requested = Signal(int)
    continue_requested = Signal()
    branch_requested = Signal()
    version_chosen = Signal(int)
    token_hovered = Signal(int)
    token_pressed = Signal(int)
    call_decided = Signal(int, object, str)

    def __init__(
        self,
        answer: Answer,
        appearance: Appearance,
        passages: Iterable[PassagePart] = (),
        parent: QWidget | None = None,
    ) -> None:
        """Create the widget; a complete answer is laid out once visible.

        Args:
            answer: The answer.
            appearance: Theme and sizes.
            passages: Passages that it may cite.
        """
        super().__init__(parent)
        self.is_populated = False
        self.answer = answer
        self._passages = {one.number: one for one in passages}
        self._searched: str | None = None
        self._version = (0, 1)
        self._is_last = True
        self._lack = self.tr("Only answers in the chat can be continued.")
        self._hovered = NO_TOKEN
        self._question: CallQuestion | None = None
        self._selected = range(0)
        self._appearance = appearance
        self._views: list[RoundView] = []
        self._num_ended = 0  # of the views: they don't change any more
        if answer.is_running:
            self.populate()

    @property
    def request_id(self) -> str:
        """Id of the answer and of its request."""
        return self.answer.id

    @property
    def content(self) -> AnswerText:
        """Text and tokens of the answer."""
        return self.answer.content

    @property
    def done(self) -> GenerationDone | None:
        """The last event of the answer; None while it is pending."""
        return self.answer.done

    @property
    def rounds(self) -> tuple[RoundView, ...]:
        """Views of the rounds, oldest first."""
        self.populate()
        return tuple(self._views)

    @property
    def document(self) -> AnswerDocument:
        """Document of the last round's text with token marks."""
        return self.rounds[-1].document

    @property
    def view(self) -> TextView:
        """View of the document."""
        return self.rounds[-1].view

    @property
    def fold(self) -> ThoughtFold | None:
        """The reasoning of the last round; None if there is none."""
        return self.rounds[-1].fold

    @property
    def row(self) -> FigureRow:
        """Figures and buttons; hidden until the answer is complete."""
        self.populate()
        return self._row

    def estimated_px(self, width_px: int) -> int:
        text = "\n\n".join(one.content.text for one in self.answer.rounds)
        return estimated_text_px(text, width_px, self._appearance.scale)

    def populate(self) -> None:
        if self.is_populated:
            return
        self.is_populated = True
        appearance = self._appearance
        self._row = FigureRow(appearance)
        self._speaker = QLabel(self.answer.model)
        self._speaker.setObjectName("speaker")
        self._waiting = QLabel("…")
        self._waiting.setObjectName("waiting")
        self._waiting.setWordWrap(True)
        # Fires once in each turn of the event loop.
        self._turns = QTimer(self)
        self._turns.timeout.connect(self._show_more)
        self._column = QVBoxLayout(self)
        self._build()
        self._add_rounds()
        self.restyle()
        appearance.marking_changed.connect(self.restyle)
        with self._announcer.quiet():  # what was there before isn't read aloud
            self.refresh()
        self.row.versions.show_version(*self._version)
        self.set_place(is_last=self._is_last, lack=self._lack)
        self.show_question(self._question)
        self.select_tokens(self._selected)

    @property
    def searched_text(self) -> str:
        # No search text matches across two rounds.
        if self.is_populated:
            return "\0".join(one.view.toPlainText() for one in self._views)
        if self._searched is None:
            texts = (
                rendered_text(one.content.answer, is_json=self._is_json)
                for one in self.answer.rounds
            )
            self._searched = "\0".join(texts)
        return self._searched

    @property
    def _is_json(self) -> bool:
        """Whether a schema makes the answer JSON."""
        return bool(self.answer.settings.json_schema)

    def highlight(self, words: str, number: int, theme: Theme) -> QRect | None:
        if not self.is_populated:
            return None
        place = None
        for view in (one.view for one in self._views):
            found = highlight_words(view, words, number, theme)
            if found is not None:
                place = QRect(view.mapTo(self, found.topLeft()), found.size())
            number -= len(find_all(words, view.toPlainText()))
        return place

    def marked_ranges(self) -> tuple[MarkedRange, ...]:
        """Ranges of the accepted tokens."""
        return self.document.marked_ranges()

    def cite(self, passages: Iterable[PassagePart]) -> None:
        """Set the passages that the answer may cite, before it has text."""
        self._passages.clear()
        self._passages.update({one.number: one for one in passages})

    def show_waiting(self, text: str) -> None:
        """Show the state before the first token."""
        self._waiting.setText(text)

    def refresh(self) -> None:
        """Show added text, and the figures once the answer has ended."""
        self._add_rounds()
        for view in self._views[self._num_ended :]:
            added = view.refresh()
        self._num_ended = len(self._views) - 1
        is_ended = self.content.is_finished and not self.answer.is_running
        self._speaker.setText(self.answer.model)
        self._show_behind()
        self._announcer.feed(added)
        has_words = self._views[-1].has_words
        is_writing = not self.content.is_finished
        is_calling = is_writing and bool(self.content.calls)
        if is_calling:
            self._waiting.setText(self.tr("The model is writing a tool call…"))
        # The first characters of a call or of a tag are held back.
        is_empty = is_writing and (is_calling or not (has_words or self._views[-1].fold))
        self._waiting.setVisible(not has_words if is_ended else is_empty)
        if is_ended:
            self._show_end()
        else:
            self.row.hide()

    def _add_rounds(self) -> None:
        """Add views of rounds that have begun."""
        new = self.answer.rounds[len(self._views) :]
        for one in new:
            view = RoundView(one, self._appearance, self._passages, is_json=self._is_json)
            self._views.append(view)
            self._column.insertWidget(self._column.indexOf(self._row), view)
            view.show()  # at once; the layout would show it in the next turn of the event loop
            view.restyle()
            view.view.hovered.connect(partial(self._hover, view))
            view.view.pressed.connect(partial(self._press, view))
            view.view.menu_requested.connect(partial(self._show_menu, view))
            view.decided.connect(self.call_decided)
        if new:
            self._announcer = Announcer(self.view)
            self.row.hide()
            self._column.removeWidget(self._waiting)
            self._column.insertWidget(self._column.indexOf(self._views[-1]), self._waiting)

    def show_question(self, question: CallQuestion | None) -> None:
        """Ask about a call of the last round; None asks about none."""
        self._question = question
        if self.is_populated:
            for view in self._views:
                view.show_question(question if view is self._views[-1] else None)

    def _show_end(self) -> None:
        done = self.answer.total
        if done is not None:
            stops_at_call = self.answer.last.ends_with_calls
            was_cut = stops_at_call or done.stop_reason in _CUT
            stop = stop_figure(done, stops_at_call=stops_at_call)
            self._announcer.finish(stop.meaning if was_cut else "")
            self._waiting.setText(empty_words(done))
            self.row.show_figures(figures(done, stops_at_call=stops_at_call))
        else:
            self._announcer.finish()
            is_cut = self.answer.is_cut
            self._waiting.setText(self.tr("No answer.") if is_cut else self.tr("No text."))
            if is_cut:
                self.row.show_figures(cut_figures())
        self.row.show()

    def show_version(self, place: int, num_versions: int) -> None:
        """Show the index of this answer (from 0) among those to its prompt."""
        self._version = (place, num_versions)
        if self.is_populated:
            self.row.versions.show_version(place, num_versions)

    def set_place(self, *, is_last: bool, lack: str) -> None:
        """Enable the actions for the answer's position in the conversation.

        Args:
            is_last: Whether it is the last answer, which can be continued; others can be branched.
            lack: Why generation can't resume from its tokens; empty if it can.
        """
        self._lack, self._is_last = lack, is_last
        if not self.is_populated:
            return
        done = self.answer.done
        was_cut = self.answer.is_cut or (done is not None and done.stop_reason in _CUT)
        was_cut = was_cut or self.answer.lacks_next_round
        self.row.offer(regenerates=True, continues=is_last and was_cut, branches=not is_last)
        self.row.continue_button.setEnabled(not lack)
        self.row.continue_button.setToolTip(lack or self.tr("Go on with this answer"))

    def select_tokens(self, tokens: range) -> QRect | None:
        """Frame some tokens in the text.

        Returns:
            Position of the first one in this widget; None if none is shown.
        """
        self._selected = tokens
        if not tokens and not self.is_populated:
            return None
        found = self.document.ranges_of(tokens) if tokens else ()
        if found or self.view.framed:
            self.view.frame(_joined(found), QColor(self._appearance.theme.accent))
        if not found:
            return None
        cursor = self.view.textCursor()
        cursor.setPosition(found[0].start)
        place = self.view.cursorRect(cursor)
        return QRect(self.view.mapTo(self, place.topLeft()), place.size())

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        if not self.is_populated:
            return
        self._column.setSpacing(self._appearance.scale.px(0.35))
        for view in self._views:
            view.restyle()
        self._show_behind()
        self.select_tokens(self._selected)
        self.row.restyle()

    def _show_more(self) -> None:
        for view in self._views:
            view.show_more()
        self._show_behind()

    def _show_behind(self) -> None:
        """Show the rest in later iterations of the event loop."""
        if not any(view.is_behind for view in self._views):
            self._turns.stop()
        elif not self._turns.isActive():
            self._turns.start(0)

    def _build(self) -> None:
        column = self._column
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (self._speaker, self._waiting, self._row):
            column.addWidget(widget)
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.row.hide()
        self.row.copy_requested.connect(self._copy)
        self.row.regenerate_requested.connect(self.regenerate_requested)
        self.row.continue_requested.connect(self.continue_requested)
        self.row.versions.chosen.connect(self.version_chosen)
        self.row.branch_requested.connect(self.branch_requested)

    def _hover(self, view: RoundView, position: int) -> None:
        if view is not self._views[-1]:
            return  # its tokens belong to another request
        is_off = position < 0 or self._appearance.marking is Marking.OFF
        token = NO_TOKEN if is_off else self.document.token_at(position)
        if token != self._hovered:
            self._hovered = token
            self.token_hovered.emit(token)

    def _press(self, view: RoundView, position: int) -> None:
        if view is self._views[-1]:
            self.token_pressed.emit(self.document.token_at(position))

    def _show_menu(self, view: RoundView, position: int, place: QPoint) -> None:
        menu = self.menu_at(position) if view is self._views[-1] else self._text_menu(view.view)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(place)

    def _text_menu(self, view: TextView) -> QMenu:
        """Return a menu that copies and quotes text."""
        menu = QMenu(view)
        menu.setToolTipsVisible(True)
        add_text_actions(menu, view, self.quoted.emit)
        menu.addAction(self.tr("Copy the answer"), self.row.copy_button.click)
        return menu

    def menu_at(self, position: int) -> QMenu:
        """Return the context menu at a document position."""
        token = self.document.token_at(position) if position >= 0 else NO_TOKEN
        menu = self._text_menu(self.view)
        menu.addSeparator()
        show = menu.addAction(
            self.tr("Show this step (Ctrl+click, Enter)"), lambda: self.token_pressed.emit(token)
        )
        is_token = token != NO_TOKEN and not self.content.is_remote
        show.setEnabled(is_token)
        again = menu.addAction(
            self.tr("Reroll from here"), lambda: self.reroll_requested.emit(token)
        )
        default = self.tr("Keep what stands before this token and answer anew from here.")
        again.setToolTip(self._lack or default)
        again.setEnabled(is_token and self.answer.can_continue and not self._lack)
        return menu

    def _copy(self) -> None:
        texts = (view.document.text for view in self._views)
        QGuiApplication.clipboard().setText(passed_on("\n\n".join(filter(None, texts))))


def _joined(ranges: tuple[MarkedRange, ...]) -> list[tuple[int, int]]:
    """Merge adjacent ranges; return their starts and ends."""
    parts: list[tuple[int, int]] = []
    for found in ranges:
        start = parts.pop()[0] if parts and parts[-1][1] == found.start else found.start
        parts.append((start, found.end))
    return parts
