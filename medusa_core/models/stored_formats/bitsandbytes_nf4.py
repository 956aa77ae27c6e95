"""bitsandbytes' 4-bit checkpoints: nf4, with or without double quantization.

A GPU uses them unchanged. For a CPU they are converted to blocks of type nf4_0, whose kernel has
nf4's levels: the relative error is 0.5 %. With q4_0 it would be 8.6 %, with iq4_nl 5.4 %, and q8_0
would be as exact in almost twice the memory.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.packing import Packing, names_containing
from medusa_core.models.quant.block_sizes import NF4_BLOCK
from medusa_core.models.stored import StoredSpec, is_quantized

if TYPE_CHECKING:
    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.stored import Quantized

_METHOD = "bitsandbytes nf4"


def _parse(settings: Mapping[str, Any]) -> Packing:
    """Parse a bitsandbytes `quantization_config`; only nf4 is supported."""
    if not settings.get("load_in_4bit") or settings.get("bnb_4bit_quant_type", "fp4") != "nf4":
        raise _unsupported(tr("bitsandbytes, but not nf4"))
    if (storage := settings.get("bnb_4bit_quant_storage", "uint8")) != "uint8":
        raise _unsupported(tr("stored as {0}", reprlib.repr(storage)))
    return Packing(
        _METHOD,
        bits=4,
        group=NF4_BLOCK,
        is_symmetric=True,
        ignored=names_containing(settings.get("llm_int8_skip_modules"), _METHOD),
        block_type="nf4_0",
        card="nf4-dq" if settings.get("bnb_4bit_use_double_quant") else "nf4",
    )


def _unsupported(reason: str) -> ModelError:
    """Make the error for bitsandbytes formats other than nf4."""
    return ModelError(
        tr("The checkpoint is quantized already ({0}).", reason),
        "Choose nf4, or the unquantized version of this model.",
    )


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    """Whether a linear layer is stored in nf4."""
    return is_quantized(checkpoint, part, "weight.absmax")


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> Quantized:
    """Read a linear layer; imports torch only when a model is loaded."""
    from medusa_core.models.checkpoints.nf4 import read_nf4

    return read_nf4(checkpoint, part, config, formats)


SPEC = StoredSpec("bitsandbytes", _parse, _holds, _read)
