"""Gemma 4: its tables, layers that read others', every format, and what is refused of it."""

import json
import struct
import time
import tracemalloc
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.bench.random_target import make_random
from medusa_core.errors import (
    CheckpointError,
    ClusterError,
    MedusaError,
    ModelError,
    RequestError,
)
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.plan import per_layer_table_bytes, plan_memory
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, HeadsShape, LoadOptions, WeightFormats
from medusa_core.models.config import parse_config
from medusa_core.models.layer_shapes import KvShape, SharedRows
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.token_table import DenseTable, StoredTable
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.kv.size import row_bytes
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import shapes_dir
from medusa_core.training.adapted import load_adapted
from medusa_core.training.lora import LoraSpec
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.engine.tight import with_layers_below
from tests.support.models.gemma4_configs import E2B, WIDE
from tests.support.models.gguf_converter import convert
from tests.support.models.gguf_peers import peer_of as stored_peer
from tests.support.models.hostile_gguf import patched
from tests.support.models.peer_runs import TOKEN_IDS, our_logits, runner_of
from tests.support.models.peers import peer_of
from tests.support.models.tiny import write_text_files

IDS = list(TOKEN_IDS[:40])
MESSAGES = user_says("tea for two, and two for tea")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An E2B with a tokenizer."""
    path = tmp_path_factory.mktemp("gemma4") / "model"
    peer_of("gemma 4 E2B").save_pretrained(path)
    write_text_files(path)
    return path


@pytest.fixture(scope="module")
def scores(folder: Path) -> Tensor:
    """Return the logits of `IDS` in float64."""
    return our_logits(runner_of(folder, "float64"), IDS)


def loaded(folder: Path, dtype: str = "float64", **formats: Any) -> Target:
    return load_target(folder, options=LoadOptions(dtype, formats=WeightFormats(**formats)))


@pytest.mark.parametrize("place", ["", "disk", "ram", "device"])
def test_the_place_of_per_layer_embeddings_changes_no_logit(
    place: str, folder: Path, scores: Tensor
) -> None:
    target = loaded(folder, per_layer=place)
    assert our_logits(target.runner, IDS).equal(scores)
    model = target.runner._model
    assert isinstance(model, Decoder)
    assert model.per_layer is not None
    table = model.per_layer.table
    assert isinstance(table, StoredTable if place in ("", "disk") else DenseTable)
    in_memory = per_layer_table_bytes(target.config, target.formats)
    assert in_memory == table.nbytes == 320 * 6 * 8 * 8, "from disk, as many rows are kept"
    assert target.weights_bytes <= target.plan.weights_bytes


def test_a_card_plans_per_layer_embeddings_where_they_are(folder: Path) -> None:
    config, budget = ModelFiles.open(folder).config, cuda_budget(8)

    def planned(place: str) -> tuple[int, int]:
        wanted = WeightFormats("bf16", per_layer=place)
        formats = resolve_formats(wanted, "", budget.hardware)
        plan = plan_memory(config, HeadsShape(), formats, budget, 256)
        return plan.weights_bytes, plan.ram_bytes

    weights, table = planned("disk")
    assert table == 320 * 6 * 8 * 2
    assert planned("disk") == planned("") == planned("ram")
    assert planned("device") == (weights + table, 0)


def test_another_place_is_refused_by_name() -> None:
    with pytest.raises(RequestError, match="'attic'"):
        resolve_formats(WeightFormats(per_layer="attic"), "", cuda_budget(8).hardware)


def test_a_truncated_file_is_reported(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "model"
    copied.mkdir()
    for name in ("config.json", "model.safetensors"):
        (copied / name).write_bytes((folder / name).read_bytes())
    runner = runner_of(copied)
    (copied / "model.safetensors").write_bytes(b"gone")
    with pytest.raises(CheckpointError, match="overwritten"):
        our_logits(runner, IDS)


@pytest.mark.parametrize("kind", ["f32", "q8_0"])
def test_embedding_tables_of_a_gguf_file_stay_block_quantized(kind: str, tmp_path: Path) -> None:
    stored_peer("gemma4").save_pretrained(tmp_path)
    path = convert(tmp_path, tmp_path / "x.gguf", kind)
    on_disk, in_ram = (loaded(path, "float32", per_layer=place) for place in ("disk", "ram"))
    assert our_logits(on_disk.runner, IDS).equal(our_logits(in_ram.runner, IDS))
    stored = 0 if kind == "f32" else 320 * 7 * 34
    kept = per_layer_table_bytes(on_disk.config, on_disk.formats)
    assert kept == 320 * 7 * 32 * 4
    assert per_layer_table_bytes(in_ram.config, in_ram.formats) == stored + kept
    assert in_ram.weights_bytes - on_disk.weights_bytes == stored


def test_a_file_with_too_many_kv_sharing_layers_is_refused(tmp_path: Path) -> None:
    peer_of("gemma 4 E2B").save_pretrained(tmp_path)
    write_text_files(tmp_path)
    path = convert(tmp_path, tmp_path / "x.gguf")
    key, count = b"attention.shared_kv_layers", struct.pack("<I", 2**31 - 1)
    path.write_bytes(patched(path.read_bytes(), key, count, behind=4))
    tracemalloc.start()
    with pytest.raises(ModelError, match="differ in their sizes"):
        ModelFiles.open(path).config  # noqa: B018 - reading it raises
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


def test_kv_sharing_layers_read_the_last_layer_of_their_kind(folder: Path) -> None:
    config = ModelFiles.open(folder).config
    local, whole = KvShape(1, 8), KvShape(1, 16)
    assert config.layers == (local, local, whole, SharedRows(1), SharedRows(1), SharedRows(2))
    assert row_bytes(config, 4) == 2 * 4 * (8 + 8 + 16)
    assert [config.mlp_width(layer) for layer in range(6)] == [64] * 3 + [128] * 3


def test_unused_keys_of_kv_sharing_layers_are_ignored(folder: Path, tmp_path: Path) -> None:
    """Published checkpoints hold them, as they were trained."""
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    tensors, name = load_file(folder / "model.safetensors"), "model.layers.4.self_attn"
    unneeded = {f"{name}.k_proj.weight": torch.ones(8, 32), f"{name}.k_norm.weight": torch.ones(8)}
    save_file(tensors | unneeded, tmp_path / "model.safetensors")
    wanted = our_logits(runner_of(folder), IDS)
    assert our_logits(runner_of(tmp_path), IDS).equal(wanted)
    save_file(tensors | {f"{name}.sinks": torch.ones(4)}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="sinks"):
        runner_of(tmp_path)


@pytest.mark.parametrize("senses", [{"vision_config": None}, {"audio_config": {"a": 1}}])
def test_the_text_part_of_a_model_with_audio_is_loaded(
    senses: dict[str, object], folder: Path, scores: Tensor, tmp_path: Path
) -> None:
    tensors = load_file(folder / "model.safetensors")
    moved = {
        f"model.language_model.{name.removeprefix('model.')}": tensor
        for name, tensor in tensors.items()
    }
    save_file(moved | {"model.audio_tower.a": torch.ones(2)}, tmp_path / "model.safetensors")
    text = json.loads((folder / "config.json").read_text())
    whole = {"model_type": "gemma4", "text_config": text, **senses}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    assert our_logits(runner_of(tmp_path, "float64"), IDS).equal(scores)


FORMATS: dict[str, dict[str, Any]] = {
    "q4": {"linears": "q4", "lm_head": "q4"},
    "q4 cache": {"cache": "q4"},
    "sparse": {"attended": 6},
    "q4 cache, sparse": {"cache": "q4", "attended": 6},
}


@pytest.mark.parametrize("name", FORMATS)
def test_laws_1_to_3_hold_in_every_format(name: str, folder: Path) -> None:
    dtype = "float32" if "linears" in FORMATS[name] else "float64"
    target = loaded(folder, dtype, **FORMATS[name])
    settings = GenerateSettings("suffix", max_new_tokens=24)
    plain = decode(target, plainly(settings), MESSAGES)
    oracle = oracle_spec([*plain.prompt_ids, *plain.token_ids])
    tolerance = 1e-4 if dtype == "float32" else 1e-9
    drafted = decode(
        target,
        settings,
        MESSAGES,
        drafter=oracle,
        after_step=lambda session: check_cache(session, target, tolerance),
    )
    check_same_tokens(plain, drafted)


@pytest.mark.parametrize("name", ["q4", "q4 cache"])
def test_quantized_logits_stay_near_the_unquantized_ones(
    name: str, folder: Path, scores: Tensor
) -> None:
    found = our_logits(loaded(folder, "float32", **FORMATS[name]).runner, IDS)
    assert 0 < float((found - scores).std()) < 0.5 * float(scores.std())


def test_offloaded_layers_give_the_same(folder: Path, scores: Tensor) -> None:
    options = with_layers_below(folder, None, LoadOptions("float64"), 1)
    target = load_target(folder, options=options)
    assert isinstance(target.runner, OffloadRunner)
    assert our_logits(target.runner, IDS).equal(scores)
    again = load_target(folder, options=options)  # from the file of layers
    assert our_logits(again.runner, IDS).equal(scores)


def test_a_cached_quantized_model_gives_the_same(folder: Path, tmp_path: Path) -> None:
    formats = WeightFormats("q4", lm_head="q4", per_layer="ram")
    options = LoadOptions("float32", formats=formats, quantized_dir=tmp_path)
    first, second = (load_target(folder, options=options) for _ in range(2))
    assert len(list(tmp_path.glob("*.safetensors"))) == 1
    assert our_logits(first.runner, IDS).equal(our_logits(second.runner, IDS))
    assert first.weights_bytes == second.weights_bytes
    assert first.num_parameters == second.num_parameters


@pytest.mark.parametrize("taps", [(), (0, 2, 3, 5, 6)])
@pytest.mark.parametrize("below", [False, True])
def test_only_the_last_row_of_a_prompt_passes_kv_sharing_layers(
    below: bool, taps: tuple[int, ...], folder: Path
) -> None:
    options = LoadOptions("float64")
    if below:
        options = with_layers_below(folder, None, options, 1)
    runner = load_target(folder, options=options).runner
    assert isinstance(runner, OffloadRunner) is below
    runner.tap(taps)
    entered: list[int] = []
    model = runner._model
    block = model.block

    def counted(index: int, x: Tensor, *others: Any) -> Tensor:
        entered.append(len(x))
        return block(index, x, *others)

    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        caches = [runner.new_cache(80) for _ in range(2)]
        for kv in caches:
            runner.extend(IDS, kv)
        whole = runner.extend(IDS[:17], caches[0])[-1:]
        patch.setattr(model, "block", counted)
        last = runner.extend(IDS[:17], caches[1], only_last=True)
    assert entered == [24, 24, 24, 1, 1, 1]  # 17 in a round number
    torch.testing.assert_close(last, whole, atol=1e-12, rtol=0)
    assert caches[0].committed().equal(caches[1].committed())


@pytest.mark.parametrize("taps", [(), (0, 2, 3, 5, 6)])
def test_in_the_compiled_step_too_and_the_bits_are_equal(
    taps: tuple[int, ...],
) -> None:
    wide = WIDE | {"num_kv_shared_layers": 3, "layer_types": [*WIDE["layer_types"]] * 2}
    options = LoadOptions("bfloat16", "cpu", WeightFormats("q4_0", lm_head="q4_0"))
    runner = make_random("gemma4", parse_config(wide, {}), options, 0).runner
    assert type(runner) is NativeRunner
    runner.tap(taps)
    with torch.inference_mode():
        caches = [runner.new_cache(128) for _ in range(2)]
        for kv in caches:
            runner.extend(IDS, kv)
        whole = runner.extend(IDS[:17], caches[0])[-1:]
        last = runner.extend(IDS[:17], caches[1], only_last=True)
        assert last.equal(whole)
        assert caches[0].length == caches[1].length
        assert caches[0].committed().equal(caches[1].committed())
        assert runner.extend([5], caches[0]).equal(runner.extend([5], caches[1]))


def test_layers_of_gemma_4_cannot_be_on_other_machines(folder: Path) -> None:
    with pytest.raises(ClusterError, match="gemma4_text"):
        load_target(folder, options=LoadOptions("float32", cluster="127.0.0.1:1"))


def test_shared_kv_layers_get_gradients_from_all_their_readers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys that others read get their gradients, though blocks are computed again for them."""
    found = []
    for most in (1 << 30, 0):
        monkeypatch.setattr("medusa_core.training.adapted._MAX_ACTIVATION_BYTES", most)
        adapted = load_adapted(folder, LoraSpec(2), device="cpu", dtype="float64")
        generator = torch.Generator().manual_seed(9)
        with torch.no_grad():
            for parameter in adapted.lora.parameters():
                parameter += torch.randn(parameter.shape, generator=generator) * 0.1
        adapted.states([torch.tensor(IDS)]).square().mean().backward()
        grads = dict(adapted.lora.named_parameters())
        found.append({name: one.grad for name, one in grads.items() if one.grad is not None})
    assert found[0].keys() == found[1].keys()
    for name, grad in found[0].items():
        torch.testing.assert_close(found[1][name], grad, rtol=1e-9, atol=1e-12)
    assert found[0]["_down.model/layers/2/self_attn/v_proj"].any()


