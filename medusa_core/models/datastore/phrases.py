"""What a model often says behind the same few tokens: counted in its own answers, once, beforehand.

A phrase table holds, for contexts of one to a few tokens, the likeliest next ones and how likely
each is. The longest context that is known counts; its chances have those of the shorter ones mixed
in already. Unlike a head, it reads the very tokens of a draft's path.

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

FILE = "phrases.safetensors"
_FORMAT = "medusa-chat phrases 1"
_MOST_TOKENS = 8  # of a context
_WORD = 0xFFFFFFFF
_KINDS = (("uint32", 1), ("uint8", 1), ("uint8", 1))  # of keys, counts and chances
_TOKEN_KINDS = (("uint16", 1), ("int32", 1))


class Follower(NamedTuple):
    """What often comes next.

    Attributes:
        token_id: The token.
        chance: How likely it is.
    """

    token_id: int
    chance: float


class PhraseTable:
    """The table in memory.

    Attributes:
        keys: Of every context the number that `keys_of` makes of it, ascending. uint32, [contexts]
        starts: Where the followers of each begin, and behind the last one their end. int32,
            [contexts + 1]
        tokens: The followers; those of a context by falling chance. int32, [followers]
        chances: How likely each is. float32, [followers]
        buckets: By the first bits of a key, the first context whose key has them or comes behind;
            at the end the number of contexts. int32, [2^bits + 1]
        shift: How many bits of a key aren't among these.
        longest: Tokens of the longest context.
        accuracies: How often the follower of rank 0, 1, ... was right at depth 1, 2, ..., where
            those before it had been; by bucket of temperatures, 0 being no chance.
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
        """Take what a file holds.

        Args:
            keys: As the attribute.
            counts: How many followers each context has. [contexts]
            tokens: As the attribute.
            chances: In 255ths. [followers]
            longest: As the attribute.
            accuracies: As the attribute.

        Raises:
            ValueError: They don't fit each other.
        """
        # A file may hold anything, and the compiled step reads it without looking.
        kinds = tuple((part.dtype.name, part.ndim) for part in (keys, counts, chances, tokens))
        if kinds[:3] != _KINDS or kinds[3] not in _TOKEN_KINDS:
            raise ValueError("its parts are of other kinds")
        starts = np.concatenate(([0], counts.cumsum(dtype=np.int64)))
        fits = len(counts) == len(keys) > 0 and len(tokens) == len(chances) == starts[-1]
        if not fits or not 1 <= longest <= _MOST_TOKENS or not (keys[1:] > keys[:-1]).all():
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

    def behind(self, newest_first: Iterable[int]) -> list[Follower]:
        """What often follows some tokens, the likeliest first; nothing where none of them is known.

        Args:
            newest_first: The last tokens, from the end backwards; more than the longest context has
                don't matter.
        """
        for key in reversed(keys_of(newest_first, self.longest)):
            bucket = key >> self.shift
            for place in range(self.buckets[bucket], self.buckets[bucket + 1]):
                if self.keys[place] == key:
                    own = slice(self.starts[place], self.starts[place + 1])
                    found = zip(self.tokens[own].tolist(), self.chances[own].tolist(), strict=True)
                    return [Follower(*one) for one in found]
        return []


def keys_of(newest_first: Iterable[int], longest: int) -> list[int]:
    """The keys of the last token, the last two, ..., `longest` at most."""
    key, keys = 0, []
    for token_id, _ in zip(newest_first, range(longest), strict=False):
        key = next_key(key, token_id)
        keys.append(key)
    return keys


def next_key(key: int, token_id: int) -> int:
    """The key of a context with one more token before it; phrases.c computes the same."""
    mixed = (key * 0x9E3779B1 + token_id + 1) & _WORD
    mixed = (mixed ^ mixed >> 16) * 0x7FEB352D & _WORD
    mixed = (mixed ^ mixed >> 15) * 0x846CA68B & _WORD
    return mixed ^ mixed >> 16


def read_phrases(model_dir: Path, vocab_size: int) -> PhraseTable | None:
    """The table that lies beside a model, if one does.

    Args:
        model_dir: The model's folder.
        vocab_size: Tokens that the model knows.

    Raises:
        ModelError: It is damaged, or another model's.
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
            f"{path.name} of {model_dir.name} is damaged: {error}.",
            "Delete the file: the model runs without it, somewhat slower.",
        ) from error


def write_phrases(phrases: PhraseTable, model_dir: Path) -> None:
    """Put a table beside a model."""
    narrow = phrases.tokens.max() < 1 << 16
    parts: dict[str, NDArray[np.generic]] = {
        "keys": phrases.keys,
        "counts": np.diff(phrases.starts).astype(np.uint8),
        "tokens": phrases.tokens.astype(np.uint16 if narrow else np.int32),
        "chances": np.rint(phrases.chances * 255).astype(np.uint8),
    }
    metadata = {"format": _FORMAT, "longest": phrases.longest, "accuracies": phrases.accuracies}
    save_file(parts, model_dir / FILE, {"phrases": json.dumps(metadata)})


def of_lists(
    lists: Mapping[int, Sequence[Follower]],
    longest: int,
    accuracies: Mapping[float, tuple[tuple[float, ...], ...]] = MappingProxyType({}),
) -> PhraseTable:
    """A table of the followers of each key, the likeliest first."""
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
