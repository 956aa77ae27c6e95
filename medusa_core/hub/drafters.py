"""Find drafters that are published for a model.

The card of a repository names its target (`base_model`); without it, the names are compared.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

from medusa_core.errors import HubError
from medusa_core.hub.library.pairing import bare_name, same_model
from medusa_core.hub.listing import list_repo
from medusa_core.hub.search import SearchResult, search
from medusa_core.hub.settings import HubSettings
from medusa_core.i18n import tr

log = logging.getLogger(__name__)


class DrafterKind(NamedTuple):
    """Name and description of a kind of drafters, for people."""

    label: str
    text: str


DRAFTER_KINDS: Mapping[str, DrafterKind] = {
    "dspark": DrafterKind(
        label="DSpark",
        text=tr(
            "Fills a block in one pass; each draft token depends on the one before and has a "
            "confidence."
        ),
    ),
    "jetspec": DrafterKind(
        label="JetSpec", text=tr("Fills a block in one pass, read from left to right.")
    ),
    "dflash": DrafterKind(label="DFlash", text=tr("Drafts a whole block of tokens in one pass.")),
    "gemma4-assistant": DrafterKind(
        label="Assistant",
        text=tr("Google's own small drafter, which reads what the model remembers."),
    ),
    "mtp": DrafterKind(
        label="MTP", text=tr("A layer that the model was trained with, to predict further tokens.")
    ),
    "hydra": DrafterKind(
        label="Hydra", text=tr("Small heads that read the draft tokens before their own.")
    ),
    "medusa": DrafterKind(label="Medusa", text=tr("Small heads, one for each token ahead.")),
    "eagle": DrafterKind(
        label="EAGLE",
        text=tr("One layer that goes on from the model's own states, token by token."),
    ),
}
# Patterns of names; a kind whose name contains another's comes first.
_WORDS = {
    "dspark": r"dspark",
    "jetspec": r"jetspec",
    "dflash": r"dflash2?",
    "gemma4-assistant": r"gemma.?4\b.*assistant",
    "hydra": r"hydra",
    "medusa": r"medusa",
    "eagle": r"p?-?eagle[-_]?[123]?|speculator",
    "mtp": r"mtp",
}
_PATTERNS = {kind: re.compile(rf"(?:^|[-_.]){words}(?=[-_.]|$)") for kind, words in _WORDS.items()}
_SEARCHED = ("eagle3", "dflash", "dspark", "jetspec", "speculator", "assistant")
_TOKEN = re.compile(r"[a-z]+|\d+(?:\.\d+)?[a-z]*")
# Words of names that don't distinguish models, and those that do among models of one size.
_GENERIC_WORDS = frozenset(
    ("instruct", "it", "chat", "meta", "hf", "base", "gguf", "google", "openai")
)
_DISTINCT_WORDS = frozenset(
    (
        *("vl", "vlm", "coder", "code", "omni", "math", "distill", "thinking", "next", "guard"),
        *("embedding", "reranker", "vision", "audio", "r"),
    )
)
_BASE = re.compile(r"base_model:(?:quantized:|finetune:|adapter:|merge:)?(.+)")
_LICENCE = "license:"
_MAX_AT_ONCE = 3
_MAX_OF_MODEL = 100


@dataclass(frozen=True, slots=True)
class DrafterOffer:
    """A drafter that is published for a model.

    Attributes:
        repo: Repository; empty if it is among the model's own files.
        kind: One of `DRAFTER_KINDS`.
        made_for: Target that the card names; empty if only the names match.
        file: GGUF file; empty for safetensors.
        nbytes: Bytes to download; 0 while unknown.
        licence: Licence; empty if unknown.
        is_gated: Whether its terms must be accepted first.
        is_pickled: Whether it is a pickle, which is converted once.
        is_unverified: Whether it was never tried with this program.
    """

    repo: str
    kind: str
    made_for: str = ""
    file: str = ""
    nbytes: int = 0
    licence: str = ""
    is_gated: bool = False
    is_pickled: bool = False
    is_unverified: bool = False


def drafter_kind(name: str, tags: Iterable[str] = ()) -> str:
    """Return the kind of drafter by the name or tags of a repository or file; empty for none."""
    last = name.rpartition("/")[2].casefold().removesuffix(".gguf")
    tagged = [tag.casefold() for tag in tags if ":" not in tag]
    for kind, pattern in _PATTERNS.items():
        if pattern.search(last) and (kind != "mtp" or last.startswith("mtp")):
            return kind
    if "speculative-decoding" in tagged or "speculators" in tagged:
        return next((kind for kind in DRAFTER_KINDS if kind in tagged), "")
    return ""


def base_models(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the base models that a card names."""
    found = (_BASE.fullmatch(tag) for tag in tags)
    return tuple(dict.fromkeys(match[1] for match in found if match))


