"""Owner of the window's toolbox."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal

from app.chat_settings.tool_choice import ToolChoice, ToolOffer
from app.tools.words import builtin_words
from medusa_core.api import visible_text
from medusa_core.errors import MedusaError

if TYPE_CHECKING:
    from medusa_core.api import OfferedTool, Toolbox

log = logging.getLogger(__name__)

_FILES = ("mcp.json", "tools.json")
_PAUSE_MS = 50  # servers write many lines of their logs at once


class WindowTools(QObject):
    """Opens the toolbox when it is needed first, and offers its tools to conversations.

    Attributes:
        folder: Folder of the toolbox's files.

    Signals:
        opened: The toolbox (a `Toolbox`) was opened.
        changed: Servers, their states, logs or tools have changed.
    """

    opened = Signal(object)
    changed = Signal()
    _notified = Signal()  # from any thread

    def __init__(self, folder: Path, choice: ToolChoice, parent: QObject | None = None) -> None:
        """Create the owner; nothing is read yet.

        Args:
            folder: Folder of the toolbox's files.
            choice: Shows the tools that a conversation may choose.
            parent: Qt's owner.
        """
        super().__init__(parent)
        self.folder = folder
        self._choice = choice
        self._toolbox: Toolbox | None = None
        self._is_closed = self._is_offline = False
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.setInterval(_PAUSE_MS)
        self._pause.timeout.connect(self._show)
        self._notified.connect(self._wait)
        choice.offer(())

    @property
    def toolbox(self) -> Toolbox:
        """The toolbox; opening it starts the servers that are switched on."""
        if self._toolbox is None:
            from medusa_core.api import Toolbox

            self._toolbox = toolbox = Toolbox(self.folder, is_offline=self._is_offline)
            toolbox.listen(self._notify)
            self.opened.emit(toolbox)
            self._show()
        return self._toolbox

    def start(self) -> None:
        """Open the toolbox if the user has used it before."""
        if any((self.folder / name).exists() for name in _FILES):
            self._show_toolbox(self.toolbox)

    def go_offline(self, is_offline: bool) -> None:
        """Forbid tools to reach other machines, or allow it again."""
        self._is_offline = is_offline
        if self._toolbox is not None:
            self._toolbox.set_offline(is_offline)

    def forget(self, conversation_ids: Iterable[str]) -> None:
        """Remove the approvals of deleted conversations."""
        if self._toolbox is not None:
            try:
                self._toolbox.approvals.forget(conversation_ids)
            except MedusaError as error:  # they are of no use without the conversation
                log.warning("approvals of deleted conversations stay: %s", error)

    def close(self) -> None:
        """End servers and calls."""
        self._is_closed = True
        self._pause.stop()
        if self._toolbox is not None:
            self._toolbox.close()

    def _notify(self) -> None:
        if not self._is_closed:
            self._notified.emit()

    def _wait(self) -> None:
        if not self._pause.isActive() and not self._is_closed:
            self._pause.start()

    def _show(self) -> None:
        if self._toolbox is not None and not self._is_closed:
            self._show_toolbox(self._toolbox)

    def _show_toolbox(self, toolbox: Toolbox) -> None:
        builtins = {one.builtin.name: builtin_words(one.builtin) for one in toolbox.builtins()}
        self._choice.offer([_offer(one, builtins) for one in toolbox.all_tools()])
        self.changed.emit()


def _offer(tool: OfferedTool, builtins: Mapping[str, tuple[str, str]]) -> ToolOffer:
    """Return a tool as conversations choose it.

    Args:
        tool: The tool.
        builtins: Label and explanation of the built-in tools by name.
    """
    text = tool.tool.as_text
    if tool.server is None:
        return ToolOffer(tool.id, *builtins[tool.source.name], text)
    server = " ".join(visible_text(tool.server.name).split())  # as the label has it
    return ToolOffer(tool.id, tool.label, tool.tool.description, text, server)
