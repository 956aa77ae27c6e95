"""Question before a tool server is switched on, with all that will be started or reached."""

from __future__ import annotations

import shlex

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QLabel,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance
from app.tools.pairs_edit import shown_value
from medusa_core.api import ToolServer, is_readable_by_others, visible_text

_LINES = 6
translate = QCoreApplication.translate


class SwitchOnQuestion(QDialog):
    """Shows the whole command line or address; Enter and closing mean No.

    Attributes:
        command: What will be started or reached.
        warning: What it can do.
        yes_button: Switches the server on.
        no_button: Leaves it off.
    """

    def __init__(self, server: ToolServer, appearance: Appearance, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Switch on {0}?").format(server.name))
        self.command = QPlainTextEdit(described(server))
        self.command.setObjectName("promptPreview")
        self.command.setProperty("class", "panelText")
        self.command.setReadOnly(True)
        self.command.setTabChangesFocus(True)
        self.command.setMinimumHeight(self.command.fontMetrics().lineSpacing() * _LINES)
        question = QLabel(self._question(server))
        question.setBuddy(self.command)
        self.command.setAccessibleName(question.text())
        self.warning = QLabel(self._warning(server))
        for label in (question, self.warning):
            label.setWordWrap(True)
        buttons = QDialogButtonBox()
        no, yes = QDialogButtonBox.ButtonRole.RejectRole, QDialogButtonBox.ButtonRole.AcceptRole
        self.yes_button = buttons.addButton(self.tr("Switch on"), yes)
        self.no_button = buttons.addButton(self.tr("Leave it off"), no)
        self.yes_button.setAutoDefault(False)
        self.no_button.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.addWidget(question)
        column.addWidget(self.command, 1)
        column.addWidget(self.warning)
        column.addWidget(buttons)
        self.no_button.setFocus()
        self.resize(appearance.scale.px(38), appearance.scale.px(22))

    def _question(self, server: ToolServer) -> str:
        if server.url:
            return self.tr("Medusa Chat will connect to this address:")
        return self.tr("Medusa Chat will start this program:")

    def _warning(self, server: ToolServer) -> str:
        if server.url:
            words = self.tr(
                "Whoever runs this server receives the arguments of the calls that you approve, "
                "and its results can mislead the model. Switch on only servers that you trust. It "
                "is connected with each start of Medusa Chat until you switch it off."
            )
            if not is_readable_by_others(server.url):
                return words
            more = self.tr(
                "The connection isn't encrypted: others on the network can read the headers, calls "
                "and results."
            )
            return f"{more}\n\n{words}"
        return self.tr(
            "It runs with your rights: it can read and change all of your files and reach the "
            "network, also without a call. Switch on only programs that you trust. It starts with "
            "each start of Medusa Chat until you switch it off."
        )


def described(server: ToolServer) -> str:
    """Return all that is started or reached, each on one line.

    Characters that can't be seen are escapes, line ends included: they could move the rest out of
    sight. Values of secrets are left out; a variable that isn't one may change what a program does.
    """
    lines = [server.url or shlex.join((server.command, *server.args))]
    if server.cwd:
        lines.append(translate("Tools", "in the folder {0}").format(server.cwd))
    for pairs, words in (
        (server.env, translate("Tools", "with the variable {0}={1}")),
        (server.headers, translate("Tools", "with the header {0}: {1}")),
    ):
        lines += [words.format(name, shown_value(name, value)) for name, value in pairs]
    return "\n".join(visible_text(line).replace("\n", r"\n") for line in lines)
