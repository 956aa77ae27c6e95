"""Which of several questions about a model's speed is answered."""

import asyncio
import threading
from dataclasses import replace

import pytest

from app.models import load_estimate
from app.models.load_estimate import LoadEstimate, LoadEstimateQuery, OutlookResult
from medusa_core.bench.random_target import shape_config
from medusa_core.loading.memory.estimate import Forecast
from medusa_core.loading.memory.probe import live_budget
from medusa_core.loading.memory.recommend import plan_choice
from medusa_core.messages import HeadsShape, WeightFormats


def test_the_forecast_of_a_previously_selected_model_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config, budget = shape_config("qwen3-4b"), live_budget("cpu")
    choice = plan_choice(config, HeadsShape(), WeightFormats(), budget, 512)
    first = LoadEstimateQuery(config, HeadsShape(), None, choice, budget, None, "cpu")
    second = replace(first, device="cuda")
    has_begun, may_end = threading.Event(), threading.Event()
    shown: list[tuple[LoadEstimateQuery, OutlookResult]] = []
    refused: list[str] = []

    def answer_to(question: LoadEstimateQuery) -> OutlookResult:
        has_begun.set()
        assert may_end.wait(30)
        return Forecast(1.0 if question is first else 2.0, 1.0, 1)

    async def ask_both() -> None:
        asked = LoadEstimate(
            lambda question, result: shown.append((question, result)), refused.append
        )
        asked.ask(first)
        await asyncio.to_thread(has_begun.wait, 30)
        asked.ask(second)
        may_end.set()
        while not shown and not refused:
            await asyncio.sleep(0.001)

    monkeypatch.setattr(load_estimate, "answer_to", answer_to)
    asyncio.run(ask_both())
    assert shown == [(second, Forecast(2.0, 1.0, 1))]
    assert not refused
