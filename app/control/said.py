"""Texts of declared settings and presets in the window's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication


def said(text: str) -> str:
    """A text of `chat_settings` or `presets`, which the tool for translations reads there."""
    return QCoreApplication.translate("Setting", text) if text else ""
