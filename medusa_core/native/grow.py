"""Grows a tree for one step from what heads give their guesses, compiled where that is at hand."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable
from ctypes import addressof, c_int32

from medusa_core.native.library import native_library
from medusa_core.tree.search import grow
from medusa_core.tree.shape import Path

MOST_GROWN = 1024  # of grow.h

# How many children each node has, nodes by depth and siblings by rank, as bytes of int32; of what
# the heads give their guesses, head after head, each head's falling; of the number of guesses of
# each head; and of the rows to fill, root included.
Grow = Callable[["array[float]", int, int], bytes]


def grower(num_rows: int) -> Grow:
    """What grows trees of at most so many rows fastest; for one thread."""
    library = native_library()
    return search if library is None or num_rows > MOST_GROWN else _Compiled(library, num_rows)


class _Compiled:
    """Grows in one call."""

    def __init__(self, library: ctypes.CDLL, num_rows: int) -> None:
        self._grow = library.grow
        self._children = (c_int32 * num_rows)()
        self._view = memoryview(self._children).cast("B")
        self._address = addressof(self._children)

    def __call__(self, chances: array[float], num_ranks: int, num_rows: int) -> bytes:
        place, size = chances.buffer_info()
        count = self._grow(place, size // num_ranks, num_ranks, num_rows, self._address)
        return self._view[: chances.itemsize * count].tobytes()


def search(chances: array[float], num_ranks: int, num_rows: int) -> bytes:
    """The same without the compiled step."""
    flat = chances.tolist()
    heads = [flat[start : start + num_ranks] for start in range(0, len(flat), num_ranks)]
    found = [path for path, worth in grow(heads, num_rows - 1) if worth > 0]
    paths: list[Path] = [(), *sorted(found, key=lambda p: (len(p), p))]
    places = {path: place for place, path in enumerate(paths)}
    children = array("i", [0] * len(paths))
    for path in paths[1:]:
        children[places[path[:-1]]] += 1
    return children.tobytes()
