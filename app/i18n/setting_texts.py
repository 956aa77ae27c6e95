"""Texts of the engine's settings, presets and choices in the window's language."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication


def setting_text(text: str) -> str:
    """A text that the engine declares, where the tool for translations reads it."""
    return QCoreApplication.translate("Setting", text) if text else ""
