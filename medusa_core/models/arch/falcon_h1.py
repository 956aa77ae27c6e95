"""Falcon-H1: attention and a Mamba-2 layer in parallel in every block, with multipliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.arch.mamba2 import MAMBA_FLAGS, MAMBA_KEYS, mamba2, mamba_tensors
from medusa_core.models.architecture import AGAIN, Arch, ArchConfig, ModelFields, positive
from medusa_core.models.blocks.compose import attention, mlp, pre_norms
from medusa_core.models.blocks.spec import ActivationSpec, BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture, mlp_tensors


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks whose Mamba-2 layer and attention read the same input in parallel."""
    recurrent, has_norm = mamba2(config), config.flag("mamba_rms_norm")
    recurrent = replace(
        recurrent,
        output=replace(recurrent.output, has_bias=config.flag("projectors_bias")),
        has_norm=has_norm,
        norm_before_gate=has_norm and config.flag("mamba_norm_before_gate", True),
        multipliers=tuple(_multipliers(config, "ssm_multipliers", 5)),
        input_multiplier=config.positive("ssm_in_multiplier", 1.0),
        output_multiplier=config.positive("ssm_out_multiplier", 1.0),
    )
    attending = replace(
        attention(config, bias=config.flag("attention_bias")),
        # Keys are multiplied before the rotation, which is the same as scaling the scores.
        scale=config.positive("key_multiplier", 1.0) / config.head_dim**0.5,
        input_multiplier=config.positive("attention_in_multiplier", 1.0),
        output_multiplier=config.positive("attention_out_multiplier", 1.0),
    )
    return [
        BlockSpec(
            pre_norms(config, ("input_layernorm", "pre_ff_layernorm")),
            (attending, recurrent),
            mlp(config, "feed_forward", bias=config.flag("mlp_bias")),
            mlp_multiplier=_multipliers(config, "mlp_multipliers", 2)[1],
        )
    ] * config.num_layers


def _model(config: ArchConfig) -> ModelFields:
    """Return the multipliers of embeddings, MLP gates and logits."""
    return {
        "activation": ActivationSpec(gate_multiplier=_multipliers(config, "mlp_multipliers", 2)[0]),
        "embedding_multiplier": config.positive("embedding_multiplier", 1.0),
        "logits_scaling": 1 / config.positive("lm_head_multiplier", 1.0),
    }


def _multipliers(config: ArchConfig, key: str, count: int) -> Sequence[float]:
    """Read `count` positive multipliers; all 1 if the key is absent.

    Raises:
        ModelError: There are others.
    """
    numbers = config.raw.get(key)
    numbers = [1.0] * count if numbers is None else numbers
    if not isinstance(numbers, list) or len(numbers) != count:
        raise ModelError(tr("config.json: {0} aren't {1} numbers.", key, count), AGAIN)
    return [positive({key: number}, key, 1.0) or 1.0 for number in numbers]


SPEC = Arch(
    "falcon_h1",
    _blocks,
    _model,
    gguf=GgufArchitecture(
        "falcon-h1",
        tensors={
            **mamba_tensors("mamba"),
            **mlp_tensors("feed_forward"),
            "ffn_norm": "pre_ff_layernorm.weight",  # a whole name: files give it no ending
        },
        keys=MAMBA_KEYS,
        defaults={"mamba_norm_before_gate": False},
        flags={
            **MAMBA_FLAGS,
            "projectors_bias": "ssm_out.bias",
            "mamba_rms_norm": "ssm_norm.weight",
        },
    ),
)
