"""Layout of the chat page's widgets."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.chat.compose.composer import Composer
from app.chat.compose.tools_button import ToolsButton
from app.chat.conversation_view import COLUMN_EM, ConversationView
from app.chat.empty_state import EmptyState
from app.chat.error_board import ErrorBoard
from app.chat.find.find_bar import FindBar
from app.chat.find.finder import Finder
from app.chat.header import Header
from app.chat.messages.text_view import TextView
from app.chat.strip.steps_strip import StepsStrip
from app.chat_settings.panel import ChatSettingsPanel
from app.chat_settings.seeds import (
    NewSeed,
    new_seed,
)
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.state.chat import ChatState
from app.theme.appearance import Appearance
from app.widgets.elided import ElidedLabel
from app.widgets.explain import explain
from app.widgets.typed import types_text
from medusa_core.chats.presets import Presets
from medusa_core.messages import ModelLoaded

KEYS_NOTE = QT_TRANSLATE_NOOP("ChatPage", "Enter sends · Shift+Enter starts a new line · Esc stops")
CONTEXT_NOTE = QT_TRANSLATE_NOOP(
    "ChatPage", "Tokens of this chat and your message, out of the most that the model can read."
)
PANEL_EM, LEAST_PANEL_EM = 20, 13
MOST_PANEL = 0.5  # of the page's width
# Height of the messages in which one can read; a lower page shows the strip's figures alone.
READABLE_EM = 26


class ChatPage(QWidget):
    """Header, messages, composer, strip, and the panel beside them.

    Attributes:
        header: Model and drafter.
        settings_panel: Settings of the conversation.
        empty: Page of a conversation without messages.
        find_bar: Search bar of the conversation.
        finder: Searches the messages.
        conversation: The messages.
        errors: Cards of errors.
        composer: Editor of the next prompt.
        tools_button: Chooses the tools of the conversation.
        strip: Live figures of the decoding steps.
        context_label: Context usage.

    Signals:
        panel_wanted: The user wants to open (True) or close the side panel.
    """

    panel_wanted = Signal(bool)

    def __init__(
        self,
        state: ChatState,
        appearance: Appearance,
        presets: Presets,
        make_seed: NewSeed = new_seed,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self._appearance = appearance
        self.header = Header(appearance)
        self.settings_panel = ChatSettingsPanel(appearance, presets, make_seed)
        self.settings_panel.hide()
        self.empty = EmptyState(appearance)
        self.conversation = ConversationView(appearance)
        self.errors = ErrorBoard(appearance)
        self.find_bar = FindBar(appearance)
        self.finder = Finder(self.find_bar, self.conversation, appearance)
        self.composer = Composer(state, appearance)
        self.tools_button = ToolsButton(self.settings_panel.tools, appearance)
        self.composer.add_button(self.tools_button)
        self.find_bar.closed.connect(self.composer.setFocus)
        self.strip = StepsStrip(appearance)
        self.context_label = ElidedLabel("")
        self._keys_label = ElidedLabel(self.tr(KEYS_NOTE))
        for label in (self.context_label, self._keys_label):
            label.setObjectName("composerNote")
        self._narrow = (_Column(self.empty), _Column(self._composer_block()))
        self._welcome = _scrolled(self._narrow[0])
        self._build()
        self.composer.edit.scrolled.connect(self.conversation.scroll_pages)
        self.header.panel_wanted.connect(self.panel_wanted)
        self.header.drafter_chosen.connect(self.settings_panel.choose_drafter)
        self.settings_panel.close_requested.connect(lambda: self.panel_wanted.emit(False))
        self.settings_panel.changed.connect(self._show_drafter)
        self.show_messages(False)
        self.restyle()

    def show_messages(self, has_messages: bool) -> None:
        """Show the messages, or the welcome page if there are none."""
        # A stacked layout would paint the whole page again, while an answer begins.
        self._welcome.setVisible(not has_messages)
        self.conversation.setVisible(has_messages)

    def add_card(self, card: QWidget) -> None:
        """Show a card above the composer until its creator removes it."""
        self._cards.insertWidget(0, card)

    def find_words(self) -> None:
        """Open the search bar with the selected text."""
        if self.conversation.messages:
            focused = QApplication.focusWidget()
            self.find_bar.open_bar(focused.selected if isinstance(focused, TextView) else "")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Redirect typed text to the composer."""
        if types_text(event):
            self.composer.setFocus()
            self.composer.edit.insertPlainText(event.text())
        else:
            super().keyPressEvent(event)

    def show_context(self, num_used: int, num_tokens: int, note: str = "") -> None:
        """Show the context usage; empty if unknown."""
        known = num_used > 0 and num_tokens > 0
        shown_text = self.tr("{used} of {all} tokens").format(
            used=f"{Number(num_used):,}", all=f"{Number(num_tokens):,}"
        )
        self._show_context(f"{note}{shown_text}" if known else "", is_warning=False)
        if note:  # it may be cut short
            explain(self.context_label, f"{note}{shown_text}. {self.tr(CONTEXT_NOTE)}")
        self._keys_label.setVisible(not note)

    def warn_context(self, text: str) -> None:
        """Warn before sending that the context is too small for the conversation."""
        self._show_context(text, is_warning=True)
        self._keys_label.hide()

    def note_context(self, text: str) -> None:
        """Show a note about the context."""
        self._show_context(text, is_warning=False)
        explain(self.context_label, text)
        self._keys_label.hide()

    @property
    def readable_height(self) -> int:
        """Page height that leaves `READABLE_EM` for messages with a short strip."""
        strip = 0 if self.strip.isHidden() else self.strip.short_height
        around = self.header.sizeHint().height() + self._narrow[1].sizeHint().height() + strip
        return around + self._appearance.scale.px(READABLE_EM)

    def show_panel(self, is_open: bool) -> None:
        """Show the side panel, or hide it."""
        self.header.panel_button.setChecked(is_open)
        if is_open == self.settings_panel.isHidden():
            self.settings_panel.setVisible(is_open)
            if not is_open:
                self.composer.setFocus()

    def toggle_panel(self) -> None:
        """Request the side panel to open or close."""
        self.panel_wanted.emit(self.settings_panel.isHidden())

    def offer(self, loaded: ModelLoaded) -> None:
        """Offer the drafters and settings of a loaded model."""
        self.settings_panel.offer(loaded)
        self.composer.offer_to(loaded.continues_text)
        lack = self.tr("This model goes on with texts; it knows no chats and no tools.")
        note = self.tr(
            "Its chat template describes no tools, so a system message does: expect more mistakes."
        )
        self.settings_panel.tools.show_model(
            lack if loaded.continues_text else "",
            "" if loaded.tool_calls.is_described or loaded.is_remote else note,
        )
        # How another machine decodes isn't known here.
        self.strip.setVisible(not loaded.is_remote)
        self.header.offer_speed_up(not loaded.is_remote)
        self._show_drafter()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_panel()
        self._fit_strip()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours everywhere."""
        scale = self._appearance.scale
        for column in self._narrow:
            column.set_width(scale.px(COLUMN_EM), scale.px(1.2))
        parts = (self.header, self.empty, self.find_bar, self.conversation, self.errors)
        for part in (*parts, self.composer, self.tools_button, self.strip, self.settings_panel):
            part.restyle()
        self._fit_panel()
        self._fit_strip()

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        row = QHBoxLayout()
        row.setSpacing(0)
        column.addLayout(row, 1)
        chat = QVBoxLayout()
        chat.setSpacing(0)
        chat.addWidget(self.find_bar)
        chat.addWidget(self._welcome, 1)
        chat.addWidget(self.conversation, 1)
        chat.addWidget(self._narrow[1])
        chat.addWidget(self.strip)
        row.addLayout(chat, 1)
        row.addWidget(self.settings_panel)

    def _fit_panel(self) -> None:
        """Limit the side panel to its share of the window's width."""
        least, wanted = map(self._appearance.scale.px, (LEAST_PANEL_EM, PANEL_EM))
        self.settings_panel.setFixedWidth(max(least, min(wanted, int(self.width() * MOST_PANEL))))

    def _fit_strip(self) -> None:
        """Show bars and draft sources only if enough height is left for messages."""
        room = self.height() - self.readable_height
        self.strip.show_short(room < self.strip.sources_height)

    def _show_drafter(self) -> None:
        chosen = self.settings_panel.drafter
        if chosen is not None:
            self.header.offer_drafters(
                self.settings_panel.drafters, chosen, self.settings_panel.speeds
            )

    def _show_context(self, text: str, *, is_warning: bool) -> None:
        label = self.context_label
        label.setText(text)
        if label.property("warns") != is_warning:  # which costs more than the text
            label.setProperty("warns", is_warning)
            label.style().unpolish(label)
            label.style().polish(label)
        explain(label, text if is_warning else self.tr(CONTEXT_NOTE))

    def _composer_block(self) -> QWidget:
        block = QWidget()
        notes = QHBoxLayout()
        notes.setContentsMargins(12, 0, 12, 0)
        notes.addWidget(self._keys_label, 1)
        notes.addWidget(self.context_label)
        self._cards = column = QVBoxLayout(block)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(4)
        column.addWidget(self.errors)
        column.addWidget(self.composer)
        column.addLayout(notes)
        return block


class _Column(QWidget):
    """Centres a widget, at most as wide as the messages."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self._row = row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(content, 1000)
        row.addStretch(1)

    def set_width(self, width_px: int, margin_px: int) -> None:
        """Set the maximum width, margins included."""
        self._content.setMaximumWidth(width_px - 2 * margin_px)
        self._row.setContentsMargins(margin_px, 0, margin_px, 0)


def _scrolled(content: QWidget) -> QScrollArea:
    """Wrap a widget in a scroll area, because panels may leave too little height."""
    area = QScrollArea()
    area.setWidget(content)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area
