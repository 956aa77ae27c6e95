"""List of the tool servers: switch, add, edit, import, remove."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSignalBlocker, Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QListWidget,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.desktop.folders import show_in_files
from app.i18n.engine_texts import engine_text, error_text
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.tools.import_menu import ImportMenu
from app.tools.server_details import ServerDetails
from app.tools.server_form import ServerForm, ServerSaving, as_agreed
from app.tools.switch_on_question import SwitchOnQuestion
from app.tools.window_tools import WindowTools
from app.tools.words import state_word
from app.widgets.flow_layout import FlowLayout
from app.widgets.live_label import LiveLabel
from app.widgets.qt_text import with_visible_controls
from app.widgets.questions import confirms
from medusa_core.api import ServerStatus, ToolServer, import_servers
from medusa_core.errors import MedusaError, MissingExtraError


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
        imports = ImportMenu(self)
        imports.chosen.connect(self.import_from)
        self.import_button.setMenu(imports)
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
        if as_agreed(server) in self._agreed:
            self._switch_on(server)
            return
        self.question = question = SwitchOnQuestion(server, self._appearance, self)
        question.accepted.connect(lambda: self._switch_on(server))
        question.rejected.connect(self.refresh)
        question.finished.connect(question.deleteLater)
        question.open()

    def _switch_on(self, server: ToolServer) -> None:
        if self._try(lambda: self._tools.toolbox.set_enabled(server.name, True)):
            self._agreed.add(as_agreed(server))

    def _restart(self) -> None:
        server = self._server
        if server is not None:
            self._try(lambda: self._tools.toolbox.restart(server.name))

    # Changing -------------------------------------------------------------------------------------

    def _open_form(self, server: ToolServer | None) -> None:
        save = ServerSaving(self._tools, server)
        self.form = form = ServerForm(save, self._appearance, self, server)
        form.accepted.connect(lambda: self._saved(save))
        form.finished.connect(form.deleteLater)
        form.open()

    def _saved(self, save: ServerSaving) -> None:
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

    def _show_folder(self) -> None:
        folder = self._tools.folder
        if not show_in_files(folder):
            self._say(
                self.tr("There is no file manager. The file is {0}.").format(folder / "mcp.json")
            )
