"""Layers below the device: the laws over them, their plan, their file, and a disk that fails."""

import errno
import gc
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.cli.plan import shape_config
from medusa_core.engine.direct import generate
from medusa_core.errors import PlanError, RequestError, TierError
from medusa_core.loading.choice import (
    ModelChoice,
    as_json,
    from_json,
)
from medusa_core.loading.load import load_target
from medusa_core.loading.measure import machine, transfers, weights
from medusa_core.loading.measure.machine import MEASURED, DiskRates, MeasuredRates
from medusa_core.loading.memory import probe
from medusa_core.loading.memory.budget import GIB, Budget, limit_budget
from medusa_core.loading.memory.estimate import ReadRate
from medusa_core.loading.memory.placement import OffloadRoom, Planner
from medusa_core.loading.memory.plan import weights_bytes
from medusa_core.loading.offload_forecast import offloaded_load
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Failed,
    GenerateSettings,
    GenerationDone,
    HeadsShape,
    LoadModel,
    LoadOptions,
    ModelLoaded,
    StepDone,
    Tier,
    WeightFormats,
)
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.offload import disk_room as disk_room_module
from medusa_core.runtime.offload.layer_entries import TensorBytes
from medusa_core.runtime.offload.layer_file import (
    LayerFile,
    LayerFileWriter,
    find_layer_file,
)
from medusa_core.runtime.offload.read_ahead import ReadAhead
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.drafters.lineup import serving_drafters
from medusa_core.system.files.measurement_files import MeasurementFiles
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.harness import EngineHarness
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.engine.tight import with_layers_below
from tests.support.models.targets import STREAMED, Folders
from tests.support.models.tiny import ACCURACIES, random_heads, write_heads, write_tiny

MESSAGES = user_says("the rest is silence")
MADE = [s.name for s in weight_formats().specs if s.can_quantize and s.supports(64, 256, "cpu")]
SETTINGS = GenerateSettings("medusa", max_new_tokens=24)
HARDWARE = Hardware("cpu", packs=("float32", "bfloat16"), compiles=True)


def tight(total_bytes: int, hardware: Hardware = HARDWARE) -> Budget:
    return Budget("a small device", hardware, total_bytes, 0, 0, is_live=True)


@pytest.fixture
def model(tmp_path: Path) -> tuple[Path, Path]:
    heads = write_heads(tmp_path / "heads", random_heads(STREAMED), ACCURACIES)
    return write_tiny(tmp_path / "model", STREAMED), heads


@pytest.fixture
def engine() -> Iterator[EngineHarness]:
    harness = EngineHarness()
    yield harness
    harness.close()


def below(model: tuple[Path, Path], options: LoadOptions, num_here: int = 1) -> Target:
    """Return the model with the given number of layers on the device."""
    return load_target(*model, with_layers_below(*model, options, num_here))


def layers_of(target: Target, tier: Tier) -> tuple[int, ...]:
    assert target.plan.placement is not None
    return target.plan.placement.layers(tier)


def the_file(model: tuple[Path, Path]) -> Path:
    (path,) = (model[0].parent / "layers").iterdir()
    return path


@pytest.mark.parametrize("rule", ["greedy", "sample"])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_laws_1_to_3_hold_for_every_drafter_and_texts_equal_those_of_the_resident_model(
    dtype: str, rule: str, load: LoadTarget, folders: Folders
) -> None:
    target = load("streamed", dtype)
    whole = load_target(*folders["streamed"], LoadOptions(dtype, "cpu"))
    settings = GenerateSettings(rule=rule, seed=3, max_new_tokens=24)
    expected = decode(whole, plainly(settings), MESSAGES)
    is_exact = dtype == "float64" or isinstance(whole.runner, NativeRunner)
    assert is_exact or dtype == "bfloat16"
    for spec in serving_drafters(target):
        drafted = decode(
            target,
            replace(settings, drafter=spec.name),
            MESSAGES,
            after_step=lambda session: check_cache(session, target, 1e-12 if is_exact else 0.1),
        )
        if is_exact:
            check_same_tokens(expected, drafted)


