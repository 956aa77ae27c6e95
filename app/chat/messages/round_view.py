"""Widget of one round of an answer: reasoning, streamed text, tool calls."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.chat.messages.answer_document import AnswerDocument
from app.chat.messages.approval_form import ApprovalForm, CallQuestion
from app.chat.messages.call_card import CallCard
from app.chat.messages.passages import show_passage
from app.chat.messages.text_view import InertDocument, TextView
from app.chat.messages.thought_fold import ThoughtFold
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.theme.marks import mark_style
from app.theme.text_style import MarkStyle
from medusa_core.chats.rounds import Round
from medusa_core.messages import PassagePart

PLAIN_NOTE = QT_TRANSLATE_NOOP("Chat", "A very long answer: the rest of it is shown unformatted.")


class RoundView(QWidget):
    """A round while it streams and afterwards.

    Attributes:
        round: The shown round.
        view: View of the text.
        document: Document of the text with token marks.
        fold: The reasoning; None if there is none.
        cards: The tool calls.
        form: Asks about one of the calls, in place of its card; None if nothing is asked.

    Signals:
        decided: The user decided about a call (its index, an `Approval` and the arguments).
    """

    decided = Signal(int, object, str)

    def __init__(
        self,
        round_: Round,
        appearance: Appearance,
        passages: Mapping[int, PassagePart],
        parent: QWidget | None = None,
        *,
        is_json: bool = False,
    ) -> None:
        """Show a round.

        Args:
            round_: The round.
            appearance: Theme and sizes.
            passages: Passages that the answer may cite, by number.
            parent: Parent widget.
            is_json: Whether its text is JSON by the schema of the chat's settings.
        """
        super().__init__(parent)
        self.round = round_
        self._appearance = appearance
        self.fold: ThoughtFold | None = None
        self.cards: list[CallCard] = []
        self.form: ApprovalForm | None = None
        rich = InertDocument()
        self.view = TextView(rich, self.tr("Answer"))
        self.view.head_code(appearance)
        round_.content.load_steps()
        self.document = AnswerDocument(
            round_.content, rich, self._style(), is_json=is_json, passages=passages
        )
        self.view.citation_pressed.connect(
            lambda number: show_passage(self, passages, number, appearance)
        )
        self.view.copy_by(self.document.selected)
        self._note = QLabel(QCoreApplication.translate("Chat", PLAIN_NOTE))
        self._note.setObjectName("waiting")
        self._note.setWordWrap(True)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        for widget in (self.view, self._note):
            widget.hide()
            self._column.addWidget(widget)

    @property
    def is_behind(self) -> bool:
        """Whether `show_more` has more to show."""
        return any(document.is_behind for document in self._documents)

    @property
    def has_words(self) -> bool:
        """Whether there is text or a call to show."""
        return self.document.has_words or bool(self.round.calls)

    def refresh(self) -> str:
        """Show what was added, and return the added text."""
        added = self.document.refresh()
        self._show_thought()
        self._show_calls()
        self.view.setVisible(self.document.has_words)
        self._show_note()
        return added

    def show_more(self) -> None:
        """Show more of a long text."""
        for document in self._documents:
            document.show_more()
        self._show_note()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._column.setSpacing(scale.px(0.35))
        self.view.set_font(scale.font())
        style = self._style()
        self.document.restyle(style)
        self.view.bar_quotes(QColor(self._appearance.theme.border), style.text_size_pt * 96 / 72)
        for fold in (*(() if self.fold is None else (self.fold,)), *self.cards):
            fold.restyle()
        if self.form is not None:
            self.form.restyle()
        self._show_note()

    def _style(self) -> MarkStyle:
        looks = self._appearance
        return mark_style(looks.theme, looks.scale, looks.legend, looks.marking)

    @property
    def _documents(self) -> tuple[AnswerDocument, ...]:
        return (self.document,) if self.fold is None else (self.document, self.fold.document)

    def _show_thought(self) -> None:
        """Create the fold once there is reasoning."""
        content = self.round.content
        has_reasoning = content.is_reasoning or content.reasoning_end > 0
        if self.fold is None and not has_reasoning:
            return
        if self.fold is None:
            self.fold = ThoughtFold(content, self._appearance)
            self._column.insertWidget(0, self.fold)
        self.fold.refresh()
        self.fold.setVisible(has_reasoning)

    def _show_calls(self) -> None:
        """Show the calls in their present states."""
        for card, call in zip(self.cards, self.round.calls, strict=False):
            if card.call != call:
                card.show_call(call)
        for call in self.round.calls[len(self.cards) :]:
            card = CallCard(call, self._appearance)
            self.cards.append(card)
            self._column.addWidget(card)
            card.show()  # at once, so that the height is known

    def show_question(self, question: CallQuestion | None) -> None:
        """Ask about a call in place of its card; None asks about none."""
        former, self.form = self.form, None
        if former is not None:
            if former.question == question:
                self.form = former
                return
            former.hide()
            former.deleteLater()
        self._show_calls()
        for place, card in enumerate(self.cards):
            card.setVisible(question is None or place != question.place)
        if question is not None:
            call = self.round.calls[question.place]
            self.form = ApprovalForm(question, call, self._appearance)
            place = question.place
            if former is not None and former.question.place == place:  # its tool came or went
                self.form.edit.setPlainText(former.edit.toPlainText())
            self.form.decided.connect(lambda *decision: self.decided.emit(place, *decision))
            self._column.insertWidget(self._column.indexOf(self.cards[question.place]), self.form)
            self.form.show()
            self.form.tell()

    def _show_note(self) -> None:
        self._note.setVisible(self.document.has_words and self.document.is_plain_at_end)
