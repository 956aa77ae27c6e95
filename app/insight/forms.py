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
    """The form of a tree; a place in `FORMS`.

    Args:
        parents: Of its nodes; −1 for the root.
    """
    if len(parents) < 2:
        return NOTHING
    return CHAIN if all(parent == node - 1 for node, parent in enumerate(parents)) else TREE


def form_counts(counts: Sequence[int]) -> str:
    """How many steps had which form, in words; those that none had are left out.

    Args:
        counts: Of each of `FORMS`.
    """
    shown = (
        f"{QCoreApplication.translate('Insight', name)} {count}"
        for name, count in reversed(list(zip(FORMS, counts, strict=True)))
        if count
    )
    return QCoreApplication.translate("Insight", "Draft tokens by step: {0}.").format(
        ", ".join(shown)
    )