@pytest.mark.parametrize("quant", MADE)
def test_an_offloaded_layer_of_any_format_computes_the_same(quant: str) -> None:
    spec = weight_formats().get(quant)
    compute = getattr(torch, spec.compute[0] if spec.compute else "float32")
    generator = torch.Generator().manual_seed(1)
    weight, bias = (torch.randn(*s, generator=generator).to(compute) for s in ((64, 256), (64,)))
    for its_bias in (None, bias):
        layer = spec.build(spec.quantize(weight), 64, its_bias, compute)
        layout = layer.layout()
        moved = layout.rebuild(*(tensor.clone() for tensor in layout.tensors))
        x = torch.randn(3, 256, generator=generator).to(compute)
        assert torch.equal(moved(x), layer(x))
        assert moved.layout().kind == layout.kind
        assert moved.nbytes == layer.nbytes


@pytest.mark.parametrize("quant", ["", "q4", "int8"])
def test_planned_bytes_equal_the_allocated_bytes(quant: str, tmp_path: Path) -> None:
    spec = replace(STREAMED, hidden_size=256, intermediate_size=384)
    heads = write_heads(tmp_path / "heads", random_heads(spec), ACCURACIES)
    model = (write_tiny(tmp_path / "model", spec), heads)
    target = below(model, LoadOptions(device="cpu", formats=WeightFormats(quant)), 2)
    assert len(layers_of(target, Tier.DEVICE)) == 2
    assert target.weights_bytes <= target.plan.weights_bytes <= target.weights_bytes * 1.05
    assert target.caches.nbytes == target.plan.kv_bytes
    assert target.plan.placement is not None
    planned = target.plan.placement.offloaded_bytes
    stored = the_file(model).stat().st_size * len(layers_of(target, Tier.DISK)) / 6
    assert planned <= stored <= planned * 1.1


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@torch.inference_mode()
def test_tapped_states_equal_those_of_the_resident_model(
    dtype: str, model: tuple[Path, Path]
) -> None:
    runners = [
        load_target(*model, LoadOptions(dtype, "cpu")).runner,
        below(model, LoadOptions(dtype, "cpu")).runner,
    ]
    reported = []
    for runner in runners:
        runner.tap((0, 2, STREAMED.num_layers))
        kv = runner.new_cache(64)
        last = runner.extend(range(3, 20), kv, only_last=True)
        reported.append((last, runner.extend(range(5), kv), kv.committed()))
    assert all(torch.equal(whole, offloaded) for whole, offloaded in zip(*reported, strict=True))


def test_the_second_load_finds_the_tier_file_whatever_fits_then(model: tuple[Path, Path]) -> None:
    options = LoadOptions("float32", "cpu")
    first = below(model, options, 1)
    written = the_file(model).stat().st_mtime_ns
    for num_here in (1, 0, 2):
        again = below(model, options, num_here)
        assert len(layers_of(again, Tier.DEVICE)) == num_here
        assert the_file(model).stat().st_mtime_ns == written
        assert again.num_parameters == first.num_parameters
        check_same_tokens(decode(first, SETTINGS, MESSAGES), decode(again, SETTINGS, MESSAGES))


@pytest.mark.parametrize("damage", ["cut", "header", "layer"])
def test_a_damaged_tier_file_is_detected_and_written_again(
    damage: str, model: tuple[Path, Path]
) -> None:
    options = LoadOptions("float32", "cpu")
    expected = decode(below(model, options), SETTINGS, MESSAGES)
    path = the_file(model)
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-9]
    content[-20 if damage == "header" else 3 * 4096] ^= 255
    path.write_bytes(content)
    if damage == "layer":
        with pytest.raises(TierError, match="aren't what was written"):
            decode(below(model, options), SETTINGS, MESSAGES)
    check_same_tokens(expected, decode(below(model, options), SETTINGS, MESSAGES))


def test_a_disk_without_room_is_refused_before_anything_is_written(
    model: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_room_module, "FLOOR_BYTES", 1 << 60)
    with pytest.raises(TierError, match="are free") as caught:
        below(model, LoadOptions("float32", "cpu"))
    assert "another disk" in caught.value.hint
    assert not list((model[0].parent / "layers").iterdir())


