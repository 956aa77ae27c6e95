"""The list of presets and its actions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QToolButton,
    QWidget,
)

from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.elided import ElidedBox
from app.widgets.explain import explain, wrapped
from app.widgets.file_dialogs import choose_file, choose_save_path
from app.widgets.naming import name_box
from app.widgets.questions import ask_for_text
from medusa_core.chats.presets import (
    Preset,
    Presets,
)
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import PresetError

OWN = QT_TRANSLATE_NOOP("PresetBar", "Your own settings")
_TOOLTIP = Qt.ItemDataRole.ToolTipRole
FILES = QT_TRANSLATE_NOOP("PresetBar", "Presets (*.json)")
AskName = Callable[[str, str], str]


class PresetBar(QWidget):
    """Selects, saves and manages presets.

    Attributes:
        box: The list; its first entry is shown while no preset matches the settings.
        menu: Actions for the selected preset.

    Signals:
        chosen: The user selected a preset (a `Preset`).
        refused: An action failed (message, hint).
    """

    chosen = Signal(object)
    refused = Signal(object, object)

    def __init__(
        self, presets: Presets, appearance: Appearance, ask_name: AskName | None = None
    ) -> None:
        super().__init__()
        self._presets = presets
        self._appearance = appearance
        self._ask_name = ask_name or self._ask_for_name
        self._settings = ChatSettings()
        self.box = ElidedBox(4)
        name_box(self.box, self.tr("Preset"))
        explain(
            self.box,
            self.tr("Settings under a name. Exact, Balanced and Creative set the sampling."),
        )
        self.box.activated.connect(self._choose)
        self._more = QToolButton()
        self._more.setObjectName("menuButton")
        self._more.setAccessibleName(self.tr("Preset menu"))
        explain(self._more, self.tr("Save, rename, copy, delete, import or export presets"))
        self._more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.menu = QMenu(self._more)
        self.menu.aboutToShow.connect(self._fill_menu)
        self._more.setMenu(self.menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.box, 1)
        row.addWidget(self._more)
        self._fill()
        self.restyle()

    @property
    def current(self) -> Preset | None:
        """The preset that equals the settings; None if there is none."""
        return self._presets.matching(self._settings)

    def show_settings(self, settings: ChatSettings) -> None:
        """Select the preset that equals the settings, if any."""
        self._settings = settings
        self._fill()

    def save_as(self, name: str) -> None:
        """Save the settings as a preset."""
        self._do(lambda: self._presets.save(name, self._settings))

    def rename(self, preset: Preset, name: str) -> None:
        """Rename a preset."""
        self._do(lambda: self._presets.rename(preset, name))

    def duplicate(self, preset: Preset) -> None:
        """Copy a preset."""
        self._do(lambda: self._presets.duplicate(preset))

    def delete(self, preset: Preset) -> None:
        """Delete a preset; the current settings don't change."""
        self._do(lambda: self._presets.delete(preset))

    def import_from(self, path: Path) -> None:
        """Import presets from a file and select the first."""

        def add() -> None:
            self.chosen.emit(self._presets.add_from(path)[0])

        self._do(add)

    def export_to(self, preset: Preset, path: Path) -> None:
        """Write a preset to a file."""
        self._do(lambda: self._presets.export(preset, path))

    def use_for_new_chats(self) -> None:
        """Make these settings the defaults of new conversations."""
        self._do(lambda: self._presets.use_for_new_chats(self._settings))

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._more.setIcon(self._appearance.icon("menu", self._appearance.theme.muted, 1.1))
        self._more.setIconSize(QSize(scale.px(1.1), scale.px(1.1)))

    def _do(self, action: Callable[[], object]) -> None:
        try:
            action()
        except PresetError as error:
            self.refused.emit(error.message, error.hint)
        self._fill()

    def _fill(self) -> None:
        current = self.current
        self.box.clear()
        if current is None:
            self.box.addItem(self.tr(OWN), None)
        for preset in self._presets.all:
            self.box.addItem(_name(preset), preset)
            if preset.meaning:
                tip = wrapped(setting_text(preset.meaning))
                self.box.setItemData(self.box.count() - 1, tip, _TOOLTIP)
        self.box.setCurrentIndex(0 if current is None else self.box.findText(_name(current)))

    def _choose(self, index: int) -> None:
        preset = self.box.itemData(index)
        if preset is not None:
            self.chosen.emit(preset)

    def _fill_menu(self) -> None:
        self.menu.clear()
        current = self.current
        own = None if current is None or current.is_builtin else current
        self.menu.addAction(self.tr("Save as…"), self._ask_to_save)
        self._add_action(self.tr("Rename…"), self._ask_to_rename, own)
        self._add_action(self.tr("Duplicate"), self.duplicate, current)
        self._add_action(self.tr("Delete"), self.delete, own)
        self.menu.addSeparator()
        self.menu.addAction(self.tr("Import…"), self._ask_to_import)
        self._add_action(self.tr("Export…"), self._ask_to_export, current)
        self.menu.addSeparator()
        self.menu.addAction(self.tr("Use for new chats"), self.use_for_new_chats)

    def _add_action(self, name: str, act: Callable[[Preset], None], preset: Preset | None) -> None:
        """Add an action for a preset to the menu; disabled if `preset` is None."""
        entry = self.menu.addAction(name)
        entry.setEnabled(preset is not None)
        if preset is not None:
            entry.triggered.connect(lambda: act(preset))

    def _ask_to_save(self) -> None:
        name = self._ask_name(
            self.tr("Save preset"), self._presets.unused_name(self.tr("My preset"))
        )
        if name:
            self.save_as(name)

    def _ask_to_rename(self, preset: Preset) -> None:
        name = self._ask_name(self.tr("Rename preset"), preset.name)
        if name:
            self.rename(preset, name)

    def _ask_to_import(self) -> None:
        title = self.tr("Import presets")
        if path := choose_file(self, title, self.tr(FILES)):
            self.import_from(path)

    def _ask_to_export(self, preset: Preset) -> None:
        title, name = self.tr("Export preset"), f"{preset.name}.json"
        path, _ = choose_save_path(self, title, name, self.tr(FILES))
        if path:
            self.export_to(preset, path)

    def _ask_for_name(self, title: str, name: str) -> str:
        return ask_for_text(self, title, self.tr("Name"), name)


def _name(preset: Preset) -> str:
    """Return a preset's name, translated for built-in presets."""
    return setting_text(preset.name) if preset.is_builtin else preset.name
