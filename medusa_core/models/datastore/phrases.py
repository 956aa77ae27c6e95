"""N-gram tables: the likeliest next tokens after a few tokens, counted in the model's own answers.

The longest known context counts; its probabilities are interpolated with those of shorter contexts
when the table is made. Unlike a Medusa head, a table sees the tokens of a draft's own path.

Source: rescoring drafts with an n-gram model is from Kim et al., "Exploring and Improving Drafts in
Blockwise Parallel Decoding" (2024).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from medusa_core.errors import ModelError
from medusa_core.i18n import tr

FILE = "phrases.safetensors"
_FORMAT = "medusa-chat phrases 1"
_MAX_CONTEXT = 8  # tokens
_WORD = 0xFFFFFFFF
_KINDS = (("uint32", 1), ("uint8", 1), ("uint8", 1))  # keys, counts and probabilities
_TOKEN_KINDS = (("uint16", 1), ("int32", 1))


class Follower(NamedTuple):
    """A likely next token.

    Attributes:
        chance: Its probability.
    """

    token_id: int
    chance: float


class PhraseTable:
    """An n-gram table in memory.

    Attributes:
        keys: Hashes of the contexts (`context_keys`), ascending. uint32, [contexts]
        starts: Index of each context's first follower, and the number of followers. int32,
            [contexts + 1]
        tokens: Followers, those of a context by descending probability. int32, [followers]
        chances: Probabilities of the followers. float32, [followers]
        buckets: Index of the first context whose key has at least these leading bits; last, the
            number of contexts. int32, [2^bits + 1]
        shift: Number of the other bits of a key.
        longest: Tokens of the longest context.
        accuracies: Acceptance rate of the follower of rank 0, 1, ... at depth 1, 2, ..., given that
            the tokens before it were accepted; by temperature bucket, 0 is greedy.
    """

    def __init__(
        self,
        keys: NDArray[np.uint32],
        counts: NDArray[np.uint8],
        tokens: NDArray[np.integer],
        chances: NDArray[np.uint8],
        longest: int,
        accuracies: Mapping[float, tuple[tuple[float, ...], ...]] = MappingProxyType({}),
    ) -> None:
        """Check and index the content of a file.

        Args:
            keys: As the attribute.
            counts: Number of followers of each context. [contexts]
            tokens: As the attribute.
            chances: In 255ths. [followers]
            longest: As the attribute.
            accuracies: As the attribute.

        Raises:
            ValueError: The arrays don't fit each other.
        """
        # Files aren't trusted, and the compiled step reads the arrays without bounds checks.
        kinds = tuple((part.dtype.name, part.ndim) for part in (keys, counts, chances, tokens))
        if kinds[:3] != _KINDS or kinds[3] not in _TOKEN_KINDS:
            raise ValueError("its parts are of other kinds")
        starts = np.concatenate(([0], counts.cumsum(dtype=np.int64)))
        fits = len(counts) == len(keys) > 0 and len(tokens) == len(chances) == starts[-1]
        if not fits or not 1 <= longest <= _MAX_CONTEXT or not (keys[1:] > keys[:-1]).all():
            raise ValueError("its parts don't fit each other")
        self.keys = np.ascontiguousarray(keys)
        self.starts = starts.astype(np.int32)
        self.tokens = tokens.astype(np.int32)
        self.chances = chances.astype(np.float32) / np.float32(255)
        bits = min(24, max(1, len(keys).bit_length() - 1))
        self.shift = 32 - bits
        firsts = np.arange(1 << bits, dtype=np.uint64) << self.shift
        self.buckets = np.append(np.searchsorted(keys, firsts), len(keys)).astype(np.int32)
        self.longest = longest
        self.accuracies = dict(accuracies)

    def __len__(self) -> int:
        return len(self.keys)

    def followers(self, newest_first: Iterable[int]) -> list[Follower]:
        """Return likely next tokens, the likeliest first; empty if no context is known.

        Args:
            newest_first: The last tokens in reverse order; those beyond the longest context are
                ignored.
        """
        for key in reversed(context_keys(newest_first, self.longest)):
            bucket = key >> self.shift
            for place in range(self.buckets[bucket], self.buckets[bucket + 1]):
                if self.keys[place] == key:
                    own = slice(self.starts[place], self.starts[place + 1])
                    found = zip(self.tokens[own].tolist(), self.chances[own].tolist(), strict=True)
                    return [Follower(*one) for one in found]
        return []


def context_keys(newest_first: Iterable[int], longest: int) -> list[int]:
    """Return the keys of the last token, the last two, ..., up to `longest`."""
    key, keys = 0, []
    for token_id, _ in zip(newest_first, range(longest), strict=False):
        key = next_key(key, token_id)
        keys.append(key)
    return keys


def next_key(key: int, token_id: int) -> int:
    """Return the key of a context with one more token before it; phrases.c computes the same."""
    mixed = (key * 0x9E3779B1 + token_id + 1) & _WORD
    mixed = (mixed ^ mixed >> 16) * 0x7FEB352D & _WORD
    mixed = (mixed ^ mixed >> 15) * 0x846CA68B & _WORD
    return mixed ^ mixed >> 16


def read_phrases(model_dir: Path, vocab_size: int) -> PhraseTable | None:
    """Read the table in a model's folder; None if there is none.

    Args:
        vocab_size: Size of the model's vocabulary.

    Raises:
        ModelError: The table is damaged, or that of another model.
    """
    path = model_dir / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(path, "numpy") as file:
            metadata = json.loads((file.metadata() or {})["phrases"])
            if metadata["format"] != _FORMAT:
                raise ValueError(f"its format is {metadata['format']!r}")
            phrases = PhraseTable(
                keys=file.get_tensor("keys"),
                counts=file.get_tensor("counts"),
                tokens=file.get_tensor("tokens"),
                chances=file.get_tensor("chances"),
                longest=int(metadata["longest"]),
                accuracies={
                    float(bucket): tuple(tuple(map(float, row)) for row in rows)
                    for bucket, rows in metadata["accuracies"].items()
                },
            )
        if not 0 <= phrases.tokens.min() <= phrases.tokens.max() < vocab_size:
            raise ValueError("the model has no such tokens")
        return phrases
    except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            tr("{0} of {1} is damaged: {2}.", path.name, model_dir.name, error),
            "Delete the file: the model runs without it, somewhat slower.",
        ) from error


def write_phrases(phrases: PhraseTable, model_dir: Path) -> None:
    """Write a table to a model's folder."""
    narrow = phrases.tokens.max() < 1 << 16
    parts: dict[str, NDArray[np.generic]] = {
        "keys": phrases.keys,
        "counts": np.diff(phrases.starts).astype(np.uint8),
        "tokens": phrases.tokens.astype(np.uint16 if narrow else np.int32),
        "chances": np.rint(phrases.chances * 255).astype(np.uint8),
    }
    metadata = {"format": _FORMAT, "longest": phrases.longest, "accuracies": phrases.accuracies}
    save_file(parts, model_dir / FILE, {"phrases": json.dumps(metadata)})


def make_table(
    lists: Mapping[int, Sequence[Follower]],
    longest: int,
    accuracies: Mapping[float, tuple[tuple[float, ...], ...]] = MappingProxyType({}),
) -> PhraseTable:
    """Make a table of the followers of each key, the likeliest first."""
    keys = np.array(sorted(lists), dtype=np.uint32)
    ordered = [lists[int(key)] for key in keys]
    flat = [follower for followers in ordered for follower in followers]
    return PhraseTable(
        keys,
        np.array([len(followers) for followers in ordered], dtype=np.uint8),
        np.array([follower.token_id for follower in flat], dtype=np.int32),
        np.array([round(255 * follower.chance) for follower in flat], dtype=np.uint8),
        longest,
        accuracies,
    )