def write_part(path: Path, layer: int = 0, full: bool = False) -> None:
    """Write a file of one part, on a disk that may be full."""
    with LayerFileWriter(path, "key", 0) as writer:
        if full:
            writer._file.close()
            writer._file = os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", buffering=0)
        part = TensorBytes("uint8", (3,), memoryview(b"abc"))
        writer.add(layer, f"layers.{layer}.qkv", "dense", [part])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_disk_that_fills_while_layers_are_written_keeps_no_file(tmp_path: Path) -> None:
    with pytest.raises(TierError, match="disk is full"):
        write_part(tmp_path / "a.layers", full=True)
    assert not list(tmp_path.iterdir())


def test_a_tier_file_of_another_model_is_not_used(tmp_path: Path) -> None:
    write_part(tmp_path / "a.layers", layer=4)
    found = find_layer_file(tmp_path / "a.layers", "key")
    assert found is not None
    assert found.layers[4].parts[0].tensors[0].nbytes == 3
    assert find_layer_file(tmp_path / "a.layers", "another") is None
    assert find_layer_file(tmp_path / "b.layers", "key") is None


def command(model: tuple[Path, Path], name: str) -> LoadModel:
    options = with_layers_below(*model, LoadOptions("float32", "cpu"), 1)
    return LoadModel(
        "",
        name,
        *model,
        LoadOptions(
            dtype="float32",
            device="cpu",
            context_tokens=options.context_tokens,
            memory_gib=options.memory_gib,
            tier_disk=options.tier_disk,
        ),
        num_threads=1,
    )


