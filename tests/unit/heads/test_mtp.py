"""MiMo's layer for multi-token prediction: found in the target, drafts by the model's equations."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from medusa_core.errors import CheckpointError, HeadsError
from medusa_core.heads.kind import read_shape, shape_of_tensors
from medusa_core.heads.mtp import MtpHead
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.model_files import ModelFiles
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.speculation.drafters.chained_source import (
    ChainedSource,
)
from medusa_core.speculation.drafters.lineup import drafters_for
from tests.support.engine.heard_text import TEXT, candidates_behind, hear
from tests.support.engine.laws import decode, user_says
from tests.support.models.gguf_converter import convert
from tests.support.models.mtp_files import MIMO, MtpSpec, Slowly, layer_of, named, write_mimo
from tests.support.models.tiny import random_heads, write_heads

SPECS = {
    "MiMo's names": MtpSpec(),
    "vLLM's names": MtpSpec(is_vllms=True),
    "three layers": MtpSpec(count=3),
}


def chained_source_of(target: Target) -> ChainedSource:
    assert isinstance(target.heads, MtpHead)
    return ChainedSource(target.heads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_mimo(tmp_path_factory.mktemp("mimo") / "target")


def loaded(folder: Path, dtype: str = "float64", **more: Any) -> Target:
    return load_target(folder, options=LoadOptions(dtype, "cpu", **more))


@pytest.mark.parametrize("name", SPECS)
def test_drafts_equal_the_equations(name: str, tmp_path: Path) -> None:
    folder = write_mimo(tmp_path, SPECS[name])
    target = loaded(folder)
    checkpoint = ModelFiles.open(folder).checkpoint()
    names = ("model.embed_tokens.weight", "lm_head.weight")
    slowly = Slowly(SPECS[name], *(checkpoint.floats(name, torch.float64) for name in names))
    drafts = []
    for pieces in ([10], [4, 1, 3, 2, 1]):
        source = chained_source_of(target)
        deep = hear(target, source, TEXT, pieces)
        source.start(TEXT[-1], 24)
        found: dict[tuple[int, ...], dict[int, float]] = {}
        paths: list[tuple[int, ...]] = [()]
        for _ in range(4):
            found |= {path: candidates_behind(source, path) for path in paths}
            paths = [(*path, token) for path in paths for token in list(found[path])[:2]]
        drafts.append(found)
    for path in drafts[0]:
        best = slowly.chances(deep[: len(TEXT) - 1], TEXT[1:], list(path)).topk(10)
        for found in drafts:
            assert list(found[path]) == best.indices.tolist()
            wanted = best.values.tolist()
            assert list(found[path].values()) == pytest.approx(wanted, rel=1e-5, abs=1e-7)


def test_an_mtp_layer_reads_the_hidden_state_before_the_final_norm(
    model: Path, tmp_path: Path
) -> None:
    target = loaded(model, "float32")
    deep = hear(target, chained_source_of(target), TEXT, [10])
    peer = qwen2_of(model, tmp_path)
    got: list[torch.Tensor] = []
    peer.model.norm.register_forward_pre_hook(lambda _, inputs: got.append(inputs[0]))
    with torch.no_grad():
        peer(torch.tensor([TEXT]))
    assert torch.allclose(deep, got[0][0], rtol=1e-3, atol=1e-3)


def qwen2_of(model: Path, folder: Path) -> Any:
    """Transformers' Qwen 2 with the same weights."""
    shutil.copytree(model, folder / "qwen2")
    path = folder / "qwen2" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config |= {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"]}
    path.write_text(json.dumps(config), encoding="utf-8")
    weights = load_file(folder / "qwen2" / "model.safetensors")
    own = {name: tensor for name, tensor in weights.items() if ".mtp_layers." not in name}
    save_file(own, folder / "qwen2" / "model.safetensors", {"format": "pt"})
    return AutoModelForCausalLM.from_pretrained(folder / "qwen2", dtype=torch.float32)


@pytest.mark.parametrize("kind", [None, ResidentRunner, StaticRunner])
def test_a_mimo_target_equals_qwen_2_with_every_runner(
    kind: type[ResidentRunner] | None, model: Path, tmp_path: Path
) -> None:
    target = loaded(model, "float32")
    runner = target.runner
    if kind is not None:
        runner = kind(runner._model, target.precision)
    with torch.no_grad():
        theirs = qwen2_of(model, tmp_path)(torch.tensor([TEXT])).logits[0]
    with torch.inference_mode():
        states = runner.extend(TEXT, runner.new_cache(64))[:, : MIMO.hidden_size]
        ours = runner.logits(states)
    torch.testing.assert_close(ours.float(), theirs, atol=1e-3, rtol=1e-3)


def test_an_mtp_layer_is_used_by_default_and_replaced_by_chosen_heads(
    model: Path, tmp_path: Path
) -> None:
    names = [spec.name for spec in drafters_for(loaded(model))]
    assert "mtp" in names
    assert "composite" in names
    heads = write_heads(tmp_path, random_heads(MIMO))
    other = load_target(model, heads, LoadOptions("float64", "cpu"))
    assert not isinstance(other.heads, MtpHead)
    assert "mtp" not in [spec.name for spec in drafters_for(other)]


def test_a_gguf_file_without_the_layer_takes_it_from_the_models_folder(
    model: Path, tmp_path: Path
) -> None:
    qwen2_of(model, tmp_path).save_pretrained(tmp_path / "again")
    gguf = convert(tmp_path / "again", tmp_path / "model.gguf")
    assert loaded(gguf, "").heads is None
    target = load_target(gguf, model, LoadOptions("", "cpu"))
    assert isinstance(target.heads, MtpHead)
    settings = GenerateSettings(drafter="mtp", max_new_tokens=8, tree_rows=12)
    drafted = decode(target, settings, user_says("one two"))
    plain = decode(target, replace(settings, drafter="none"), user_says("one two"))
    assert drafted.token_ids == plain.token_ids


def test_sizes_are_known_from_headers_alone(model: Path) -> None:
    checkpoint = ModelFiles.open(model).checkpoint()
    shapes = {name: checkpoint.shape(name) for name in checkpoint.names}
    settings = json.loads((model / "config.json").read_text(encoding="utf-8"))
    whole = read_shape(model)
    assert shape_of_tensors(shapes, settings) == whole
    with pytest.raises(HeadsError) as caught:  # a block's sizes are its model's
        shape_of_tensors(shapes, {})
    assert caught.value.hint


def test_a_layer_in_a_foreign_quantization_is_ignored(tmp_path: Path) -> None:
    folder = write_mimo(tmp_path)
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = "model.mtp_layers.0.mlp.up_proj"
    del tensors[f"{name}.weight"]
    save_file({**tensors, f"{name}.qweight": torch.zeros(2, 2, dtype=torch.int32)}, path)
    assert loaded(folder).heads is None


Damage = Callable[[dict[str, torch.Tensor], dict[str, Any]], None]
_FIRST = "model.mtp_layers.0."


def _set(name: str, tensor: torch.Tensor | None) -> Damage:
    def damage(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
        if tensor is None:
            del tensors[_FIRST + name]
        else:
            tensors[_FIRST + name] = tensor

    return damage


HOSTILE: dict[str, Damage] = {
    "the projection is missing": _set("input_proj.weight", None),
    "a norm is missing": _set("final_layernorm.weight", None),
    "one bias of three is missing": _set("self_attn.k_proj.bias", None),
    "the projection has another width": _set("input_proj.weight", torch.zeros(64, 64)),
    "a matrix is a number": _set("mlp.up_proj.weight", torch.zeros(())),
    "a norm is too long": _set("token_layernorm.weight", torch.ones(65)),
    "one tensor more": _set("self_attn.q_norm.weight", torch.ones(16)),
    "a part twice": _set("mtp_block.mlp.up_proj.weight", torch.zeros(96, 64)),
    "no number": _set("mlp.gate_proj.weight", torch.full((96, 64), float("nan"))),
    "an endless number": _set("hidden_layernorm.weight", torch.full((64,), float("inf"))),
    "whole numbers": _set("mlp.gate_proj.weight", torch.ones(96, 64, dtype=torch.int32)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_layer_is_refused_with_a_message(name: str, tmp_path: Path) -> None:
    folder = write_mimo(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    HOSTILE[name](tensors, {})
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        loaded(folder, "float32")
    assert caught.value.hint


def test_a_file_of_one_layer_may_only_have_its_tensors() -> None:
    assert {name.removeprefix(_FIRST) for name in named(MtpSpec())} == set(layer_of(MtpSpec()))
