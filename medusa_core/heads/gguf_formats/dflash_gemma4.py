"""DSpark drafters for Gemma 4 as llama.cpp stores them: Gemma 4's blocks, all of which see all.

Token vectors are scaled as Gemma's are, which the file says, too.

Source: llama.cpp, `conversion/gemma.py` and `src/models/dflash.cpp`.
"""

from __future__ import annotations

from typing import Any

from medusa_core.heads.gguf_format import GgufHeadsFormat
from medusa_core.heads.gguf_formats.dflash import OUTSIDE, drafter_settings, is_gemmas
from medusa_core.models.arch.gemma4_text import SPEC as GEMMA4
from medusa_core.models.checkpoints.gguf_config import block_sizes_of
from medusa_core.system.files.gguf import Gguf

_BLOCKS = GEMMA4.gguf


def _settings(gguf: Gguf) -> dict[str, Any]:
    sizes = {"model_type": GEMMA4.name} | block_sizes_of(gguf, _BLOCKS)
    blocks = _BLOCKS.config(gguf, sizes)
    del sizes["layer_types"]  # as a target's are where a file says nothing
    own = drafter_settings(gguf)
    activation = own.pop("hidden_act", None)
    del own["input_embedding_scale"]
    return {**sizes, **blocks, **own} | {"hidden_activation": activation}


SPEC = GgufHeadsFormat("dflash-gemma4", "dflash", _BLOCKS, _settings, OUTSIDE, serves=is_gemmas)
