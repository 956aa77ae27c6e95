"""Collapsible view of a tool call: its function and state; arguments and result."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.chat.messages.call_texts import arguments_text, one_line
from app.chat.messages.fold import Fold
from app.chat.messages.text_view import InertDocument, TextView, cut_for_view
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.qt_text import showable, with_visible_controls
from medusa_core.chats.rounds import CallState, RoundCall
from medusa_core.messages import Content, TextPart

_STATES = {
    CallState.REQUESTED: QT_TRANSLATE_NOOP("Chat", "not run"),
    CallState.APPROVED: QT_TRANSLATE_NOOP("Chat", "not run"),
    CallState.DENIED: QT_TRANSLATE_NOOP("Chat", "denied"),
    CallState.RUNNING: QT_TRANSLATE_NOOP("Chat", "running…"),
    CallState.DONE: QT_TRANSLATE_NOOP("Chat", "done"),
    CallState.FAILED: QT_TRANSLATE_NOOP("Chat", "failed"),
    CallState.INTERRUPTED: QT_TRANSLATE_NOOP("Chat", "interrupted"),
}
_MOST_NAME_CHARS = 80
_MOST_REASON_CHARS = 60
_SHOWN_S = 0.05  # a shorter duration would be shown as 0.0 s


class CallCard(Fold):
    """Line with a call's function and state; expands to arguments and result, as plain text.

    Attributes:
        call: The shown call.
    """

    def __init__(
        self, call: RoundCall, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        self._document = InertDocument()
        super().__init__(TextView(self._document, self.tr("Tool call")), appearance, parent)
        self.show_call(call)
        self.restyle()

    def show_call(self, call: RoundCall) -> None:
        """Show a call, or its new state."""
        self.call = call
        state = QCoreApplication.translate("Chat", _STATES[call.state])
        if call.state is CallState.FAILED and call.result is not None and call.result.text:
            state = f"{state}: {one_line(call.result.text, _MOST_REASON_CHARS)}"
        parts = [one_line(call.call.name, _MOST_NAME_CHARS), state]
        if call.result is not None and call.result.duration_s >= _SHOWN_S:
            parts.append(f"{Number(call.result.duration_s):.1f} s")
        self.show_title(
            " · ".join(parts), self.tr("Show the arguments and the result of this call")
        )
        self._document.setPlainText(cut_for_view(showable(with_visible_controls(self.text))))

    @property
    def text(self) -> str:
        """Arguments and result."""
        text = self.tr("Arguments:\n{0}").format(arguments_text(self.call.call.arguments))
        if self.call.result is not None:
            result = self.tr("Result:\n{0}").format(_shown_content(self.call.result.content))
            text = f"{text}\n\n{result}"
        return text


def _shown_content(content: Content) -> str:
    """Return the text of a content; images are named."""
    image = QCoreApplication.translate("Chat", "[image]")
    return "".join(part.text if isinstance(part, TextPart) else image for part in content)
