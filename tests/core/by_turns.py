"""Combinations for tests over everything registered: a part of them, and the others as slow."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def by_turns(*axes: Sequence[Any]) -> list[Any]:
    """Every combination; of the last axis one value by turns, the other ones as slow tests.

    Neighbours on any other axis get different values. Where a test skips some combinations, a value
    of the last axis may be met by the slow tests alone. A tuple on it stands for several arguments.
    """
    *first, last = axes
    found = []
    for places in product(*(range(len(axis)) for axis in first)):
        values = [axis[place] for axis, place in zip(first, places, strict=True)]
        for number, value in enumerate(last):
            all_values = (*values, *(value if isinstance(value, tuple) else (value,)))
            marks = () if number == sum(places) % len(last) else (pytest.mark.slow,)
            names = "-".join(str(getattr(each, "name", each)) for each in all_values)
            found.append(pytest.param(*all_values, id=names, marks=marks))
    return found
