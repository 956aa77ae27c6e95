"""German: every text that can be translated is, and the window is shown in it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QTranslator
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.commands.window_commands import MENU
from app.translation import chosen_language, install_language
from medusa_core.api import resources_dir
from tests.app.conftest import Open
from tests.app.driving import wait_ready
from tests.tools.translations import compile_ts, extract, messages

FOLDER = resources_dir() / "translations"
FIELD = re.compile(r"\{[^{}]*\}")


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    before = set(qapp.findChildren(QTranslator))
    assert install_language(qapp, "de", FOLDER) == "de"
    yield
    for translator in set(qapp.findChildren(QTranslator)) - before:
        qapp.removeTranslator(translator)
        translator.deleteLater()


def test_every_text_has_a_german_one_with_the_same_fields(tmp_path: Path) -> None:
    fresh = tmp_path / "medusa_de.ts"
    fresh.write_bytes((FOLDER / "medusa_de.ts").read_bytes())
    extract(fresh)
    found = messages(fresh)
    assert len(found) > 180
    assert [source for (_, source), told in found.items() if not told] == []
    for (_, source), told in found.items():
        assert sorted(FIELD.findall(source)) == sorted(FIELD.findall(told)), source


def test_what_is_compiled_is_what_is_translated(tmp_path: Path) -> None:
    compile_ts(FOLDER / "medusa_de.ts", tmp_path / "de.qm")
    assert (tmp_path / "de.qm").read_bytes() == (FOLDER / "medusa_de.qm").read_bytes()


def test_the_systems_language_is_taken_unless_another_one_is_chosen() -> None:
    assert chosen_language("system", FOLDER, ["de-AT", "en-US"]) == "de"
    assert chosen_language("system", FOLDER, ["fr-FR", "de-DE"]) == "de"
    assert chosen_language("system", FOLDER, ["fr-FR"]) == "en"
    assert chosen_language("en", FOLDER, ["de-DE"]) == "en"
    assert chosen_language("tlh", FOLDER, []) == "en"


def test_menus_settings_palette_and_first_steps_are_german(
    german: None, qtbot: QtBot, open_fake: Open
) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    table = window.commands
    texts = [table.action(name).text() for name in MENU if name is not None]
    assert texts[:2] == ["Baum", "Schritte"]
    assert "Einstellungen…" in texts
    window.desk.show_palette()
    assert window.desk.palette.edit.placeholderText() == "Befehl oder Name eingeben"
    assert "Neues Gespräch" in [entry.label for entry in window.desk.palette.entries]


def test_the_side_panel_is_german(german: None, qtbot: QtBot, open_fake: Open) -> None:
    window, _ = open_fake()
    wait_ready(qtbot, window)
    control = window.page.control
    box = control.numbers.boxes["max_new_tokens"]
    assert box.accessibleName() == "Längste Antwort"
    assert (box.text(), box.valueFromText("ohne")) == ("ohne", 0)
    assert control.presets.box.currentText() == "Exakt"
    assert "auszulosen" in control.groups["Sampling"].note
    control.presets.save_as("Exact")  # in whatever language, it comes with the program
    assert [preset.name for preset in control.presets._presets.all].count("Exact") == 1
