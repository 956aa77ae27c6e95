"""The pages of the settings dialog, put together."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.i18n.words import QT_TRANSLATE_NOOP
from app.settings.declaration import SettingsPage
from app.settings.device_box import DeviceBox
from app.settings.dialog import SettingsDialog
from app.settings.keys_page import KeysPage
from app.settings.store import SettingsStore
from app.settings.token_box import TokenBox
from app.theme.appearance import Appearance
from app.window.commands.shortcuts_page import ShortcutsPage
from app.window.commands.table import CommandTable


class ModelsPage(KeysPage):
    """Where models compute, rest and come from.

    Attributes:
        device_box: What they compute on.
        token_box: Who the user is to the Hub.
    """

    def __init__(self, store: SettingsStore, appearance: Appearance, token_box: TokenBox) -> None:
        self.device_box = DeviceBox(lambda device: store.set(device=device))
        self.token_box = token_box
        super().__init__(SettingsPage.MODELS, store, appearance, {"device": self.device_box.editor})
        self.add_row(
            self.tr("Hub token"),
            token_box,
            self.tr("Some models need a Hugging Face account and its token."),
        )
        self.end()


def settings_dialog(
    store: SettingsStore,
    commands: CommandTable,
    appearance: Appearance,
    token_box: TokenBox,
    storage: QWidget,
    parent: QWidget,
) -> SettingsDialog:
    """The dialog of settings.

    Args:
        store: Holds them.
        commands: Whose keys can be changed.
        appearance: Sizes.
        token_box: Who the user is to the Hub.
        storage: The page of files.
        parent: The window.
    """
    general = KeysPage(SettingsPage.GENERAL, store, appearance)
    looks = KeysPage(SettingsPage.APPEARANCE, store, appearance)
    models = ModelsPage(store, appearance, token_box)
    for page in (general, looks):
        page.end()
    models.device_box.ask()
    return SettingsDialog(
        (
            (QT_TRANSLATE_NOOP("Settings", "General"), general),
            (QT_TRANSLATE_NOOP("Settings", "Appearance"), looks),
            (QT_TRANSLATE_NOOP("Settings", "Models"), models),
            (QT_TRANSLATE_NOOP("Settings", "Shortcuts"), ShortcutsPage(commands)),
            (QT_TRANSLATE_NOOP("Settings", "Privacy and storage"), storage),
        ),
        appearance,
        parent,
    )
