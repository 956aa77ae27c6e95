"""Widgets of messages: base class, prompts and notices."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.compose.attachment_bar import AttachmentBar
from app.chat.estimates import estimated_text_px
from app.chat.messages.copy_button import CopyButton
from app.chat.messages.highlights import highlight_words
from app.chat.messages.passages import PassageFold
from app.chat.messages.prompt_editor import PromptEditor
from app.chat.messages.text_actions import add_text_actions
from app.chat.messages.text_view import (
    TextView,
    plain_document,
)
from app.chat.messages.version_row import VersionRow
from app.theme.appearance import Appearance
from app.theme.tokens import Theme
from app.widgets.qt_text import passed_on
from medusa_core.api import Attachment
from medusa_core.messages import PassagePart

# A bubble is narrower than the column, so that one sees at a glance who speaks.
BUBBLE_SHARE = 0.86


class PromptActions(QWidget):
    """Row of actions under a prompt.

    Attributes:
        copy_button: Copies the prompt.
        edit_button: Edits the prompt.
        versions: Selects among the prompt's versions.

    Signals:
        copy_requested: The user wants to copy the prompt.
        edit_requested: The user wants to edit the prompt.
    """

    copy_requested = Signal()
    edit_requested = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self.versions = VersionRow(self.tr("message"), appearance)
        self.copy_button = CopyButton(self.tr("Copy the message"), appearance)
        self.copy_button.clicked.connect(self.copy_requested)
        self.edit_button = QToolButton()
        self.edit_button.setProperty("class", "action")
        self.edit_button.setAccessibleName(self.tr("Edit"))
        self.edit_button.setToolTip(self.tr("Edit and send again; this version stays"))
        self.edit_button.clicked.connect(self.edit_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self.versions)
        row.addWidget(self.copy_button)
        row.addWidget(self.edit_button)
        self.restyle()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        side = self._appearance.scale.px(1.0)
        self.edit_button.setIcon(self._appearance.icon("edit", self._appearance.theme.muted, 1.0))
        self.edit_button.setIconSize(QSize(side, side))
        self.copy_button.restyle()
        self.versions.restyle()


class MessageWidget(QFrame):
    """Base class of the widgets of a conversation.

    Attributes:
        is_populated: Whether the content is laid out; else only its height is estimated.

    Signals:
        quoted: The user wants to quote a text in the next prompt.
    """

    quoted = Signal(str)
    is_populated = True

    def populate(self) -> None:
        """Create and lay out the content, once."""

    def estimated_px(self, width_px: int) -> int:
        """Estimate the height at a width."""
        return 0

    @property
    def searched_text(self) -> str:
        """Text that is searched."""
        return ""

    def highlight(self, words: str, number: int, theme: Theme) -> QRect | None:
        """Highlight search matches; an empty search removes the highlights.

        Args:
            words: Search text.
            number: Index of the current match; −1 for none.
            theme: Colours of the highlights.

        Returns:
            Position of the current match in this widget; None if there is none.
        """
        return None

    def restyle(self) -> None:
        """Apply the sizes and colours that the style sheet doesn't set."""


