"""Servers of tools: states, command lines, tools, logs; add, edit, import, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.desktop.folders import show_in_files
from app.i18n.engine_texts import engine_text, error_text
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.tools.known_files import known_files
from app.tools.pairs_edit import Pair
from app.tools.server_form import ServerForm
from app.tools.switch_on_question import SwitchOnQuestion, described
from app.tools.window_tools import WindowTools
from app.tools.words import state_word
from app.widgets.file_dialogs import choose_file
from app.widgets.flow_layout import FlowLayout
from app.widgets.live_label import LiveLabel
from app.widgets.qt_text import with_visible_controls
from app.widgets.questions import confirms
from medusa_core.api import ServerState, ServerStatus, ToolServer, import_servers
from medusa_core.errors import MedusaError, MissingExtraError

_COMMAND_LINES, _LOG_LINES, _TOOL_LINES = 3, 5, 5


class ServersPage(QWidget):
    """List of servers, and the details of the selected one.

    Attributes:
        names: The servers with their states.
        problems: Why settings can't be used; hidden if all can.
        note: What went wrong, or what to do; hidden if there is nothing to say.
        add_button: Opens an empty form.
        import_button: Offers the files of other programs.
        details: Details of the selected server.
    """

    def __init__(
        self,
        tools: WindowTools,
        appearance: Appearance,
        need_extra: Callable[[], None],
    ) -> None:
        """Create the page.

        Args:
            tools: The toolbox.
            appearance: Theme and sizes.
            need_extra: Raises `MissingExtraError` if the libraries for servers aren't installed.
        """
        super().__init__()
        self.tasks = Tasks(self)
        self._tools = tools
        self._appearance = appearance
        self._agreed: set[tuple[object, ...]] = set()  # switched on by the user in this run
        self._statuses: tuple[ServerStatus, ...] = ()
        self.form: ServerForm | None = None
        self.question: SwitchOnQuestion | None = None
        self.names = QListWidget()
        self.names.setAccessibleName(self.tr("Servers"))
        self.problems, self.note = LiveLabel(), LiveLabel()
        self.note.hide()
        self.add_button = QPushButton(self.tr("Add…"))
        self.import_button = QPushButton(self.tr("Import"))
        self._imports = QMenu(self)
        self._imports.aboutToShow.connect(self._fill_imports)
        self.import_button.setMenu(self._imports)
        self.folder_button = QPushButton(self.tr("Show mcp.json"))
        self.details = ServerDetails(appearance)
        self._build()
        self._connect()
        try:
            need_extra()
        except MissingExtraError as error:
            self._say(error_text(error))
        tools.changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the servers as they are now."""
        self._statuses = self._tools.toolbox.servers()
        chosen = self._chosen
        words = self.tr("{0}: {1}")
        texts = [
            with_visible_controls(words.format(one.server.name, state_word(one.state)))
            for one in self._statuses
        ]
        if texts != [self.names.item(row).text() for row in range(self.names.count())]:
            names = [status.server.name for status in self._statuses]
            with QSignalBlocker(self.names):
                self.names.clear()
                self.names.addItems(texts)
                if names:
                    self.names.setCurrentRow(names.index(chosen) if chosen in names else 0)
        self._show_details()
        problems = " ".join(map(engine_text, self._tools.toolbox.problems))
        self.problems.setText(problems)
        self.problems.setVisible(bool(problems))

    def import_from(self, path: Path) -> None:
        """Import the servers of another program's file; all are off."""
        toolbox = self._tools.toolbox
        try:
            found = import_servers(path, [one.server for one in toolbox.servers()])
            toolbox.add(*found.servers)
        except MedusaError as error:
            self._say(error_text(error))
            return
        finally:
            self.refresh()
        names = ", ".join(server.name for server in found.servers)
        if names:
            words = self.tr("Imported, and switched off: {0}.").format(names)
        else:
            words = self.tr("{0} has no server that isn't here already.").format(path.name)
        self._say(" ".join((with_visible_controls(words), *map(engine_text, found.refused))))

    def _build(self) -> None:
        scale = self._appearance.scale
        buttons = FlowLayout(scale.px(0.4))
        for button in (self.add_button, self.import_button, self.folder_button):
            buttons.addWidget(button)
        left = QVBoxLayout()
        left.addWidget(self.names, 1)
        left.addLayout(buttons)
        area = QScrollArea()
        area.setWidget(self.details)
        area.setWidgetResizable(True)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        row = QHBoxLayout()
        row.addLayout(left, 2)
        row.addWidget(area, 3)
        column = QVBoxLayout(self)
        column.addWidget(self.problems)
        column.addWidget(self.note)
        column.addLayout(row, 1)

    def _connect(self) -> None:
        details = self.details
        self.names.currentRowChanged.connect(self._show_details)
        self.add_button.clicked.connect(lambda: self._open_form(None))
        self.folder_button.clicked.connect(self._show_folder)
        details.switch.clicked.connect(self._switch)
        details.edit_button.clicked.connect(lambda: self._open_form(self._server))
        details.restart_button.clicked.connect(self._restart)
        details.remove_button.clicked.connect(self._remove)

    @property
    def _status(self) -> ServerStatus | None:
        """The selected server."""
        row = self.names.currentRow()
        return self._statuses[row] if 0 <= row < len(self._statuses) else None

    @property
    def _server(self) -> ToolServer | None:
        return None if self._status is None else self._status.server

    @property
    def _chosen(self) -> str:
        """Name of the server whose details are shown."""
        return self.details.server_name

    def _show_details(self) -> None:
        self.details.show_status(self._status)

    def _say(self, text: str) -> None:
        self.note.setText(text)
        self.note.setVisible(bool(text))

    def _try(self, change: Callable[[], object]) -> bool:
        """Change the toolbox; returns whether it worked."""
        self._say("")
        try:
            change()
        except MedusaError as error:
            self._say(error_text(error))
            return False
        finally:
            self.refresh()
        return True

    # Switching ------------------------------------------------------------------------------------

    def _switch(self, is_on: bool) -> None:
        server = self._server
        if server is None:
            return
        if is_on:
            self._ask(server)
        else:
            self._try(lambda: self._tools.toolbox.set_enabled(server.name, False))

    def _ask(self, server: ToolServer) -> None:
        """Ask before a server is started or reached, unless the user agreed to the same one."""
        if _as_agreed(server) in self._agreed:
            self._switch_on(server)
            return
        self.question = question = SwitchOnQuestion(server, self._appearance, self)
        question.accepted.connect(lambda: self._switch_on(server))
        question.rejected.connect(self.refresh)
        question.finished.connect(question.deleteLater)
        question.open()

    def _switch_on(self, server: ToolServer) -> None:
        if self._try(lambda: self._tools.toolbox.set_enabled(server.name, True)):
            self._agreed.add(_as_agreed(server))

    def _restart(self) -> None:
        server = self._server
        if server is not None:
            self._try(lambda: self._tools.toolbox.restart(server.name))

    # Changing -------------------------------------------------------------------------------------

    def _open_form(self, server: ToolServer | None) -> None:
        save = _Saving(self._tools, server)
        self.form = form = ServerForm(save, self._appearance, self, server)
        form.accepted.connect(lambda: self._saved(save))
        form.finished.connect(form.deleteLater)
        form.open()

    def _saved(self, save: _Saving) -> None:
        self._say("")
        self.refresh()
        names = [status.server.name for status in self._statuses]
        if save.name in names:
            self.names.setCurrentRow(names.index(save.name))
        if save.was_switched_off and (server := self._server) is not None:
            self._ask(server)  # something else is started now

    def _remove(self) -> None:
        server = self._server
        if server is None:
            return
        question = self.tr("Remove {0}?").format(with_visible_controls(server.name))
        more = self.tr("Its settings and its secrets are deleted, and its program is ended.")
        if confirms(self, question, more):
            self.tasks.start(self._finish_removal(server.name))

    async def _finish_removal(self, name: str) -> None:
        try:
            await asyncio.to_thread(self._tools.toolbox.remove, name)
        except MedusaError as error:
            self._say(error_text(error))
        self.refresh()

    # Files ----------------------------------------------------------------------------------------

    def _fill_imports(self) -> None:
        self._imports.clear()
        for program, path in known_files():
            words = self.tr("From {0} ({1})").format(program, path)
            self._imports.addAction(words.replace("&", "&&"), partial(self.import_from, path))
        self._imports.addAction(self.tr("From a file…"), self._choose_file)

    def _choose_file(self) -> None:
        path = choose_file(self, self.tr("Import servers"), self.tr("JSON files (*.json)"))
        if path is not None:
            self.import_from(path)

    def _show_folder(self) -> None:
        folder = self._tools.folder
        if not show_in_files(folder):
            self._say(
                self.tr("There is no file manager. The file is {0}.").format(folder / "mcp.json")
            )


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


class _Saving:
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
        is_same = before is not None and _as_agreed(before) == _as_agreed(whole)
        self.was_switched_off = is_enabled and not is_same
        whole = replace(whole, is_enabled=is_enabled and is_same)
        if whole != plain:
            toolbox.replace(self.name, whole)

    def _value(self, pair: Pair) -> str:
        """Return the value of a pair; for a secret a reference to it in the keyring."""
        if not pair.is_secret:
            return pair.value
        return self._toolbox.save_secret(self.name, pair.name, pair.value)


def _as_agreed(server: ToolServer) -> tuple[object, ...]:
    """Return what the user agrees to: what the question shows."""
    return described(server), server.command, server.args


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
