"""A model that has no room is offered offloaded, and loaded so if the user wants that."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.chat.error_board import ErrorTopic
from app.chat.error_card import ErrorCard
from app.chat.header import describe
from app.models import load_estimate
from app.models.details import Details
from app.models.library_dialog import LibraryDialog
from app.models.subject import Subject
from app.widgets.offload_words import offload_plan_words
from medusa_core.api import AdapterShape, Budget, Library, OffloadPlan, Recommendation, places
from medusa_core.cli.plan import shape_config
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.measure import weights
from medusa_core.loading.measure.machine import DiskRates
from medusa_core.loading.memory.estimate import ReadRate
from medusa_core.loading.state import (
    ModelStatus,
    Phase,
)
from medusa_core.messages import (
    Failed,
    Fit,
    HeadsShape,
    LoadModel,
    Machine,
    MemoryPlan,
    ModelLoaded,
    Placement,
    Tier,
    WeightFormats,
)
from medusa_core.models.quant.format import Hardware
from tests.support.messages import EXAMPLES
from tests.support.models.tiny import write_tiny
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import SPEC, Run
from tests.support.window.managing import until, wait_for_tasks

GIB = 1 << 30
MIB = 1 << 20
LAYERS = Placement((Tier.DEVICE,) * 27 + (Tier.MEMORY,) * 9 + (Tier.DISK,) * 4, (MIB,) * 40, MIB)
SMALL = Budget("RAM", Hardware("cpu"), 6 * GIB, GIB, 0, is_live=True)
TINY = replace(SMALL, total_bytes=2 * GIB)


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace measurements, which take long on a busy computer."""
    disk, rate = DiskRates(1e9, 1e9), ReadRate(((1, 10e9), (16, 5e9)))
    monkeypatch.setattr("medusa_core.loading.measure.machine.MeasuredRates.disk", lambda *_: disk)
    for module in (weights, load_estimate):
        monkeypatch.setattr(module, "measure_read_rate", lambda *_: rate)


def plan_of(placement: Placement | None) -> MemoryPlan:
    return MemoryPlan(GIB, 0, MIB, MIB, 0, 0, MIB, GIB, 0, 512, 512, Fit.FITS, True, 0, placement)


def offloaded(tokens_per_s: float = 11.0, whole_s: float = 0.0) -> OffloadPlan:
    choice = Recommendation(WeightFormats("q4_0"), 512, plan_of(LAYERS), "")
    whole = "q2_k" if whole_s else ""
    return OffloadPlan(choice, LAYERS, {1: 0.2, 16: 0.21}, {}, tokens_per_s, whole, whole_s)


def test_the_offloaded_speed_is_shown_as_an_estimate() -> None:
    assert offload_plan_words(offloaded(), has_heads=True) == (
        "Offloaded: 27 of 40 layers here, 5.0 tokens/s plain, about 11 with heads (an estimate)."
    )
    assert "without drafts" in offload_plan_words(offloaded(), has_heads=False)
    assert offload_plan_words(offloaded(whole_s=0.1), has_heads=True).endswith("and is faster.")


def test_a_model_without_room_is_offered_offloaded(
    run: Run, dialog: LibraryDialog, tmp_path: Path
) -> None:
    details = dialog.discover.details
    details.layers_dir = tmp_path / "layers"

    async def work() -> None:
        details.set_budget(SMALL)
        details.show_subject(Subject("13B", "", shape_config("vicuna-13b"), HeadsShape(5)))
        assert details.choice is not None
        assert details.choice.plan.fit is Fit.NO
        await until(lambda: not details.stream_box.isHidden())
        assert "layers here" in details.forecast_label.text()
        assert "with heads (an estimate)" in details.forecast_label.text()
        streams_and_says_where(details)
        details.stream_box.setChecked(False)
        assert details.choice.plan.fit is Fit.NO
        details.set_budget(TINY)
        await until(lambda: "no room either" in details.forecast_label.text())
        assert details.stream_box.isHidden()
        assert details.bar.layers.isHidden()
        details.set_budget(SMALL)
        await until(lambda: not details.stream_box.isHidden())
        config, lora = shape_config("vicuna-13b"), AdapterShape()
        details.show_subject(Subject("With a LoRA", "", config, HeadsShape(), adapter=lora))
        assert details._question() is not None
        assert details._question().layers_dir is None, "with an adapter all layers must fit"
        await until(lambda: not details.estimate.tasks.is_running)
        assert details.stream_box.isHidden()

    run(work)


