"""Details of a tool server: its state, what is started, its tools and its log."""

from __future__ import annotations

from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import engine_text
from app.theme.appearance import Appearance
from app.tools.switch_on_question import described
from app.tools.words import state_word
from app.widgets.flow_layout import FlowLayout
from app.widgets.live_label import LiveLabel
from app.widgets.qt_text import with_visible_controls
from medusa_core.api import ServerState, ServerStatus

_COMMAND_LINES, _LOG_LINES, _TOOL_LINES = 3, 5, 5


class ServerDetails(QWidget):
    """Details of a server.

    Attributes:
        server_name: Its name; empty for none.
        state: Its state, or why it failed.
        switch: Switches it on or off.
        command: What is started or reached.
        tools: Its tools with their descriptions.
        log: Last lines of its log.
        edit_button: Opens its form.
        restart_button: Starts it again.
        remove_button: Removes it.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self.server_name = ""
        self.state = LiveLabel()
        self.switch = QCheckBox(self.tr("Switched on"))
        self.command = _text_view(self.tr("What is started or reached"), _COMMAND_LINES)
        self.command.setMaximumHeight(self.command.minimumHeight())
        self.edit_button = QPushButton(self.tr("Edit…"))
        self.restart_button = QPushButton(self.tr("Restart"))
        self.remove_button = QPushButton(self.tr("Remove…"))
        self.tools = QListWidget()
        self.tools.setAccessibleName(self.tr("Tools of this server"))
        self.tools.setWordWrap(True)
        self.tools.setMinimumHeight(self.fontMetrics().lineSpacing() * _TOOL_LINES)
        self.log = _text_view(self.tr("Log"), _LOG_LINES)
        for view in (self.tools, self.log):  # what a long list wants doesn't matter: it scrolls
            view.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self._empty = QLabel(
            self.tr(
                "A server brings tools, such as the files of a folder or a calendar. Add one by "
                "its command line or address, or import those of another program. It is started "
                "only once you switch it on."
            )
        )
        self._empty.setWordWrap(True)
        self._tools_label, self._log_label = QLabel(self.tr("Tools")), QLabel(self.tr("Log"))
        buttons = FlowLayout(appearance.scale.px(0.4))
        self._buttons = (self.edit_button, self.restart_button, self.remove_button)
        for button in self._buttons:
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.addWidget(self._empty)
        for widget in (self.switch, self.state, self.command):
            column.addWidget(widget)
        column.addLayout(buttons)
        column.addWidget(self._tools_label)
        column.addWidget(self.tools, 2)
        column.addWidget(self._log_label)
        column.addWidget(self.log, 1)
        self.show_status(None)

    def show_status(self, status: ServerStatus | None) -> None:
        """Show a server; None for none."""
        self.server_name = "" if status is None else status.server.name
        self._empty.setVisible(status is None)
        shown = (self.switch, self.state, self.command, *self._buttons)
        for widget in (*shown, self._tools_label, self.tools, self._log_label, self.log):
            widget.setVisible(status is not None)
        if status is None:
            return
        self.switch.setChecked(status.server.is_enabled)
        self.restart_button.setEnabled(status.server.is_enabled)
        reason = " ".join(map(engine_text, filter(None, (status.reason, status.hint))))
        state = state_word(status.state)
        words = self.tr("{0}: {1}").format(state, reason) if reason else state
        self.state.setText(self.tr("State: {0}").format(with_visible_controls(words)))
        _set_text(self.command, described(status.server))
        self._show_tools(status)
        lines = "\n".join(status.log)
        _set_text(self.log, with_visible_controls(lines))
        self.log.setPlaceholderText(self.tr("It has written nothing."))

    def _show_tools(self, status: ServerStatus) -> None:
        texts = [
            with_visible_controls(f"{tool.label}\n{tool.tool.description}".strip())
            for tool in status.tools
        ]
        if status.state is not ServerState.READY and not texts:
            texts = [self.tr("Its tools are known once it is on.")]
        if texts != [self.tools.item(row).text() for row in range(self.tools.count())]:
            self.tools.clear()
            self.tools.addItems(texts)


def _text_view(name: str, num_lines: int) -> QPlainTextEdit:
    """Make a view of text that is shown as it is."""
    view = QPlainTextEdit()
    view.setObjectName("promptPreview")
    view.setProperty("class", "panelText")
    view.setReadOnly(True)
    view.setTabChangesFocus(True)
    view.setAccessibleName(name)
    view.setMinimumHeight(view.fontMetrics().lineSpacing() * (num_lines + 1))
    return view


def _set_text(view: QPlainTextEdit, text: str) -> None:
    """Show a text, and its end if that was shown before."""
    if text == view.toPlainText():
        return
    bar = view.verticalScrollBar()
    is_at_end = bar.value() == bar.maximum()
    view.setPlainText(text)
    if is_at_end:
        bar.setValue(bar.maximum())
