"""The widgets of a conversation, put together."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.chat.composer import Composer
from app.chat.conversation_view import COLUMN_EM, ConversationView
from app.chat.empty_state import EmptyState
from app.chat.header import Header
from app.chat.pickers import NewSeed, new_seed
from app.chat.steps_strip import StepsStrip
from app.theme.appearance import Appearance

KEYS_NOTE = "Enter sends · Shift+Enter starts a new line · Esc stops"


class ChatPage(QWidget):
    """Header, messages, composer and strip.

    Attributes:
        header: Model and pickers.
        empty: What a new conversation shows.
        conversation: The messages.
        composer: Where the user writes.
        strip: What the steps gave.
        context_label: How much of the context is used.
    """

    def __init__(
        self,
        appearance: Appearance,
        make_seed: NewSeed = new_seed,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._appearance = appearance
        self.header = Header(appearance, make_seed)
        self.empty = EmptyState(appearance)
        self.conversation = ConversationView(appearance)
        self.composer = Composer(appearance)
        self.strip = StepsStrip(appearance)
        self.context_label = _note("")
        self._keys_label = _note(KEYS_NOTE)
        self._narrow = (_Column(self.empty), _Column(self._composer_block()))
        self._welcome = _scrolled(self._narrow[0])
        self._build()
        self.composer.edit.scrolled.connect(self.conversation.scroll_pages)
        self.show_messages(False)
        self.restyle()

    def show_messages(self, has_messages: bool) -> None:
        """Show the messages, or the welcome where there are none."""
        # A stacked layout would paint the whole page again, while an answer begins.
        self._welcome.setVisible(not has_messages)
        self.conversation.setVisible(has_messages)

    def show_context(self, num_used: int, num_tokens: int) -> None:
        """Say how much of the context is used; nothing while that is unknown."""
        known = num_used > 0 and num_tokens > 0
        text = f"context {num_used:,} / {num_tokens:,} tokens" if known else ""
        self.context_label.setText(text)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme everywhere."""
        scale = self._appearance.scale
        for column in self._narrow:
            column.set_width(scale.px(COLUMN_EM), scale.px(1.2))
        for part in (self.header, self.empty, self.conversation, self.composer, self.strip):
            part.restyle()

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self._welcome, 1)
        column.addWidget(self.conversation, 1)
        column.addWidget(self._narrow[1])
        column.addWidget(self.strip)

    def _composer_block(self) -> QWidget:
        block = QWidget()
        notes = QHBoxLayout()
        notes.setContentsMargins(12, 0, 12, 0)
        notes.addWidget(self._keys_label)
        notes.addStretch(1)
        notes.addWidget(self.context_label)
        column = QVBoxLayout(block)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(4)
        column.addWidget(self.composer)
        column.addLayout(notes)
        return block


class _Column(QWidget):
    """Keeps a widget in the middle, no wider than the messages."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(content, 1000)
        row.addStretch(1)

    def set_width(self, width_px: int, margin_px: int) -> None:
        """Be at most this wide, margins included."""
        self._content.setMaximumWidth(width_px - 2 * margin_px)
        self._row.setContentsMargins(margin_px, 0, margin_px, 0)


def _scrolled(content: QWidget) -> QScrollArea:
    """Panels may leave little room: then what doesn't fit is scrolled, not squeezed."""
    area = QScrollArea()
    area.setWidget(content)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area


def _note(text: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName("composerNote")
    label.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
    return label
