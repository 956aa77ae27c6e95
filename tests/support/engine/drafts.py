"""What might be guessed at random, by heads, by a suffix tree, by a table of phrases."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Sequence

from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.models.datastore.phrases import (
    Follower,
    PhraseTable,
    context_keys,
    make_table,
)
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    Candidates,
    Paths,
)

Path_ = tuple[int, ...]


def received(target: Target, token_ids: Sequence[int], hidden: Tensor) -> Observation:
    """Return an observation of decided tokens with the hidden states that heads need."""
    states = hidden.expand(len(token_ids), -1)
    heads = target.heads
    deep = None if heads is None or not heads.taps else states.repeat(1, len(heads.taps))
    return Observation(token_ids, states, range(len(token_ids)), None, deep)


def key_of(*tokens: int) -> int:
    """The key of a context, its oldest token first."""
    return context_keys(reversed(tokens), len(tokens))[-1]


def table(output: dict[Path_, dict[int, float]], longest: int = 3) -> PhraseTable:
    """A table of what follows which tokens."""
    lists = {
        key_of(*context): [Follower(*one) for one in followers.items()]
        for context, followers in output.items()
    }
    return make_table(lists, longest, {0.0: ((0.5, 0.1), (0.6,)), 0.5: ((0.3,),)})


def random_table(rng: random.Random, num_tokens: int, longest: int = 3) -> PhraseTable:
    """Contexts of up to three tokens, each with a few followers; not all contexts are known."""
    output: dict[Path_, dict[int, float]] = {}
    for size in range(1, longest + 1):
        for _ in range(3 * num_tokens):
            context = tuple(rng.randrange(num_tokens) for _ in range(size))
            tokens = rng.sample(range(num_tokens), rng.randrange(1, 4))
            shares = sorted((rng.randrange(1, 85) / 255 for _ in tokens), reverse=True)
            output[context] = dict(zip(tokens, shares, strict=True))
    return table(output, longest)


def heads_of(rng: random.Random, num_heads: int, num_ranks: int, num_tokens: int) -> Scripted:
    """Return a fake of heads that draft the same tokens at each depth after every path."""
    levels = []
    for _ in range(num_heads):
        drawn = sorted((rng.random() for _ in range(num_ranks)), reverse=True)
        chances = array("f", [chance / num_ranks for chance in drawn])
        levels.append(dict(zip(rng.sample(range(num_tokens), num_ranks), chances, strict=True)))
    return Scripted(lambda path: levels[len(path)] if len(path) < len(levels) else {}, True)


def suffixes_of(rng: random.Random, num_tokens: int) -> Scripted:
    """Return a fake of a suffix source: up to three continuations, longer ones with higher
    probability.
    """
    most = rng.choice((1.0, 0.4, 0.1))
    found: dict[Path_, dict[int, float]] = {}
    for _ in range(rng.randrange(4)):
        path: Path_ = ()
        for _ in range(rng.randrange(1, 6)):
            token = rng.randrange(num_tokens)
            found.setdefault(path, {})[token] = most * rng.random()
            path = (*path, token)
    return Scripted(lambda path: found.get(path, {}))


class Scripted:
    """Source whose candidates are a function of the path.

    Args:
        says: What may follow a path, and how likely each token is.
        is_same: The function knows a path by its length alone.
    """

    def __init__(self, says: Callable[[Path_], dict[int, float]], is_same: bool = False) -> None:
        self.top_tokens: Sequence[Sequence[int]] = ()
        self.says = says
        self._is_same = is_same
        self.requested: list[Path_] = []

    def begin(self, token_ids: Sequence[int]) -> None:
        """Do nothing."""

    def start(self, root_id: int, most_rows: int) -> None:
        """Do nothing."""

    def candidates(self, paths: Paths) -> Candidates | None:
        known = [paths.path(index) for index in range(paths.num)]
        self.requested += known
        found = [self.says(path) for path in (known[:1] if self._is_same else known)]
        if not any(found):
            return None
        return Candidates(
            array("i", [token for following in found for token in following]),
            array("f", [chance for following in found for chance in following.values()]),
            None if self._is_same else array("i", map(len, found)),
        )

    def observe(self, observation: Observation) -> None:
        """Do nothing."""

    def truncate(self, length: int) -> None:
        """Do nothing."""
