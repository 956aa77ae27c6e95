"""Which parts of a model the processor computes beside a card, and what a plan says of them."""

import json
from dataclasses import replace

import pytest

from medusa_core.__main__ import main
from medusa_core.cli.plan import shape_config
from medusa_core.errors import PlanError, RequestError
from medusa_core.loading import cpu_parts
from medusa_core.loading.cpu_parts import CpuPlan, place_parts, plan_cpu
from medusa_core.loading.measure import weights
from medusa_core.loading.memory.budget import GIB, cuda_budget
from medusa_core.loading.memory.estimate import ReadRate, host_step_s
from medusa_core.loading.memory.placement import CpuLayers, OffloadRoom, Planner
from medusa_core.loading.memory.recommend import plan_choice
from medusa_core.loading.offload_forecast import ForecastDevice
from medusa_core.messages import CpuReason, HeadsShape, LoadOptions, WeightFormats
from medusa_core.models.quant.choice import resolve_formats, resolve_host_formats
from medusa_core.models.quant.format import Hardware

CARD, RAM = cuda_budget(8), OffloadRoom(32 * GIB)
PROCESSOR = Hardware("cpu", packs=("float32",), compiles=True)
NF4 = WeightFormats("nf4")
GB = 1e9


@pytest.fixture(autouse=True)
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor reads 20 GB/s, and computes 16 rows in four times as long as one."""
    rate = ReadRate(((1, 20 * GB), (16, 5 * GB)))
    monkeypatch.setattr(weights, "measure_read_rate", lambda device, quant: rate)


def planner(name: str, heads: HeadsShape | None = None, budget: object = CARD) -> Planner:
    config = shape_config(name)
    formats = resolve_formats(NF4, "", CARD.hardware, config.stored)
    host = resolve_host_formats(NF4, "", PROCESSOR, config.stored)
    return Planner(config, heads or HeadsShape(), formats, budget, host=host)


def cpu_plan(name: str, options: LoadOptions, heads: HeadsShape | None = None) -> CpuPlan:
    config, context = shape_config(name), options.context_tokens or 4096
    choice = plan_choice(config, heads or HeadsShape(), NF4, CARD, context)
    found = plan_cpu(
        config, heads or HeadsShape(), choice, ForecastDevice(CARD, RAM, None), options
    )
    assert isinstance(found, CpuPlan)
    return found


def test_experts_move_to_the_processor_before_mlps_and_no_more_than_needed() -> None:
    plans = planner("lfm2-8b-a1b")  # its first two layers have MLPs
    sizes = {one.layer: one for one in plans.host_mlps}
    assert [layer for layer, one in sizes.items() if not one.are_experts] == [0, 1]
    missing = 2 * sizes[2].device_bytes
    tight = replace(CARD, total_bytes=CARD.total_bytes - plans.resident(4096).free_bytes - missing)
    plans = replace(plans, budget=tight)
    every = frozenset(sizes)
    found = plans.with_cpu(4096, (), every, RAM.memory_bytes)
    assert found is not None
    assert found.cpu_parts is not None
    assert found.cpu_parts.layers == (2, 3)
    assert found.cpu_parts.num_experts == 2
    assert found.free_bytes == 0
    assert found.ram_bytes == found.cpu_parts.nbytes == sizes[2].host_bytes + sizes[3].host_bytes
    assert plans.with_cpu(4096, (), every, found.ram_bytes - 1) is None
    assert plans.with_cpu(4096, (), (2,), RAM.memory_bytes) is None


@pytest.mark.parametrize(
    ("experts", "cpu_layers", "required", "allowed"),
    [
        ("auto", None, set(), set(range(24))),
        ("auto", 0, set(), set(range(2, 24))),
        ("ram", 0, set(range(2, 24)), set()),
        ("ram", None, set(range(2, 24)), {0, 1}),
        ("card", None, set(), {0, 1}),
        ("card", 0, set(), set()),
        ("auto", 3, {0, 1, 2}, set(range(3, 24))),
        ("card", 3, {0, 1}, set()),
        ("auto", 99, set(range(24)), set()),
    ],
)
def test_options_choose_the_layers_that_the_processor_computes(
    experts: str, cpu_layers: int | None, required: set[int], allowed: set[int]
) -> None:
    options = LoadOptions(experts=experts, cpu_layers=cpu_layers)
    assert CpuLayers.of(shape_config("lfm2-8b-a1b"), options) == (required, allowed)


def test_impossible_options_are_refused() -> None:
    dense = shape_config("vicuna-7b")
    with pytest.raises(RequestError, match="no experts"):
        CpuLayers.of(dense, LoadOptions(experts="ram"))
    with pytest.raises(RequestError, match="-1 layers"):
        CpuLayers.of(dense, LoadOptions(cpu_layers=-1))
    with pytest.raises(RequestError, match="nowhere"):
        CpuLayers.of(dense, LoadOptions(experts="nowhere"))
    plans = planner("vicuna-7b")
    options = LoadOptions(cpu_layers=8, context_tokens=4096)
    with pytest.raises(PlanError, match="too little memory"):
        place_parts(plans, plans.resident(4096), OffloadRoom(GIB // 10), options)


def test_a_model_that_fits_stays_on_the_card_unless_requested() -> None:
    plans = planner("llama-3.2-1b")
    plan = plans.resident(4096)
    assert place_parts(plans, plan, RAM, LoadOptions(context_tokens=4096)) is None
    asked = place_parts(plans, plan, RAM, LoadOptions(context_tokens=4096, cpu_layers=4))
    assert asked is not None
    assert asked.cpu_parts is not None
    assert asked.cpu_parts.layers == (0, 1, 2, 3)
    assert asked.cpu_parts.reason is CpuReason.REQUESTED
    assert asked.free_bytes > plan.free_bytes


def test_a_step_reads_the_experts_that_its_rows_choose() -> None:
    plans = planner("qwen3-30b-a3b")
    rate = ReadRate(((1, 10 * GB), (16, 10 * GB)))
    one, four = (host_step_s(plans.config, plans.host_mlps, rate, rows) for rows in (1, 4))
    held = sum(each.host_bytes for each in plans.host_mlps)
    assert one == pytest.approx(held * 8 / 128 / rate.rates[0][1], rel=1e-6)
    assert four == pytest.approx(one * (1 - (1 - 8 / 128) ** 4) / (8 / 128), rel=1e-6)


@pytest.mark.parametrize(("streamed_s", "streams"), [(0.001, True), (100.0, False)])
def test_the_faster_of_two_placements_is_planned(
    streamed_s: float, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = planner("vicuna-13b")
    rate = ReadRate(((1, 300 * GB), (16, 200 * GB)))
    found = cpu_parts._Rates(ReadRate(((1, 20 * GB), (16, 10 * GB))), rate, 1e-5)
    monkeypatch.setattr(cpu_parts, "_measure", lambda *_: found)
    monkeypatch.setattr(cpu_parts, "offloaded_step", lambda *_: lambda rows: streamed_s)
    options = LoadOptions(context_tokens=2048, memory_gib=8)
    plan = place_parts(plans, plans.resident(2048), RAM, options)
    assert plan is not None
    assert (plan.placement is not None) == streams
    assert (plan.cpu_parts is None) == streams
    if plan.cpu_parts is not None:
        parts = plan.cpu_parts
        assert (parts.reason, parts.streamed_s) == (CpuReason.FASTER, streamed_s)
        moved = [one for one in plans.host_mlps if one.layer in parts.layers]
        cpu_s = sum(one.host_bytes for one in moved) / (20 * GB) + len(moved) * 1e-5
        assert cpu_s < parts.step_s < cpu_s + plan.weights_bytes / (300 * GB)


def test_a_drafter_that_displaces_layers_is_named_with_alternatives() -> None:
    heads = HeadsShape(5, 1, 32000)
    options = LoadOptions(context_tokens=2048)
    found = cpu_plan("vicuna-13b", options, heads)
    bare = cpu_plan("vicuna-13b", options)
    assert not bare.offers
    assert bare.parts.drafter_layers == 0
    displaced = len(found.parts.layers) - len(bare.parts.layers)
    assert found.parts.drafter_layers == displaced > 0
    offers = {offer.change: offer for offer in found.offers}
    assert offers["none"].cpu_layers == len(bare.parts.layers)
    assert offers["context"].context_tokens < 2048
    assert offers["context"].cpu_layers < len(found.parts.layers)
    assert f"{displaced} of these layers make room for the drafter" in found.text()
    assert json.loads(json.dumps(found.as_json()))["offers"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("qwen3-30b-a3b", "the experts of"),
        ("gpt-oss-20b", "the experts of"),
        ("vicuna-13b", "the MLPs of"),
    ],
)
def test_models_larger_than_a_card_are_planned_from_their_shape(
    name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", name, "--vram-gib", "8"]) == 0
    text = capsys.readouterr().out
    assert words in text
    assert "why: the card has no room for them" in text
    assert main(["plan", name, "--vram-gib", "8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] in ("fits", "tight")
    assert found["cpu_bytes"] <= found["ram_bytes"] < 32 * GIB
    assert found["cpu_step_s"]["1"] > 0
    assert not found["step_s"]  # of a card that isn't here
