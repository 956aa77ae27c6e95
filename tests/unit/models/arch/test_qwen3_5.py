"""Qwen3.5: its configurations, what lies beside its layers, and in which order its heads lie."""

import json
import time
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.errors import CheckpointError, ModelError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.blocks.spec import RoutingSpec, Scoring
from medusa_core.models.blocks.tensors import TensorRows
from medusa_core.models.config import HeadRows, parse_config
from medusa_core.models.layer_shapes import KvShape, StateShape
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.row_order import rows_of
from medusa_core.runtime.backends.block import DeltaNet
from medusa_core.runtime.backends.decoder import Decoder
from tests.support.engine.laws import plain_scores
from tests.support.engine.tight import with_layers_below
from tests.support.models.adapter_files import LoraSpec, lora_for, merge_slowly
from tests.support.models.gguf_converter import convert
from tests.support.models.peer_runs import TOKEN_IDS, our_logits, runner_of
from tests.support.models.peers import CONFIGS, SHARED_EXPERT, SIZES, make_peer
from tests.support.models.qwen3_5_files import dense
from tests.support.models.tiny import write_text_files

TEXT: dict[str, Any] = {
    "model_type": "qwen3_5_text",
    "vocab_size": 248320,
    "hidden_size": 2560,
    "intermediate_size": 9216,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
    "full_attention_interval": 4,
    "max_position_embeddings": 262144,
    "mtp_num_hidden_layers": 1,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "mrope_interleaved": True,
        "mrope_section": [11, 11, 10],
        "partial_rotary_factor": 0.25,
        "rope_theta": 10000000,
        "rope_type": "default",
    },
    "eos_token_id": 248044,
}
WHOLE = {"model_type": "qwen3_5", "text_config": TEXT, "vision_config": {"depth": 24}}
MOE = {
    **{name: value for name, value in TEXT.items() if name != "intermediate_size"},
    "model_type": "qwen3_5_moe_text",
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}


def test_sizes_equal_those_of_the_published_model() -> None:
    config = parse_config(WHOLE, {})
    state = StateShape(32, 128, 128, 16, channels=8192, conv_width=4)
    assert config.layers == (state, state, state, KvShape(4, 256)) * 2
    assert (config.is_multimodal, config.head_rows.rotary_dim, config.rope.theta) == (True, 64, 1e7)
    assert config.model_type == "qwen3_5_text"
    experts = parse_config(MOE, {}).moe
    assert experts is not None
    assert experts.routing == RoutingSpec(256, 8, Scoring.SOFTMAX, norm_topk_prob=True)
    assert experts.experts.width == 512


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"linear_value_head_dim": 1 << 11}, "linear_value_head_dim"),
        ({"linear_num_value_heads": 33}, "share"),
        ({"linear_num_value_heads": 8}, "share"),
        ({"layer_types": ["mamba", *["full_attention"] * 7]}, "mamba"),
        ({"layer_types": [["full_attention"]] * 8}, "kind"),
        ({"full_attention_interval": 0}, "full_attention_interval"),
        ({"head_dim": 255}, "pairs"),
    ],
)
def test_a_senseless_configuration_is_refused_with_a_message(
    changes: dict[str, Any], said: str
) -> None:
    """Other values: `test_hostile_configurations`."""
    with pytest.raises(ModelError, match=said):
        parse_config(TEXT | changes, {})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_experts": 7}, "8 of 7 experts"),
        ({"mlp_only_layers": [1]}, "no experts"),
        ({"decoder_sparse_step": 2}, "no experts"),
        ({"shared_expert_intermediate_size": "wide"}, "intermediate_size"),
    ],
)
def test_senseless_experts_are_refused_with_a_message(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        parse_config(MOE | changes, {})


def test_layers_of_a_kind_other_than_configured_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path, CONFIGS["qwen 3.5"]()) / "config.json"
    kinds = ["full_attention", "linear_attention", "linear_attention", "linear_attention"]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"layer_types": kinds}))
    started = time.process_time()
    with pytest.raises(CheckpointError, match=r"layers\.0\.self_attn"):
        load_target(tmp_path)
    assert time.process_time() - started < 1


def saved(folder: Path, config: Any) -> Path:
    make_peer("qwen 3.5", config).save_pretrained(folder)
    write_text_files(folder)
    return folder


