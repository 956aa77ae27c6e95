"""What the Documents page says about collections and documents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.i18n.engine_texts import engine_text
from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.qt_text import with_visible_controls
from app.widgets.sizes import on_disk
from medusa_core.api import CollectionInfo, DocumentInfo, DocumentState, Installed

_STATES = {
    DocumentState.INDEXED: QT_TRANSLATE_NOOP("Documents", "read"),
    DocumentState.CHANGED: QT_TRANSLATE_NOOP("Documents", "changed since"),
    DocumentState.SKIPPED: QT_TRANSLATE_NOOP("Documents", "left out"),
    DocumentState.FAILED: QT_TRANSLATE_NOOP("Documents", "can't be read"),
}
_EMBEDDERS = re.compile(
    r"embed|minilm|sentence|\b(bge|gte|e5|mpnet|labse)\b", re.IGNORECASE | re.ASCII
)


def summary(info: CollectionInfo, model: Path | None) -> str:
    """Return the size of a collection, and by what its passages are found.

    Args:
        info: The collection.
        model: The chosen embedding model; vectors of another one aren't searched.
    """
    sizes = QCoreApplication.translate("Documents", "Documents: {0} · passages: {1} · text: {2}")
    shown = sizes.format(
        f"{Number(info.num_documents):,}", f"{Number(info.num_chunks):,}", on_disk(info.num_chars)
    )
    if model is None or info.embedding_model != model.name or not info.num_embedded:
        by_words = QCoreApplication.translate("Documents", "Passages are found by words alone.")
        return f"{shown}\n{by_words}"
    found = QCoreApplication.translate(
        "Documents", "Passages are found by words, and {0} of them by meaning ({1})."
    )
    by_both = found.format(f"{Number(info.num_embedded):,}", info.embedding_model)
    return f"{shown}\n{by_both}"


def cells(document: DocumentInfo) -> tuple[str, str, str]:
    """Return name, state with its reason, and size of a document."""
    state = QCoreApplication.translate("Documents", _STATES[document.state])
    reason = engine_text(document.reason)
    words = f"{state}: {reason}" if reason else state
    return with_visible_controls(document.name), words, on_disk(document.num_bytes)


def embedding_models(installed: Iterable[Installed]) -> list[Installed]:
    """Return the installed models that by their names may be embedding models."""
    return [one for one in installed if _EMBEDDERS.search(f"{one.name} {one.title}")]


def model_name(path: Path, installed: Iterable[Installed]) -> str:
    """Return the display name of an embedding model."""
    names = (one.title or one.name for one in installed if one.path == path)
    return next(names, path.name)