class UserMessage(MessageWidget):
    """Prompt of the user in a right-aligned bubble.

    Attributes:
        text: The prompt.
        attachments: Files of the prompt.
        passages: Passages of documents that were read for the prompt.

    Signals:
        edited: The user edited the prompt (the new text).
        version_chosen: The user selected another version (its index).
    """

    edited = Signal(str)
    version_chosen = Signal(int)

    def __init__(
        self,
        text: str,
        appearance: Appearance,
        attachments: tuple[Attachment, ...] = (),
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.is_populated = False
        self.text = text
        self.attachments = attachments
        self.passages: tuple[PassagePart, ...] = ()
        self._appearance = appearance
        self._version = (0, 1)

    @property
    def row(self) -> PromptActions:
        """Actions of the prompt."""
        self.populate()
        return self._row

    @property
    def view(self) -> TextView:
        """View of the text."""
        self.populate()
        return self._view

    @property
    def files(self) -> AttachmentBar:
        """Attached files of the prompt."""
        self.populate()
        return self._files

    @property
    def fold(self) -> PassageFold:
        """Passages that were read for the prompt, folded."""
        self.populate()
        return self._fold

    def show_passages(self, passages: tuple[PassagePart, ...]) -> None:
        """Show which passages were read."""
        self.passages = passages
        if self.is_populated:
            self._fold.show_passages(passages)

    def show_version(self, place: int, num_versions: int) -> None:
        """Show the index of this version, counted from 0."""
        self._version = (place, num_versions)
        if self.is_populated:
            self._row.versions.show_version(place, num_versions)

    def estimated_px(self, width_px: int) -> int:
        return estimated_text_px(self.text, int(width_px * BUBBLE_SHARE), self._appearance.scale)

    def populate(self) -> None:
        if self.is_populated:
            return
        self.is_populated = True
        text, appearance = self.text, self._appearance
        self._bubble = QFrame(self)
        self._bubble.setObjectName("bubble")
        self._view = TextView(plain_document(text), self.tr("You"), self._bubble)
        self._lines = self._view.toPlainText().split("\n")
        self._inner = QVBoxLayout(self._bubble)
        self._inner.addWidget(self._view)
        self._view.setVisible(bool(text))
        self._files = AttachmentBar(appearance, is_removable=False)
        self._files.show_all(self.attachments)
        self._inner.addWidget(self._files)
        self._row = PromptActions(appearance)
        self._row.edit_requested.connect(self.begin_edit)
        self._row.copy_requested.connect(self._copy)
        self._row.versions.chosen.connect(self.version_chosen)
        self._row.versions.show_version(*self._version)
        self._view.menu_requested.connect(self._show_menu)
        self._fold = PassageFold(self.passages, appearance)
        self._editor: PromptEditor | None = None
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self._bubble)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(row)
        column.addWidget(self._row)
        column.addWidget(self._fold)
        self.restyle()

    @property
    def searched_text(self) -> str:
        return self._view.toPlainText() if self.is_populated else self.text

    def highlight(self, words: str, number: int, theme: Theme) -> QRect | None:
        if not self.is_populated:
            return None
        place = highlight_words(self._view, words, number, theme)
        return place and QRect(self._view.mapTo(self, place.topLeft()), place.size())

    def menu(self) -> QMenu:
        """Actions of the prompt."""
        menu = QMenu(self._view)
        add_text_actions(menu, self._view, self.quoted.emit)
        menu.addAction(self.tr("Copy the message"), self.row.copy_button.click)
        menu.addSeparator()
        menu.addAction(self.tr("Edit"), self.begin_edit)
        return menu

    def _show_menu(self, _position: int, place: QPoint) -> None:
        menu = self.menu()
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(place)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(passed_on(self.text))

    def begin_edit(self) -> None:
        """Open the editor of the prompt."""
        if self._editor is not None:
            return
        self._editor = editor = PromptEditor(self.text, self._appearance)
        editor.sent.connect(self._send_edited)
        editor.cancelled.connect(self.end_edit)
        self._view.hide()
        self._inner.addWidget(editor)
        self.row.hide()
        self._fit()
        editor.setFocus()

    def end_edit(self) -> None:
        """Close the editor and show the unchanged text."""
        self._view.show()
        if self._editor is not None:
            if self._editor.edit.hasFocus():
                self._view.setFocus()  # else Qt gives it to whatever comes next in the window
            self._editor.hide()
            self._editor.deleteLater()
            self._editor = None
        self.row.show()
        self._fit()

    def _send_edited(self, text: str) -> None:
        self.end_edit()
        self.edited.emit(text)

    def restyle(self) -> None:
        """Apply the theme's sizes."""
        if not self.is_populated:
            return
        scale = self._appearance.scale
        self._inner.setContentsMargins(scale.px(0.95), scale.px(0.6), scale.px(0.95), scale.px(0.6))
        self._view.set_font(scale.font())
        self._row.restyle()
        self._fold.restyle()
        self._fit()

    def resizeEvent(self, event: object) -> None:
        if self.is_populated:
            self._fit()

    def _fit(self) -> None:
        """Fit the bubble's width to the text, up to its share of the column."""
        margins = self._inner.contentsMargins()
        sides = margins.left() + margins.right()
        widest = int(self.width() * BUBBLE_SHARE)
        if self._editor is not None:
            self._bubble.setFixedWidth(max(1, widest))
            return
        metrics = self._view.fontMetrics()
        ideal = max(metrics.horizontalAdvance(line) for line in self._lines) + sides + 4
        if self.attachments:
            ideal = max(ideal, self._files.sizeHint().width() + sides)
        self._bubble.setFixedWidth(max(1, min(widest, ideal)))


class Notice(MessageWidget):
    """A remark of the application between two messages.

    Attributes:
        text: The remark.
    """

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.text = text
        label = QLabel(text)
        label.setObjectName("notice")
        label.setTextFormat(Qt.TextFormat.PlainText)  # it may name a file or a server's tool
        label.setWordWrap(True)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        QVBoxLayout(self).addWidget(label)
