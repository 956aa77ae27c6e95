"""All settings and presets into one file and out of it: shown before, done as a whole, undone."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.settings import change_words
from app.settings.exchange import plan_import, settings_of
from app.settings.kinds import FolderKind
from app.settings.preferences import DECLARATIONS, FILE_NAME, Preferences, load_preferences
from app.settings.storage_page import StoragePage
from app.theme.appearance import Appearance
from app.window.main_window import MainWindow
from app.window.settings_exchange import SettingsExchange
from medusa_core.api import (
    NOT_EXPORTED,
    SettingsFile,
    exported_names,
    places,
    read_settings_file,
    write_settings_file,
)
from medusa_core.chats.presets import Presets
from medusa_core.chats.settings import ChatSettings
from medusa_core.chats.settings_file import FOLDERS
from medusa_core.errors import SettingsFileError
from tests.support.window.accessibility import faults
from tests.support.window.fixtures import Open

# What belongs to one computer, or isn't a choice.
STAYS = {
    *("model", "draft_models", "device", "embedding_model"),
    *("has_read_hint", "has_seen_welcome", "has_declined_first_model", "seen_version"),
    "download_mb_per_s",
}
OTHERS = {
    "theme": "dark",
    "zoom": 1.25,
    "marking": "accepted",
    "unload_minutes": 15.0,
    "records": False,
    "is_offline": True,
    "learns": False,
    "language": "de",
    "font_family": "Courier",
    "restores_window": False,
    "notifies": False,
    "names_in_notices": True,
    "shows_panel": True,
    "shortcuts": {"stop": "F2"},
    "server_port": 9000.0,
}
# What the window shows at once, without drawing all of it anew for each.
SEEN = {name: OTHERS[name] for name in ("theme", "marking", "shortcuts", "shows_panel", "notifies")}


def test_every_setting_is_exported_or_declared_local() -> None:
    assert exported_names() == DECLARATIONS.keys() - STAYS
    assert {
        name for name, one in DECLARATIONS.items() if isinstance(one.kind, FolderKind)
    } == FOLDERS
    for name in exported_names():
        assert DECLARATIONS[name].label or name in change_words._LABELS
    assert places().preferences.name == FILE_NAME


def test_defaults_and_all_other_values_fit_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for chosen in (Preferences(), replace(Preferences(), **OTHERS)):  # type: ignore[arg-type]
        write_settings_file(settings_of(chosen, Presets(None)), path)
        found = plan_import(read_settings_file(path), Preferences(), Presets(None))
        assert replace(Preferences(), **found.preferences) == chosen  # type: ignore[arg-type]


def test_changes_are_described_and_inapplicable_ones_omitted(tmp_path: Path) -> None:
    presets = Presets(None)
    for name, seed in (("Same", 1), ("Mine", 2), ("Both", 3)):
        presets.save(name, ChatSettings(seed=seed))
    same, _, both = presets.own.values()
    other = replace(both, values={**both.values, "seed": 9})
    values = {"theme": "dark", "zoom": 1.25, "notifies": False, "unload_minutes": 0}
    found = SettingsFile(
        values | {"layers_dir": str(tmp_path)},
        (same, other, replace(same, name="New")),
        ChatSettings(seed=7),
        ("aura",),
        {"models_dir": r"\\server\share"},
    )
    plan = plan_import(found, Preferences(), presets)
    assert {change.label: (change.before, change.after) for change in plan.changes} == {
        "Theme": ("Like the system", "Dark"),
        "Size": ("100 %", "125 %"),
        "Notifications": ("on", "off"),
        "Folder for layers": ("the usual", str(tmp_path)),
        "Preset Both": ("there", "other values"),
        "Preset New": ("–", "new"),
        "New chats begin with": ("the program’s choice", "own values of seed"),
    }
    assert [preset.name for preset in plan.presets] == ["Same", "Mine", "Both", "New"]
    assert plan.left_out == (
        r"Download location: there is no folder \\server\share here.",
        "This version doesn’t know aura.",
    )
    replaced = plan_import(found, Preferences(), presets, replaces=True)
    assert ("Preset Mine", "there", "–") in {
        (change.label, change.before, change.after) for change in replaced.changes
    }
    with pytest.raises(SettingsFileError, match="server_port makes no sense"):
        plan_import(SettingsFile({"server_port": 1.0}), Preferences(), presets)


def test_an_import_is_previewed_applied_and_can_be_undone(
    qtbot: QtBot, open_fake: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_fake()
    exchange = window.pages._parts.exchange
    presets = window.page.settings_panel.presets
    presets.save_as("Mine")
    default = window.settings.values
    path = tmp_path / "there" / "settings.json"
    other = replace(Preferences(), **SEEN)  # type: ignore[arg-type]
    theirs = Presets(None)
    theirs.save("Theirs", ChatSettings(rule="sample", temperature=0.3))
    write_settings_file(settings_of(other, theirs), path)
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    window.commands.action("import-settings").trigger()
    dialog = exchange.dialog
    assert dialog is not None
    assert faults(dialog) == []
    assert dialog.table.rowCount() == len(SEEN) + 1
    assert window.settings.values == default, "nothing is changed before the user agrees"
    dialog.import_button.click()
    assert window.settings.values == replace(default, **SEEN)
    assert load_preferences(tmp_path) == window.settings.values
    assert window._appearance.theme.is_dark
    assert window.commands.keys("stop") == "F2"
    assert window.page.settings_panel.isVisible()
    assert window._appearance.marking.value == "accepted"
    assert [presets.box.itemText(n) for n in range(presets.box.count())][-2:] == ["Mine", "Theirs"]
    assert_undone(window, default, tmp_path)
    assert_exported(window, exchange, tmp_path, monkeypatch)
    assert_bad_files_change_nothing(window, exchange, path)


def assert_undone(window: MainWindow, default: Preferences, folder: Path) -> None:
    """Undo brings back what was there, without the presets that came."""
    (card,) = window.page.errors.cards
    (undo,) = [button for button in card.findChildren(QPushButton) if button.text() == "Undo"]
    undo.click()
    assert window.settings.values == default
    assert load_preferences(folder) == default
    assert list(Presets(folder).own) == ["Mine"]
    assert window.commands.keys("stop") == "Esc"


def assert_exported(
    window: MainWindow, exchange: SettingsExchange, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check the export by the settings page, and its note about what is omitted."""
    path = folder / "mine.json"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    window.commands.action("export-settings").trigger()
    assert window.page.errors.cards[-1].hint == NOT_EXPORTED
    assert [preset.name for preset in read_settings_file(path).presets] == ["Mine"]
    exchange.offer(path)
    assert exchange.dialog is not None
    assert not exchange.dialog.import_button.isEnabled(), "it changes nothing"
    exchange.dialog.reject()
    assert not exchange.export_to(path / "below.json")


def assert_bad_files_change_nothing(
    window: MainWindow, exchange: SettingsExchange, path: Path
) -> None:
    """Check that neither a wrong value nor a read-only disk applies part of an import."""
    before = window.settings.values
    raw = json.loads(path.read_text())
    path.write_text(json.dumps(raw | {"preferences": {"theme": "dark", "zoom": 77}}))
    exchange.offer(path)
    assert "zoom" in window.page.errors.cards[-1].message
    path.write_text(json.dumps(raw))
    exchange.offer(path)
    assert exchange.dialog is not None
    presets = window.page.settings_panel._kept
    presets._path = path / "below" / "presets.json"
    exchange.dialog.import_button.click()
    assert window.settings.values == before
    assert list(presets.own) == ["Mine"]


def test_the_settings_page_offers_export_and_import(qtbot: QtBot, appearance: Appearance) -> None:
    asked: list[str] = []
    page = StoragePage({}, QWidget(), appearance)
    qtbot.addWidget(page)
    page.export_requested.connect(lambda: asked.append("Export settings…"))
    page.import_requested.connect(lambda: asked.append("Import settings…"))
    for button in page.findChildren(QPushButton)[:2]:
        button.click()
        assert asked.pop() == button.text()
