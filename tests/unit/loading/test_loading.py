"""Loading: what is kept for the next time, what stops it, and what is there afterwards."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from medusa_core.api import demo_model
from medusa_core.errors import (
    CheckpointError,
    HeadsFileError,
    ModelError,
    PlanError,
    RequestError,
)
from medusa_core.loading import plan as plan_module
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Cancel,
    Event,
    Failed,
    Fit,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    Progress,
    Unload,
    Unloaded,
    WeightFormats,
)
from medusa_core.models import weights as weights_module
from medusa_core.models.config import parse_config
from medusa_core.models.quant.format import (
    Hardware,
    quant_registry,
)
from medusa_core.models.quant.nf4_tensors import quantize
from medusa_core.models.quantized_cache.folder import QuantizedModels
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.system.files.safetensors_header import read_header
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import decode, plain_scores, user_says
from tests.support.models.checkpoints import write_checkpoint
from tests.support.models.quantized_checkpoint import quantized_checkpoint
from tests.support.models.targets import Folders
from tests.support.models.tiny import TinySpec, config_of, write_tiny

WIDE = TinySpec(hidden_size=128, intermediate_size=192, has_bias=True, seed=21)
SETTINGS = GenerateSettings(drafter="none", max_new_tokens=16)
IDS = [3, 50, 60, 200, 9, 11, 50]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "wide", WIDE)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def load(model: Path, kept: Path | None = None, quant: str = "q4") -> Target:
    return load_target(model, None, LoadOptions(formats=WeightFormats(quant), quantized_dir=kept))


@pytest.mark.parametrize("quant", ["int8", "q4"])
def test_the_second_load_reads_the_cached_quantized_weights(
    quant: str, model: Path, kept: Path
) -> None:
    expected = plain_scores(load(model, kept, quant), IDS)
    # Of the checkpoint's numbers, only rows of the token embeddings are read any more.
    file = model / "model.safetensors"
    status, whole = file.stat(), file.read_bytes()
    entry, changed = read_header(file)["model.embed_tokens.weight"], bytearray(len(whole))
    for start, stop in (
        (0, 8 + int.from_bytes(whole[:8], "little")),
        (entry.start, entry.start + entry.nbytes),
    ):
        changed[start:stop] = whole[start:stop]
    file.write_bytes(changed)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert torch.equal(plain_scores(load(model, kept, quant), IDS), expected)
    assert not torch.equal(plain_scores(load(model, None, quant), IDS), expected)


def test_a_cached_model_gives_the_same_logits(model: Path, kept: Path) -> None:
    first, second = load(model, kept), load(model, kept)
    assert torch.equal(plain_scores(first, IDS), plain_scores(second, IDS))
    assert second.num_parameters == first.num_parameters
    assert second.weights_bytes == first.weights_bytes
    assert len(QuantizedModels(kept).entries()) == 1


def test_pebble_with_tied_embeddings_is_cached_too(kept: Path) -> None:
    model, heads = demo_model()
    options = LoadOptions(formats=WeightFormats("q4", lm_head="int8"), quantized_dir=kept)
    first, second = (load_target(model, heads, options) for _ in range(2))
    assert torch.equal(plain_scores(first, IDS), plain_scores(second, IDS))
    assert len(QuantizedModels(kept).entries()) == 1
    assert second.num_parameters == first.num_parameters


def test_unquantized_models_are_not_cached(model: Path, kept: Path) -> None:
    load_target(model, None, LoadOptions("float32", quantized_dir=kept))
    assert QuantizedModels(kept).entries() == ()


def test_another_weight_format_or_file_is_cached_separately(model: Path, kept: Path) -> None:
    load(model, kept, "int8")
    load(model, kept, "q4")
    assert len(QuantizedModels(kept).entries()) == 2
    tensors = load_file(model / "model.safetensors")
    tensors["lm_head.weight"] = tensors["lm_head.weight"] * 2
    save_file(tensors, model / "model.safetensors")
    doubled = load(model, kept, "q4")
    assert len(QuantizedModels(kept).entries()) == 3
    assert torch.equal(plain_scores(doubled, IDS), plain_scores(load(model, None, "q4"), IDS))


def test_a_damaged_cached_model_is_quantized_again(model: Path, kept: Path) -> None:
    expected = plain_scores(load(model, kept), IDS)
    (entry,) = QuantizedModels(kept).entries()
    entry.path.write_bytes(entry.path.read_bytes()[:-100])
    assert torch.equal(plain_scores(load(model, kept), IDS), expected)
    assert QuantizedModels(kept).entries()[0].nbytes == entry.nbytes


def test_a_cancelled_load_caches_nothing(model: Path, kept: Path) -> None:
    def stop(stage: str, fraction: float, text: str) -> None:
        if fraction > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load_target(model, None, LoadOptions(formats=WeightFormats("q4"), quantized_dir=kept), stop)
    assert list((model.parent / "kept").iterdir()) == []


def test_the_cache_of_models_is_bounded_and_drops_the_least_recently_used(
    model: Path, tmp_path: Path
) -> None:
    load(model, kept := tmp_path / "kept", "int8")
    (old,) = QuantizedModels(kept).entries()
    small = QuantizedModels(kept, max_bytes=old.nbytes + 1000)
    writer = small.writer("another", old.nbytes)
    assert writer is not None
    with writer:
        writer.keep("weight", torch.zeros(4))
    (new,) = small.entries()
    assert new.path != old.path
    assert small.remove_all() == new.nbytes
    assert small.entries() == ()


def test_a_full_disk_prevents_caching_but_not_loading(
    model: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))  # type: ignore[attr-defined]
    assert load(model, kept).num_parameters > 0
    assert QuantizedModels(kept).entries() == ()


@pytest.fixture(params=[False, True], ids=["plain", "nested"])
def in_4_bits(request: pytest.FixtureRequest, model: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A checkpoint of bitsandbytes, and one of the numbers that it holds."""
    folder = quantized_checkpoint(model, tmp_path / "quantized", request.param)
    plain = shutil.copytree(model, tmp_path / "numbers")
    tensors = load_file(model / "model.safetensors")
    nf4 = quant_registry().get("nf4")
    for name, tensor in tensors.items():
        if name.endswith("proj.weight"):
            tensors[name] = nf4.dequantize(quantize(tensor, request.param), *tensor.shape)
    save_file(tensors, plain / "model.safetensors")
    return folder, plain


