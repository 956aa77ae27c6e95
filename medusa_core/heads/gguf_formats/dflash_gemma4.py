"""DSpark drafters for Gemma 4 in llama.cpp's GGUF files: Gemma 4 blocks with full attention.

Token embeddings are scaled as Gemma's, which the file states.

Source: llama.cpp, `conversion/gemma.py` and `src/models/dflash.cpp`.
"""

from __future__ import annotations

from typing import Any

from medusa_core.heads.gguf_format import GgufHeadsFormat
from medusa_core.heads.gguf_formats.dflash import OUTSIDE, drafter_settings, has_gemma4_blocks
from medusa_core.models.arch.gemma4_text import SPEC as GEMMA4
from medusa_core.models.checkpoints.gguf_config import block_sizes_of
from medusa_core.system.files.gguf import Gguf

_BLOCKS = GEMMA4.gguf


def _settings(gguf: Gguf) -> dict[str, Any]:
    """Return a `config.json` with Gemma 4's layers and the drafter's settings."""
    sizes = {"model_type": GEMMA4.name} | block_sizes_of(gguf, _BLOCKS)
    blocks = _BLOCKS.config(gguf, sizes)
    del sizes["layer_types"]  # the default of the architecture
    own = drafter_settings(gguf)
    activation = own.pop("hidden_act", None)
    del own["input_embedding_scale"]
    return {**sizes, **blocks, **own} | {"hidden_activation": activation}


SPEC = GgufHeadsFormat(
    "dflash-gemma4", "dflash", _BLOCKS, _settings, OUTSIDE, serves=has_gemma4_blocks
)
