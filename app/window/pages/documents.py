"""The page of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

if TYPE_CHECKING:
    from app.documents.documents_dialog import DocumentsDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> DocumentsDialog | None:
    """Create the dialog; None without a user folder."""
    if not parts.documents.is_available:
        return None
    from app.documents.documents_dialog import DocumentsDialog

    dialog = DocumentsDialog(parts.documents, parts.models, parts.appearance, parts.window)
    dialog.model_chosen.connect(lambda path: parts.settings.set(embedding_model=path))
    return dialog


def _start(parts: WindowParts, _pages: Pages) -> None:
    """List the collections, after the window has been painted."""
    QTimer.singleShot(0, parts.documents.list_existing)


SPEC = Page(
    "documents",
    QT_TRANSLATE_NOOP("Pages", "Documents"),
    Section.MODELS,
    _make,
    menu=243,
    prepare=lambda dialog, _parts: dialog.refresh(),
    at_start=_start,
)
