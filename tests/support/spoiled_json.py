"""JSON that is almost what was wanted: one value in it is anything else, or not there."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 1 << 60, 10**300, 1.5, float("nan"), float("inf")])
    | st.text()
    | st.sampled_from(
        ["", ".", "..", "../x", "/etc/passwd", "a" * 40, "A" * 40, "a" * 64, "\ud800"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
Path = tuple[str | int, ...]


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every place in a value, the whole first."""
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


def spoiled(value: Any) -> st.SearchStrategy[Any]:
    """The value with one place spoiled."""
    return st.builds(
        lambda path, other, is_missing: spoil(value, path, other, is_missing=is_missing),
        st.sampled_from(list(places(value))),
        ANY_JSON,
        st.booleans(),
    )
