"""Rows of all declared numeric settings."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject, Signal

from app.chat_settings.number_box import NumberBox
from app.chat_settings.row import SettingRow
from app.i18n.setting_texts import setting_text
from app.theme.appearance import Appearance
from medusa_core.chats.setting import SettingGroup
from medusa_core.chats.settings import (
    SETTINGS,
    ChatSettings,
)
from medusa_core.messages import DrafterChoice, RuleChoice


class NumberRows(QObject):
    """Creates a row for each declared numeric setting.

    Attributes:
        rows: Rows by the setting's name.

    Signals:
        chosen: The user changed a setting (name, value).
    """

    chosen = Signal(str, float)

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self.rows: dict[str, SettingRow] = {}
        self.boxes: dict[str, NumberBox] = {}
        for name, setting in SETTINGS.items():
            box = self.boxes[name] = NumberBox(setting)
            low, high = box.textFromValue(setting.low), box.textFromValue(setting.high)
            limits = self.tr("From {low} to {high}.").format(low=low, high=high)
            meaning = f"{setting_text(setting.meaning)} {setting_text(setting.drafting)} {limits}"
            default = box.textFromValue(setting.default)
            row = SettingRow(setting_text(setting.label), box, meaning, default, appearance)
            box.chosen.connect(partial(self._choose, name))
            row.reset_requested.connect(partial(self._choose, name, setting.default))
            self.rows[name] = row

    def of(self, group: SettingGroup) -> list[SettingRow]:
        """Return the rows of a group in order."""
        return [self.rows[name] for name, setting in SETTINGS.items() if setting.group is group]

    def show_settings(self, settings: ChatSettings, *, is_preset: bool) -> None:
        """Show values and mark those that differ from the default.

        Args:
            settings: Values to show.
            is_preset: Whether the values equal those of a preset.
        """
        for name, setting in SETTINGS.items():
            value = getattr(settings, name)
            self.boxes[name].show_value(value)
            self.rows[name].mark_changed(not is_preset and value != setting.default)

    def apply_choice(
        self, rule: RuleChoice | None, drafter: DrafterChoice | None
    ) -> dict[SettingGroup, str]:
        """Disable settings without effect; hide those of another drafter or rule.

        Returns:
            For each group, the reasons why some of its settings are disabled.
        """
        notes: dict[SettingGroup, list[str]] = {group: [] for group in SettingGroup}
        for name, setting in SETTINGS.items():
            reason = setting.when.reason_ignored(rule, drafter)
            if setting.when.is_of_one_choice:
                self.rows[name].setVisible(not reason)
                continue
            lack = setting_text(reason)
            self.rows[name].set_disabled_reason(lack)
            if lack and lack not in notes[setting.group]:
                notes[setting.group].append(lack)
        return {group: " ".join(lines) for group, lines in notes.items()}

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        for row in self.rows.values():
            row.restyle()

    def _choose(self, name: str, value: float) -> None:
        self.chosen.emit(name, value)


def with_number(settings: ChatSettings, name: str, value: float) -> ChatSettings:
    """Return settings with a number changed, rounded to an allowed value."""
    setting = SETTINGS[name]
    number = int(value) if setting.is_whole else round(value, setting.decimals)
    return settings.with_json({name: number})
