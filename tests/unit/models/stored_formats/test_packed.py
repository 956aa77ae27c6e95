"""Models that were published packed: GPTQ, AWQ and compressed-tensors."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core.errors import CheckpointError, ModelError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions, WeightFormats
from medusa_core.models.checkpoints.grouped import Grouped
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.block_types import block_type
from medusa_core.models.stored import stored_registry
from medusa_core.runtime.runner.native import NativeRunner
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import check_same_tokens, decode, plain_scores, plainly, user_says
from tests.support.models.packed_files import Packed, awq, compressed, gptq, pack_checkpoint
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

SPEC = TinySpec(
    num_layers=1, hidden_size=128, intermediate_size=256, num_heads=2, num_kv_heads=1, seed=8
)
IDS = [5, 80, 200, 31, 7, 150, 42]
MESSAGES = user_says("packed and unpacked")
WAYS: dict[str, Packed] = {
    "gptq": gptq(),
    "gptq, groups of 64": gptq(group=64),
    "gptq, groups of 128": gptq(group=128),
    "gptq, one scale a row": gptq(group=0),
    "gptq with zeros": gptq(sym=False),
    "gptq, second version": gptq(group=64, sym=False, version="gptq_v2"),
    "gptq, second version without zeros": gptq(version="gptq_v2"),
    "gptq, 8 bits": gptq(bits=8, group=128),
    "awq": awq(),
    "awq, groups of 128": awq(group=128),
    "awq, some plain": awq(64, ("down_proj",)),
    "compressed": compressed(),
    "compressed, groups of 128": compressed(group=128),
    "compressed with zeros": compressed(sym=False),
    "compressed, 8 bits": compressed(bits=8, group=0),
    "compressed, bytes": compressed(bits=8, group=0, form="int-quantized"),
}
FAMILIES = ("llama", "qwen2", "qwen3")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], tuple[Path, Path]]:
    """A packed model, and the same numbers unpacked in float32."""
    made: dict[tuple[str, str], tuple[Path, Path]] = {}

    def make(way: str, family: str = "llama") -> tuple[Path, Path]:
        if (way, family) not in made:
            folder = tmp_path_factory.mktemp("packed")
            write_tiny(folder / "packed", replace(SPEC, model_type=family))
            copytree(folder / "packed", folder / "plain")
            numbers = pack_checkpoint(folder / "packed", WAYS[way])
            tensors = load_file(folder / "plain" / "model.safetensors")
            floats = {name: tensor.float() for name, tensor in numbers.items()}
            save_file(tensors | floats, folder / "plain" / "model.safetensors")
            made[way, family] = folder / "packed", folder / "plain"
        return made[way, family]

    return make


Folders = Callable[[str, str], tuple[Path, Path]]


def scores(folder: Path, options: LoadOptions) -> torch.Tensor:
    return plain_scores(load_target(folder, options=options), IDS)


def test_every_stored_format_has_a_test_writer() -> None:
    written = {packed.quant_config["quant_method"] for packed in WAYS.values()}
    others = {"bitsandbytes", "gguf", "mxfp4"}  # test_quantization, test_gguf, test_families
    assert written | others == set(stored_registry().names)


@pytest.mark.parametrize("way", WAYS)
def test_dequantized_weights_equal_the_layouts_definition(way: str, folders: Folders) -> None:
    packed, plain = folders(way, "llama")
    dense = LoadOptions("float64", "cpu", formats=WeightFormats("fp64"))
    assert torch.equal(scores(packed, dense), scores(plain, dense))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", ["gptq", "awq", "compressed with zeros"])
def test_block_quantized_logits_equal_the_dequantized_ones(
    way: str, family: str, folders: Folders
) -> None:
    packed, plain = folders(way, family)
    target = load_target(packed)
    assert target.formats.keeps_blocks
    assert target.formats.linears.name == ("q4_0" if WAYS[way].is_symmetric else "q8_0")
    wanted = scores(plain, LoadOptions("float32", "cpu"))
    halved = scores(plain, LoadOptions("bfloat16", "cpu", formats=WeightFormats("bf16")))
    # Inputs of blocks are rounded to 8 bits, so are numbers of bfloat16; each up to a half.
    assert (plain_scores(target, IDS) - wanted).std() < 8 * (halved - wanted).std()


@pytest.mark.parametrize("kind", ["q4_0", "q8_0"])
def test_blocks_hold_the_weights_bit_for_bit(kind: str) -> None:
    generator = torch.Generator().manual_seed(2)
    codes = torch.randint(0, 16, (24, 256), generator=generator).to(torch.int16)
    scales = torch.randn(24, 4, generator=generator).half()
    found = Grouped.symmetric(codes, scales, 4)
    if kind == "q8_0":
        zeros = torch.randint(0, 17, (24, 4), generator=generator).to(torch.int16)
        found = replace(found, zeros=zeros)
    numbers = block_type(kind).dequantize(found.blocks(kind))
    assert numbers.numpy().tobytes() == found.numbers().numpy().tobytes()


@pytest.mark.parametrize("way", WAYS)
def test_the_plan_is_exact_to_the_byte(way: str, folders: Folders) -> None:
    target = load_target(folders(way, "llama")[0])
    assert target.weights_bytes <= target.plan.weights_bytes <= 1.01 * target.weights_bytes
    assert ModelFiles.open(folders(way, "llama")[0]).config.packing is not None


@pytest.mark.parametrize("way", ["gptq", "awq", "compressed, bytes"])
def test_heads_draft_for_a_packed_target_and_change_no_token(
    way: str, folders: Folders, tmp_path: Path
) -> None:
    heads = write_heads(tmp_path / "heads", random_heads(SPEC))
    target: Target = load_target(folders(way, "llama")[0], heads)
    assert isinstance(target.runner, NativeRunner)
    settings = GenerateSettings(max_new_tokens=40, drafter="medusa")
    plain = decode(target, plainly(settings), MESSAGES)
    check_same_tokens(plain, decode(target, settings, MESSAGES))
    oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
    check_same_tokens(plain, decode(target, settings, MESSAGES, drafter=oracle))


def test_another_format_is_quantized_from_the_dequantized_weights(folders: Folders) -> None:
    packed, plain = folders("awq", "llama")
    options = LoadOptions(formats=WeightFormats("int8"))
    assert torch.equal(scores(packed, options), scores(plain, options))


def test_a_stored_format_describes_itself(folders: Folders) -> None:
    packing = ModelFiles.open(folders("awq, groups of 128", "llama")[0]).config.packing
    assert packing is not None
    assert packing.label == "AWQ, 4 bits, groups of 128"


GPTQ, AWQ, COMPRESSED = gptq().quant_config, awq().quant_config, compressed().quant_config
SCHEME: dict[str, Any] = COMPRESSED["config_groups"]["group_0"]


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (GPTQ | {"desc_act": True}, "desc_act"),
        (GPTQ | {"bits": 3}, "3 bits"),
        (GPTQ | {"bits": 8, "sym": False}, "zeros of their own"),
        (GPTQ | {"group_size": 48}, "groups of 48"),
        (GPTQ | {"group_size": "many"}, "group_size"),
        (GPTQ | {"lm_head": True}, "last projection"),
        (GPTQ | {"checkpoint_format": "marlin"}, "marlin"),
        (AWQ | {"version": "gemv"}, "gemv"),
        (AWQ | {"bits": 8}, "8 bits"),
        (AWQ | {"modules_to_not_convert": "all"}, "exceptions"),
        (COMPRESSED | {"format": "float-quantized"}, "float-quantized"),
        (COMPRESSED | {"config_groups": {"a": SCHEME, "b": SCHEME}}, "several schemes"),
        (COMPRESSED | {"config_groups": 3}, "several schemes"),
        (COMPRESSED | {"ignore": ["re:("]}, "exception"),
    ],
)
def test_an_unsupported_packing_is_refused_with_a_message(
    output: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = write_tiny(tmp_path, SPEC) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"quantization_config": output}))
    with pytest.raises(ModelError, match=words) as caught:
        _ = ModelFiles.open(tmp_path).config
    assert "GGUF" in caught.value.hint


def damaged(tmp_path: Path, packed: Packed, name: str, change: Callable[..., object]) -> Path:
    """A packed model of which one tensor was changed; None takes it away."""
    write_tiny(tmp_path, SPEC)
    pack_checkpoint(tmp_path, packed)
    tensors = load_file(tmp_path / "model.safetensors")
    key = f"model.layers.0.mlp.up_proj.{name}"
    new = change(tensors.pop(key))
    if isinstance(new, torch.Tensor):
        tensors[key] = new.contiguous()
    save_file(tensors, tmp_path / "model.safetensors")
    return tmp_path


@pytest.mark.parametrize(
    ("packed", "name", "change"),
    [
        (gptq(), "qweight", lambda t: t[:-1]),
        (gptq(), "qweight", lambda t: t.float()),
        (gptq(), "scales", lambda t: t[:1]),
        (gptq(), "scales", lambda _: None),
        (gptq(), "qzeros", lambda _: None),
        (gptq(), "g_idx", lambda t: t.flip(0)),
        (awq(), "qweight", lambda t: t[:, :-1]),
        (awq(), "qzeros", lambda t: t[:, :1]),
        (awq(), "scales", lambda t: t.to(torch.int32)),
        (compressed(), "weight_packed", lambda t: t.flatten()),
        (compressed(), "weight_scale", lambda t: t[:-1]),
        (compressed(sym=False), "weight_zero_point", lambda t: t[:1]),
        (compressed(bits=8, group=0, form="int-quantized"), "weight", lambda t: t[:-1]),
    ],
)
def test_a_damaged_tensor_is_named(
    packed: Packed, name: str, change: Callable[..., object], tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="up_proj"):
        load_target(damaged(tmp_path, packed, name, change))
