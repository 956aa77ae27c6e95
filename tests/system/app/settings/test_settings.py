"""The settings: declared once, kept one by one, changed in their dialog."""

import asyncio
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.settings.declaration import SettingsPage
from app.settings.device_box import DeviceBox
from app.settings.dialog import SettingsDialog
from app.settings.editors import editor_of
from app.settings.hub import hub_settings
from app.settings.models_page import ModelsPage
from app.settings.preferences import (
    DECLARATIONS,
    EFFECTS,
    FILE_NAME,
    Preferences,
    load_preferences,
    save_preferences,
)
from app.settings.storage_page import StoragePage
from app.settings.store import SettingsStore
from app.settings.token_box import TokenBox
from app.theme.text_style import Marking
from app.window.commands.palette import Palette
from app.window.commands.shortcuts_page import ShortcutsPage
from medusa_core.api import History, HubSettings, exported_names
from medusa_core.messages import LoadModel
from tests.support.hub.fixtures import LoopbackHub, hub, settings
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run, run
from tests.support.window.managing import until

__all__ = ["hub", "run", "settings"]

SHOWN = [name for name, one in DECLARATIONS.items() if one.page is not SettingsPage.HIDDEN]


def test_every_field_is_declared_with_a_value_that_its_kind_takes() -> None:
    default = Preferences()
    assert [one.name for one in fields(Preferences)] == list(DECLARATIONS)
    for name, declared in DECLARATIONS.items():
        value = getattr(default, name)
        assert declared.kind.read(declared.kind.write(value)) == value, name
        is_read = declared.page is not SettingsPage.HIDDEN or name in exported_names()
        assert is_read == bool(declared.label), name


def test_one_invalid_key_affects_no_other(tmp_path: Path) -> None:
    kept = replace(Preferences(), theme="dark", zoom=1.3, unload_minutes=9.0, is_offline=True)
    save_preferences(kept, tmp_path)
    saved = json.loads((tmp_path / FILE_NAME).read_text())
    for name in DECLARATIONS:
        (tmp_path / FILE_NAME).write_text(json.dumps({**saved, name: {"odd": [1]}}))
        default = getattr(Preferences(), name)
        assert load_preferences(tmp_path) == replace(kept, **{name: default}), name


def test_keys_of_a_newer_version_are_kept(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"theme": "dark", "aura": {"strength": 3}}')
    save_preferences(replace(load_preferences(tmp_path), zoom=1.2), tmp_path)
    saved = json.loads((tmp_path / FILE_NAME).read_text())
    assert saved["aura"] == {"strength": 3}
    assert (saved["theme"], saved["zoom"]) == ("dark", 1.2)


def test_every_setting_has_an_editor_with_a_name(qtbot: QtBot) -> None:
    for name in (n for n in SHOWN if n != "device"):
        chosen: list[object] = []
        editor = editor_of(DECLARATIONS[name], chosen.append)
        qtbot.addWidget(editor.widget)
        value = getattr(Preferences(), name)
        editor.show(value)
        assert chosen in ([], [value]), name
        assert editor.widget.accessibleName(), name
        assert editor.widget.accessibleDescription(), name


def test_settings_take_effect_at_once_and_are_kept(
    qtbot: QtBot, open_ready: Open, run: Run, tmp_path: Path
) -> None:
    window, engine = open_ready()
    QTest.keySequence(window, QKeySequence("Ctrl+,"))
    dialog = window.pages.find(SettingsDialog)
    assert dialog is not None
    assert dialog.isVisible()
    store = window.settings
    (page,) = window.findChildren(ModelsPage)
    for name, value in (
        ("theme", "contrast"),
        ("zoom", 1.5),
        ("records", False),
        ("is_offline", True),
        ("device", "cpu"),
    ):
        store.set(**{name: value})
    assert page.editors["is_offline"].widget.isChecked()  # type: ignore[attr-defined]
    assert window._appearance.theme.name == "contrast"
    assert window._appearance.scale.zoom == 1.5
    assert not window.chat.records
    assert not window.page.header.record_action.isChecked()
    qtbot.waitUntil(lambda: engine.of_kind(LoadModel)[-1].options.device == "cpu")
    assert load_preferences(tmp_path) == store.values
    (box,) = window.findChildren(DeviceBox)

    async def work() -> None:
        await until(lambda: not box.tasks.is_running)
        (storage,) = window.findChildren(StoragePage)
        await storage.tasks.wait()

    run(work)


def test_effects_run_at_the_start_as_they_do_on_a_change(
    qtbot: QtBot, open_ready: Open, tmp_path: Path
) -> None:
    history = History(tmp_path / "history.db")
    kept = SettingsStore(
        Preferences(records=False, marking="off", shows_panel=True, has_read_hint=True), tmp_path
    )
    window, _ = open_ready(settings=kept, history=history, datastore_dir=tmp_path, make_server=None)
    page = window.page
    assert kept.followed == EFFECTS - {"server"}
    assert not window.chat.records
    assert not page.header.record_action.isChecked()
    assert window._appearance.marking is Marking.OFF
    assert page.strip.marks_box.currentData() == "off"
    assert page.settings_panel.isVisible()
    page.header.record_action.trigger()
    page.strip.marks_box.activated.emit(2)
    page.header.panel_button.click()
    stored = load_preferences(tmp_path)
    assert (stored.records, stored.marking, stored.shows_panel) == (True, "heads", False)
    assert window.chat.records
    assert page.settings_panel.isHidden()


