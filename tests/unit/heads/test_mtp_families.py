"""Layers for multi-token prediction of several families: what transformers drafts, as planned."""

import struct
import time
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core.errors import HeadsError, MedusaError
from medusa_core.heads.kind import chosen_shape
from medusa_core.heads.mtp import MtpHead
from medusa_core.heads.mtp_parts import declared_shape
from medusa_core.hub.library.library_folder import ContentsKind, look_into
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    GenerateSettings,
    HeadsShape,
    LoadOptions,
)
from medusa_core.models.checkpoints.folder_checkpoint import open_folder
from medusa_core.models.model_files import ModelFiles
from medusa_core.speculation.drafters.lineup import drafters_for
from tests.support.engine.heard_text import TEXT, candidates_behind
from tests.support.engine.laws import decode, user_says
from tests.support.models.gguf_converter import convert
from tests.support.models.hostile_gguf import check_mutations, patched
from tests.support.models.mtp_peers import (
    DEPTH,
    MTP_PEERS,
    drafts_of,
    heard,
    their_drafts,
    their_generator,
    write_mtp_peer,
)
from tests.support.models.packed_files import gptq, pack_checkpoint
from tests.support.models.qwen3_5_files import dense

FILED = ("qwen 3.5", "qwen 3.5 with experts", "glm 4 with experts")  # which GGUF files hold, too
ARCHITECTURES = {"qwen 3.5": "qwen35", "glm 4 with experts": "glm4moe"}


def loaded(folder: Path, dtype: str = "float64", **more: Any) -> Target:
    return load_target(folder, options=LoadOptions(dtype, "cpu", **more))


def our_drafts(folder: Path) -> list[int]:
    return drafts_of(loaded(folder, "float32"))


@pytest.mark.parametrize("name", MTP_PEERS)
def test_drafts_equal_transformers_from_a_folder_and_a_gguf_file(name: str, tmp_path: Path) -> None:
    folder = write_mtp_peer(name, tmp_path / "model")
    wanted = their_drafts(folder, TEXT, DEPTH)
    assert our_drafts(folder) == wanted
    if name in FILED:
        assert our_drafts(convert(folder, tmp_path / "model.gguf")) == wanted


def test_drafts_equal_transformers_generator_during_decoding(tmp_path: Path) -> None:
    """GLM's; of models with states transformers has no such generator."""
    folder = write_mtp_peer("glm 4 with experts", tmp_path)
    drafts = their_generator(folder, TEXT, 16)
    assert len(drafts) > 6
    target = loaded(folder, "float32")
    for token_ids, wanted in drafts:
        source = heard(target, token_ids)
        assert next(iter(candidates_behind(source))) == wanted


def check_plan(target: Target, alone: Target) -> None:
    """Bytes are as planned, and a drafter doesn't change the text."""
    head = target.heads
    assert isinstance(head, MtpHead)
    assert head.caches is not None
    assert "mtp" in [spec.name for spec in drafters_for(target)]
    assert head.nbytes == target.plan.heads_bytes
    assert target.plan.kv_bytes - alone.plan.kv_bytes == head.caches.nbytes
    settings = GenerateSettings(drafter="mtp", max_new_tokens=6, tree_rows=12)
    drafted = decode(target, settings, user_says("one two"))
    plain = decode(target, replace(settings, drafter="none"), user_says("one two"))
    assert drafted.token_ids == plain.token_ids


def test_a_block_quantized_file_offers_its_layer_as_planned(tmp_path: Path) -> None:
    folder = write_mtp_peer("qwen 3.5", tmp_path / "model", config=dense())
    file = convert(folder, tmp_path / "model.gguf", "q8_0")
    check_plan(loaded(file, ""), loaded(file, "", takes_own_heads=False))


def test_an_unquantized_layer_drafts_for_a_quantized_model(tmp_path: Path) -> None:
    config = dense(hidden_size=64, intermediate_size=128)
    folder = write_mtp_peer("qwen 3.5", tmp_path, config=config)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    own = {name: tensors.pop(name) for name in list(tensors) if name.startswith("mtp.")}
    save_file(tensors, path)
    pack_checkpoint(folder, gptq())
    save_file(load_file(path) | own, path)
    check_plan(loaded(folder, ""), loaded(folder, "", takes_own_heads=False))


