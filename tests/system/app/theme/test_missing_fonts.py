"""Scripts without a font are named once, with what brings one."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtGui import QFontDatabase
from pytestqt.qtbot import QtBot

from app.chat.messages.message_widgets import Notice
from app.theme import missing_fonts
from app.theme.missing_fonts import FontHints
from medusa_core.messages import Generate
from tests.support.window.fixtures import Open


@pytest.fixture
def only_latin(monkeypatch: pytest.MonkeyPatch, qapp: object) -> None:
    monkeypatch.setattr(QFontDatabase, "families", lambda *system: [] if system else ["Inter"])
    monkeypatch.setattr(sys, "platform", "linux")


def test_each_missing_script_is_named_once_with_its_package(only_latin: None) -> None:
    hints = FontHints()
    assert hints.hint("Hello, wörld! ∑ “q” →", "x") == ""
    first = hints.hint("你好", "안녕")
    assert "(Chinese, Korean)" in first
    assert "Install fonts-noto-cjk, and" in first
    assert hints.hint("你好 안녕") == ""
    second = hints.hint("你好 สวัสดี 😀")
    assert "(Thai, emoji)" in second
    assert "fonts-noto-color-emoji, fonts-noto-core" in second


def test_outside_debian_no_debian_package_is_named(
    only_latin: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert "fonts-noto" not in FontHints().hint("你好")


def test_scripts_that_a_font_has_are_not_named(
    monkeypatch: pytest.MonkeyPatch, qapp: object
) -> None:
    monkeypatch.setattr(QFontDatabase, "families", lambda *_system: ["Noto Sans, Noto Color Emoji"])
    samples = "你好 かな 안녕 مرحبا שלום สวัสดี नमस्ते 😀"
    assert FontHints().hint(samples) == ""


def test_every_script_has_a_sample_that_only_it_has(only_latin: None) -> None:
    for script in missing_fonts._SCRIPTS:
        assert f"({script.name})" in FontHints().hint(script.chars[0])


def test_the_window_names_missing_fonts_after_an_answer(
    qtbot: QtBot, open_ready: Open, only_latin: None
) -> None:
    window, engine = open_ready()

    def hints() -> int:
        return sum("Chinese" in one.text for one in window.findChildren(Notice))

    for count in (1, 2):
        window.page.composer.edit.setPlainText("你好？")
        window.page.composer.submit()
        qtbot.waitUntil(lambda wanted=count: len(engine.of_kind(Generate)) == wanted)
        qtbot.waitUntil(lambda: not window.chat.is_busy)
        assert hints() == (count == 1)  # notices go with the next prompt
