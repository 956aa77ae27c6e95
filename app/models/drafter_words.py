"""Descriptions of published drafters."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QCoreApplication

from app.i18n.engine_texts import engine_text
from app.widgets.sizes import on_disk
from medusa_core.api import DRAFTER_KINDS, DrafterOffer, Installed, PairOffer


def kinds_of(offer: PairOffer) -> str:
    """Kinds of drafters that are published for a model; for a drafter, its model."""
    if offer.is_heads:
        base = next(iter(offer.bases), "").rpartition("/")[2]
        kind = DRAFTER_KINDS[offer.kind or "medusa"].label
        return QCoreApplication.translate("Library", "for {0}").format(base) if base else kind
    labels = (DRAFTER_KINDS[one.kind].label for one in offer.drafters)
    return ", ".join(dict.fromkeys(labels)) or "–"


def drafter_note(offer: PairOffer) -> str:
    """Describe the drafter that is downloaded with a model, and whether it fits.

    Without one, name those that are published.
    """
    drafter = offer.drafter
    if drafter is None:
        return _not_chosen_note(offer)
    sentences = [engine_text(DRAFTER_KINDS[drafter.kind].text), _for_whom(drafter)]
    sentences = [one for one in sentences if one]
    if nbytes := drafter.nbytes or offer.heads_bytes:
        sentences[-1] = f"{sentences[-1].removesuffix('.')} ({on_disk(nbytes)})."
    if drafter.is_unverified:
        sentences.append(
            QCoreApplication.translate("Library", "Not verified: this is its makers' description.")
        )
    if drafter.licence:
        licence = QCoreApplication.translate("Library", "Licence: {0}.")
        sentences.append(licence.format(drafter.licence))
    if offer.misfit:
        words = QCoreApplication.translate("Library", "It doesn't fit this model: {0}.")
        sentences.append(words.format(engine_text(offer.misfit)))
    else:
        sentences.append(QCoreApplication.translate("Library", "Both are downloaded together."))
    return " ".join(sentences)


def _not_chosen_note(offer: PairOffer) -> str:
    """Say that drafters are published for a model, if none is selected; empty if there are none."""
    if not offer.drafters:
        return ""
    if any(one.repo or one.file for one in offer.drafters):
        words = QCoreApplication.translate(
            "Library", "Published for this model: {0}. Choose one to download it, too."
        )
    else:
        words = QCoreApplication.translate("Library", "Published for this model: {0}.")
    return words.format(kinds_of(offer))


def heads_note(offer: PairOffer) -> str:
    """Describe a repository that has only heads, and name their model."""
    kind = DRAFTER_KINDS[offer.kind or "medusa"]
    return " ".join((f"{kind.label}:", engine_text(kind.text), _published_for(offer.bases)))


def installed_note(item: Installed) -> str:
    """Describe installed heads, and name their model."""
    facts = item.contents.heads
    if facts is None:
        return ""
    kind = DRAFTER_KINDS.get(facts.shape.kind.partition("-")[0] or "medusa")
    kind = DRAFTER_KINDS.get(facts.shape.kind, kind)
    base = (facts.base_model,) if facts.base_model else ()
    sentences = [] if kind is None else [f"{kind.label}:", engine_text(kind.text)]
    chosen = QCoreApplication.translate("Library", "Choose it with such a model, under Heads.")
    return " ".join((*sentences, _published_for(base), chosen))


def _for_whom(drafter: DrafterOffer) -> str:
    return _published_for((drafter.made_for,) if drafter.made_for else ())


def _published_for(bases: Iterable[str]) -> str:
    base = next(iter(bases), "")
    if not base:
        return QCoreApplication.translate(
            "Library", "Its makers don't name its model; it is inferred from the file's name."
        )
    return QCoreApplication.translate("Library", "Published for {0}.").format(base)
