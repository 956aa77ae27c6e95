"""Headers of code blocks: language and Copy button."""

from __future__ import annotations

import math
from collections.abc import Iterator

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextDocument, QTextFrame
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.chat.messages.copy_button import CopyButton
from app.markdown.formats import CODE_HEADER_PX, CODE_LANGUAGE
from app.theme.appearance import Appearance
from app.widgets.qt_text import passed_on


class CodeHeader(QWidget):
    """Header of a code block.

    Attributes:
        label: Its language.
        button: Copies the code.
        row: Layout of the header.
    """

    def __init__(self, appearance: Appearance, parent: QWidget) -> None:
        super().__init__(parent)
        self._code = ""
        self.setObjectName("codeHeader")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.label = QLabel(self)
        self.label.setProperty("class", "figure")
        self.button = CopyButton(self.tr("Copy this code"), appearance, self.tr("Copy"), self)
        self.button.clicked.connect(self._copy)
        self.row = row = QHBoxLayout(self)
        row.addWidget(self.label)
        row.addStretch(1)
        row.addWidget(self.button)

    def show_block(self, language: str, code: str) -> None:
        """Show the header of a code block."""
        self._code = code
        self.label.setText(language)
        self.button.setAccessibleDescription(
            self.tr("Copy this {0} code").format(language)
            if language
            else self.tr("Copy this code")
        )

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(passed_on(self._code))


class CodeHeaders:
    """Places a header above each code block of a document.

    Args:
        document: Shows the code.
        viewport: Parent widget of the headers.
        appearance: Theme and sizes.

    Attributes:
        headers: The shown headers, from the top.
    """

    def __init__(self, document: QTextDocument, viewport: QWidget, appearance: Appearance) -> None:
        self._document = document
        self._viewport = viewport
        self._appearance = appearance
        self.headers: list[CodeHeader] = []

    def refresh(self) -> None:
        """Update the headers after a change of the document."""
        num_shown = 0
        for frame in _code_frames(self._document):
            if num_shown == len(self.headers):
                self.headers.append(CodeHeader(self._appearance, self._viewport))
            self._place(self.headers[num_shown], frame)
            num_shown += 1
        for header in self.headers[num_shown:]:
            header.hide()
            header.deleteLater()
        del self.headers[num_shown:]

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        for header in self.headers:
            header.button.restyle()

    def _place(self, header: CodeHeader, frame: QTextFrame) -> None:
        fmt = frame.frameFormat()
        box = self._document.documentLayout().frameBoundingRect(frame)
        height = float(fmt.property(CODE_HEADER_PX))
        left, top = box.left() + fmt.leftMargin(), box.top() + fmt.topMargin() - height
        width = box.right() - fmt.rightMargin() - left
        header.setGeometry(round(left), round(top), round(width), math.ceil(height) + 1)
        header.row.setContentsMargins(round(fmt.padding()), 0, round(fmt.padding() / 2), 0)
        first = frame.firstCursorPosition()
        first.setPosition(frame.lastPosition(), first.MoveMode.KeepAnchor)
        code = first.selectedText().replace("\u2029", "\n")
        header.show_block(str(fmt.property(CODE_LANGUAGE) or ""), code)
        header.show()


def _code_frames(document: QTextDocument) -> Iterator[QTextFrame]:
    for frame in document.rootFrame().childFrames():
        if frame.frameFormat().hasProperty(CODE_LANGUAGE):
            yield frame
