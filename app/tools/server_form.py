"""Form of a tool server; saving it with its secrets."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import error_text
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.tools.pairs_edit import Pair, PairsEdit
from app.tools.switch_on_question import described
from app.tools.window_tools import WindowTools
from app.widgets.explain import explain
from app.widgets.live_label import LiveLabel
from app.widgets.naming import name_box
from app.widgets.number_edit import WholeBox
from medusa_core.api import ToolServer
from medusa_core.errors import MedusaError

# Saves a server whose secrets are to be put into the keyring, which blocks.
SaveServer = Callable[[ToolServer, tuple[Pair, ...], tuple[Pair, ...]], None]

_MOST_TIMEOUT_S = 3600


class ServerForm(QDialog):
    """Asks for a program or an address; stays open until it is saved or cancelled.

    Attributes:
        name_edit: Name of the server.
        kind_box: Program or address.
        command_edit: Command line of the program.
        folder_edit: Folder in which the program starts.
        env: Environment variables.
        url_edit: Address.
        headers: HTTP headers.
        timeout_box: Longest time of a call.
        note: Why it can't be saved.
        save_button: Saves the server.
    """

    def __init__(
        self,
        save: SaveServer,
        appearance: Appearance,
        parent: QWidget | None = None,
        server: ToolServer | None = None,
    ) -> None:
        """Create the form.

        Args:
            save: Saves the server with its variables and headers; runs in a thread.
            appearance: Theme and sizes.
            parent: Parent widget.
            server: Server to edit; None for a new one.
        """
        super().__init__(parent)
        self.tasks = Tasks(self)
        self._save = save
        self._server = server or ToolServer("")
        title = self.tr("Edit the server") if server else self.tr("Add a server")
        self.setWindowTitle(title)
        self.name_edit = QLineEdit(self._server.name)
        self.kind_box = QComboBox()
        self.kind_box.addItems([self.tr("Program on this computer"), self.tr("Address")])
        name_box(self.kind_box, self.tr("Kind of server"))
        self.command_edit = QLineEdit(
            shlex.join((self._server.command, *self._server.args)) if self._server.command else ""
        )
        self.command_edit.setCursorPosition(0)
        self.command_edit.setPlaceholderText(
            "npx -y @modelcontextprotocol/server-filesystem ~/Notes"
        )
        explain(
            self.command_edit,
            self.tr("The program and its arguments; quotation marks keep spaces together."),
        )
        self.folder_edit = QLineEdit(self._server.cwd)
        self.folder_edit.setPlaceholderText(self.tr("your home folder"))
        self.env = PairsEdit(self.tr("Add a variable"), appearance)
        self.env.show_pairs(self._server.env)
        self.url_edit = QLineEdit(self._server.url)
        self.url_edit.setPlaceholderText("https://example.com/mcp")
        self.headers = PairsEdit(self.tr("Add a header"), appearance)
        self.headers.show_pairs(self._server.headers)
        self.timeout_box = WholeBox()
        self.timeout_box.setRange(0, _MOST_TIMEOUT_S)
        self.timeout_box.setSuffix(self.tr(" s"))
        self.timeout_box.setSpecialValueText(self.tr("the default, a minute"))
        self.timeout_box.setValue(round(self._server.timeout_s))
        self.note = LiveLabel()
        self.note.hide()
        buttons = QDialogButtonBox()
        role = QDialogButtonBox.ButtonRole
        self.save_button = buttons.addButton(self.tr("Save"), role.AcceptRole)
        buttons.addButton(self.tr("Cancel"), role.RejectRole)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        self._form = QFormLayout()
        self._build(buttons)
        self.kind_box.currentIndexChanged.connect(self._show_kind)
        self.kind_box.setCurrentIndex(1 if self._server.url else 0)
        self._show_kind()
        self.resize(appearance.scale.px(42), appearance.scale.px(26))

    def accept(self) -> None:
        """Save the server; the form stays open if that fails."""
        if self.tasks.is_running:
            return
        try:
            server = self._described()
        except ValueError:
            self._refuse(self.tr("A quotation mark in the command line isn't closed: close it."))
            return
        self.save_button.setEnabled(False)
        self.tasks.start(self._finish(server))

    def _described(self) -> ToolServer:
        """Return the server as it is typed, without variables and headers."""
        name, timeout_s = self.name_edit.text().strip(), float(self.timeout_box.value())
        if self.kind_box.currentIndex() == 1:
            return ToolServer(name, url=self.url_edit.text().strip(), timeout_s=timeout_s)
        command, *args = split_command(self.command_edit.text()) or ("",)
        folder = self.folder_edit.text().strip()
        return ToolServer(name, command, tuple(args), cwd=folder, timeout_s=timeout_s)

    async def _finish(self, server: ToolServer) -> None:
        is_program = not server.url and self.kind_box.currentIndex() == 0
        env = self.env.pairs() if is_program else ()
        headers = () if is_program else self.headers.pairs()
        try:
            await asyncio.to_thread(self._save, server, env, headers)
        except MedusaError as error:
            self._refuse(error_text(error))
        else:
            super().accept()
        finally:
            self.save_button.setEnabled(True)

    def _refuse(self, text: str) -> None:
        self.note.setText(text)
        self.note.show()

    def _build(self, buttons: QDialogButtonBox) -> None:
        form = self._form
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for label, field in (
            (self.tr("Name"), self.name_edit),
            (self.tr("Kind"), self.kind_box),
            (self.tr("Command line"), self.command_edit),
            (self.tr("Folder"), self.folder_edit),
            (self.tr("Variables"), self.env),
            (self.tr("Address"), self.url_edit),
            (self.tr("Headers"), self.headers),
            (self.tr("Longest call"), self.timeout_box),
        ):
            form.addRow(label, field)
            if not field.accessibleName():
                field.setAccessibleName(label)
        content = QWidget()
        content.setLayout(form)
        area = QScrollArea()
        area.setWidget(content)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column = QVBoxLayout(self)
        column.addWidget(area, 1)
        column.addWidget(self.note)
        column.addWidget(buttons)

    def _show_kind(self) -> None:
        is_address = self.kind_box.currentIndex() == 1
        for field in (self.command_edit, self.folder_edit, self.env):
            self._form.setRowVisible(field, not is_address)
        for field in (self.url_edit, self.headers):
            self._form.setRowVisible(field, is_address)


def split_command(text: str, *, has_escapes: bool = os.name != "nt") -> tuple[str, ...]:
    r"""Split a command line into the program and its arguments.

    Args:
        text: The command line; quotation marks keep spaces together.
        has_escapes: Whether `\` is an escape character; on Windows it separates folders.

    Raises:
        ValueError: A quotation mark isn't closed.
    """
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    if not has_escapes:
        lexer.escape = ""
    return tuple(lexer)


class ServerSaving:
    """Saves a server with its secrets; a second attempt goes on where the first one failed.

    Attributes:
        name: Name under which the server is saved; empty before that.
        was_switched_off: Whether the server was on, but something else would be started now.
    """

    def __init__(self, tools: WindowTools, server: ToolServer | None) -> None:
        self._toolbox = tools.toolbox
        self._before = server
        self.name = "" if server is None else server.name
        self.was_switched_off = False

    def __call__(
        self, server: ToolServer, env: tuple[Pair, ...], headers: tuple[Pair, ...]
    ) -> None:
        """Save; blocks.

        Raises:
            MedusaError: The server can't be used or saved, or a secret can't be.
        """
        before, toolbox = self._before, self._toolbox
        is_enabled = before is not None and before.is_enabled
        plain = replace(
            server,
            env=tuple((pair.name, pair.value) for pair in env if not pair.is_secret),
            headers=tuple((pair.name, pair.value) for pair in headers if not pair.is_secret),
            is_enabled=False,
        )
        if self.name:
            toolbox.replace(self.name, plain)
        else:
            toolbox.add(plain)
        self.name = plain.name
        whole = replace(
            plain,
            env=tuple((pair.name, self._value(pair)) for pair in env),
            headers=tuple((pair.name, self._value(pair)) for pair in headers),
        )
        is_same = before is not None and as_agreed(before) == as_agreed(whole)
        self.was_switched_off = is_enabled and not is_same
        whole = replace(whole, is_enabled=is_enabled and is_same)
        if whole != plain:
            toolbox.replace(self.name, whole)

    def _value(self, pair: Pair) -> str:
        """Return the value of a pair; for a secret a reference to it in the keyring."""
        if not pair.is_secret:
            return pair.value
        return self._toolbox.save_secret(self.name, pair.name, pair.value)


def as_agreed(server: ToolServer) -> tuple[object, ...]:
    """Return what the user agrees to: what the question shows."""
    return described(server), server.command, server.args
