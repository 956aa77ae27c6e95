"""Collapsible view of an answer's reasoning."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QCoreApplication, QSize, Qt
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from app.chat.messages.answer_document import AnswerDocument
from app.chat.messages.text_view import (
    InertDocument,
    TextView,
)
from app.theme.appearance import Appearance
from app.theme.marks import mark_style
from app.theme.text_style import MarkStyle
from medusa_core.chats.answer_text import AnswerText


class ThoughtFold(QWidget):
    """Line with the reasoning time; expands to the reasoning.

    Attributes:
        button: Expands and collapses the reasoning.
        view: View of the reasoning.
        document: Document of the reasoning with token marks.
    """

    def __init__(
        self,
        content: AnswerText,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._content = content
        self._appearance = appearance
        rich = InertDocument()
        self.view = TextView(rich, self.tr("Thought"))
        self.view.hide()
        self.document = AnswerDocument(content, rich, self._style(), shows_reasoning=True)
        self.view.copy_by(self.document.selected)
        self.button = QToolButton()
        self.button.setProperty("class", "action")
        self.button.setCheckable(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.toggled.connect(self._open)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.button)
        self._column.addWidget(self.view)
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
        self.button.setText(text)
        self.button.setAccessibleName(text)
        self.button.setToolTip(
            self.tr("Show what the model thought; it isn't sent back to the model")
        )

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        side = scale.px(0.9)
        self.button.setIconSize(QSize(side, side))
        self._show_icon()
        self.view.set_font(scale.font())
        self.document.restyle(self._style())

    def _style(self) -> MarkStyle:
        appearance = self._appearance
        style = mark_style(
            appearance.theme, appearance.scale, appearance.legend, appearance.marking
        )
        return replace(style, text=style.muted)

    def _open(self, is_open: bool) -> None:
        self._show_icon()
        self.view.setVisible(is_open)

    def _show_icon(self) -> None:
        icon = "down" if self.button.isChecked() else "next"
        self.button.setIcon(self._appearance.icon(icon, self._appearance.theme.muted, 0.9))


def _spelled(seconds: float) -> str:
    whole = round(seconds)
    if whole < 1:
        return QCoreApplication.translate("Chat", "less than a second")
    return (
        f"{whole} s"
        if whole < 100
        else QCoreApplication.translate("Chat", "{0} min {1} s").format(whole // 60, whole % 60)
    )
