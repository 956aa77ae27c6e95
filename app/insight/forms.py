"""The form of a step's drafts: chain, tree or nothing."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication

from app.i18n.words import QT_TRANSLATE_NOOP

FORMS = (
    QT_TRANSLATE_NOOP("Insight", "nothing"),
    QT_TRANSLATE_NOOP("Insight", "chain"),
    QT_TRANSLATE_NOOP("Insight", "tree"),
)
NOTHING, CHAIN, TREE = range(3)


def tree_form(parents: Sequence[int]) -> int:
    """Return the form of a tree as an index of `FORMS`.

    Args:
        parents: Parent of each node; −1 for the root.
    """
    if len(parents) < 2:
        return NOTHING
    return CHAIN if all(parent == node - 1 for node, parent in enumerate(parents)) else TREE


def form_counts(counts: Sequence[int]) -> str:
    """Describe how many steps had each form, without those that had none.

    Args:
        counts: Steps of each of `FORMS`.
    """
    shown = (
        f"{QCoreApplication.translate('Insight', name)} {count}"
        for name, count in reversed(list(zip(FORMS, counts, strict=True)))
        if count
    )
    return QCoreApplication.translate("Insight", "Draft tokens by step: {0}.").format(
        ", ".join(shown)
    )