def licence_in(tags: Iterable[str]) -> str:
    """Return the licence that a card names; empty for none, or for `other`."""
    found = next((tag for tag in tags if tag.startswith(_LICENCE)), "").removeprefix(_LICENCE)
    return "" if found == "other" else found


def made_for(result: SearchResult, names: Sequence[str]) -> tuple[bool, str]:
    """Return whether a drafter is made for a model, and the target that its card names.

    Args:
        result: Repository of the drafter.
        names: Names of the model and its base models.
    """
    named = base_models(result.tags)
    for base in named:
        if any(same_model(base, name) for name in names):
            return True, base
    if named:
        return False, ""
    return any(_is_called_for(result.repo, name) for name in names), ""


def find_drafters(settings: HubSettings, names: Sequence[str]) -> tuple[DrafterOffer, ...]:
    """Search the Hub for drafters of a model, the most downloaded first; blocks.

    Args:
        settings: Settings of the Hub.
        names: Repositories of the model and its base models, its own first.

    Raises:
        HubError: The Hub can't be reached, or its answer can't be read.
    """
    bases = list(dict.fromkeys(names))
    parts = [part for part in bare_name(bases[-1]).split("-") if part not in _GENERIC_WORDS]

    def by_words(word: str) -> tuple[SearchResult, ...]:
        """Search by the model's name and a kind of drafter."""
        return search(settings, " ".join((*parts, word)))

    def of_model(base: str) -> tuple[SearchResult, ...]:
        """Search by the base model of cards."""
        return search(settings, "", limit=_MAX_OF_MODEL, base_model=base)

    with ThreadPoolExecutor(_MAX_AT_ONCE, "drafters") as threads:
        lists = [*threads.map(by_words, _SEARCHED), *threads.map(of_model, bases)]
    every = {one.repo: one for one in sorted((o for found in lists for o in found), key=_rarity)}
    offers = []
    for one in every.values():
        kind, (fits, named) = drafter_kind(one.repo, one.tags), made_for(one, names)
        if kind and fits and one.repo not in bases:
            licence = licence_in(one.tags)
            offers.append(
                DrafterOffer(one.repo, kind, named, licence=licence, is_gated=one.is_gated)
            )
    return tuple(offers)


def with_size(settings: HubSettings, drafter: DrafterOffer) -> DrafterOffer:
    """Return a drafter with its download size, if the Hub returns it; blocks."""
    if not drafter.repo or drafter.nbytes:
        return drafter
    try:
        listing = list_repo(settings, drafter.repo)
    except HubError as error:
        log.info("the size of %s is unknown: %s", drafter.repo, error.message)
        return drafter
    file = drafter.file or listing.default_drafter
    takes_pickles = drafter.is_pickled
    return replace(
        drafter,
        file=file,
        nbytes=replace(listing, file=file, takes_pickles=takes_pickles).needed_bytes,
    )


def sized_drafters(
    settings: HubSettings, drafters: Iterable[DrafterOffer]
) -> tuple[DrafterOffer, ...]:
    """Return drafters with their download sizes; blocks."""
    with ThreadPoolExecutor(_MAX_AT_ONCE, "drafters") as threads:
        return tuple(threads.map(lambda one: with_size(settings, one), drafters))


def _rarity(result: SearchResult) -> tuple[int, str]:
    """Sort key: most downloads first, then by name."""
    return -result.downloads, result.repo


def _is_called_for(repo: str, name: str) -> bool:
    """Return whether a drafter's name contains all distinctive words of a model and no others."""
    ours, theirs = _tokens(name), _tokens(repo)
    return bool(ours) and ours <= theirs and not (theirs - ours) & _DISTINCT_WORDS


def _tokens(name: str) -> set[str]:
    """Return the distinctive words of a model's name."""
    return set(_TOKEN.findall(bare_name(name))) - _GENERIC_WORDS
