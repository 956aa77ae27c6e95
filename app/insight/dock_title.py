"""Title bar of a panel, with larger buttons than Qt's."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QToolButton, QWidget

from app.theme.appearance import Appearance

_BUTTON_EM, _ICON_EM = 1.8, 1.3


class DockTitle(QWidget):
    """Title bar by which a panel is dragged, with buttons that detach and close it.

    Attributes:
        float_button: Detaches the panel, or docks it again.
        close_button: Closes it.
    """

    def __init__(self, dock: QDockWidget, appearance: Appearance) -> None:
        super().__init__(dock)
        self.setObjectName("dockTitle")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._appearance = appearance
        self.float_button = self._button()
        self.close_button = self._button()
        self.close_button.setAccessibleName(self.tr("Close {0}").format(dock.windowTitle()))
        self.close_button.setToolTip(self.tr("Close"))
        name = QLabel(dock.windowTitle())
        # Where the name is dragged, the dock is.
        name.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._row = QHBoxLayout(self)
        self._row.addWidget(name, 1)
        self._row.addWidget(self.float_button)
        self._row.addWidget(self.close_button)
        self.float_button.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        self.close_button.clicked.connect(dock.close)
        dock.topLevelChanged.connect(self._show_floating)
        self._show_floating(dock.isFloating())
        self.restyle()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, muted = self._appearance.scale, self._appearance.theme.muted
        self._row.setContentsMargins(scale.px(0.8), scale.px(0.1), scale.px(0.3), scale.px(0.1))
        self._row.setSpacing(scale.px(0.2))
        side, icon = scale.px(_BUTTON_EM), scale.px(_ICON_EM)
        for button, drawn in ((self.float_button, "fit"), (self.close_button, "close")):
            button.setIcon(self._appearance.icon(drawn, muted, _ICON_EM))
            button.setIconSize(QSize(icon, icon))
            button.setFixedSize(side, side)

    def _show_floating(self, is_floating: bool) -> None:
        text = self.tr("Put it back") if is_floating else self.tr("Show it in a window of its own")
        self.float_button.setAccessibleName(text)
        self.float_button.setToolTip(text)

    def _button(self) -> QToolButton:
        button = QToolButton()
        button.setProperty("class", "action")
        button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        return button
