"""What the processor computes beside a card: offered, estimated, and loaded so."""

import asyncio
from dataclasses import replace

import pytest

from app.models import details as details_module
from app.models.details import Details
from app.models.library_dialog import LibraryDialog
from app.models.load_estimate import HostPlaces
from app.models.subject import Subject
from app.widgets.offload_words import cpu_words
from medusa_core.api import AdapterShape
from medusa_core.bench.random_target import shape_config
from medusa_core.loading import cpu_parts
from medusa_core.loading.memory import probe
from medusa_core.loading.memory.budget import GIB, cuda_budget
from medusa_core.loading.memory.estimate import ReadRate
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.messages import CpuParts, Fit, HeadsShape, LoadOptions, WeightFormats
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import until

CARD = replace(cuda_budget(8), is_live=True)


@pytest.fixture(autouse=True)
def _measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace measurements."""
    cpu, card = (ReadRate(((1, rate), (16, rate / 4))) for rate in (20e9, 300e9))
    monkeypatch.setattr(cpu_parts, "_measure", lambda *_: cpu_parts._Rates(cpu, card, 1e-5))
    monkeypatch.setattr(probe, "offload_room", lambda _: OffloadRoom(32 * GIB))


def words_of(details: Details) -> list[str]:
    return [details.place_box.itemText(index) for index in range(details.place_box.count())]


def test_a_model_larger_than_a_card_is_shared_with_the_processor(
    run: Run, dialog: LibraryDialog
) -> None:
    details = dialog.discover.details

    async def work() -> None:
        details.set_budget(CARD)
        details.show_subject(Subject("30B", "", shape_config("qwen3-30b-a3b"), HeadsShape()))
        assert "all experts" in words_of(details)
        assert details.places == HostPlaces()
        await until(lambda: "processor: experts of" in details.forecast_label.text())
        assert "The card has no room for it." in details.forecast_label.text()
        assert "tokens/s" in details.forecast_label.text()
        found = details.choice
        assert found is not None
        assert found.plan.fit is not Fit.NO
        details.place_box.setCurrentIndex(words_of(details).index("all experts"))
        await until(lambda: "You have chosen this." in details.forecast_label.text())
        assert details.choice is not None
        assert details.choice.plan.cpu_parts is not None
        assert len(details.choice.plan.cpu_parts.layers) == 48
        assert details.places.apply_to(LoadOptions()) == LoadOptions(experts="ram")
        details.place_box.setCurrentIndex(words_of(details).index("nothing"))
        await asyncio.sleep(0)
        assert details.choice.plan.fit is Fit.NO

    run(work)


def test_the_type_of_the_cache_is_chosen_and_an_automatic_one_is_named(
    run: Run, dialog: LibraryDialog
) -> None:
    details = dialog.discover.details
    subject = Subject("8B", "", shape_config("llama-3.1-8b"), HeadsShape())

    async def work() -> None:
        details.set_budget(CARD)
        details.show_subject(subject)
        found = {}
        for cache in ("", details_module._UNQUANTIZED, "q8_0"):
            details.choose(WeightFormats("nf4-dq", cache=cache), 8192)
            assert details.choice is not None
            found[cache] = details.choice
            words = details.verdict_label.text()
            assert ("KV cache in 8 bits" in words) == details.choice.plan.shrinks_cache
        automatic, plain, small = found.values()
        assert [one.plan.cache_type for one in found.values()] == ["q8_0", "bf16", "q8_0"]
        assert automatic.plan.shrinks_cache
        assert [one.formats.cache for one in found.values()] == ["", "bf16", "q8_0"]
        assert automatic.plan.kv_bytes == small.plan.kv_bytes < 0.6 * plain.plan.kv_bytes
        details.choose(plain.formats, 8192)  # as it was stored
        assert details.cache_box.currentData() == details_module._UNQUANTIZED

    run(work)


def test_a_drafter_that_displaces_layers_is_named(run: Run, dialog: LibraryDialog) -> None:
    details, heads = dialog.discover.details, HeadsShape(5, 1, 32000)

    async def work() -> None:
        details.set_budget(CARD)
        details.show_subject(Subject("13B", "", shape_config("vicuna-13b"), heads))
        await until(lambda: "make room for the drafter" in details.forecast_label.text())
        assert "· no drafter: " in details.forecast_label.text()
        assert "all experts" not in words_of(details)

    run(work)


def test_the_processors_part_is_offered_if_it_can_compute_beside_a_card(
    run: Run, dialog: LibraryDialog
) -> None:
    details, plain = (
        dialog.discover.details,
        Subject("7B", "", shape_config("vicuna-7b"), HeadsShape()),
    )
    processor = replace(CARD, hardware=replace(CARD.hardware, device="cpu"))

    async def work() -> None:
        for subject, budget, is_offered in (
            (plain, CARD, True),
            (replace(plain, adapter=AdapterShape()), CARD, False),
            (plain, processor, False),
        ):
            details.set_budget(budget)
            details.show_subject(subject)
            assert details._form.isRowVisible(details.place_box) == is_offered

    run(work)


def test_the_header_says_what_the_processor_computes() -> None:
    parts = CpuParts((0, 1, 2), 3, 8, GIB)
    assert cpu_words(parts) == "processor: experts of 3 of 8 layers"
    assert cpu_words(replace(parts, num_experts=0)) == "processor: MLPs of 3 of 8 layers"
    assert cpu_words(replace(parts, num_experts=1)) == "processor: parts of 3 of 8 layers"
    drafted = replace(parts, drafter_layers=2)
    assert cpu_words(drafted) == "processor: experts of 3 of 8 layers, 2 of them for the drafter"
