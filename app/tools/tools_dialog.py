"""The dialog of tools."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QScrollArea, QTabWidget, QVBoxLayout, QWidget

from app.theme.appearance import Appearance
from app.tools.approvals_page import ApprovalsPage
from app.tools.builtin_page import BuiltinPage
from app.tools.servers_page import ServersPage
from app.tools.window_tools import WindowTools
from app.widgets.closing import close_by_key


class ToolsDialog(QDialog):
    """Tabs with the built-in tools, servers of tools, and approvals.

    Attributes:
        tabs: The tabs.
        builtin: Built-in tools.
        servers: Servers of tools.
        approvals: Calls that are always approved.
    """

    def __init__(
        self,
        tools: WindowTools,
        appearance: Appearance,
        need_extra: Callable[[], None],
        parent: QWidget | None = None,
    ) -> None:
        """Create the dialog.

        Args:
            tools: The toolbox.
            appearance: Theme and sizes.
            need_extra: Raises `MissingExtraError` if the libraries for servers aren't installed.
            parent: Parent widget.
        """
        super().__init__(parent)
        self.builtin = BuiltinPage(tools, appearance)
        self.servers = ServersPage(tools, appearance, need_extra)
        self.approvals = ApprovalsPage(tools)
        self.tabs = QTabWidget()
        self.tabs.addTab(_scrolled(self.builtin), self.tr("Built in"))
        self.tabs.addTab(self.servers, self.tr("Servers"))
        self.tabs.addTab(self.approvals, self.tr("Approvals"))
        column = QVBoxLayout(self)
        column.addWidget(self.tabs)
        close_by_key(self)
        self.resize(appearance.scale.px(56), appearance.scale.px(42))

    def refresh(self) -> None:
        """Show everything as it is now."""
        self.builtin.refresh()
        self.servers.refresh()
        self.approvals.refresh()


def _scrolled(content: QWidget) -> QScrollArea:
    area = QScrollArea()
    area.setWidget(content)
    area.setWidgetResizable(True)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    return area
