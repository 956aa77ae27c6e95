"""JSON that is almost what was wanted: one value in it is anything else, or not there."""

import random
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

PLAIN: tuple[Any, ...] = (
    *(None, True, False, 0, 7, -1, 1 << 60, 10**300, 1.5, float("nan"), float("inf")),
    *("", ".", "..", "../x", "/etc/passwd", "a" * 40, "A" * 40, "a" * 64, "\ud800", "ä\n", "0"),
)
Path = tuple[str | int, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Return every position in a value, the whole first."""
    yield path
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield from places(value[key], (*path, key))


def spoil(value: Any, path: Path, other: Any, *, is_missing: bool = False) -> Any:
    """A copy with another value at a place, or without it."""
    if not path:
        return other
    spoiled_copy = deepcopy(value)
    inner = spoiled_copy
    for key in path[:-1]:
        inner = inner[key]
    if is_missing:
        del inner[path[-1]]
    else:
        inner[path[-1]] = other
    return spoiled_copy


def any_json(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON, flat or nested."""
    match chance.randrange(6) if depth < 3 else 0:
        case 4:
            return [any_json(chance, depth + 1) for _ in range(chance.randint(0, 3))]
        case 5:
            return {str(key): any_json(chance, depth + 1) for key in chance.sample(PLAIN, 2)}
        case _:
            return chance.choice(PLAIN)


def spoiled(value: Any, seed: int = 1, count: int = 300) -> Iterator[Any]:
    """Copies of a value, in each of which one place is spoiled or missing."""
    chance = random.Random(seed)
    found = list(places(value))
    for _ in range(count):
        path, is_missing = chance.choice(found), chance.random() < 0.3
        yield spoil(value, path, any_json(chance), is_missing=is_missing)
