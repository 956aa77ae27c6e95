"""Texts of the engine's settings, presets and choices in the window's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication


def setting_text(text: str) -> str:
    """Return a text that the engine declares for a setting, in the window's language."""
    return QCoreApplication.translate("Setting", text) if text else ""