@pytest.mark.expects_errors
@pytest.mark.parametrize("damage", ["cut", "fails"])
def test_a_disk_error_ends_only_its_answer_and_the_next_load_works(
    damage: str,
    engine: EngineHarness,
    model: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert isinstance(engine.load(command(model, "first")), ModelLoaded)
    before = engine.answer("hello", SETTINGS)
    assert isinstance(before, GenerationDone)
    if damage == "cut":
        os.truncate(the_file(model), 4096 * 5)
    else:

        def fail(self: object, into: memoryview) -> None:
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(LayerFile, "_fill", fail)
    failed = engine.answer("hello again", SETTINGS)
    assert isinstance(failed, Failed)
    assert failed.kind == "TierError"
    assert "ayer" in failed.message
    assert failed.hint
    monkeypatch.undo()
    if damage == "fails":  # it was for a while: the conversation goes on
        # A layer that was read ahead meanwhile may fail the next answer once more.
        again = (engine.answer("hello again", SETTINGS) for _ in range(2))
        assert any(isinstance(end, GenerationDone) for end in again)
    assert isinstance(engine.load(command(model, "second")), ModelLoaded)
    after = engine.answer("hello", SETTINGS, "another")
    assert isinstance(after, GenerationDone)
    assert after.text == before.text


def test_the_reader_thread_ends_with_its_model(model: tuple[Path, Path]) -> None:
    before = set(threading.enumerate())
    target = below(model, LoadOptions("float32", "cpu"))
    readers = [t for t in set(threading.enumerate()) - before if t.name == "medusa-layers"]
    assert len(readers) == 1
    del target
    gc.collect(1)
    assert not readers[0].is_alive()


def test_an_aborted_pass_restarts_at_its_first_layer(load: LoadTarget) -> None:
    target = load("streamed", "float32")
    expected = decode(target, SETTINGS, MESSAGES)
    target.runner.tiers.weights.acquire(1)  # type: ignore[attr-defined]
    check_same_tokens(expected, decode(target, SETTINGS, MESSAGES))


def test_waiting_for_layers_is_a_component_of_each_step(
    load: LoadTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A layer is read once it is waited for: slow machines would compute longer than they read.
    is_awaited = threading.Event()

    def slowly(self: LayerFile, layer: int, into: memoryview) -> None:
        is_awaited.wait()
        is_awaited.clear()
        time.sleep(0.02)
        read(self, layer, into)

    def await_piece(self: ReadAhead[int]) -> int:
        if self.num_read <= self.num_acquired:
            is_awaited.set()
        return acquire(self)

    read, acquire = LayerFile.read, ReadAhead.acquire
    steps: list[StepDone] = []
    target = load("streamed", "float32")
    with monkeypatch.context() as patch:
        patch.setattr(LayerFile, "read", slowly)
        patch.setattr(ReadAhead, "acquire", await_piece)
        generate(target, MESSAGES, SETTINGS, on_step=steps.append)
    is_awaited.set()
    for step in steps[2:]:  # what the second one needs was read while the first was made
        assert 0.02 < step.times.transfer_s < step.times.verify_s
        assert sum(step.times.parts) == pytest.approx(sum(step.times[:4]))
    steps.clear()
    generate(load("tied", "float32"), MESSAGES, SETTINGS, on_step=steps.append)
    assert {(step.times.transfer_s, step.times.remote_s) for step in steps} == {(0.0, 0.0)}


def test_resident_layers_are_spread_among_offloaded_ones() -> None:
    config = shape_config("vicuna-7b")
    formats = resolve_formats(WeightFormats("q4_0", lm_head="q4_0"), "", HARDWARE)
    budget = limit_budget(tight(64 * GIB), 2.5)
    planner = Planner(config, HeadsShape(), formats, budget)
    plan = planner.offload(1024, OffloadRoom(disk=Path("layers")))
    assert plan is not None
    placement = plan.placement
    assert placement is not None
    here = placement.layers(Tier.DEVICE)
    assert 10 <= len(here) <= 16
    gaps = {b - a for a, b in pairwise(here)}
    assert max(gaps) - min(gaps) <= 1
    assert 0 <= plan.free_bytes < max(placement.layer_bytes)
    whole = weights_bytes(config, formats)
    assert plan.weights_bytes + placement.offloaded_bytes == pytest.approx(
        whole + placement.buffer_bytes
    )


def test_a_default_context_leaves_room_for_layers() -> None:
    config = shape_config("vicuna-7b")
    formats = resolve_formats(WeightFormats("q4_0", lm_head="q4_0"), "", HARDWARE)
    budget, disk = limit_budget(tight(64 * GIB), 1.5), OffloadRoom(disk=Path("layers"))
    planner = Planner(config, HeadsShape(), formats, budget)
    requested = planner.offload(4096, disk)
    free = planner.offload(4096, disk, may_shorten=True)
    assert requested is None
    assert free is not None
    assert free.kv_bytes <= budget.total_bytes / 3


def test_no_layer_goes_to_an_unnamed_disk() -> None:
    config = shape_config("vicuna-7b")
    card = Hardware("cuda", (8, 6))
    formats = resolve_formats(WeightFormats("nf4-dq"), "", card)
    planner = Planner(config, HeadsShape(), formats, tight(3 * GIB, card))
    assert planner.offload(1024, OffloadRoom()) is None
    placed = planner.offload(1024, OffloadRoom(64 * GIB))
    assert placed is not None
    assert placed.placement is not None
    assert set(placed.placement.tiers) == {Tier.DEVICE, Tier.MEMORY}


def test_too_small_a_budget_is_refused(model: tuple[Path, Path]) -> None:
    options = replace(with_layers_below(*model, LoadOptions("float32", "cpu"), 1), memory_gib=1e-5)
    with pytest.raises(PlanError, match="more than") as refused:
        load_target(*model, options)
    assert ("on the disk" in refused.value.hint) is options.has_disk
    with pytest.raises(PlanError, match="more than") as refused:
        load_target(*model, replace(options, tier_disk=None))
    assert "--tier-disk" in refused.value.hint
    with pytest.raises(RequestError, match="less than nothing"):
        load_target(*model, replace(options, memory_gib=-1))


def test_a_sufficient_budget_offloads_nothing(model: tuple[Path, Path]) -> None:
    options = LoadOptions("float32", "cpu", memory_gib=1.0, tier_disk=model[0].parent / "layers")
    target = load_target(*model, options)
    assert target.plan.placement is None
    assert not (model[0].parent / "layers").exists()


ASKED = ("vicuna-7b", "--quant", "q4_0", "--lm-head-quant", "q4_0", "--context", "1024")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk of a gigabyte a second below a device that computes ten rows in the time of one."""
    rate = ReadRate(((1, 10e9), (16, 5e9)))
    disk = DiskRates(1e9, 1e9)
    monkeypatch.setattr(machine.MeasuredRates, "disk", lambda *_: disk)
    monkeypatch.setattr(weights, "measure_read_rate", lambda *_: rate)
    monkeypatch.setattr(probe, "live_budget", lambda *_: tight(16 * GIB))


@pytest.mark.usefixtures("measured")
def test_the_plan_says_where_layers_are_and_what_steps_take(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = ["plan", *ASKED, "--memory-gib", "1.5", "--tier-disk", str(tmp_path)]
    assert main([*requested, "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["tiers"].count("device") == 4
    assert reported["tiers"].count("disk") == 28
    assert reported["step_s"]["1"] == pytest.approx(reported["offloaded_bytes"] / 1e9)
    assert reported["step_s"]["16"] == reported["step_s"]["1"]  # the disk is what takes so long
    assert reported["offload_is_worth_it"]
    assert main(requested) == 0
    text = capsys.readouterr().out
    assert "4 of 32 layers here, 0.42 GiB: 4, 12, 20, 28" in text
    assert "28 of 32 layers on the disk" in text
    assert "the only way" in text


def test_rates_measured_while_busy_are_measured_again_on_request(
    tmp_path: Path, measured: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    remeasured: list[object] = []

    def disk(rates: MeasuredRates, *_: object) -> DiskRates:
        remeasured.append(rates.remeasure)
        return DiskRates(1e9, 1e9)

    monkeypatch.setattr(MeasuredRates, "disk", disk)
    requested = ["plan", *ASKED, "--memory-gib", "1.5", "--tier-disk", str(tmp_path)]
    assert main(requested) == main([*requested, "--measure"]) == 0
    assert remeasured == [(), MEASURED]


@pytest.mark.usefixtures("measured")
def test_the_plan_says_when_offloading_is_not_worth_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = ["--quant", "int8", "--memory-gib", "5", "--tier-disk", str(tmp_path)]
    assert main(["plan", "vicuna-7b", "--context", "1024", *requested]) == 0
    assert "offloading isn't worth it: q4 has room without" in capsys.readouterr().out


@pytest.mark.usefixtures("measured")
def test_a_model_that_does_not_fit_shows_its_offloaded_speed(
    model: tuple[Path, Path], tmp_path: Path
) -> None:
    options = with_layers_below(*model, LoadOptions(device="cpu"), 1)
    choice = ModelChoice(
        "a model", *model, options=LoadOptions(context_tokens=options.context_tokens)
    )
    assert offloaded_load(choice, tmp_path, "cpu") is None
    choice = replace(choice, options=replace(choice.options, memory_gib=options.memory_gib))
    found = offloaded_load(choice, tmp_path, "cpu")
    assert found is not None
    assert len(found.placement.layers(Tier.DEVICE)) == 1
    assert found.tokens_per_s > found.plain_tokens_per_s > 0
    choice = choice.with_layers_in(tmp_path)
    assert from_json(as_json(choice)).options.tier_disk == tmp_path


def test_a_disk_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "_READ_BYTES", 1 << 20)
    monkeypatch.setattr(transfers, "_MOVED_BYTES", 1 << 20)
    monkeypatch.setattr(transfers, "PIECE_BYTES", 1 << 18)
    reported: list[str] = []
    kept = MeasurementFiles(tmp_path / "state")
    rates, folder = MeasuredRates(kept, reported.append), tmp_path / "layers"
    first = rates.disk(folder, 0)
    assert all(rate > 0 for rate in first)
    assert rates.disk(folder, 0) == first
    assert not list(folder.iterdir())
    assert len(reported) == 1
    (file,) = (tmp_path / "state").iterdir()
    file.write_text("[]", encoding="utf-8")
    assert rates.disk(folder, 0).read > 0
    assert len(reported) == 2
    with pytest.raises(TierError, match="can't be measured"):
        rates.disk(file / "below a file", 0)
