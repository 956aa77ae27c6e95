"""Cached rows below a card: in the computer's memory, and on a disk below that."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from medusa_core.engine.several import answer_all
from medusa_core.loading import load as load_module
from medusa_core.loading.load import load_target
from medusa_core.loading.plan import plan_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    MemoryPlan,
    Tier,
    WeightFormats,
)
from medusa_core.runtime.runner.offload import OffloadRunner
from medusa_core.speculation.tuning.tuner import Tuner
from tests.core.conftest import STREAMED
from tests.core.laws import user_says
from tests.core.tight import with_layers_below
from tests.core.tiny import write_tiny
from tests.imagined_card.card import imagined_card

D, M, K = Tier.DEVICE, Tier.MEMORY, Tier.DISK
PLACES = {
    "memory": (M, M, M, M),
    "disk": (K, K, K, K),
    "both": (M, D, K, M),
}
PROMPTS = [user_says(f"number {n} " * (3 * n + 1)) for n in range(4)]
SETTINGS = GenerateSettings("suffix", "greedy", max_new_tokens=12)


@contextmanager
def rows_in(places: tuple[Tier, ...], attention: Tier) -> Iterator[None]:
    """Let what is loaded have cached rows there."""

    def placed(*args: object, **more: object) -> MemoryPlan:
        plan = plan_target(*args, **more)  # type: ignore[arg-type]
        assert plan.placement is not None
        its = replace(
            plan.placement,
            batch=2,
            cache_tiers=places,
            attention=attention,
            prompt_rows=24,
            tree_rows=12,
        )
        return replace(plan, placement=its)

    with patch.object(load_module, "plan_target", placed):
        yield


def answers(target: Target, settings: GenerateSettings) -> list[tuple[int, ...]]:
    """What it answers to all prompts at once."""
    requests = [Generate(str(n), "", prompt, settings) for n, prompt in enumerate(PROMPTS)]
    found = {}
    for answered in answer_all(target, requests, Tuner(target), len(PROMPTS)):
        assert isinstance(answered.done, GenerationDone), answered.done
        found[int(answered.request.session_id)] = answered.done.token_ids
    return [found[n] for n in range(len(PROMPTS))]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("rows") / "model", STREAMED)


@pytest.mark.parametrize("cache", ["", "q4"])
@pytest.mark.parametrize("attention", [Tier.DEVICE, Tier.MEMORY])
@pytest.mark.parametrize("place", PLACES)
def test_texts_are_those_of_rows_on_the_card(
    place: str, attention: Tier, cache: str, model: Path
) -> None:
    options = LoadOptions("float64", "cuda", WeightFormats(cache=cache), 256, sessions=4)
    with imagined_card() as card:
        options = with_layers_below(model, None, options, 1)
        whole = load_target(model, None, options)
        expected = answers(whole, SETTINGS)
        with rows_in(PLACES[place], attention):
            target = load_target(model, None, options)
        assert isinstance(target.runner, OffloadRunner)
        card.journal.clear()
        assert answers(target, SETTINGS) == expected
        traffic = target.runner.traffic
        assert traffic.rows_written_bytes > 0
        assert (traffic.rows_read_bytes > 0) == (place != "memory" or attention is Tier.DEVICE)
