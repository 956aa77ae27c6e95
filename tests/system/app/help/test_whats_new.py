"""What an update brought is told once, and never at a first start."""

from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from app.help.changelog import Release, number_of, own_releases, read_changelog, released_since
from app.help.whats_new import WhatsNewDialog
from app.settings.preferences import load_preferences
from app.window.main_window import MainWindow
from medusa_core.api import VERSION, changelog_file
from tests.support.window.accessibility import faults
from tests.support.window.fixtures import Open

TEXT = """# Changelog

Words about it.

## 0.10.0 (2027-01-02)
- Ten.
- A long one
  in two lines.

## 0.9.1 (2026-12-31)

- Nine and one.

## 0.9.0 (2026-12-30)
- Nine.
"""


def shown(window: MainWindow) -> list[WhatsNewDialog]:
    return [one for one in window.findChildren(WhatsNewDialog) if one.isVisible()]


def test_versions_are_read_with_their_changes() -> None:
    first, *others = read_changelog(TEXT)
    assert first == Release("0.10.0", "2027-01-02", ("Ten.", "A long one in two lines."))
    assert [one.version for one in others] == ["0.9.1", "0.9.0"]
    assert read_changelog("nothing") == read_changelog("- a change of no version") == ()


@pytest.mark.parametrize(
    ("seen", "current", "told"),
    [
        ("0.9.0", "0.10.0", ["0.10.0", "0.9.1"]),
        ("0.9.1", "0.9.1", []),
        ("0.10.0", "0.9.0", []),
        ("", "0.9.1", ["0.9.1"]),
        ("0.10.0", "0.11.0.dev1", []),
        ("nonsense", "0.9.0", ["0.9.0"]),
    ],
)
def test_changes_since_a_version_are_listed(seen: str, current: str, told: list[str]) -> None:
    found = released_since(read_changelog(TEXT), seen, current)
    assert [one.version for one in found] == told


def test_the_changelog_begins_with_this_version_and_its_changes_are_sentences() -> None:
    releases = own_releases()
    assert releases[0].version == VERSION
    numbers = [number_of(one.version) for one in releases]
    assert numbers == sorted(numbers, reverse=True)
    headings = changelog_file().read_text(encoding="utf-8").count("\n## ")
    assert len(releases) == headings
    for release in releases:
        assert release.changes
        assert all(change.endswith((".", "`")) for change in release.changes)


def test_news_are_shown_once_after_an_update_and_never_at_a_first_start(
    qtbot: QtBot, open_fake: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_fake()
    settings = window.settings
    window.pages.start()
    assert shown(window) == []
    assert load_preferences(tmp_path).seen_version == VERSION
    settings.set(has_seen_welcome=True)
    window.pages.start()
    assert shown(window) == []
    settings.set(seen_version="")
    window.pages.start()
    (dialog,) = shown(window)
    assert own_releases()[0].changes[0].replace("`", "") in dialog.text.toPlainText()
    assert faults(dialog) == []
    assert "0.1.0" not in dialog.text.toPlainText()
    assert load_preferences(tmp_path).seen_version == VERSION
    dialog.close()
    window.pages.start()
    assert shown(window) == []
    window.commands.action("whats-new").trigger()
    assert "0.1.0" in shown(window)[0].text.toPlainText()
    assert_folders_open(window, monkeypatch)


def assert_folders_open(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that folder commands open their folder, or show its path if nothing opens it."""
    opened: list[Path] = []
    answers = [True, True, False]

    def open_url(url: object) -> bool:
        opened.append(Path(url.toLocalFile()))  # type: ignore[attr-defined]
        return answers[len(opened) - 1]

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    for name in ("data-folder", "log-folder", "data-folder"):
        window.commands.action(name).trigger()
    assert all(folder.is_dir() for folder in opened)
    (card,) = window.page.errors.cards
    assert str(window.pages._parts.folders.data) in card.hint
