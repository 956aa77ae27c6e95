"""The interface of loaded embedding models, and the embedding of a request pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from medusa_core.engine.embeddings.conventions import Conventions
from medusa_core.errors import NumericsError, RequestError
from medusa_core.i18n import tr
from medusa_core.messages import Purpose

MOST_ROWS = 1 << 20  # no limit
_MOST_SEQUENCES = 64  # texts of a pass
_CHARS_PER_TOKEN = 64  # longer texts aren't tokenized: no vocabulary averages so many

Vector = NDArray[np.float32]


class Embedder(Protocol):
    """A loaded embedding model.

    Attributes:
        name: Name of the model.
        width: Dimensions of a vector.
        context_tokens: Longest text in tokens.
        vocab_size: Number of token ids.
        conventions: Prefixes and truncation.
        nbytes: Bytes of weights and caches.
    """

    name: str
    width: int
    context_tokens: int
    vocab_size: int
    conventions: Conventions
    nbytes: int

    def encode(self, text: str) -> list[int]:
        """Tokenize a text, with the special tokens around it that the model expects.

        Names of special tokens in the text are plain text.

        Raises:
            TokenizerError: The tokenizer fails.
        """

    def compute(self, sequences: Sequence[Sequence[int]], max_rows: int) -> list[Vector]:
        """Compute one pass of at most `max_rows` tokens, if the model can be interrupted there.

        Args:
            sequences: Token ids of texts. If the previous pass ended within a text, it is the
                first.
            max_rows: Maximum number of tokens.

        Returns:
            Unnormalized vectors of the first texts; none if the pass ended within the first one.
        """

    @property
    def is_within_text(self) -> bool:
        """Whether the last pass ended within a text."""

    def reset(self) -> None:
        """Drop a text that was read in part."""


class EmbeddingRun:
    """Embeds the texts of a request.

    Attributes:
        vectors: Vectors of the first texts so far, of length 1.
        num_tokens: Number of tokens of each of these texts.
    """

    def __init__(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        token_ids: Sequence[Sequence[int]] = (),
        *,
        dimensions: int = 0,
        purpose: Purpose = Purpose.ANY,
        truncates: bool = False,
    ) -> None:
        """Prepare to embed.

        Args:
            embedder: The model.
            texts: Texts.
            token_ids: Texts as token ids, instead of `texts`; nothing is added to them.
            dimensions: Dimensions of the vectors; 0 for all.
            purpose: Purpose of the texts, whose prefix is added.
            truncates: Whether to truncate texts that are too long; else they are errors.

        Raises:
            RequestError: The model has no such dimensions, there is no text, or one is empty or
                too long.
        """
        _check_dimensions(embedder, dimensions)
        prefix = embedder.conventions.prefix(purpose)
        self._texts = [prefix + text for text in texts]
        self._embedder, self._dimensions, self._truncates = embedder, dimensions, truncates
        self._queue: list[Sequence[int]] = []
        self._num_encoded = 0
        self._total = len(texts) or len(token_ids)
        if not self._total:
            raise RequestError("There is no text to embed.")
        for index, ids in enumerate(token_ids):
            self._append(index, ids)
        for index, text in enumerate(texts):
            if not text:
                raise RequestError(tr("Text {0} is empty.", index + 1), "Leave it out.")
            if len(text) > embedder.context_tokens * _CHARS_PER_TOKEN and not truncates:
                raise _too_long(index, len(text) // _CHARS_PER_TOKEN, embedder)
        self.vectors: list[Vector] = []
        self.num_tokens: list[int] = []

    @property
    def is_done(self) -> bool:
        """Whether all texts are embedded."""
        return len(self.vectors) == self._total

    def advance(self, max_rows: int = MOST_ROWS) -> int:
        """Compute one pass.

        Args:
            max_rows: Maximum number of tokens.

        Returns:
            Number of texts that it completed.

        Raises:
            RequestError: A text is too long.
            MedusaError: The model fails.
        """
        self._fill(max_rows)
        pooled = self._embedder.compute(self._queue[:_MOST_SEQUENCES], max_rows)
        for vector in pooled:
            self.num_tokens.append(len(self._queue.pop(0)))
            self.vectors.append(_normalized(vector, self._dimensions))
        return len(pooled)

    def _fill(self, max_rows: int) -> None:
        """Tokenize texts for the next pass: all at once would block running answers."""
        rows = sum(map(len, self._queue[:_MOST_SEQUENCES]))
        while self._num_encoded < len(self._texts) and (
            not self._queue or (rows < max_rows and len(self._queue) < _MOST_SEQUENCES)
        ):
            index, text = self._num_encoded, self._texts[self._num_encoded]
            self._num_encoded += 1
            encode = self._truncated if self._truncates else self._embedder.encode
            self._append(index, encode(text))
            rows += len(self._queue[-1])

    def _truncated(self, text: str) -> list[int]:
        """Truncate the text, not its tokens, so that final special tokens stay; then tokenize."""
        most = self._embedder.context_tokens
        text = text[: most * _CHARS_PER_TOKEN]
        while len(ids := self._embedder.encode(text)) > most and len(text) > 1:
            text = text[: min(len(text) - 1, len(text) * most // len(ids))] or text[:1]
        return ids

    def _append(self, index: int, token_ids: Sequence[int]) -> None:
        """Queue a text; refuse one that can't be embedded."""
        embedder = self._embedder
        if not token_ids:
            raise RequestError(tr("Text {0} is empty.", index + 1), "Leave it out.")
        if len(token_ids) > embedder.context_tokens:
            raise _too_long(index, len(token_ids), embedder)
        if min(token_ids) < 0 or max(token_ids) >= embedder.vocab_size:
            raise RequestError(
                tr("Text {0} has a token that isn't in the model's vocabulary.", index + 1),
                "Send text instead, or tokens of this model.",
            )
        self._queue.append(token_ids)


def _check_dimensions(embedder: Embedder, dimensions: int) -> None:
    """Refuse a truncation for which the model wasn't trained."""
    least = embedder.conventions.min_dimensions
    if dimensions in (0, embedder.width):
        return
    if not least:
        raise RequestError(
            tr("{0} has vectors of {1} dimensions only.", embedder.name, embedder.width),
            "Leave out dimensions.",
            dimensions=dimensions,
        )
    if not least <= dimensions <= embedder.width:
        raise RequestError(
            tr("{0} has vectors of {1} to {2} dimensions.", embedder.name, least, embedder.width),
            "Choose a number in this range.",
            dimensions=dimensions,
        )


def _too_long(index: int, num_tokens: int, embedder: Embedder) -> RequestError:
    """Return the error of a text that exceeds the context."""
    return RequestError(
        tr(
            "Text {0} has {1:,} tokens or more; {2} reads at most {3:,}.",
            *(index + 1, num_tokens, embedder.name, embedder.context_tokens),
        ),
        "Divide it into passages.",
    )


def _normalized(vector: Vector, dimensions: int) -> Vector:
    """Truncate a vector to some dimensions, or 0 for all, and scale it to length 1."""
    kept = vector[: dimensions or None].astype(np.float64)
    length = float(np.linalg.norm(kept))
    if not np.isfinite(length) or not length:
        raise NumericsError(
            "The embedding model computed no finite vector.",
            "Its weights may be damaged: download it again.",
        )
    return (kept / length).astype(np.float32)
