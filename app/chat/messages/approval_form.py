"""Form that asks about a tool call: the tool, all arguments, and the user's decision."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QResizeEvent, QTextOption
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPlainTextEdit,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.chat.messages.call_texts import arguments_text, one_line
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.explain import explain
from app.widgets.flow_layout import FlowLayout
from app.widgets.qt_text import breakable
from app.widgets.wrapped_button import WrappedButton
from medusa_core.api import visible_text
from medusa_core.chats.rounds import Approval, RoundCall

if TYPE_CHECKING:
    from medusa_core.api import OfferedTool

_MOST_LINES = 20  # of the field; it scrolls to the others


@dataclass(frozen=True, slots=True)
class CallQuestion:
    """A call about which the user is asked.

    Attributes:
        place: Index of the call in its round.
        name: Name of the function.
        tool: The tool; None if it can't be called now.
        is_repeated: Whether the same call ran earlier in this answer.
    """

    place: int
    name: str
    tool: OfferedTool | None
    is_repeated: bool = False


class ApprovalForm(QFrame):
    """Shows a call with all of its arguments, which can be edited, until the user decides.

    Attributes:
        edit: The arguments.
        once_button: Allows this call.
        conversation_button: Allows the tool's calls in this conversation.
        always_button: Allows the tool's calls, or those that reach the same host.
        deny_button: Denies this call.

    Signals:
        decided: The decision (an `Approval`; `Approval.NONE` denies) and the arguments.
    """

    decided = Signal(object, str)

    def __init__(
        self,
        question: CallQuestion,
        call: RoundCall,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("approval")
        self.question = question
        self._appearance = appearance
        label = question.name if question.tool is None else _label(question.tool)
        self._title = _plain_label(self.tr("Allow this tool call? {0}").format(one_line(label)))
        self._title.setObjectName("approvalTitle")
        self._origin = _plain_label(self._origin_text())
        self._origin.setObjectName("approvalText")
        again = self.tr("The model asks for the same call again, although it has its result.")
        self._repeated = _plain_label(again if question.is_repeated else "")
        self._repeated.setObjectName("approvalText")
        if not question.is_repeated:
            self._repeated.hide()
        self._host = _plain_label("")
        self._host.setObjectName("approvalText")
        self._more = _plain_label(self.tr("There is more: scroll to read all arguments."))
        self._more.setObjectName("approvalText")
        self._problem = _plain_label("")
        self._problem.setObjectName("approvalProblem")
        self.edit = _ArgumentsEdit(arguments_text(call.call.arguments))
        self.edit.setAccessibleName(self.tr("Arguments of the call, which you can change"))
        self.once_button = _DecisionButton(self.tr("Allow once"))
        self.once_button.setObjectName("primaryButton")
        self.conversation_button = _DecisionButton(self.tr("Allow in this chat"))
        self.always_button = _DecisionButton("")
        self.deny_button = _DecisionButton(self.tr("Deny"))
        explain(self.deny_button, self.tr("The model reads that you denied it, and goes on."))
        self._column = QVBoxLayout(self)
        self._buttons = FlowLayout(appearance.scale.px(0.5))
        self._build()
        self.edit.textChanged.connect(self._check)
        self.edit.verticalScrollBar().rangeChanged.connect(self._show_more)
        self.setAccessibleName(self._title.text())
        self._check()
        self._show_more()
        self.restyle()

    def tell(self) -> None:
        """Announce the question by the screen reader."""
        words = (self._title.text(), self._repeated.text(), self._origin.text())
        text = ". ".join(filter(None, (*words, self.edit.toPlainText())))
        announce(self, text, is_urgent=True)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        margin = scale.px(0.8)
        self._column.setContentsMargins(margin, margin, margin, margin)
        self._column.setSpacing(scale.px(0.5))
        self.edit.updateGeometry()
        self._buttons.invalidate()

    def _build(self) -> None:
        buttons = (
            self.once_button,
            self.conversation_button,
            self.always_button,
            self.deny_button,
        )
        approvals = (Approval.ONCE, Approval.CONVERSATION, Approval.ALWAYS, Approval.NONE)
        for button, approval in zip(buttons, approvals, strict=True):
            button.setAutoDefault(False)
            button.clicked.connect(lambda _checked=False, one=approval: self._decide(one))
            self._buttons.addWidget(button)
        for widget in (
            self._title,
            self._repeated,
            self._origin,
            self._host,
            self.edit,
            self._more,
            self._problem,
        ):
            self._column.addWidget(widget)
        self._column.addLayout(self._buttons)

    def _origin_text(self) -> str:
        """Return where the tool comes from."""
        tool = self.question.tool
        if tool is None:
            return self.tr(
                "This tool isn't there now. Switch it on or restart its server under Tools, or "
                "deny the call."
            )
        if tool.server is None:
            return self.tr("A built-in tool of this program")
        command = visible_text(tool.server.command_line).replace("\n", r"\n")
        return self.tr("Tool server “{0}”: {1}").format(one_line(tool.server.name), command)

    def _show_more(self) -> None:
        """Show a hint if the arguments need scrolling."""
        self._more.setVisible(self.edit.verticalScrollBar().maximum() > 0)

    def _check(self) -> None:
        """Show the host that the call reaches, and what is wrong with the arguments."""
        tool, arguments = self.question.tool, self._arguments()
        problem = "" if tool is None else self._problem_with(tool, arguments)
        host = "" if tool is None or problem else tool.host(arguments or "{}")
        self._host.setText(self.tr("Reaches {0}").format(breakable(host)))
        self._host.setVisible(bool(host))
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        always = self.tr("Always allow for {0}").format(host) if host else self.tr("Always allow")
        self.always_button.setText(always)
        explain(
            self.always_button,
            self.tr("Until the tool or its server changes. The page Tools lists what is allowed."),
        )
        for button in (self.once_button, self.conversation_button, self.always_button):
            button.setEnabled(tool is not None and not problem)

    def _problem_with(self, tool: OfferedTool, arguments: str | None) -> str:
        """Return why the call can't run with the shown arguments; empty if it can."""
        from medusa_core.api import arguments_problem

        if arguments is None:
            return self.tr("This is no JSON object.")
        found = arguments_problem(arguments, tool.tool.parameters)
        return self.tr("This doesn't fit the tool. {0}").format(found) if found else ""

    def _arguments(self) -> str | None:
        """Return the arguments as they are shown, on one line; None if they are no JSON."""
        try:
            shown = json.loads(self.edit.toPlainText() or "{}")
            return json.dumps(shown, ensure_ascii=False, allow_nan=False)
        except (ValueError, RecursionError):
            return None

    def _decide(self, approval: Approval) -> None:
        self.decided.emit(approval, self._arguments() or "")


class _DecisionButton(WrappedButton):
    """Button that ignores the second press of a double click.

    After a fast call the form of the next one has its buttons at the same place.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text, Qt.AlignmentFlag.AlignHCenter)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        event.accept()


class _ArgumentsEdit(QPlainTextEdit):
    """Field as high as its text, up to a number of lines; it scrolls inside."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("approvalArguments")
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setPlainText(text)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)

    def sizeHint(self) -> QSize:
        """Size of the text, up to `_MOST_LINES` lines."""
        layout = self.document().documentLayout()
        num_lines = min(max(2, round(layout.documentSize().height())), _MOST_LINES)
        around = 2 * (self.frameWidth() + round(self.document().documentMargin()))
        height = num_lines * self.fontMetrics().lineSpacing() + around + 8
        return QSize(super().sizeHint().width(), height)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()  # lines are wrapped elsewhere, which changes the document's size silently

    def _fit(self) -> None:
        self.updateGeometry()


def _label(tool: OfferedTool) -> str:
    """Return the name of a tool for people."""
    is_builtin = tool.server is None
    return QCoreApplication.translate("Tools", tool.label) if is_builtin else tool.label


def _plain_label(text: str) -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
