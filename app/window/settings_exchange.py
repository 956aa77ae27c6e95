"""Export and import of settings and presets."""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QWidget

from app.chat.chat_page import ChatPage
from app.chat.error_card import ErrorCard
from app.i18n.engine_texts import engine_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.settings.exchange import SettingsImport, plan_import, settings_of
from app.settings.import_dialog import ImportSettingsDialog
from app.settings.store import SettingsStore
from app.theme.appearance import Appearance
from app.widgets.file_dialogs import choose_file, choose_save_path
from medusa_core.api import NOT_EXPORTED, read_settings_file, write_settings_file
from medusa_core.chats.presets import Presets
from medusa_core.errors import MedusaError

log = logging.getLogger(__name__)

FILES = QT_TRANSLATE_NOOP("SettingsExchange", "Settings (*.json)")
_NAME, _BEFORE = "medusa-chat-settings.json", "settings-before-import.json"


class SettingsExchange(QObject):
    """Exports and imports all settings and presets; an import can be undone.

    Attributes:
        dialog: Preview of an import; None before the first one.
    """

    def __init__(
        self,
        window: QWidget,
        page: ChatPage,
        settings: SettingsStore,
        presets: Presets,
        appearance: Appearance,
    ) -> None:
        """Create the controller.

        Args:
            window: Parent widget of dialogs.
            page: Page that shows the result.
            settings: Settings to export and import.
            presets: Presets to export and import.
            appearance: Theme and sizes.
        """
        super().__init__(window)
        self._window, self._page, self._appearance = window, page, appearance
        self._settings, self._presets = settings, presets
        self.dialog: ImportSettingsDialog | None = None

    def ask_to_export(self) -> None:
        """Ask for a file and export the settings to it."""
        title = self.tr("Export settings")
        path, _ = choose_save_path(self._window, title, _NAME, self.tr(FILES))
        if path is not None and self.export_to(path):
            self._show_message(
                self.tr("Settings and presets are in {0}.").format(path), NOT_EXPORTED
            )

    def ask_to_import(self) -> None:
        """Ask for a settings file and preview its changes."""
        if path := choose_file(self._window, self.tr("Import settings"), self.tr(FILES)):
            self.offer(path)

    def export_to(self, path: Path) -> bool:
        """Export settings to a file; show the error and return False on failure."""
        try:
            write_settings_file(settings_of(self._settings.values, self._presets), path)
        except MedusaError as error:
            self._page.errors.show_error(error.message, error.hint)
            return False
        return True

    def offer(self, path: Path) -> None:
        """Preview the changes of a file, and import it once the user confirms."""
        planned = self._planned(path)
        if planned is None:
            return
        self.dialog = ImportSettingsDialog(path.name, planned, self._appearance, self._window)
        self.dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.dialog.accepted.connect(lambda: self._import(planned))
        self.dialog.open()

    def _planned(self, path: Path, *, replaces: bool = False) -> SettingsImport | None:
        try:
            found = read_settings_file(path)
            return plan_import(found, self._settings.values, self._presets, replaces=replaces)
        except MedusaError as error:
            self._page.errors.show_error(error.message, error.hint)
            return None

    def _import(self, planned: SettingsImport) -> None:
        """Back up the current settings, then import the previewed ones."""
        folder = self._settings.folder
        before = None if folder is None else folder / _BEFORE
        if before is not None and not self.export_to(before):
            return
        if self._apply(planned):
            card = self._show_message(self.tr("The settings are imported."), "")
            if before is not None:
                card.add_action(self.tr("Undo"), lambda: self._undo(before))

    def _undo(self, before: Path) -> None:
        planned = self._planned(before, replaces=True)
        if planned is not None and self._apply(planned):
            self._show_message(self.tr("The settings are as they were before the import."), "")

    def _apply(self, planned: SettingsImport) -> bool:
        """Import presets, then settings; show the error and return False on failure."""
        try:
            self._presets.replace_own(planned.presets, planned.new_chats)
        except MedusaError as error:
            self._page.errors.show_error(error.message, error.hint)
            return False
        self._settings.set(**planned.preferences)
        panel = self._page.settings_panel
        panel.presets.show_settings(panel.settings())
        log.info("settings were imported: %s", ", ".join(planned.preferences) or "presets")
        return True

    def _show_message(self, message: str, hint: str) -> ErrorCard:
        return self._page.errors.show_error(message, engine_text(hint))