HOSTILE: dict[str, dict[str, Any]] = {
    "as many shared layers as layers": {"num_kv_shared_layers": 35},
    "more shared layers than layers": {"num_kv_shared_layers": 1 << 40},
    "fewer shared layers than none": {"num_kv_shared_layers": -1},
    "shared layers as a text": {"num_kv_shared_layers": "20"},
    "shared layers as true": {"num_kv_shared_layers": True},
    "nobody to read from": {
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention"] * 2 + ["full_attention"],
        "num_kv_shared_layers": 1,
    },
    "another kind of layer": {"layer_types": ["sliding_attention"] * 34 + ["conv"]},
    "too few kinds": {"layer_types": ["full_attention"]},
    "kinds as a text": {"layer_types": "full_attention"},
    "wide embeddings": {"hidden_size_per_layer_input": 1 << 40},
    "negative embeddings": {"hidden_size_per_layer_input": -8},
    "embeddings as a text": {"hidden_size_per_layer_input": "256"},
    "embeddings of few tokens": {"vocab_size_per_layer_input": 1000},
    "embeddings of many tokens": {"vocab_size_per_layer_input": 1 << 40},
    "a wide head": {"global_head_dim": 1 << 40},
    "an odd head": {"head_dim": 255},
    "an odd wide head": {"global_head_dim": 511},
    "heads that share unevenly": {"num_key_value_heads": 3},
    "global heads that share unevenly": {
        "num_global_key_value_heads": 3,
        "attention_k_eq_v": True,
    },
    "layers that differ one by one": {"per_layer_config": {"4": {"head_dim": 128}}},
    "a layer with a window of its own": {"per_layer_config": {"0": {"head_dim": 512}}},
    "something else by layer": {"per_layer_config": {"4": {"intermediate_size": 9}}},
    "layers as a list": {"per_layer_config": [1]},
    "layers as numbers": {"per_layer_config": {"4": 7}},
    "no window": {"sliding_window": 0},
    "another rope": {"rope_parameters": {"full_attention": {"rope_type": "spiral"}}},
    "another local rope": {"rope_parameters": {"sliding_attention": {"rope_type": "yarn"}}},
    "a local rope as a text": {"rope_parameters": {"sliding_attention": "default"}},
    "a negative share": {
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": -1}
        }
    },
    "experts of none": {"enable_moe_block": True, "num_experts": 0},
    "more experts chosen than there are": {"enable_moe_block": True, "top_k_experts": 129},
    "wide experts": {"enable_moe_block": True, "moe_intermediate_size": 1 << 40},
    "sees what comes": {"use_bidirectional_attention": "all"},
    "no layers": {"num_hidden_layers": 0},
    "too many layers": {"num_hidden_layers": 1 << 40},
    "another activation": {"hidden_activation": "relu"},
    "a cap as a text": {"final_logit_softcapping": "30"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_configurations_that_no_gemma_4_has_are_refused_at_once(name: str) -> None:
    started = time.process_time()
    with pytest.raises(ModelError) as caught:
        parse_config(E2B | HOSTILE[name], {})
    assert time.process_time() - started < 1
    assert caught.value.hint
    assert len(caught.value.message) < 300


def test_each_key_with_senseless_values_is_refused_or_accepted() -> None:
    started = time.process_time()
    values = (None, -1, 0, True, "x", [], {}, 1.5, 1 << 70, ["full_attention"])
    for key, value in product(E2B, values):
        with suppress(MedusaError):  # and nothing else
            parse_config(E2B | {key: value}, {})
    assert time.process_time() - started < 5


@pytest.mark.parametrize("size", ["e2b", "e4b", "12b", "31b"])
def test_the_published_sizes_are_read(size: str) -> None:
    config = parse_config(read_json(shapes_dir() / f"gemma-4-{size}.json"), {})
    shapes = set(config.layers)
    assert KvShape(config.num_kv_heads, 256) in shapes
    assert any(isinstance(shape, KvShape) and shape.head_dim == 512 for shape in shapes)
    assert config.rope.factors.count(1.0) == 64  # a quarter of 256 pairs
    assert bool(config.per_layer_embeddings) == (size in ("e2b", "e4b"))
