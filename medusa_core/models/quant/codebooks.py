"""Codebooks of the types whose codes are places in one.

`resources/codebooks.safetensors` holds them: the grids of llama.cpp's `ggml-common.h` (MIT), for
the format is nothing without them.
"""

from __future__ import annotations

from functools import cache

from safetensors.torch import load_file
from torch import Tensor

from medusa_core.system.resources import resources_dir


def codebook(name: str) -> Tensor:
    """The numbers of every place: uint8 [places, 8 or 4]; of `iq1` signed ones, as bytes."""
    return _all()[name]


@cache
def _all() -> dict[str, Tensor]:
    return load_file(resources_dir() / "codebooks.safetensors")