def test_a_layer_of_a_multimodal_model_is_found(tmp_path: Path) -> None:
    """Qwen3.5 is published as a model that sees: its text part's names have a longer beginning."""
    folder = write_mtp_peer("qwen 3.5", tmp_path)
    tensors = load_file(folder / "model.safetensors")
    seen = {
        name.replace("model.", "model.language_model.", 1): tensor
        for name, tensor in tensors.items()
    }
    save_file(seen | {"model.visual.x": torch.zeros(1)}, folder / "model.safetensors")
    assert {name for name in tensors if name.startswith("mtp.")} <= open_folder(folder).names


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("mtp.fc.weight", torch.zeros(32, 32)),
        ("mtp.norm.weight", None),
        ("mtp.layers.0.self_attn.q_norm.weight", torch.zeros(17)),
        ("mtp.layers.0.self_attn.sinks", torch.zeros(4)),
        ("mtp.layers.0.linear_attn.A_log", torch.zeros(6)),
        ("mtp.layers.0.self_attn.q_proj.weight", torch.full((128, 32), float("inf"))),
    ],
)
def test_a_hostile_layer_is_refused_with_a_message(
    name: str, tensor: torch.Tensor | None, tmp_path: Path
) -> None:
    path = write_mtp_peer("qwen 3.5", tmp_path) / "model.safetensors"
    tensors = load_file(path)
    tensors.pop(name, None)
    save_file(tensors if tensor is None else tensors | {name: tensor}, path)
    with pytest.raises(HeadsError) as caught:
        loaded(tmp_path, "float32")
    assert caught.value.hint


@pytest.mark.parametrize("name", FILED)
def test_the_library_and_forecasts_count_the_layer(name: str, tmp_path: Path) -> None:
    folder = write_mtp_peer(name, tmp_path / "model")
    file = convert(folder, tmp_path / "model.gguf")
    for path in (folder, file):
        contents, files = look_into(path), ModelFiles.open(path)
        assert contents.kind is ContentsKind.MERGED
        assert contents.heads is not None
        assert contents.heads.shape == chosen_shape(files, None, takes_own=True)
        assert contents.heads.shape.kind == "mtp"
        promised = {"text_config": {"mtp_num_hidden_layers": 1}}
        assert declared_shape(promised, files.config) == contents.heads.shape
        assert declared_shape({}, files.config) == HeadsShape()
        assert not contents.problems
        assert chosen_shape(files, None, takes_own=False).num_heads == 0


@pytest.mark.parametrize("name", ["qwen 3.5", "glm 4 with experts"])
def test_a_file_of_the_layer_alone_is_listed_as_heads_of_its_model(
    name: str, tmp_path: Path
) -> None:
    """As llama.cpp writes it: `mtp-….gguf`, with the token vectors once more."""
    folder = write_mtp_peer(name, tmp_path / "model")
    alone = copytree(folder, tmp_path / "alone")
    path = alone / "model.safetensors"
    count = ModelFiles.open(folder).config.num_layers
    trunk = tuple(f"model.layers.{index}." for index in range(count))
    tensors = load_file(path)
    save_file({name: t for name, t in tensors.items() if not name.startswith(trunk)}, path)
    file = convert(alone, tmp_path / "mtp-model.gguf")
    assert look_into(file).kind is ContentsKind.HEADS
    options = LoadOptions("float32", "cpu")
    target = load_target(convert(folder, tmp_path / "model.gguf"), file, options)
    source = heard(target)
    assert next(iter(candidates_behind(source))) == their_drafts(folder, TEXT, 1)[0]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """GGUF files with a layer, by the model's name."""
    root = tmp_path_factory.mktemp("files")
    folders = {name: write_mtp_peer(name, root / name.replace(" ", "-")) for name in ARCHITECTURES}
    return {name: convert(folder, root / "x.gguf").read_bytes() for name, folder in folders.items()}


def load_all(path: Path) -> None:
    """A target with its layer, from headers to heads."""
    load_target(path, options=LoadOptions("float32", "cpu"))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_mutations_of_a_file_with_a_layer_are_refused_or_load(
    name: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    assert check_mutations(files[name], tmp_path, range(12), load_all) > 3


@pytest.mark.parametrize("count", [0, 2, 3, 4, 5, 1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_file_with_a_wrong_number_of_layers_is_refused_or_loads(
    name: str, count: int, files: dict[str, bytes], tmp_path: Path
) -> None:
    key = f"{ARCHITECTURES[name]}.nextn_predict_layers".encode()
    path = tmp_path / "x.gguf"
    path.write_bytes(patched(files[name], key, struct.pack("<I", count), 4))
    started = time.process_time()
    with pytest.raises(MedusaError) as caught:
        load_all(path)
    assert caught.value.hint
    assert time.process_time() - started < 2
