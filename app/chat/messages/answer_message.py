"""Widget of an answer: streamed text with token marks, and its figures."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QLabel, QMenu, QVBoxLayout, QWidget

from app.chat.estimates import estimated_text_px, rendered_text
from app.chat.messages.announcer import Announcer
from app.chat.messages.answer_document import (
    AnswerDocument,
    MarkedRange,
)
from app.chat.messages.figure_row import FigureRow
from app.chat.messages.figures import (
    cut_figures,
    empty_words,
    figures,
    stop_figure,
)
from app.chat.messages.highlights import highlight_words
from app.chat.messages.message_widgets import MessageWidget
from app.chat.messages.text_actions import add_text_actions
from app.chat.messages.text_view import (
    InertDocument,
    TextView,
)
from app.chat.messages.thought_fold import ThoughtFold
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.theme.marks import mark_style
from app.theme.text_style import Marking, MarkStyle
from app.theme.tokens import Theme
from app.widgets.qt_text import passed_on
from medusa_core.chats.answer_text import NO_TOKEN, AnswerText
from medusa_core.chats.conversation import Answer
from medusa_core.messages import GenerationDone, StopReason

# Such an answer isn't at its end.
_CUT = (
    StopReason.MAX_TOKENS,
    StopReason.CANCELLED,
    StopReason.CONTEXT,
    StopReason.REPETITION,
)
PLAIN_NOTE = QT_TRANSLATE_NOOP("Chat", "A very long answer: the rest of it is shown unformatted.")


class AnswerMessage(MessageWidget):
    """Widget of a pending or complete answer.

    Attributes:
        answer: The shown answer.
        fold: The reasoning before the answer; None if there is none.

    Signals:
        regenerate_requested: The user wants to regenerate the answer.
        reroll_requested: The user wants to regenerate the answer from a token on.
        continue_requested: The user wants to continue the answer.
        branch_requested: The user wants to continue the conversation from here.
        version_chosen: The user selected another answer to the prompt (its index).
        token_hovered: The mouse is on a token (its index); −1 for none.
        token_pressed: A token was clicked (its index).
    """

    regenerate_requested = Signal()
    reroll_requested = Signal(int)
    continue_requested = Signal()
    branch_requested = Signal()
    version_chosen = Signal(int)
    token_hovered = Signal(int)
    token_pressed = Signal(int)

    def __init__(
        self,
        answer: Answer,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        """Create the widget; a complete answer is laid out once visible."""
        super().__init__(parent)
        self.is_populated = False
        self.answer = answer
        self._searched: str | None = None
        self._version = (0, 1)
        self._is_last = True
        self._lack = self.tr("Only answers in the chat can be continued.")
        self._hovered = NO_TOKEN
        self._selected = range(0)
        self._appearance = appearance
        self.fold: ThoughtFold | None = None
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
    def document(self) -> AnswerDocument:
        """Document of the answer's text with token marks."""
        self.populate()
        return self._document

    @property
    def view(self) -> TextView:
        """View of the document."""
        self.populate()
        return self._view

    @property
    def row(self) -> FigureRow:
        """Figures and buttons; hidden until the answer is complete."""
        self.populate()
        return self._row

    def estimated_px(self, width_px: int) -> int:
        return estimated_text_px(self.content.text, width_px, self._appearance.scale)

    def populate(self) -> None:
        if self.is_populated:
            return
        self.is_populated = True
        appearance, rich = self._appearance, InertDocument()
        self._view = TextView(rich, self.tr("Answer"))
        self.view.head_code(appearance)
        self.content.load_steps()
        self._document = AnswerDocument(self.content, rich, self._style())
        self.view.copy_by(self.document.selected)
        self._row = FigureRow(appearance)
        self._speaker = QLabel(self.answer.model)
        self._speaker.setObjectName("speaker")
        self._waiting = QLabel("…")
        self._waiting.setObjectName("waiting")
        self._waiting.setWordWrap(True)
        self._note = QLabel(QCoreApplication.translate("Chat", PLAIN_NOTE))
        self._note.setObjectName("waiting")
        self._note.setWordWrap(True)
        # Fires once in each turn of the event loop.
        self._turns = QTimer(self)
        self._turns.timeout.connect(self._show_more)
        self._announcer = Announcer(self.view)
        self._column = QVBoxLayout(self)
        self._build()
        self.restyle()
        appearance.marking_changed.connect(self.restyle)
        with self._announcer.quiet():  # what was there before isn't read aloud
            self.refresh()
        self.row.versions.show_version(*self._version)
        self.set_place(is_last=self._is_last, lack=self._lack)
        self.select_tokens(self._selected)

    @property
    def searched_text(self) -> str:
        if self.is_populated:
            return self.view.toPlainText()
        if self._searched is None:
            self._searched = rendered_text(self.content.answer)
        return self._searched

    def highlight(self, words: str, number: int, theme: Theme) -> QRect | None:
        if not self.is_populated:
            return None
        place = highlight_words(self.view, words, number, theme)
        return place and QRect(self.view.mapTo(self, place.topLeft()), place.size())

    def marked_ranges(self) -> tuple[MarkedRange, ...]:
        """Ranges of the accepted tokens."""
        return self.document.marked_ranges()

    def show_waiting(self, text: str) -> None:
        """Show the state before the first token."""
        self._waiting.setText(text)

    def refresh(self) -> None:
        """Show added text, and the figures once the answer has ended."""
        is_ended = self.content.is_finished
        self._speaker.setText(self.answer.model)
        added = self.document.refresh()
        self._show_thought()
        self._show_behind()
        self._announcer.feed(added)
        has_words = self.document.has_words
        self.view.setVisible(has_words)
        self._waiting.setVisible(not has_words if is_ended else not self.content.num_chars)
        if is_ended:
            self._show_end()

    def _show_end(self) -> None:
        done = self.answer.done
        if done is not None:
            was_cut = done.stop_reason in _CUT
            self._announcer.finish(stop_figure(done).meaning if was_cut else "")
            self._waiting.setText(empty_words(done))
            self.row.show_figures(figures(done))
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
        scale = self._appearance.scale
        self._column.setSpacing(scale.px(0.35))
        self.view.set_font(scale.font())
        style = self._style()
        self.document.restyle(style)
        self.view.bar_quotes(QColor(self._appearance.theme.border), style.text_size_pt * 96 / 72)
        if self.fold is not None:
            self.fold.restyle()
        self._show_behind()
        self.select_tokens(self._selected)
        self.row.restyle()

    def _style(self) -> MarkStyle:
        looks = self._appearance
        return mark_style(looks.theme, looks.scale, looks.legend, looks.marking)

    @property
    def _documents(self) -> tuple[AnswerDocument, ...]:
        return (self.document,) if self.fold is None else (self.document, self.fold.document)

    def _show_thought(self) -> None:
        """Create the fold once there is reasoning."""
        content = self.content
        has_reasoning = content.is_reasoning or content.reasoning_end > 0
        if self.fold is None and not has_reasoning:
            return
        if self.fold is None:
            self.fold = ThoughtFold(content, self._appearance)
            self._column.insertWidget(2, self.fold)
        self.fold.refresh()
        self.fold.setVisible(has_reasoning)

    def _show_more(self) -> None:
        for document in self._documents:
            document.show_more()
        self._show_behind()

    def _show_behind(self) -> None:
        """Show the rest in later iterations of the event loop."""
        self._note.setVisible(self.document.has_words and self.document.is_plain_at_end)
        if not any(document.is_behind for document in self._documents):
            self._turns.stop()
        elif not self._turns.isActive():
            self._turns.start(0)

    def _build(self) -> None:
        column = self._column
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (self._speaker, self._waiting, self.view, self._note, self.row):
            column.addWidget(widget)
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.view.hide()
        self._note.hide()
        self.row.hide()
        self.row.copy_requested.connect(self._copy)
        self.row.regenerate_requested.connect(self.regenerate_requested)
        self.row.continue_requested.connect(self.continue_requested)
        self.row.versions.chosen.connect(self.version_chosen)
        self.row.branch_requested.connect(self.branch_requested)
        self.view.hovered.connect(self._hover)
        self.view.pressed.connect(lambda at: self.token_pressed.emit(self.document.token_at(at)))
        self.view.menu_requested.connect(self._show_menu)

    def _hover(self, position: int) -> None:
        is_off = position < 0 or self._appearance.marking is Marking.OFF
        token = NO_TOKEN if is_off else self.document.token_at(position)
        if token != self._hovered:
            self._hovered = token
            self.token_hovered.emit(token)

    def _show_menu(self, position: int, place: QPoint) -> None:
        menu = self.menu_at(position)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(place)

    def menu_at(self, position: int) -> QMenu:
        """Return the context menu at a document position."""
        token = self.document.token_at(position) if position >= 0 else NO_TOKEN
        menu = QMenu(self.view)
        menu.setToolTipsVisible(True)
        add_text_actions(menu, self.view, self.quoted.emit)
        menu.addAction(self.tr("Copy the answer"), self.row.copy_button.click)
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
        QGuiApplication.clipboard().setText(passed_on(self.document.text))


def _joined(ranges: tuple[MarkedRange, ...]) -> list[tuple[int, int]]:
    """Merge adjacent ranges; return their starts and ends."""
    parts: list[tuple[int, int]] = []
    for found in ranges:
        start = parts.pop()[0] if parts and parts[-1][1] == found.start else found.start
        parts.append((start, found.end))
    return parts
