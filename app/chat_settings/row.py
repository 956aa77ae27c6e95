"""A row of the panel: label, editor, and a reset button."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from app.theme.appearance import Appearance
from app.widgets.elided import ElidedLabel
from app.widgets.explain import explain

FIELD_EM = 5.6


class SettingRow(QWidget):
    """Row of a setting.

    Attributes:
        field: Editor of the value.
        reset_button: Resets to the default; hidden while the default is set.

    Signals:
        reset_requested: The user wants the default.
    """

    reset_requested = Signal()

    def __init__(
        self,
        name: str,
        field: QWidget,
        meaning: str,
        default: str,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.field = field
        self._appearance = appearance
        self._meaning = self.tr("{meaning} The default is {default}.").format(
            meaning=meaning, default=default
        )
        self._label = ElidedLabel(name)
        self._label.setProperty("class", "pickerLabel")
        self._label.setBuddy(field)
        field.setAccessibleName(name)
        self.reset_button = QToolButton()
        self.reset_button.setAccessibleName(self.tr("Reset {name}").format(name=name))
        back = self.tr("Back to the default: {default}").format(default=default)
        explain(self.reset_button, back)
        policy = self.reset_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.reset_button.setSizePolicy(policy)
        self.reset_button.clicked.connect(self.reset_requested)
        self.reset_button.hide()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._label, 1)
        row.addWidget(field)
        row.addWidget(self.reset_button)
        field.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_disabled_reason("")
        self.restyle()

    def set_disabled_reason(self, reason: str) -> None:
        """Disable the setting and show why; an empty reason enables it."""
        self.field.setEnabled(not reason)
        self._label.setEnabled(not reason)
        text = f"{reason} {self._meaning}" if reason else self._meaning
        for widget in (self.field, self._label):
            explain(widget, text)

    def mark_changed(self, is_changed: bool) -> None:
        """Show whether the value differs from the default."""
        self.reset_button.setVisible(is_changed)
        self._label.setProperty("changed", is_changed)
        self._label.style().unpolish(self._label)
        self._label.style().polish(self._label)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self.field.setFixedWidth(scale.px(FIELD_EM))
        icon = self._appearance.icon("regenerate", self._appearance.theme.muted, 0.9)
        self.reset_button.setIcon(icon)
        self.reset_button.setIconSize(QSize(scale.px(0.9), scale.px(0.9)))
        layout = self.layout()
        assert layout is not None
        layout.setSpacing(scale.px(0.3))
        layout.setAlignment(Qt.AlignmentFlag.AlignVCenter)
