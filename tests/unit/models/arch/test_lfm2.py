"""LFM2: what its configurations say, old and new, and how its experts are chosen."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from transformers import Lfm2Config

from medusa_core.bench.gguf_export import finish
from medusa_core.errors import ModelError
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.blocks.spec import SILU, MlpSpec, MoeSpec, RoutingSpec, Scoring
from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
from medusa_core.models.config import parse_config
from medusa_core.models.layer_shapes import KvShape, StateShape
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.format import quant_registry
from medusa_core.models.quant.linear import make_linear
from medusa_core.runtime.backends.activation import active_of
from medusa_core.runtime.backends.experts import ExpertMlps, Mlp
from medusa_core.runtime.runner.offload import OffloadRunner
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.engine.tight import with_layers_below
from tests.support.models.peer_runs import TOKEN_IDS, our_logits
from tests.support.models.peers import LFM2, SIZES, make_peer
from tests.support.models.tiny import write_text_files

NEW: dict[str, Any] = {
    "model_type": "lfm2",
    "vocab_size": 65536,
    "hidden_size": 2048,
    "intermediate_size": 12288,
    "num_hidden_layers": 4,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 128_000,
    "norm_eps": 1e-5,
    "conv_L_cache": 3,
    "conv_bias": False,
    "layer_types": ["conv", "conv", "full_attention", "conv"],
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    "tie_word_embeddings": True,
    "eos_token_id": 7,
}
MOE: dict[str, Any] = {
    **NEW,
    "model_type": "lfm2_moe",
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1792,
    "num_dense_layers": 2,
}


def test_sizes_equal_those_of_the_published_model() -> None:
    config = parse_config(NEW, {})
    inputs = StateShape(0, 0, 0, 0, channels=2048, conv_width=3)
    assert config.layers == (inputs, inputs, KvShape(8, 64), inputs)
    assert (config.intermediate_size, config.rms_norm_eps, config.rope.theta) == (8192, 1e-5, 1e6)
    assert config.tie_embeddings


def test_an_old_configuration_equals_a_new_one() -> None:
    renamed = ("intermediate_size", "layer_types", "rope_parameters", "tie_word_embeddings")
    old = {key: value for key, value in NEW.items() if key not in renamed}
    old |= {"block_ff_dim": 12288, "full_attn_idxs": [2], "tie_embedding": True, "block_dim": 2048}
    for adjusting in ({}, {"block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0}):
        assert parse_config(old | adjusting, {}) == parse_config(NEW, {})


@pytest.mark.parametrize(
    ("adjusting", "width"),
    [
        ({"block_auto_adjust_ff_dim": False}, 12288),
        ({"block_ffn_dim_multiplier": None}, 8192),
        ({"block_ffn_dim_multiplier": 1.3}, 10752),
        ({"block_ffn_dim_multiplier": 1.3, "block_multiple_of": 100}, 10700),
    ],
)
def test_the_width_of_an_mlp_is_adjusted_as_configured(
    adjusting: dict[str, Any], width: int
) -> None:
    assert parse_config(NEW | adjusting, {}).intermediate_size == width


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"conv_L_cache": 65}, "conv_L_cache"),
        ({"conv_L_cache": 1}, "conv_L_cache"),
        ({"layer_types": ["conv", "full_attention"]}, "layer_types"),
        ({"layer_types": ["conv", "sliding_attention", "conv", "conv"]}, "layer_types"),
        ({"layer_types": None, "full_attn_idxs": [2, 4]}, "full_attn_idxs"),
        ({"layer_types": None, "full_attn_idxs": [True]}, "full_attn_idxs"),
        ({"layer_types": None, "full_attn_idxs": [1 << 80] * 100_000}, "full_attn_idxs"),
        ({"block_ff_dim": 10**4000}, "block_ff_dim"),
        ({"block_ffn_dim_multiplier": 1e11}, "intermediate_size"),
        ({"block_ffn_dim_multiplier": -1}, "block_ffn_dim_multiplier"),
        ({"block_multiple_of": 0}, "block_multiple_of"),
        ({"norm_eps": -1}, "rms_norm_eps"),
    ],
)
def test_a_senseless_configuration_is_refused_with_a_message(
    changes: dict[str, Any], said: str
) -> None:
    """Other values: `test_hostile_configurations`."""
    with pytest.raises(ModelError, match=said):
        parse_config(NEW | changes, {})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_experts": 3}, "4 of 3 experts"),
        ({"routed_scaling_factor": 0}, "routed_scaling_factor"),
        ({"num_dense_layers": -1}, "num_dense_layers"),
    ],
)
def test_senseless_experts_are_refused_with_a_message(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        parse_config(MOE | changes, {})


def test_a_file_with_sliding_windows_is_refused(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "lfm2")
    writer.add_block_count(2)
    writer.add_embedding_length(8)
    writer.add_head_count(2)
    writer.add_head_count_kv([0, 2])
    writer.add_sliding_window(24)
    writer.add_tensor("token_embd.weight", np.zeros((8, 8), np.float32))
    finish(writer)
    with pytest.raises(ModelError, match="layer_types"):
        _ = ModelFiles.open(tmp_path / "x.gguf").config


def test_a_router_bias_selects_experts_but_leaves_their_weights() -> None:
    torch.manual_seed(3)
    scores, bias = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0.0, 0.0, 0.0, 9.0])
    routing = RoutingSpec(4, 2, Scoring.SIGMOID, routed_scaling_factor=2.5)
    # Rows are their scores and a one; the expert of number e makes e + 1 times the same of that.
    x = torch.cat([scores, torch.ones(5, 1, dtype=torch.float64)], dim=1)
    unit = torch.eye(5, dtype=torch.float64)
    rows = (TensorRows("gate", 1), TensorRows("up", 1))
    one = MlpSpec(LinearSpec("gate_up", rows, 5), LinearSpec("down", (TensorRows("down", 5),), 1))
    spec = MoeSpec(routing, LinearSpec("router", (TensorRows("router", 4),), 5), one)
    mlps = tuple(
        Mlp(one, make_linear(torch.stack([unit[4], (k + 1) * unit[4]])), make_linear(x[:, 4:]))
        for k in range(4)
    )
    experts = ExpertMlps(spec, make_linear(unit[:4]), None, None, mlps, bias=bias)
    found = experts(x, active_of(SILU))
    unscaled = torch.nn.functional.silu(torch.ones((), dtype=torch.float64))
    for row in range(5):
        shares = torch.sigmoid(scores[row])
        chosen = [int(shares[:3].argmax()), 3]
        parts = shares[chosen] / (shares[chosen].sum() + 1e-6)
        wanted = 2.5 * unscaled * (parts @ torch.tensor(chosen).add(1).double())
        torch.testing.assert_close(found[row, 0], wanted)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model wide enough for whole blocks and with layers to offload."""
    folder = tmp_path_factory.mktemp("wide")
    kinds = ["conv", "full_attention", "conv", "conv", "full_attention", "conv"]
    sizes = {"hidden_size": 256, "num_hidden_layers": 6, "layer_types": kinds}
    peer = make_peer("wide", Lfm2Config(**{**SIZES, **LFM2, **sizes, "initializer_range": 0.1}))
    peer.save_pretrained(folder)
    write_text_files(folder)
    return folder


