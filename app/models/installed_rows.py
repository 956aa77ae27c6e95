"""The rows of what is here."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.models.suggestion import fit_words
from app.widgets.sizes import (
    library_text,
    on_disk,
)
from medusa_core.api import Budget, Installed, InstalledKind
from medusa_core.loading.choice import demo_choice

COLUMNS = (
    QT_TRANSLATE_NOOP("Library", "Name"),
    QT_TRANSLATE_NOOP("Library", "Type"),
    QT_TRANSLATE_NOOP("Library", "On this computer"),
    QT_TRANSLATE_NOOP("Library", "Disk"),
)
KIND_WORDS = {
    InstalledKind.MODEL: QT_TRANSLATE_NOOP("Library", "model"),
    InstalledKind.MERGED: QT_TRANSLATE_NOOP("Library", "model with heads"),
    InstalledKind.HEADS: QT_TRANSLATE_NOOP("Library", "heads"),
    InstalledKind.ADAPTER: QT_TRANSLATE_NOOP("Library", "LoRA adapter"),
    InstalledKind.UNKNOWN: QT_TRANSLATE_NOOP("Library", "not usable"),
}

BASE_WORDS = QT_TRANSLATE_NOOP("Library", "base model")


def cells(item: Installed, budget: Budget | None, loaded: Path | None) -> tuple[str, ...]:
    """Something on this computer as a row.

    Args:
        item: What.
        budget: The device that it would be loaded on; None while unknown.
        loaded: Folder of the model that answers.
    """
    words = library_text(BASE_WORDS if item.is_base else KIND_WORDS[item.kind])
    if item.config is not None and item.config.packing is not None:
        words = f"{words} · {item.config.packing.label}"
    if item.found.contents.storage == "gguf":
        types = (item.config.file_type or item.config.quantization) if item.config else ""
        words = " · ".join(
            part
            for part in (
                words,
                "GGUF",
                types.upper(),
                item.found.owner,
            )
            if part
        )
    if not item.is_complete:
        words = QCoreApplication.translate("Library", "incomplete")
    if item.is_built_in:
        demo = item.folder == demo_choice().model_dir
        words = (
            QCoreApplication.translate("Library", "built-in demo")
            if demo
            else QCoreApplication.translate("Library", "model of the first start")
        )
    if item.folder == loaded:
        words = QCoreApplication.translate("Library", "{0} · loaded").format(words)
    fit = fit_words(item.config, item.heads, budget) or item.problem or "–"
    return (item.title, words, fit, on_disk(item.nbytes))


def reading_cells(path: Path) -> tuple[str, ...]:
    """What is being imported as a row."""
    return (path.name, QCoreApplication.translate("Library", "Reading…"), "–", "–")