def test_a_value_of_the_command_line_is_not_stored(tmp_path: Path) -> None:
    save_preferences(Preferences(theme="dark"), tmp_path)
    store = SettingsStore(load_preferences(tmp_path), tmp_path, {"theme": "light"})
    themes: list[str] = []
    store.follow("appearance", lambda now: themes.append(now.theme))
    store.set(zoom=1.2)
    assert (load_preferences(tmp_path).theme, load_preferences(tmp_path).zoom) == ("dark", 1.2)
    store.set(theme="contrast")
    assert load_preferences(tmp_path).theme == "contrast"
    assert themes == ["light", "light", "contrast"]


def test_showing_a_rounded_number_changes_no_setting(qtbot: QtBot) -> None:
    chosen: list[object] = []
    editor = editor_of(DECLARATIONS["zoom"], chosen.append)
    qtbot.addWidget(editor.widget)
    editor.show(1.127)
    assert chosen == []
    editor.widget.setValue(120)  # type: ignore[attr-defined]
    assert chosen == [1.2]


def test_offline_mode_is_remembered_and_no_request_is_sent(
    qtbot: QtBot, open_fake: Open, tmp_path: Path
) -> None:
    window, _ = open_fake()
    window.settings.set(is_offline=True)
    assert load_preferences(tmp_path).is_offline
    assert hub_settings(window.settings.values).is_offline
    assert hub_settings(window.settings.values, HubSettings(token="t")).token == "t"


def test_a_token_is_saved_checked_once_and_removed(
    qtbot: QtBot,
    run: Run,
    hub: LoopbackHub,
    settings: HubSettings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    box = TokenBox(settings)
    qtbot.addWidget(box)
    tokens: list[str] = []
    box.changed.connect(
        lambda token: (tokens.append(token), box.use(replace(settings, token=token)))
    )
    box.edit.setText(" hf_secret ")
    box.save_button.click()
    kept = tmp_path / "home" / "token"
    assert kept.read_text() == "hf_secret"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert box.edit.text() == ""
    assert "saved" in box.edit.placeholderText()
    assert "secret" not in " ".join(label.text() for label in box.findChildren(QLabel))
    assert hub.log == [], "nobody is asked before Check is pressed"

    async def work() -> None:
        box.check_button.click()
        await until(lambda: "doesn't know" in box.note.text() or "works" in box.note.text())
        await asyncio.sleep(0)

    run(work)
    assert len(hub.log) == 1
    box.remove_button.click()
    assert not kept.exists()
    assert tokens == ["hf_secret", ""]


def test_keys_can_be_changed_taken_from_others_and_reset(
    qtbot: QtBot, open_ready: Open, tmp_path: Path
) -> None:
    window, _ = open_ready()
    table = window.commands
    page = ShortcutsPage(table)
    qtbot.addWidget(page)
    names = [one.name for one in page.shown]
    page.table.selectRow(names.index("tree"))
    page.edit.setKeySequence(QKeySequence("Ctrl+N"))
    assert "New chat" in page.note.text()
    page.take_button.click()
    assert (table.keys("tree"), table.keys("new-chat")) == ("Ctrl+N", "")
    assert load_preferences(tmp_path).shortcuts == {"tree": "Ctrl+N", "new-chat": ""}
    QTest.keySequence(window, QKeySequence("Ctrl+N"))
    assert window.insight.tree is not None
    page.reset_all_button.click()
    assert load_preferences(tmp_path).shortcuts == {}
    assert table.keys("tree") == "F9"
    assert not any(table.holders(one.name, table.keys(one.name)) for one in table.commands)


def test_the_palette_finds_commands_and_models(open_ready: Open) -> None:
    window, _ = open_ready()
    palette = window.pages.need("palette")
    assert isinstance(palette, Palette)
    QTest.keySequence(window, QKeySequence("Ctrl+K"))
    assert palette.isVisible()
    QTest.keyClicks(palette.edit, "size")
    assert [entry.label for entry in palette.entries] == ["Normal size"]
    palette.edit.setText("l")
    labels = [entry.label for entry in palette.entries]
    for _ in range(labels.index("Larger")):
        QTest.keyClick(palette.edit, Qt.Key.Key_Down)
    QTest.keyClick(palette.edit, Qt.Key.Key_Return)
    assert window.settings.values.zoom > 1
    assert not palette.isVisible()
    palette.open_over(window)
    QTest.keyClicks(palette.edit, "pebble")
    assert palette.entries[0].label == "Llama-Pebble"


@pytest.mark.parametrize("keys", ["Ctrl+Q", "Ctrl+W"])
def test_shortcuts_close_the_window(qtbot: QtBot, open_ready: Open, keys: str) -> None:
    window, _ = open_ready()
    with qtbot.waitSignal(window.closed):
        QTest.keySequence(window, QKeySequence(keys))
