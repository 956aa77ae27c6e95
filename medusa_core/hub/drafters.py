"""Drafters that are published for a model: which kind a repository holds, and for whom.

A repository's card names its model (`base_model`); where it doesn't, names tell.
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

log = logging.getLogger(__name__)


class DrafterKind(NamedTuple):
    """How a kind of drafters is shown.

    Attributes:
        label: Its name.
        text: What it does, in one sentence.
    """

    label: str
    text: str


DRAFTER_KINDS: Mapping[str, DrafterKind] = {
    "dspark": DrafterKind(
        label="DSpark",
        text="Fills a block in one pass; each guess weighs the one before and says how sure it is.",
    ),
    "jetspec": DrafterKind(
        label="JetSpec", text="Fills a block in one pass, read from left to right."
    ),
    "dflash": DrafterKind(label="DFlash", text="Fills a whole block of guesses in one pass."),
    "gemma4-assistant": DrafterKind(
        label="Assistant", text="Google's own small drafter, which reads what the model remembers."
    ),
    "mtp": DrafterKind(
        label="MTP", text="A layer that the model was trained with, to predict further tokens."
    ),
    "hydra": DrafterKind(label="Hydra", text="Small heads that read the guesses before their own."),
    "medusa": DrafterKind(label="Medusa", text="Small heads, one for each token ahead."),
    "eagle": DrafterKind(
        label="EAGLE", text="One layer that goes on from the model's own states, token by token."
    ),
}
# What names say of a kind, those first that others hold in theirs.
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
# Parts of names that don't tell which model is meant, and those that tell another one of a size.
_ANY = frozenset(("instruct", "it", "chat", "meta", "hf", "base", "gguf", "google", "openai"))
_OTHERS = frozenset(
    (
        *("vl", "vlm", "coder", "code", "omni", "math", "distill", "thinking", "next", "guard"),
        *("embedding", "reranker", "vision", "audio", "r"),
    )
)
_BASE = re.compile(r"base_model:(?:quantized:|finetune:|adapter:|merge:)?(.+)")
_LICENCE = "license:"
_MOST_AT_ONCE = 3
_MOST_OF_MODEL = 100


@dataclass(frozen=True, slots=True)
class DrafterOffer:
    """A drafter that is published for a model.

    Attributes:
        repo: Its repository; empty where it lies in the model's own files.
        kind: One of `DRAFTER_KINDS`.
        made_for: The model that its makers name; empty where its name alone tells.
        file: Its GGUF file; empty for safetensors.
        nbytes: What is fetched; 0 while unknown.
        licence: Its licence; empty if unknown.
        is_gated: Its owner asks who you are.
        is_pickled: It is a pickle, which is converted once.
        is_unverified: It is listed as its makers describe it, and wasn't tried here.
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
    """The kind of drafter that a repository or a file is called, or tagged; empty for none."""
    last = name.rpartition("/")[2].casefold().removesuffix(".gguf")
    tagged = [tag.casefold() for tag in tags if ":" not in tag]
    for kind, pattern in _PATTERNS.items():
        if pattern.search(last) and (kind != "mtp" or last.startswith("mtp")):
            return kind
    if "speculative-decoding" in tagged or "speculators" in tagged:
        return next((kind for kind in DRAFTER_KINDS if kind in tagged), "")
    return ""


def base_models(tags: Iterable[str]) -> tuple[str, ...]:
    """The models that a card names as those its own was made of or for."""
    found = (_BASE.fullmatch(tag) for tag in tags)
    return tuple(dict.fromkeys(match[1] for match in found if match))


def licence_in(tags: Iterable[str]) -> str:
    """The licence that a card names; empty for none, or for one that it has no word for."""
    found = next((tag for tag in tags if tag.startswith(_LICENCE)), "").removeprefix(_LICENCE)
    return "" if found == "other" else found


def made_for(found: SearchResult, names: Sequence[str]) -> tuple[bool, str]:
    """Is a repository for a model, and which model do its makers name?

    Args:
        found: The repository.
        names: Of the model: its own, and those of what it was made of.
    """
    named = base_models(found.tags)
    for base in named:
        if any(same_model(base, name) for name in names):
            return True, base
    if named:
        return False, ""
    return any(_is_called_for(found.repo, name) for name in names), ""


def find_drafters(settings: HubSettings, names: Sequence[str]) -> tuple[DrafterOffer, ...]:
    """Drafters on the Hub for a model, the most downloaded first; blocks.

    Args:
        settings: How to deal with the Hub.
        names: Of the model: repositories, its own first.

    Raises:
        HubError: The Hub can't be reached, or its answer can't be read.
    """
    bases = list(dict.fromkeys(names))
    parts = [part for part in bare_name(bases[-1]).split("-") if part not in _ANY]

    def by_words(word: str) -> tuple[SearchResult, ...]:
        return search(settings, " ".join((*parts, word)))

    def of_model(base: str) -> tuple[SearchResult, ...]:
        return search(settings, "", limit=_MOST_OF_MODEL, base_model=base)

    with ThreadPoolExecutor(_MOST_AT_ONCE, "drafters") as threads:
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
    """A drafter with what is fetched of it; as it is where that can't be found out. Blocks."""
    if not drafter.repo or drafter.nbytes:
        return drafter
    try:
        listing = list_repo(settings, drafter.repo)
    except HubError as error:
        log.info("%s isn't looked at: %s", drafter.repo, error.message)
        return drafter
    file = drafter.file or listing.usual_drafter
    takes_pickles = drafter.is_pickled
    return replace(
        drafter,
        file=file,
        nbytes=replace(listing, file=file, takes_pickles=takes_pickles).needed_bytes,
    )


def sized_drafters(
    settings: HubSettings, drafters: Iterable[DrafterOffer]
) -> tuple[DrafterOffer, ...]:
    """Drafters with what is fetched of each; blocks."""
    with ThreadPoolExecutor(_MOST_AT_ONCE, "drafters") as threads:
        return tuple(threads.map(lambda one: with_size(settings, one), drafters))


def _rarity(one: SearchResult) -> tuple[int, str]:
    return -one.downloads, one.repo


def _is_called_for(repo: str, name: str) -> bool:
    """Does a drafter's name hold all that tells a model, and nothing that tells another?"""
    ours, theirs = _tokens(name), _tokens(repo)
    return bool(ours) and ours <= theirs and not (theirs - ours) & _OTHERS


def _tokens(name: str) -> set[str]:
    return set(_TOKEN.findall(bare_name(name))) - _ANY
