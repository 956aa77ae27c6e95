"""The settings page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.settings.hub import hub_settings
from app.window.commands.command import Section
from app.window.pages.page import Page
from medusa_core.api import with_token

if TYPE_CHECKING:
    from app.settings.dialog import SettingsDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts
    from medusa_core.api import HubSettings

translate = QCoreApplication.translate


def _make(parts: WindowParts, pages: Pages) -> SettingsDialog:
    from app.settings.declaration import SettingsPage
    from app.settings.dialog import SettingsDialog
    from app.settings.keys_page import KeysPage
    from app.settings.models_page import ModelsPage
    from app.settings.storage_page import StoragePage
    from app.settings.token_box import TokenBox
    from app.window.commands.shortcuts_page import ShortcutsPage

    store, looks = parts.settings, parts.appearance

    def use_token(token: str) -> None:
        if (library := parts.models.library) is not None:
            library.change_settings(with_token(library.settings, token))

    tokens = TokenBox(_hub_settings(parts))
    tokens.changed.connect(use_token)
    storage = StoragePage(folders(parts), KeysPage(SettingsPage.STORAGE, store, looks), looks)
    storage.diagnostics_requested.connect(lambda: pages.open("diagnostics"))
    storage.export_requested.connect(parts.exchange.ask_to_export)
    storage.import_requested.connect(parts.exchange.ask_to_import)
    storage.measure()
    general, shapes = (
        KeysPage(page, store, looks) for page in (SettingsPage.GENERAL, SettingsPage.APPEARANCE)
    )
    for page in (general, shapes):
        page.end()
    return SettingsDialog(
        (
            (QT_TRANSLATE_NOOP("Settings", "General"), general),
            (QT_TRANSLATE_NOOP("Settings", "Appearance"), shapes),
            (QT_TRANSLATE_NOOP("Settings", "Models"), ModelsPage(store, looks, tokens)),
            (QT_TRANSLATE_NOOP("Settings", "Shortcuts"), ShortcutsPage(parts.commands)),
            (QT_TRANSLATE_NOOP("Settings", "Privacy and storage"), storage),
        ),
        looks,
        parts.window,
    )


def folders(parts: WindowParts) -> dict[str, Path]:
    """Return the user's folders by description."""
    where = parts.folders
    return {
        translate("Pages", "Conversations"): where.data,
        translate("Pages", "Models"): _hub_settings(parts).cache_dir,
        translate("Pages", "Settings"): where.config,
        translate("Pages", "State"): where.state,
        translate("Pages", "Logs"): where.log,
    }


def _hub_settings(parts: WindowParts) -> HubSettings:
    library = parts.models.library
    return hub_settings(parts.settings.values, None if library is None else library.settings)


SPEC = Page(
    "settings",
    QT_TRANSLATE_NOOP("Pages", "Settings"),
    Section.APPLICATION,
    _make,
    keys=("Ctrl+,",),
    menu=260,
)