def streams_and_says_where(details: Details) -> None:
    details.stream_box.setChecked(True)
    assert details.choice is not None
    placement = details.choice.plan.placement
    assert placement is not None
    assert details.verdict_label.text().startswith("Fits offloaded")
    assert not details.bar.layers.isHidden()
    num_far = len(placement.layers(Tier.DISK))
    assert f"{num_far} on the disk" in details.bar.layers.words
    assert details.bar.layers.accessibleDescription() == details.bar.layers.words


def test_an_offloaded_model_is_loaded_directly_or_after_a_question(
    run: Run,
    dialog: LibraryDialog,
    library: Library,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_tiny(tmp_path / "model", replace(SPEC, num_layers=12))
    loaded: list[ModelChoice] = []
    requested: list[str] = []
    dialog.load_requested.connect(loaded.append)
    monkeypatch.setattr(QMessageBox, "exec", lambda box: requested.append(box.text()))
    library.layers_dir = tmp_path / "layers"
    library.add_folder(str(tmp_path / "model"))
    tab = dialog.installed
    tab.details.layers_dir = library.layers_dir

    async def work() -> None:
        await tab.refresh()
        tab.set_budget(Budget("RAM", Hardware("cpu"), 8 * MIB, 0, 0, is_live=True))
        tab.table.selectRow(0)
        details = tab.details
        details.quant_box.setCurrentIndex(details.quant_box.findData("fp32"))
        details.context_box.setCurrentIndex(0)
        details.cache_box.setCurrentIndex(1)  # in 8 bits the cache would have room
        await until(lambda: not details.stream_box.isHidden())
        details.stream_box.setChecked(False)
        details.action_button.click()
        assert len(requested) == 1
        details.stream_box.setChecked(True)
        details.action_button.click()
        assert len(requested) == 1, "it has room so"
        await wait_for_tasks(dialog)

    run(work)
    (choice,) = loaded
    assert choice.options.tier_disk == tmp_path / "layers"
    assert choice.options.formats.linears == "fp32"


def test_the_card_of_a_load_that_failed_offers_to_offload_it(
    run: Run,
    open_ready: Open,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("medusa_core.loading.offers.smaller_loads", lambda *_: ())
    monkeypatch.setattr(
        "medusa_core.loading.offload_forecast.offloaded_load", lambda *_: offloaded()
    )
    window, engine = open_ready()
    failed = Failed("model", "r", "PlanError", "Too large.", "Take less.")
    shown: list[ErrorCard] = []
    window.chat.errors.failure_shown.connect(lambda card, _: shown.append(card))

    async def work() -> None:
        window.chat.errors.show_failure(failed, ErrorTopic.MODEL)
        await until(offered)

    def offered() -> list[QPushButton]:
        buttons = shown[0].findChildren(QPushButton) if shown else []
        return [button for button in buttons if button.text().startswith("Offload it")]

    run(work)
    (button,) = offered()
    assert button.text() == "Offload it: 27 of 40 layers here, about 11 tokens/s"
    button.click()
    qtbot.waitUntil(lambda: len(engine.of_kind(LoadModel)) == 2)
    assert engine.of_kind(LoadModel)[-1].options.tier_disk == places().layers
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)


def test_an_offer_that_fails_unexpectedly_is_reported(
    open_ready: Open, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("odd")

    monkeypatch.setattr("medusa_core.loading.offers.smaller_loads", fail)
    uncaught: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, _error, _trace: uncaught.append(kind))
    window, _ = open_ready()

    async def work() -> None:
        failed = Failed("model", "r", "PlanError", "Too large.", "Take less.")
        window.chat.errors.show_failure(failed, ErrorTopic.MODEL)
        await until(lambda: uncaught == [KeyError])

    run(work)


def test_the_header_says_where_layers_are() -> None:
    example = next(one for one in EXAMPLES if isinstance(one, ModelLoaded))

    def output(**changes: object) -> str:
        return describe(ModelStatus(Phase.READY, loaded=replace(example, **changes)))

    assert output(plan=plan_of(LAYERS)).endswith("27 of 40 layers here")
    machines = (Machine("one", 20), Machine("two", 20))
    assert output(machines=machines).endswith("layers on 2 machines")
    assert "layers" not in output(plan=plan_of(None))
