"""Choose a GGUF file of a repository: the one that `owner/repo:QUANT` names, or the best one."""

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
from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.memory.recommend import plan_choice
from medusa_core.messages import Fit, HeadsShape, WeightFormats

log = logging.getLogger(__name__)

_USUAL_CONTEXT = 4096
# More bits cost time in every step, and hardly change answers.
_UNQUANTIZED = ("f32", "fp32", "bf16", "f16", "fp16")


class GgufChoice(NamedTuple):
    """A GGUF file chosen from those of a repository.

    Attributes:
        path: Path in the repository, of the first part of a split file.
        nbytes: Bytes of all parts.
        num_files: Number of files to choose from.
        fit: Whether it fits this computer; None if the user named it.
    """

    path: str
    nbytes: int
    num_files: int
    fit: Fit | None = None


def split_quant(name: str) -> tuple[str, str]:
    """Split `owner/repo:QUANT`; the format is empty without one."""
    repo, _, quant = name.partition(":")
    return repo, quant


def with_quant(paths: Iterable[str], quant: str) -> list[str]:
    """Return the files whose names contain a format such as `Q4_K_M` as a word, in any case."""
    pattern = re.compile(rf"(?:^|[-._]){re.escape(quant)}(?:[-.]|$)", re.IGNORECASE)
    return [path for path in paths if pattern.search(PurePosixPath(path).stem)]


def named_file(listing: Listing, quant: str, of_heads: bool = False) -> GgufChoice:
    """Return the file whose name contains a format such as Q4_K_M.

    Args:
        quant: The format; for heads also a name such as `eagle3`.
        of_heads: The repository has heads, not a model.

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
    """Return the largest file of few bits that fits; if none does, the smallest.

    Args:
        settings: Settings of the Hub.
        budget: Memory of the device.

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
    """Return a file with the total size of its parts."""
    return GgufChoice(path, sum(file.size for file in listing.parts_of(path)), num_files)


def _size(choice: GgufChoice) -> int:
    """Sort key: the largest file first."""
    return -choice.nbytes


def _fit(settings: HubSettings, listing: Listing, path: str, budget: Budget) -> Fit:
    """Return whether a file fits, by its header.

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
    """Describe a choice in a line, for people."""
    name = f"{PurePosixPath(choice.path).name} ({choice.nbytes / 1e9:.2f} GB)"
    match choice.fit:
        case None:
            return name
        case Fit.FITS:
            return f"{name}: of {choice.num_files} files the best that fits this computer"
        case Fit.TIGHT:
            return f"{name}: none of {choice.num_files} files fits well, this one barely"
    return f"{name}: none of {choice.num_files} files fits this computer, this is the smallest"
