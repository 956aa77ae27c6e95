"""The model's answer: streamed, marked, with its figures underneath."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from app.chat.announcer import Announcer
from app.chat.answer_document import AnswerDocument, MarkedRange
from app.chat.figure_row import FigureRow
from app.chat.figures import figures
from app.chat.message_widgets import Message
from app.chat.text_view import InertDocument, TextView
from app.markdown.formats import Marking
from app.theme.appearance import Appearance
from app.theme.marks import mark_style
from medusa_core.messages import TARGET, Calibrated, GenerationDone, StepDone


class AnswerMessage(Message):
    """One answer, while it is written and afterwards.

    Attributes:
        document: The text with its marks.
        view: Shows it.
        row: Figures and buttons; hidden until the answer is complete.
        done: How the answer ended, or None.
        num_accepted: Tokens of it that a drafter proposed and the target accepted.

    Signals:
        regenerate_requested: Another answer is wanted in its place.
    """

    regenerate_requested = Signal()

    def __init__(
        self, speaker: str, marking: Marking, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.done: GenerationDone | None = None
        self.num_accepted = 0
        self._appearance = appearance
        rich = InertDocument()
        self.view = TextView(rich, "Answer")
        style = mark_style(appearance.theme, appearance.scale)
        self.document = AnswerDocument(rich, style, marking)
        self.row = FigureRow(appearance)
        self._speaker = QLabel(speaker)
        self._speaker.setObjectName("speaker")
        self._waiting = QLabel("…")
        self._waiting.setObjectName("waiting")
        self._announcer = Announcer(self.view)
        self._column = QVBoxLayout(self)
        self._build()
        self.restyle()

    @property
    def has_text(self) -> bool:
        """Whether anything of the answer can be read yet."""
        return bool(self.document.text)

    def marked_ranges(self) -> tuple[MarkedRange, ...]:
        """What is marked as accepted."""
        return self.document.marked_ranges()

    def show_waiting(self, text: str) -> None:
        """Say what is done before the first token."""
        self._waiting.setText(text)

    def append(self, steps: tuple[StepDone, ...]) -> None:
        """Show what these steps added."""
        num_before = len(self.document.text)
        self.document.append(*steps)
        self.num_accepted += sum(source != TARGET for step in steps for source in step.sources)
        self._announcer.feed(self.document.text[num_before:])
        if self.has_text and self.view.isHidden():
            self._waiting.hide()
            self.view.show()

    def finish(self, done: GenerationDone, calibrated: Calibrated | None) -> None:
        """Show how the answer ended."""
        self.done = done
        self.document.finish(done)
        self._announcer.finish()
        self._waiting.setVisible(not self.has_text)
        self._waiting.setText("No text.")
        self.view.setVisible(self.has_text)
        self.show_figures(calibrated)
        self.row.show()

    def cut_short(self) -> None:
        """The answer failed on its way: what there is stays."""
        self.document.finish()
        self._announcer.finish()
        self._waiting.setVisible(not self.has_text)
        self._waiting.setText("No answer.")

    def show_figures(self, calibrated: Calibrated | None) -> None:
        """Show the figures with what is known about plain decoding now."""
        if self.done is not None:
            self.row.show_figures(figures(self.done, calibrated))

    def set_is_last(self, is_last: bool) -> None:
        """Only the last answer can be asked for again."""
        self.row.regenerate_button.setVisible(is_last)

    def set_marking(self, marking: Marking) -> None:
        """Mark accepted tokens, or don't."""
        self.document.set_marking(marking)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale = self._appearance.scale
        self._column.setSpacing(scale.px(0.35))
        self.view.set_font(scale.font())
        self.document.restyle(mark_style(self._appearance.theme, scale))
        self.row.restyle()

    def _build(self) -> None:
        column = self._column
        column.setContentsMargins(0, 0, 0, 0)
        for widget in (self._speaker, self._waiting, self.view, self.row):
            column.addWidget(widget)
        self._waiting.setAlignment(Qt.AlignmentFlag.AlignLeft)
        self.view.hide()
        self.row.hide()
        self.row.copy_requested.connect(self._copy)
        self.row.regenerate_requested.connect(self.regenerate_requested)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.document.text)
