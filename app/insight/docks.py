"""The panels under the chat, as tabs until the user separates them."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtWidgets import QDockWidget, QFrame, QMainWindow, QScrollArea, QStyle, QWidget

from app.insight.dock_title import DockTitle
from app.theme.appearance import Appearance

DOCK_EM, LEAST_EM = 28, 13  # height when the first is opened: wanted, and in a low window


class Docks(QObject):
    """Holds panels in docks; a panel with too little room scrolls.

    Args:
        window: The main window; docks are below its central widget.
        chat_height: Minimum height of the central widget in pixels.
        appearance: Appearance of the window.

    Signals:
        changed: Panels were opened or closed.
    """

    changed = Signal()

    def __init__(
        self, window: QMainWindow, chat_height: Callable[[], int], appearance: Appearance
    ) -> None:
        super().__init__(window)
        self._window = window
        self._chat_height = chat_height
        self._appearance = appearance
        self._docks: dict[QWidget, QDockWidget] = {}

    @property
    def is_any_open(self) -> bool:
        """Whether any panel is open, even as a hidden tab."""
        return any(dock.isVisible() for dock in self._docks.values())

    def add(self, title: str, panel: QWidget) -> None:
        """Add a panel as a tab."""
        scroller = QScrollArea()
        scroller.setWidgetResizable(True)
        scroller.setFrameShape(QFrame.Shape.NoFrame)
        scroller.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroller.setWidget(panel)
        dock = QDockWidget(title, self._window)
        dock.setObjectName(f"dock{title}")
        dock.setWidget(scroller)
        dock.setTitleBarWidget(DockTitle(dock, self._appearance))
        # Once the dock is where it goes to, too.
        dock.visibilityChanged.connect(lambda _on: QTimer.singleShot(0, self, self.changed.emit))
        self._window.addDockWidget(Qt.DockWidgetArea.BottomDockWidgetArea, dock)
        if self._docks:
            self._window.tabifyDockWidget(next(iter(self._docks.values())), dock)
        else:
            least, wanted = map(self._appearance.scale.px, (LEAST_EM, DOCK_EM))
            room = self._window.height() - self._chat_height() - _separator_px(self._window)
            height = max(least, min(wanted, room))
            self._window.resizeDocks([dock], [height], Qt.Orientation.Vertical)
        self._docks[panel] = dock

    def show(self, panel: QWidget) -> None:
        """Show a panel in front of the others."""
        self._docks[panel].show()
        self._docks[panel].raise_()
        _first_in(panel).setFocus()

    def is_seen(self, panel: QWidget | None) -> bool:
        """Whether a panel is open and its tab is selected."""
        dock = None if panel is None else self._docks.get(panel)
        return dock is not None and dock.isVisible() and not dock.visibleRegion().isEmpty()

    def hide(self, panel: QWidget) -> None:
        """Close a panel."""
        self._docks[panel].hide()

    def hide_all(self) -> None:
        """Close all panels."""
        for dock in self._docks.values():
            dock.hide()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        for dock in self._docks.values():
            title = dock.titleBarWidget()
            assert isinstance(title, DockTitle)
            title.restyle()


def _separator_px(window: QMainWindow) -> int:
    extent = QStyle.PixelMetric.PM_DockWidgetSeparatorExtent
    return window.style().pixelMetric(extent, None, window)


def _first_in(panel: QWidget) -> QWidget:
    """Return the widget of a panel to focus; screen readers say nothing about the panel itself."""
    tab = Qt.FocusPolicy.TabFocus
    for child in panel.findChildren(QWidget):
        if child.focusPolicy() & tab and child.isEnabled() and child.isVisibleTo(panel):
            return child
    return panel
