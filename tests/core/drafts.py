"""What might be guessed at random, by heads, by the lookup, by a table of phrases."""

import random
from array import array

from medusa_core.drafters.merge import Guesses
from medusa_core.tree.lookup import DEEPEST
from medusa_core.tree.phrase_table import Follower, Phrases, keys_of, of_lists

Path_ = tuple[int, ...]


def key_of(*tokens: int) -> int:
    """The key of a context, its oldest token first."""
    return keys_of(reversed(tokens), len(tokens))[-1]


def table(said: dict[Path_, dict[int, float]], longest: int = 3) -> Phrases:
    """A table of what follows which tokens."""
    lists = {
        key_of(*context): [Follower(*one) for one in followers.items()]
        for context, followers in said.items()
    }
    return of_lists(lists, longest, {0.0: ((0.5, 0.1), (0.6,)), 0.5: ((0.3,),)})


def random_table(rng: random.Random, num_tokens: int, longest: int = 3) -> Phrases:
    """Contexts of up to three tokens, each with a few followers; not all contexts are known."""
    said: dict[Path_, dict[int, float]] = {}
    for size in range(1, longest + 1):
        for _ in range(3 * num_tokens):
            context = tuple(rng.randrange(num_tokens) for _ in range(size))
            tokens = rng.sample(range(num_tokens), rng.randrange(1, 4))
            shares = sorted((rng.randrange(1, 85) / 255 for _ in tokens), reverse=True)
            said[context] = dict(zip(tokens, shares, strict=True))
    return table(said, longest)


def guesses_of(rng: random.Random, num_heads: int, num_ranks: int, num_tokens: int) -> Guesses:
    """What heads might guess."""
    token_ids, chances = array("i"), array("f")
    for _ in range(num_heads):
        token_ids.extend(rng.sample(range(num_tokens), num_ranks))
        drawn = sorted((rng.random() for _ in range(num_ranks)), reverse=True)
        chances.extend(chance / num_ranks for chance in drawn)
    return Guesses(token_ids, chances, num_ranks)


def trust_of(rng: random.Random) -> "array[float]":
    """How far a lookup might be trusted: more than heads, as much, or less."""
    most = rng.choice((1.0, 0.2, 0.05))
    drawn = (sorted((rng.random() for _ in range(DEEPEST)), reverse=True) for _ in range(4))
    return array("f", [most * chance for row in drawn for chance in row])
