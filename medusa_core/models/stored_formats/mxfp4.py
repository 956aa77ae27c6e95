"""MXFP4 as GPT-OSS publishes its experts; `models/checkpoints/stacked.py` shows them as blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from medusa_core.models.checkpoints.packing import (
    EXPERTS,
    Packing,
)
from medusa_core.models.stored import StoredFormat, StoredSpec

if TYPE_CHECKING:
    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint


def _format_of(_: Mapping[str, Any]) -> StoredFormat:
    return StoredFormat("mxfp4", Packing("MXFP4", 4, 32, True, blocks="mxfp4", names=EXPERTS))


def _holds(_checkpoint: Checkpoint, _part: LinearSpec) -> bool:
    return False  # it is shown as blocks, which `gguf_blocks` reads


def _read(*_: object) -> NoReturn:
    raise AssertionError("it holds no part")


SPEC = StoredSpec("mxfp4", _format_of, _holds, _read)
