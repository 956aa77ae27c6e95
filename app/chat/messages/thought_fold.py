"""Collapsible view of an answer's reasoning."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.chat.messages.answer_document import AnswerDocument
from app.chat.messages.fold import Fold
from app.chat.messages.text_view import (
    InertDocument,
    TextView,
)
from app.theme.appearance import Appearance
from app.theme.marks import mark_style
from app.theme.text_style import MarkStyle
from medusa_core.chats.answer_text import AnswerText


class ThoughtFold(Fold):
    """Line with the reasoning time; expands to the reasoning.

    Attributes:
        document: Document of the reasoning with token marks.
    """

    def __init__(
        self,
        content: AnswerText,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        rich = InertDocument()
        super().__init__(TextView(rich, self.tr("Thought")), appearance, parent)
        self._content = content
        self.document = AnswerDocument(content, rich, self._style(), shows_reasoning=True)
        self.view.copy_by(self.document.selected)
        self.restyle()

    def refresh(self) -> None:
        """Show added reasoning, and its duration if known."""
        self.document.refresh()
        is_open, seconds = self._content.is_reasoning, self._content.reasoning_s
        if is_open:
            text = self.tr("Thinking…")
        else:
            text = (
                self.tr("Thought for {0}").format(_spelled(seconds))
                if seconds
                else self.tr("Thought")
            )
        self.show_title(
            text, self.tr("Show what the model thought; it isn't sent back to the model")
        )

    def restyle(self) -> None:
        super().restyle()
        self.document.restyle(self._style())

    def _style(self) -> MarkStyle:
        appearance = self._appearance
        style = mark_style(
            appearance.theme, appearance.scale, appearance.legend, appearance.marking
        )
        return replace(style, text=style.muted)


def _spelled(seconds: float) -> str:
    whole = round(seconds)
    if whole < 1:
        return QCoreApplication.translate("Chat", "less than a second")
    return (
        f"{whole} s"
        if whole < 100
        else QCoreApplication.translate("Chat", "{0} min {1} s").format(whole // 60, whole % 60)
    )
