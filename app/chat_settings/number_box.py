"""Spin box of a numeric setting, built from its declaration."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import QWidget

from app.i18n.numbers import Number
from app.i18n.setting_texts import setting_text
from app.widgets.number_edit import NumberEdit
from medusa_core.chats.setting import Setting


class NumberBox(NumberEdit):
    """Spin box of a setting; shows a word for the value that disables it."""

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        self._setting = setting  # which `textFromValue` reads
        super().__init__(parent)
        self.setDecimals(setting.decimals)
        self.setRange(setting.low, setting.high)
        self.setSingleStep(setting.step)
        self.show_value(setting.default)
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def textFromValue(self, value: float) -> str:
        setting = self._setting
        if setting.off is not None and abs(value - setting.off) < setting.step / 1000:
            return setting_text(setting.off_text)
        return f"{Number(value):.{setting.decimals}f}"

    def valueFromText(self, text: str) -> float:
        setting = self._setting
        if setting.off is not None and text.strip() in ("", setting_text(setting.off_text)):
            return setting.off
        return super().valueFromText(_in_this_language(text))

    def validate(self, text: str, at: int) -> tuple[QValidator.State, str, int]:
        setting = self._setting
        word = setting_text(setting.off_text)
        if setting.off is not None and word.startswith(text.strip()):
            is_whole = text.strip() == word
            state = QValidator.State.Acceptable if is_whole else QValidator.State.Intermediate
            return (state, text, at)
        return super().validate(_in_this_language(text), at)

    def fixup(self, text: str) -> str:
        return self.textFromValue(self.value())

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()  # whoever scrolls past it doesn't mean it


def _in_this_language(text: str) -> str:
    """Accept a decimal point in every locale, as on the command line; no thousands separators."""
    return text.replace(".", QLocale().decimalPoint())
