"""Source of frequent phrases: a table of the tokens that often follow the last few tokens.

Source: Kim et al., "Exploring and Improving Drafts in Blockwise Parallel Decoding" (2024), for
n-grams of a model's own answers.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from ctypes import addressof
from itertools import chain

from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import SourceInfo
from medusa_core.models.datastore.phrases import PhraseTable
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
    SourceSpec,
)
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.structs import PhraseTableStruct

_BYTES, _ROOM = 4, 4096
_MAX_LEVELS = 6  # longer paths are hardly ever right, even of likely tokens


class PhrasesSource:
    """Looks up every path in the table."""

    def __init__(self, phrases: PhraseTable) -> None:
        self.top_tokens: Sequence[Sequence[int]] = ()
        library = native_library()
        self._follow: Callable[[array[int], Paths], Candidates] = (
            _InPython(phrases) if library is None else _Compiled(library, phrases)
        )
        self._text = array("i")

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer after a text."""
        self._text = array("i", token_ids)

    def start(self, root_id: int, most_rows: int) -> None:
        """Do nothing: the root is the text's last token."""

    def candidates(self, paths: Paths) -> Candidates | None:
        """Tokens that often follow each path after the text."""
        if paths.level >= _MAX_LEVELS:
            return None
        return self._follow(self._text, paths)

    def observe(self, observation: Observation) -> None:
        """Append the decided tokens to the text."""
        self._text.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        """Drop the text from `length` on."""
        del self._text[length:]


class _Compiled:
    """Looks up all paths in one call of compiled code."""

    def __init__(self, library: ctypes.CDLL, phrases: PhraseTable) -> None:
        self._follow = library.find_continuations
        self._phrases = phrases  # keeps the arrays of the structure alive
        self._struct = PhraseTableStruct(
            keys=phrases.keys.ctypes.data,
            starts=phrases.starts.ctypes.data,
            tokens=phrases.tokens.ctypes.data,
            probabilities=phrases.chances.ctypes.data,
            buckets=phrases.buckets.ctypes.data,
            shift=phrases.shift,
            max_context=phrases.longest,
        )
        self._address = addressof(self._struct)
        blank = bytes(_BYTES * _ROOM)
        token_ids, chances, counts = array("i", blank), array("f", blank), array("i", blank)
        self._found = Candidates(token_ids, chances, counts)
        self._addresses = [part.buffer_info()[0] for part in (counts, token_ids, chances)]

    def __call__(self, text: array[int], paths: Paths) -> Candidates:
        num, level, path_ids = paths
        address, length = text.buffer_info()
        below = path_ids.buffer_info()[0]
        arguments = (self._address, address, length, below, min(num, _ROOM), level)
        self._follow(*arguments, *self._addresses, _ROOM)
        return self._found


class _InPython:
    """Looks up paths without compiled code."""

    def __init__(self, phrases: PhraseTable) -> None:
        self._phrases = phrases

    def __call__(self, text: array[int], paths: Paths) -> Candidates:
        found = [
            self._phrases.followers(chain(reversed(paths.path(index)), reversed(text)))
            for index in range(paths.num)
        ]
        flat = [follower for followers in found for follower in followers]
        return Candidates(
            array("i", [follower.token_id for follower in flat]),
            array("f", [follower.chance for follower in flat]),
            array("i", map(len, found)),
        )


def _make(target: Target, _: RowBudget) -> PhrasesSource:
    """Make the source of a target's phrase table."""
    assert target.phrases is not None  # by `_serves`
    return PhrasesSource(target.phrases)


HINT = tr("Make its phrase table (medusa train phrases), or choose another drafter.")
SPEC = SourceSpec(
    SourceInfo(
        name="phrases",
        label="phrases",
        badge="phrases",
        explanation="what the model often says there",
        colours=("violet",),
        line="dot",
    ),
    serves=lambda target: target.phrases is not None,
    make=_make,
    hint=HINT,
)
