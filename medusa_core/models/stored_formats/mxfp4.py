"""GPT-OSS's experts in MXFP4; `checkpoints/stacked.py` converts them to GGUF's blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from medusa_core.models.checkpoints.packing import EXPERTS, Packing
from medusa_core.models.stored import StoredSpec

if TYPE_CHECKING:
    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint


def _parse(_: Mapping[str, Any]) -> Packing:
    """Return the packing of GPT-OSS's experts."""
    return Packing("MXFP4", 4, 32, is_symmetric=True, block_type="mxfp4", pattern=EXPERTS)


def _holds(_checkpoint: Checkpoint, _part: LinearSpec) -> bool:
    """Never match: `gguf_blocks` reads the converted blocks."""
    return False  # `gguf_blocks` reads the converted blocks


def _read(*_: object) -> NoReturn:
    """Fail: `_holds` matches no layer."""
    raise AssertionError("no layer is stored in this format")


SPEC = StoredSpec("mxfp4", _parse, _holds, _read)
