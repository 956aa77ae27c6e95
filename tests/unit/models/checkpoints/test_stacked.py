"""Experts that are published in one tensor, as plain numbers and as MXFP4."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import GptOssConfig

from medusa_core.errors import CheckpointError
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.models.checkpoints.folder_checkpoint import open_folder
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.block_types import block_type
from tests.support.engine.laws import plain_scores
from tests.support.models.peer_runs import TOKEN_IDS, peer_logits, runner_of
from tests.support.models.peers import GPT_OSS, SIZES, make_peer
from tests.support.models.tiny import write_text_files

WIDE = {**SIZES, "hidden_size": 64, "intermediate_size": 96}
# By OCP's Microscaling Formats (2023), table 5; the upper one of the four bits is the sign.
NUMBERS = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
LEVELS = torch.cat([NUMBERS, -NUMBERS])


def to_mxfp4(numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows as blocks, scales, and the numbers that these are. [..., columns]"""
    parts = numbers.float().unflatten(-1, (-1, 32))
    exponents = torch.floor(torch.log2(parts.abs().amax(-1).clamp(min=1e-9))) - 2
    scaled = parts / torch.exp2(exponents)[..., None]
    codes = (scaled[..., None] - LEVELS).abs().argmin(-1)
    made = (LEVELS[codes] * torch.exp2(exponents)[..., None]).flatten(-2)
    blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8)
    return blocks, (exponents + 127).to(torch.uint8), made


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A GPT-OSS with experts in MXFP4, and the same numbers as transformers saves them."""
    peer = make_peer("wide", GptOssConfig(**WIDE, **GPT_OSS))
    packed, plain = tmp_path / "packed", tmp_path / "plain"
    tensors: dict[str, Tensor] = {}
    with torch.no_grad():
        for name, parameter in peer.named_parameters():
            if name.endswith(("gate_up_proj", "down_proj")):
                blocks, scales, made = to_mxfp4(parameter.transpose(1, 2))
                parameter.copy_(made.transpose(1, 2))
                tensors |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
    for folder in (packed, plain):
        peer.save_pretrained(folder)
        write_text_files(folder)
    rest = load_file(packed / "model.safetensors")
    kept = {k: v for k, v in rest.items() if not k.endswith(("gate_up_proj", "down_proj"))}
    save_file(
        {k: v.contiguous() for k, v in (kept | tensors).items()}, packed / "model.safetensors"
    )
    path = packed / "config.json"
    reported = {"quantization_config": {"quant_method": "mxfp4"}}
    path.write_text(json.dumps(json.loads(path.read_text()) | reported))
    return packed, plain


def test_experts_are_separate_tensors_in_either_form(folders: tuple[Path, Path]) -> None:
    packed, plain = map(open_folder, folders)
    assert packed.names == plain.names
    for name in plain.names:
        assert packed.shape(name) == plain.shape(name)
        numbers = plain.floats(name, torch.float32)
        assert numbers.shape == plain.shape(name)
        assert torch.equal(packed.floats(name, torch.float32), numbers)


def test_stacked_experts_keep_their_block_type(folders: tuple[Path, Path]) -> None:
    packed = ModelFiles.open(folders[0]).checkpoint()
    name = "model.layers.1.mlp.experts.2.up_proj.weight"
    assert packed.dtype(name) == "mxfp4"
    found = block_type("mxfp4").dequantize(packed.raw(name))
    assert torch.equal(found, packed.floats(name, torch.float32))
    assert found.unique().numel() > 8


def test_stacked_and_separate_experts_equal_transformers(folders: tuple[Path, Path]) -> None:
    peer = make_peer("wide", GptOssConfig(**WIDE, **GPT_OSS))
    peer.load_state_dict(type(peer).from_pretrained(folders[1]).state_dict())
    theirs = peer_logits(peer, TOKEN_IDS)[-1]
    exactly = LoadOptions("float32", formats=WeightFormats("fp32"))
    for folder in folders:
        found = plain_scores(load_target(folder, options=exactly), TOKEN_IDS)
        torch.testing.assert_close(found, theirs, atol=1e-4, rtol=0)


def test_on_a_processor_blocks_are_kept_and_planned(folders: tuple[Path, Path]) -> None:
    config = ModelFiles.open(folders[0]).config
    assert config.packing is not None
    assert config.stored_type("model.layers.0.self_attn.q_proj.weight") == ""
    target = load_target(folders[0])
    assert target.formats.keeps_blocks
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes
    dense = load_target(folders[1], options=LoadOptions(formats=WeightFormats("bf16")))
    assert target.weights_bytes < dense.weights_bytes
    wanted = plain_scores(load_target(folders[1], options=LoadOptions("float32")), TOKEN_IDS)
    errors = [(plain_scores(one, TOKEN_IDS) - wanted).std() for one in (target, dense)]
    assert errors[0] < 8 * errors[1]


@pytest.mark.parametrize("name", ["gate_up_proj_scales", "down_proj_blocks", "gate_up_proj_bias"])
@pytest.mark.parametrize("change", ["missing", "shorter", "flat"])
def test_a_damaged_tensor_of_experts_is_named(
    folders: tuple[Path, Path], name: str, change: str
) -> None:
    path = folders[0] / "model.safetensors"
    tensors = load_file(path)
    key = f"model.layers.1.mlp.experts.{name}"
    whole = tensors.pop(key)
    if change != "missing":
        tensors[key] = whole[:, :-1].contiguous() if change == "shorter" else whole.flatten()[:7]
    save_file(tensors, path)
    with pytest.raises(CheckpointError, match="experts"):
        runner_of(folders[0])
