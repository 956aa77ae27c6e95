"""The launcher of a system package hears that the window came up."""

import logging
import os
from pathlib import Path

import pytest

from app.startup.launcher import STARTED_VARIABLE, notify_launcher
from installer.bootstrap import start


def test_the_command_name_is_the_launchers() -> None:
    assert start.STARTED_VARIABLE == STARTED_VARIABLE


def test_the_launchers_message_is_shown_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    monkeypatch.setenv(STARTED_VARIABLE, str(started))
    notify_launcher()
    assert started.exists()
    assert STARTED_VARIABLE not in os.environ
    started.unlink()
    notify_launcher()
    assert not started.exists()


def test_a_full_disk_does_not_end_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(STARTED_VARIABLE, str(tmp_path / "none" / "started"))
    with caplog.at_level(logging.WARNING):
        notify_launcher()
    assert "isn't told" in caplog.text
