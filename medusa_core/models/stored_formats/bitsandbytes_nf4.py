"""4-bit weights as bitsandbytes publishes them: nf4, with or without double quantization.

A card takes them as they are. For a CPU they become blocks of type nf4_0, whose kernel knows the
levels of nf4: that loses 0.5 % of the weights' norm. Q4_0 would lose 8.6 %, IQ4_NL 5.4 %, and Q8_0
as little in almost twice the memory.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.checkpoints.packing import (
    Packing,
    names,
)
from medusa_core.models.quant.nf4_sizes import BLOCK
from medusa_core.models.stored import StoredFormat, StoredSpec

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.quant.format import QuantSpec

_METHOD = "bitsandbytes nf4"


def _format_of(settings: Mapping[str, Any]) -> StoredFormat:
    if not settings.get("load_in_4bit") or settings.get("bnb_4bit_quant_type", "fp4") != "nf4":
        raise _unsupported("bitsandbytes, but not nf4")
    if (storage := settings.get("bnb_4bit_quant_storage", "uint8")) != "uint8":
        raise _unsupported(f"stored as {reprlib.repr(storage)}")
    plain = names(settings.get("llm_int8_skip_modules"), _METHOD)
    packing = Packing(
        _METHOD,
        bits=4,
        group=BLOCK,
        is_symmetric=True,
        left_out=tuple(f"re:.*{re.escape(part)}" for part in plain),  # parts of names
        blocks="nf4_0",
        card="nf4-dq" if settings.get("bnb_4bit_use_double_quant") else "nf4",
    )
    return StoredFormat(packing.kind, packing)


def _unsupported(how: str) -> ModelError:
    return ModelError(
        f"The checkpoint is quantized already ({how}).",
        "Choose nf4, or the unquantized version of this model.",
    )


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    from medusa_core.models.checkpoints.prequantized import holds_quantized

    return holds_quantized(checkpoint, part)


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    from medusa_core.models.checkpoints.prequantized import read_quantized

    return read_quantized(checkpoint, part, config, formats)


SPEC = StoredSpec("bitsandbytes", _format_of, _holds, _read)
