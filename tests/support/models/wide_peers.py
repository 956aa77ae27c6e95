"""Models of transformers that are wide enough for the compiled kernels."""

import itertools
import json
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.runtime.backends.native_limits import why_not
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from tests.support.models import peers
from tests.support.models.peers import CONFIGS, make_peer

MAMBAS = (peers.MAMBA, peers.GRANITE4_HYBRID, peers.FALCON_H1)  # sizes of models with such layers
# Sizes of narrow models, and what they become in wide ones.
WIDER: tuple[tuple[tuple[dict[str, Any], ...], dict[str, Any]], ...] = (
    # Scores are to stay as large as those of narrow models.
    (
        (peers.SIZES, *MAMBAS, peers.NEMOTRON_H, peers.GLM4_MOE),
        {"hidden_size": 64, "initializer_range": 0.2},
    ),
    ((peers.GEMMA4,), {"head_dim": 16, "global_head_dim": 32}),
    ((peers.GRANITE4, *MAMBAS), {"mamba_d_head": 16}),
    ((peers.FALCON_H1,), {"mamba_d_ssm": 128, "num_hidden_layers": 4}),
    ((peers.NEMOTRON_H,), {"mamba_head_dim": 16}),
    ((peers.MAMBA2,), {"hidden_size": 64, "head_dim": 16, "initializer_range": 0.2}),
    ((peers.SHARED_EXPERT,), {"hidden_size": 64, "shared_expert_intermediate_size": 48}),
    (
        (peers.DELTA_NET, peers.SHARED_EXPERT),
        {"linear_key_head_dim": 16, "linear_value_head_dim": 32},
    ),
)
# Sizes that are given where a model is made.
WIDER_HERE = {
    "head_dim": (8, 16),
    "hidden_size_per_layer_input": (8, 16),
    "moe_intermediate_size": (24, 32),
}


def wide_config(name: str) -> Any:
    """Return one of `CONFIGS` with rows as wide as the compiled step's vectors."""
    config = CONFIGS[name]()
    if is_known(config):
        return config
    with pytest.MonkeyPatch.context() as patch:
        for several, values in WIDER:
            for sizes, key in itertools.product(several, values):
                patch.setitem(sizes, key, values[key])
        config = CONFIGS[name]()
    for key, (narrow, wide) in WIDER_HERE.items():
        if vars(config).get(key) == narrow:
            setattr(config, key, wide)
    return config


def is_known(config: Any) -> bool:
    return why_not(sizes_of(config)) is None


def sizes_of(config: Any) -> ModelConfig:
    return parse_config(json.loads(config.to_json_string()), {})


# One of each family, by all that its members have.
FULLEST = (
    *("gemma 2", "gemma 3, longer", "gemma 4 E2B", "gemma 4 12B", "olmo 3, longer"),
    *("granite 4 with factors", "ministral 3", "qwen 3.5", "lfm 2 with biases, untied"),
    *("gpt-oss", "qwen 3 with experts, some layers without"),
    *("granite 4 hybrid with turns and biases", "nemotron h with biases", "falcon h1 with norms"),
    *("qwen 3.5 with experts", "lfm 2 with experts", "glm 4 with experts", "gemma 4 26B"),
    "nemotron h with experts",
)


@cache
def wide_peer(name: str) -> PreTrainedModel:
    return make_peer(name, wide_config(name))


def scores(runner: NativeRunner | ResidentRunner, token_ids: list[int], chunk: int) -> Tensor:
    kv = runner.new_cache(128)
    parts = [token_ids[at : at + chunk] for at in range(0, len(token_ids), chunk)]
    return torch.cat([runner.logits(runner.extend(part, kv)) for part in parts])
