"""Editors of text settings: system prompt, stop strings, seed."""

from __future__ import annotations

from PySide6.QtCore import QRegularExpression, Signal
from PySide6.QtGui import QRegularExpressionValidator
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from app.theme.appearance import Appearance


class TextBox(QPlainTextEdit):
    """Multi-line text editor of a fixed height.

    Signals:
        edited: The user edited the text.
    """

    edited = Signal()

    def __init__(
        self, name: str, hint: str, num_lines: int, appearance: Appearance, *, is_code: bool = False
    ) -> None:
        super().__init__()
        self._appearance = appearance
        self._num_lines = num_lines
        self._shows = False
        self.setProperty("class", "panelText")
        self.setAccessibleName(name)
        self.setPlaceholderText(hint)
        self.setTabChangesFocus(True)
        if is_code:
            self.setObjectName("promptPreview")
        self.textChanged.connect(self._changed)
        self.restyle()

    def show_text(self, text: str) -> None:
        """Show a text without emitting `edited`."""
        if text != self.toPlainText():
            self._shows = True
            self.setPlainText(text)
            self._shows = False

    def restyle(self) -> None:
        """Apply the theme's sizes."""
        line = self.fontMetrics().lineSpacing()
        self.setFixedHeight(line * self._num_lines + self._appearance.scale.px(1.0))

    def _changed(self) -> None:
        if not self._shows:
            self.edited.emit()


class SeedBox(QLineEdit):
    """Seed field; empty draws a new seed per answer.

    Signals:
        chosen: The user edited the seed.
    """

    chosen = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setPlaceholderText(self.tr("new"))
        self.setValidator(QRegularExpressionValidator(QRegularExpression(r"\d{0,18}"), self))
        self.textEdited.connect(lambda _: self.chosen.emit())

    @property
    def seed(self) -> int | None:
        """The entered seed; None if empty."""
        return int(self.text()) if self.text() else None

    def show_seed(self, seed: int | None) -> None:
        """Show a seed."""
        if seed != self.seed:
            self.setText("" if seed is None else str(seed))


def stops_of(text: str) -> tuple[str, ...]:
    r"""Parse stop strings, one per line; `\n` and `\t` are escape sequences."""
    lines = (line for line in text.splitlines() if line)
    return tuple(line.replace("\\n", "\n").replace("\\t", "\t") for line in lines)


def text_of(stops: tuple[str, ...]) -> str:
    """Format stop strings as text that `stops_of` parses."""
    return "\n".join(stop.replace("\n", "\\n").replace("\t", "\\t") for stop in stops)
