"""Combinations for tests over everything registered: a part of them, and the others as slow."""

from collections.abc import Container, Sequence
from itertools import product
from typing import Any

import pytest


def by_turns(*axes: Sequence[Any], daily: Container[Any] | None = None) -> list[Any]:
    """Parametrize every combination; along the last axis one value by turns, the others as slow
    tests.

    Args:
        axes: Values of each argument.
        daily: Values of the first axis that aren't slow; None for all.

    Neighbours on any other axis get different values. A tuple on an axis stands for several
    arguments.
    """
    *first, last = axes
    found = []
    for places in product(*(range(len(axis)) for axis in first)):
        values = [axis[place] for axis, place in zip(first, places, strict=True)]
        for number, value in enumerate(last):
            arguments = [one for part in (*values, value) for one in _arguments(part)]
            is_daily = number == sum(places) % len(last) and (
                daily is None or arguments[0] in daily
            )
            marks = () if is_daily else (pytest.mark.slow,)
            names = "-".join(_name_of(each) for each in arguments)
            found.append(pytest.param(*arguments, id=names, marks=marks))
    return found


def _arguments(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _name_of(value: Any) -> str:
    """Return a value's name in a test id, never an address, since workers must agree on it."""
    return str(getattr(value, "name", getattr(value, "__name__", value)))