def check_plan(target: Target) -> None:
    assert target.weights_bytes <= target.plan.weights_bytes <= target.weights_bytes * 1.05


def test_a_4_bit_checkpoint_becomes_blocks_on_a_cpu(in_4_bits: tuple[Path, Path]) -> None:
    folder, plain = in_4_bits
    target = load_target(folder)
    assert target.formats.linears.name == "nf4_0"
    check_plan(target)
    assert target.caches.nbytes == target.plan.kv_bytes
    assert isinstance(target.runner, NativeRunner)
    scores = plain_scores(target, IDS).double()
    wanted = plain_scores(load_target(plain, None, LoadOptions("float64")), IDS)
    in_q4 = plain_scores(load(plain), IDS).double()
    error = (scores - wanted).norm()
    assert error < 0.04 * wanted.norm(), "inputs are rounded to 8 bits"
    assert error < 0.3 * (in_q4 - wanted).norm(), "whole numbers of 4 bits lose far more"


@pytest.mark.parametrize("quant", ["int8", "bf16", "q4"])
def test_a_4_bit_checkpoint_can_be_requantized(quant: str, in_4_bits: tuple[Path, Path]) -> None:
    folder, plain = in_4_bits
    target, other = load(folder, None, quant), load(plain, None, quant)
    assert torch.equal(plain_scores(target, IDS), plain_scores(other, IDS))
    check_plan(target)
    assert target.weights_bytes == other.weights_bytes


def test_layers_that_bitsandbytes_skipped_are_planned_unquantized(
    model: Path, tmp_path: Path
) -> None:
    folder = quantized_checkpoint(model, tmp_path / "quantized", False, skips="layers.1.mlp")
    target = load_target(folder)
    whole = load_target(quantized_checkpoint(model, tmp_path / "whole", False))
    check_plan(target)
    in_mlp = 2 * 3 * WIDE.hidden_size * WIDE.intermediate_size
    more = target.plan.weights_bytes - whole.plan.weights_bytes
    assert more == target.weights_bytes - whole.weights_bytes > in_mlp * 0.7
    assert len(decode(target, SETTINGS, user_says("hi")).token_ids) == 16


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ({"quant_method": "hqq", "bits": 4}, "hqq"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "not nf4"),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "fp4"},
            "not nf4",
        ),
        ("awq", "awq"),
    ],
)
def test_other_quantized_checkpoints_are_described(output: object, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        parse_config({**config_of(WIDE), "quantization_config": output}, {})


def test_a_quantized_tensor_of_another_size_is_refused(model: Path, tmp_path: Path) -> None:
    folder = quantized_checkpoint(model, tmp_path / "quantized", is_nested=False)
    tensors = load_file(folder / "model.safetensors")
    name = "model.layers.0.self_attn.q_proj.weight"
    tensors[name] = tensors[name][:-64]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="another size"):
        load_target(folder)


def test_huggingface_libraries_read_our_sharded_checkpoints(tmp_path: Path) -> None:
    raw = {**config_of(TinySpec(num_layers=3)), "rope_scaling": None, "attention_bias": False}
    raw["mlp_bias"] = False
    folder = write_checkpoint(tmp_path / "random", raw, shard_bytes=40_000)
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 2
    with safe_open(shards[0], framework="pt") as file:
        assert file.get_tensor("model.embed_tokens.weight").std() > 0.01
    target = load_target(folder, None, LoadOptions("float32"))
    assert len(decode(target, SETTINGS, user_says("hi")).token_ids) == 16


