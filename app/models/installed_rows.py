"""Rows of the table of installed models."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP
from app.models.suggestion import fit_words
from app.widgets.sizes import (
    library_text,
    on_disk,
    parameters,
)
from medusa_core.api import Budget, ContentsKind, Installed, num_parameters
from medusa_core.loading.choice import demo_choice

COLUMNS = (
    QT_TRANSLATE_NOOP("Library", "Name"),
    QT_TRANSLATE_NOOP("Library", "Type"),
    QT_TRANSLATE_NOOP("Library", "Parameters"),
    QT_TRANSLATE_NOOP("Library", "Weights"),
    QT_TRANSLATE_NOOP("Library", "On this computer"),
    QT_TRANSLATE_NOOP("Library", "Size"),
)
UNKNOWN = "–"
KIND_WORDS = {
    ContentsKind.TARGET: QT_TRANSLATE_NOOP("Library", "model"),
    ContentsKind.MERGED: QT_TRANSLATE_NOOP("Library", "model with heads"),
    ContentsKind.HEADS: QT_TRANSLATE_NOOP("Library", "heads"),
    ContentsKind.ADAPTER: QT_TRANSLATE_NOOP("Library", "LoRA adapter"),
    ContentsKind.UNKNOWN: QT_TRANSLATE_NOOP("Library", "not usable"),
}

BASE_WORDS = QT_TRANSLATE_NOOP("Library", "base model")


def cells(item: Installed, budget: Budget | None, is_loaded: bool) -> tuple[str, ...]:
    """Return the cells of an installed item.

    Args:
        item: A model, heads or an adapter.
        budget: Memory of the device; None while unknown.
        is_loaded: Whether it is the loaded model.
    """
    words = library_text(BASE_WORDS if item.is_base else KIND_WORDS[item.kind])
    if item.owner:
        words = f"{words} · {item.owner}"
    if item.problem:
        words = QCoreApplication.translate("Library", "incomplete")
    if item.is_built_in:
        demo = item.path == demo_choice().model_dir
        words = (
            QCoreApplication.translate("Library", "built-in demo")
            if demo
            else QCoreApplication.translate("Library", "model of the first start")
        )
    if is_loaded:
        words = QCoreApplication.translate("Library", "{0} · loaded").format(words)
    fit = fit_words(item.config, item.heads, budget) or item.problem or UNKNOWN
    size = UNKNOWN if item.config is None else parameters(num_parameters(item.config))
    return (item.title, words, size, _quantization(item), fit, on_disk(item.nbytes))


def reading_cells(path: Path) -> tuple[str, ...]:
    """Return the cells of an item that is being imported."""
    words = QCoreApplication.translate("Library", "Reading…")
    return (path.name, words, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)


def _quantization(item: Installed) -> str:
    """Weight format of a model's files, by its usual name."""
    config, contents = item.config, item.contents
    if config is None:
        return contents.quantization or UNKNOWN
    if config.packing is not None:
        words = QCoreApplication.translate("Library", "{0}, {1} bits")
        return words.format(config.packing.method, config.packing.bits)
    return (config.file_type or config.quantization or contents.dtype).upper() or UNKNOWN