SETTINGS = GenerateSettings(drafter="suffix", max_new_tokens=20)
MESSAGES = user_says("as short as convolutions are")


@pytest.mark.parametrize("quant", [name for name in quant_registry().names if "nf4" not in name])
def test_every_weight_format_gives_about_the_same_logits(quant: str, wide: Path) -> None:
    exact = our_logits(load_target(wide, options=LoadOptions("float64", "cpu")).runner, TOKEN_IDS)
    options = LoadOptions("", "cpu", formats=WeightFormats(quant))
    rounded = our_logits(load_target(wide, options=options).runner, TOKEN_IDS).double()
    error = float((rounded - exact).std() / exact.std())
    # A convolution multiplies three numbers that are rounded; an unrelated model is 1.4 off.
    assert error < {"int8": 0.2, "q4": 0.9}.get(quant, 0.05)


def test_layers_may_be_on_a_disk(wide: Path) -> None:
    options = LoadOptions("float64", "cpu")
    whole = load_target(wide, options=options)
    streamed = load_target(wide, options=with_layers_below(wide, None, options, 1))
    assert isinstance(streamed.runner, OffloadRunner)
    assert our_logits(streamed.runner, TOKEN_IDS).equal(our_logits(whole.runner, TOKEN_IDS))
    check_same_tokens(decode(whole, SETTINGS, MESSAGES), decode(streamed, SETTINGS, MESSAGES))


def test_drafts_change_no_token_with_a_4_bit_cache(wide: Path) -> None:
    options = LoadOptions("float64", "cpu", formats=WeightFormats(cache="q4"))
    target = load_target(wide, options=options)
    drafted = decode(target, SETTINGS, MESSAGES)
    assert drafted.done.num_steps < len(drafted.token_ids)
    check_same_tokens(decode(target, plainly(SETTINGS), MESSAGES), drafted)
