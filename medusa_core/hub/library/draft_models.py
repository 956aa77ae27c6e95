"""Find models that can draft for another: smaller ones with the same vocabulary."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.blocks.sizes import num_linear_parameters
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles

# Tables of tokens are padded to rounder numbers; tokenizers of sizes further apart are others.
_MAX_PADDING = 1024


class ModelAt(NamedTuple):
    """Path and configuration of a model."""

    folder: Path
    config: ModelConfig


class _Vocabulary(NamedTuple):
    """Size and hash of a vocabulary."""

    num_tokens: int
    digest: str


class DraftModels:
    """Compares models; each vocabulary is read once, and only if sizes match."""

    def __init__(self) -> None:
        self._known: dict[Path, _Vocabulary] = {}

    def misfit(self, target: ModelAt, other: ModelAt) -> str:
        """Return why a model can't draft for another, for people; empty if it can. Blocks.

        Args:
            other: Who would.
        """
        reason = ""
        ours, theirs = target.config.vocab_size, other.config.vocab_size
        if abs(ours - theirs) > _MAX_PADDING:
            reason = tr("its vocabulary has {0:,} tokens, not {1:,}", theirs, ours)
        elif num_linear_parameters(other.config) >= num_linear_parameters(target.config):
            reason = tr("it isn't smaller")
        else:
            try:
                reason = self._other_tokens(target.folder, other.folder)
            except ModelError as error:
                reason = error.message
        return reason

    def _other_tokens(self, target: Path, other: Path) -> str:
        """Return how the vocabularies differ, as a clause; empty if they are equal."""
        wanted, found = self._vocabulary(target), self._vocabulary(other)
        reason = "" if wanted == found else tr("its tokens are others")
        if wanted.num_tokens != found.num_tokens:
            reason = tr(
                "its vocabulary has {0:,} tokens, not {1:,}", found.num_tokens, wanted.num_tokens
            )
        return reason

    def _vocabulary(self, folder: Path) -> _Vocabulary:
        """Return size and hash of a model's vocabulary, cached."""
        if (known := self._known.get(folder)) is not None:
            return known
        tokenizer = ModelFiles.open(folder).tokenizer
        digest = hashlib.sha256()
        for token_id in range(tokenizer.vocab_size):
            piece = tokenizer.bytes_of(token_id)
            digest.update(len(piece).to_bytes(4, "little") + piece)
        found = self._known[folder] = _Vocabulary(tokenizer.vocab_size, digest.hexdigest())
        return found
