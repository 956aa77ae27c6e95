"""Highlights of search matches."""

from __future__ import annotations

from PySide6.QtCore import QRect
from PySide6.QtGui import QColor, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QTextEdit

from app.chat.find.finding import find_all
from app.chat.messages.text_view import TextView
from app.theme.tokens import Theme

_MOST_SHOWN = 300  # around the current one; each takes time to paint


def highlight_words(view: TextView, words: str, number: int, theme: Theme) -> QRect | None:
    """Highlight all matches in a text, and the current one in another colour.

    Returns:
        Position of the current match in the view; None if there is none.
    """
    if not words:
        if view.extraSelections():
            view.setExtraSelections([])
        return None
    found = find_all(words, view.toPlainText())
    first = max(0, number - _MOST_SHOWN // 2)
    shown: list[QTextEdit.ExtraSelection] = []
    place: QRect | None = None
    for index, (start, end) in enumerate(found[first : first + _MOST_SHOWN], first):
        selection = QTextEdit.ExtraSelection()
        cursor = QTextCursor(view.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        selection.cursor = cursor
        selection.format = _format(theme, is_current=index == number)
        shown.append(selection)
        if index == number:
            place = view.cursorRect(cursor)
    view.setExtraSelections(shown)
    return place


def _format(theme: Theme, *, is_current: bool) -> QTextCharFormat:
    fmt = QTextCharFormat()
    fmt.setBackground(QColor(theme.accent if is_current else theme.selection))
    fmt.setForeground(QColor(theme.on_accent if is_current else theme.text))
    return fmt
