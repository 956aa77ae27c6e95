"""Qwen3.5 models of transformers."""

from typing import Any

from tests.support.models.peers import CONFIGS, DELTA_NET, SIZES

WIDE = {**SIZES, **DELTA_NET, "linear_key_head_dim": 32, "linear_value_head_dim": 32}


def dense(**more: Any) -> Any:
    return type(CONFIGS["qwen 3.5"]())(**{**WIDE, **more})