def guessing(folder: Path) -> dict[str, Tensor]:
    """Add the tensors of an MTP layer to a checkpoint."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    last = "model.layers.3."
    added = {
        "mtp.layers.0." + name.removeprefix(last): tensor.clone()
        for name, tensor in tensors.items()
        if name.startswith(last)
    }
    hidden = SIZES["hidden_size"]
    added |= {"mtp.fc.weight": torch.randn(hidden, 2 * hidden)}
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        added[f"mtp.{name}.weight"] = torch.randn(hidden)
    save_file(tensors | added, path)
    return added


def test_an_mtp_layer_is_ignored_and_keeps_its_names(tmp_path: Path) -> None:
    saved(tmp_path, dense())
    wanted = our_logits(runner_of(tmp_path), TOKEN_IDS)
    added = guessing(tmp_path)
    assert torch.equal(our_logits(runner_of(tmp_path), TOKEN_IDS), wanted)
    file = convert(tmp_path, tmp_path / "x.gguf")
    assert ModelFiles.open(file).config.num_layers == 4
    torch.testing.assert_close(our_logits(runner_of(file), TOKEN_IDS), wanted, atol=1e-5, rtol=0)
    checkpoint = ModelFiles.open(file).checkpoint()
    assert {name for name in checkpoint.names if name.startswith("mtp.")} == added.keys()
    for name, tensor in added.items():
        found = checkpoint.floats(name, torch.float32)
        torch.testing.assert_close(found, tensor, atol=1e-6, rtol=0)


def test_stacked_experts_equal_separate_ones(tmp_path: Path) -> None:
    config = type(CONFIGS["qwen 3.5 with experts"]())(**SHARED_EXPERT)
    saved(tmp_path, config)
    wanted = our_logits(runner_of(tmp_path), TOKEN_IDS)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    for layer in range(config.num_hidden_layers):
        lead = f"model.layers.{layer}.mlp.experts"

        def together(part: str, lead: str = lead) -> Tensor:
            names = (f"{lead}.{number}.{part}_proj.weight" for number in range(config.num_experts))
            return torch.stack([tensors.pop(name) for name in names])

        tensors[f"{lead}.gate_up_proj"] = torch.cat([together("gate"), together("up")], dim=1)
        tensors[f"{lead}.down_proj"] = together("down")
    save_file(tensors, path)
    assert torch.equal(our_logits(runner_of(tmp_path), TOKEN_IDS), wanted)


def test_row_ranges_are_read_from_a_tensor() -> None:
    piece = TensorRows("x", 6, first=1, total=12, stride=4)
    assert rows_of(piece, torch.arange(12), HeadRows(4, 4)).tolist() == [1, 2, 5, 6, 9, 10]
    assert TensorRows("x", 4, first=3, total=12, stride=3 * 2).tensor_rows == 12


def blocks(folder: Path) -> tuple[Path, Path]:
    """A file in blocks, and a folder of the numbers that it holds."""
    plain = saved(folder / "plain", dense())
    file = convert(plain, folder / "x.gguf", "q8_0")
    checkpoint = ModelFiles.open(file).checkpoint()
    tensors = {name: checkpoint.floats(name, torch.float32) for name in checkpoint.names}
    for name in tensors:
        if name.endswith("linear_attn.out_proj.weight"):
            tiles = tensors[name].view(32, 3, 2, 32)  # one of each key head, then the next
            tensors[name] = tiles.transpose(1, 2).reshape(32, 192)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, _weights(plain))
    return file, plain


def _weights(folder: Path) -> Path:
    return folder / "model.safetensors"


def test_tiled_value_heads_are_read_in_order(tmp_path: Path) -> None:
    file, plain = blocks(tmp_path)
    layers = runner_of(file)._model
    assert isinstance(layers, Decoder)
    mixer = layers.blocks[0].mixers[0]
    assert isinstance(mixer, DeltaNet)
    assert mixer.spec.output.grouped_heads == (2, 6)
    wanted = our_logits(runner_of(plain), TOKEN_IDS)
    torch.testing.assert_close(our_logits(runner_of(file), TOKEN_IDS), wanted, atol=1e-5, rtol=0)
    for formats in (WeightFormats("fp32"), WeightFormats()):
        target = load_target(file, options=LoadOptions("float32", formats=formats))
        assert target.weights_bytes <= target.plan.weights_bytes
        error = (plain_scores(target, TOKEN_IDS) - wanted[-1]).std() / wanted[-1].std()
        assert error < (1e-5 if formats.linears == "fp32" else 0.05)


@pytest.mark.parametrize("part", ["out_proj", "in_proj_qkv", "in_proj_z", "in_proj_a", "q_proj"])
def test_an_adapter_is_applied_to_tiled_value_heads(part: str, tmp_path: Path) -> None:
    file, plain = blocks(tmp_path)
    before = plain_scores(load_target(file, options=LoadOptions("float32")), TOKEN_IDS)
    summed = copytree(plain, tmp_path / "summed")
    merge_slowly(summed, lora_for(plain, tmp_path / "lora", LoraSpec(modules=(part,), size=2.0)))
    options = LoadOptions("float32", adapter_dir=tmp_path / "lora")
    found = plain_scores(load_target(file, options=options), TOKEN_IDS)
    wanted = plain_scores(load_target(summed, options=LoadOptions("float32")), TOKEN_IDS)
    assert (found - wanted).std() < 0.5 * (before - wanted).std()


def test_layers_from_a_disk_give_the_same_logits(tmp_path: Path) -> None:
    saved(tmp_path / "model", dense(num_hidden_layers=8))
    options = LoadOptions("float64")
    wanted = plain_scores(load_target(tmp_path / "model", options=options), TOKEN_IDS)
    below = with_layers_below(tmp_path / "model", None, options, 2)
    target = load_target(tmp_path / "model", options=below)
    assert target.plan.placement is not None
    assert len(set(target.plan.placement.tiers)) > 1
    torch.testing.assert_close(plain_scores(target, TOKEN_IDS), wanted, atol=1e-12, rtol=0)
