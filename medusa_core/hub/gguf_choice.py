"""Which of a repository's GGUF files is meant by `owner/repo:QUANT`, and which is best here."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from medusa_core.errors import MedusaError, ModelError, RequestError
from medusa_core.hub.listing import Listing
from medusa_core.hub.remote import look_at_model
from medusa_core.hub.settings import HubSettings
from medusa_core.memory.budget import Budget
from medusa_core.memory.recommend import plan_choice
from medusa_core.messages import Fit, HeadsShape, WeightFormats

log = logging.getLogger(__name__)

_USUAL_CONTEXT = 4096
# More bits cost time in every step, and change answers hardly at all.
_UNQUANTIZED = ("f32", "fp32", "bf16", "f16", "fp16")


class GgufChoice(NamedTuple):
    """A file that was chosen.

    Attributes:
        path: Its path in the repository; of one in parts that of the first.
        nbytes: Bytes of all of its parts.
        num_files: Of how many.
        fit: Whether it fits this computer; None where it was named.
    """

    path: str
    nbytes: int
    num_files: int
    fit: Fit | None = None


def split_quant(name: str) -> tuple[str, str]:
    """A repository and the format that is named behind it; empty where none is."""
    repo, _, quant = name.partition(":")
    return repo, quant


def with_quant(paths: Iterable[str], quant: str) -> list[str]:
    """The files whose names have a format such as `Q4_K_M`, in any case, as a part of their own."""
    pattern = re.compile(rf"(?:^|[-._]){re.escape(quant)}(?:[-.]|$)", re.IGNORECASE)
    return [path for path in paths if pattern.search(PurePosixPath(path).stem)]


def named_file(listing: Listing, quant: str, of_heads: bool = False) -> GgufChoice:
    """The file of a format that somebody named.

    Args:
        listing: The repository.
        quant: The format; of heads it may be what they are called by, such as `eagle3`.
        of_heads: It holds heads, not a model.

    Raises:
        RequestError: There is none, or more than one.
    """
    paths = [file.path for file in (listing.drafters if of_heads else listing.ggufs)]
    found = with_quant(paths, quant)
    if len(found) == 1:
        return _choice(listing, found[0], len(paths))
    if not found:
        has = f"It has {', '.join(paths)}." if paths else "It has no GGUF files."
        raise RequestError(f"{listing.repo} has no file {quant}.", has)
    raise RequestError(
        f"{listing.repo} has several files {quant}.", f"Choose one by --file: {', '.join(found)}."
    )


def best_file(settings: HubSettings, listing: Listing, budget: Budget) -> GgufChoice:
    """The largest file in few bits that fits; where none does, the smallest.

    Args:
        settings: Where the headers of the files are read.
        listing: The repository.
        budget: What the device has.

    Raises:
        ModelError: None of them can be loaded.
    """
    paths = [file.path for file in listing.ggufs]
    dense = [path for kind in _UNQUANTIZED for path in with_quant(paths, kind)]
    few_bits = [path for path in paths if path not in dense] or paths
    tried: list[GgufChoice] = []
    why = ""
    for choice in sorted((_choice(listing, path, len(paths)) for path in few_bits), key=_size):
        try:
            fit = _fit(settings, listing, choice.path, budget)
        except MedusaError as error:
            log.info("%s is passed over: %s", choice.path, error.message)
            why = why or error.message
            continue
        tried.append(choice._replace(fit=fit))
        if fit is Fit.FITS:
            return tried[-1]
    if not tried:
        raise ModelError(
            f"No file of {listing.repo} can be loaded here. {why}", "Choose another repository."
        )
    return next((one for one in tried if one.fit is Fit.TIGHT), tried[-1])


def _choice(listing: Listing, path: str, num_files: int) -> GgufChoice:
    return GgufChoice(path, sum(file.size for file in listing.parts_of(path)), num_files)


def _size(choice: GgufChoice) -> int:
    return -choice.nbytes


def _fit(settings: HubSettings, listing: Listing, path: str, budget: Budget) -> Fit:
    """Whether a file fits, by its header.

    Raises:
        MedusaError: It can't be read, or not be loaded here.
    """
    config = look_at_model(settings, listing.repo, listing.revision, path).config
    context = min(_USUAL_CONTEXT, config.context_tokens)
    choice = plan_choice(config, HeadsShape(), WeightFormats(), budget, context)
    if choice.lack:
        raise ModelError(choice.lack)
    return choice.plan.fit


def described(choice: GgufChoice) -> str:
    """A choice in a line, for people."""
    name = f"{PurePosixPath(choice.path).name} ({choice.nbytes / 1e9:.2f} GB)"
    match choice.fit:
        case None:
            return name
        case Fit.FITS:
            return f"{name}: of {choice.num_files} files the best that fits this computer"
        case Fit.TIGHT:
            return f"{name}: none of {choice.num_files} files fits well, this one barely"
    return f"{name}: none of {choice.num_files} files fits this computer, this is the smallest"