@pytest.fixture
def engine(model: Path) -> Iterator[EngineHarness]:
    harness = EngineHarness()
    loaded = harness.load(LoadModel("", "first", model, options=LoadOptions(dtype="float32")))
    assert isinstance(loaded, ModelLoaded)
    yield harness
    harness.close()


def test_a_cancelled_load_restores_the_previous_model(engine: EngineHarness, model: Path) -> None:
    def cancel(event: Event) -> None:
        if isinstance(event, Progress) and event.request_id == "second" and event.fraction > 0:
            engine.submit(Cancel("", "second"))

    engine.on_event = cancel
    failed = engine.load(
        LoadModel("", "second", model, options=LoadOptions(formats=WeightFormats("int8")))
    )
    assert isinstance(failed, Failed)
    assert failed.kind == "Cancelled"
    answer = engine.answer("hello", SETTINGS)
    assert isinstance(answer, GenerationDone)
    again = [e for e in engine.events if isinstance(e, ModelLoaded)]
    assert [e.request_id for e in again] == ["first", "first"]


@pytest.mark.expects_errors
def test_out_of_memory_names_the_part_and_restores_the_previous_model(
    engine: EngineHarness, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = weights_module.CheckpointWeights._quantized

    def no_room(self: object, part: object, wanted: object) -> object:
        if getattr(part, "name", "") == "layers.1.down" and getattr(wanted, "name", "") == "int8":
            raise torch.OutOfMemoryError("CUDA out of memory")
        return real(self, part, wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(weights_module.CheckpointWeights, "_quantized", no_room)
    failed = engine.load(
        LoadModel("", "second", model, options=LoadOptions(formats=WeightFormats("int8")))
    )
    assert isinstance(failed, Failed)
    assert failed.kind == "OutOfMemoryError"
    assert "layers.1.down" in failed.message
    assert "q4 on a CPU" in failed.hint
    assert isinstance(engine.answer("hello", SETTINGS), GenerationDone)


def tight_budget(total: int) -> Budget:
    return Budget("a tiny card", Hardware("cpu"), total, 0, 0, is_live=True)


def test_a_model_that_does_not_fit_is_refused_before_anything_is_read(
    engine: EngineHarness, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "live_budget", lambda _: tight_budget(100_000))
    failed = engine.load(
        LoadModel("", "second", model, options=LoadOptions(dtype="float32", context_tokens=512))
    )
    assert isinstance(failed, Failed)
    assert failed.kind == "PlanError"
    assert "a tiny card" in failed.message
    # The same override everywhere.
    loaded = engine.load(
        LoadModel(
            "",
            "third",
            model,
            options=LoadOptions(dtype="float32", context_tokens=512, ignores_plan=True),
        )
    )
    assert isinstance(loaded, ModelLoaded)
    assert loaded.plan.fit is Fit.NO


def test_a_default_context_is_shortened_to_fit(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = load_target(model, None, LoadOptions("float32")).plan
    assert whole.context_tokens == 512
    needed = whole.total_bytes - whole.other_bytes - whole.free_bytes - whole.runtime_bytes
    monkeypatch.setattr(plan_module, "live_budget", lambda _: tight_budget(needed - 100_000))
    target = load_target(model, None, LoadOptions("float32"))
    assert 0 < target.config.context_tokens < 512
    assert target.plan.free_bytes >= 0
    asked = LoadOptions("float32", context_tokens=512)
    with pytest.raises(PlanError, match="more than a tiny card has free"):
        load_target(model, None, replace(asked, formats=WeightFormats(cache="f32")))
    small = load_target(model, None, asked)  # its cache is smaller, which the plan says
    assert small.plan.shrinks_cache
    assert small.plan.cache_type == small.precision.cache_format == "q8_0"
    assert "512 tokens" in small.plan.cache_note
    assert small.caches.nbytes == small.plan.kv_bytes < whole.kv_bytes / 2
    assert (whole.cache_type, whole.cache_note) == ("f32", "")
    with pytest.raises(RequestError, match="is f32, not bf16"):
        load_target(model, None, replace(asked, formats=WeightFormats(cache="bf16")))


def test_unloading_reports_the_freed_memory(engine: EngineHarness, model: Path) -> None:
    assert isinstance(engine.answer("hello", SETTINGS), GenerationDone)
    weights = load_target(model, None, LoadOptions("float32")).weights_bytes
    engine.submit(Unload("", "end"))
    unloaded = engine.wait("end", Unloaded)
    assert isinstance(unloaded, Unloaded)
    assert unloaded.freed_bytes > weights


@pytest.mark.parametrize("name", ["dflash", "dspark", "eagle", "gemma4"])
def test_heads_opened_as_a_model_are_recognised(name: str, folders: Folders) -> None:
    heads = folders[name].heads
    assert heads is not None
    with pytest.raises(HeadsFileError, match="holds heads") as refused:
        load_target(heads)
    assert "--heads" in refused.value.hint
    with pytest.raises(HeadsFileError, match="holds heads"):
        load_target(folders["grouped"].model, None, LoadOptions("float64", assistant_dir=heads))
