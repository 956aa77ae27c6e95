"""Estimates of a model's speed on this computer, whole or offloaded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import QObject

from app.i18n.engine_texts import error_text
from app.models.plan_words import estimate_failed_words
from app.state.tasks import Tasks
from medusa_core.api import (
    Budget,
    CpuPlan,
    Forecast,
    ModelConfig,
    OffloadPlan,
    Recommendation,
    device_with,
    forecast,
    measure_read_rate,
    plan_cpu,
    plan_offload,
    rate_limiting_format,
)
from medusa_core.errors import MedusaError
from medusa_core.messages import Fit, HeadsShape, LoadOptions

log = logging.getLogger(__name__)


class HostPlaces(NamedTuple):
    """Where parts of a model on a card are; see `LoadOptions`.

    Attributes:
        experts: `auto`, `ram` or `card`.
        cpu_layers: Layers of which the processor computes a part; None for those without room.
    """

    experts: str = "auto"
    cpu_layers: int | None = None

    def apply_to(self, options: LoadOptions) -> LoadOptions:
        """Return load options with these places."""
        return replace(options, experts=self.experts, cpu_layers=self.cpu_layers)


@dataclass(frozen=True, slots=True)
class LoadEstimateQuery:
    """Query for the estimate of a model with load options.

    Attributes:
        config: Configuration of the model.
        heads: Sizes of its heads.
        draft_model: Sizes of a smaller model that drafts for it; None for none.
        choice: Weight format and context.
        budget: Memory of the device.
        layers_dir: Folder for offloaded layers; None if layers can't be offloaded.
        device: Device by torch's name; empty to select the best.
        places: Parts that the processor computes beside a card; None for none.
    """

    config: ModelConfig
    heads: HeadsShape
    draft_model: ModelConfig | None
    choice: Recommendation
    budget: Budget
    layers_dir: Path | None
    device: str
    places: HostPlaces | None = None


OutlookResult = Forecast | OffloadPlan | CpuPlan | None


class LoadEstimate:
    """Answers the latest query in a thread; unknown rates of device and disk are measured once.

    Args:
        on_result: Called with the answer: a forecast if the model fits, an offloading plan if
            it fits only offloaded, None if it doesn't fit.
        refuse: Called with the error if there is no answer.
        owner: Shows the answer; once it is deleted, nothing is called.
    """

    def __init__(
        self,
        on_result: Callable[[LoadEstimateQuery, OutlookResult], None],
        refuse: Callable[[str], None],
        owner: QObject | None = None,
    ) -> None:
        self._on_result = on_result
        self._refuse = refuse
        self._query: LoadEstimateQuery | None = None
        self.tasks = Tasks(owner)

    def ask(self, query: LoadEstimateQuery | None) -> None:
        """Replace the query; None cancels it."""
        self._query = query
        if query is not None and not self.tasks.is_running:
            self.tasks.start(self._answer())

    async def _answer(self) -> None:
        """Answer the latest query once an answer is available."""
        while (query := self._query) is not None:
            try:
                answer = await asyncio.to_thread(answer_to, query)
                if query is self._query:
                    self._on_result(query, answer)
                    return
            except MedusaError as error:
                text = error_text(error)
            except Exception as error:
                log.exception("the estimate failed unexpectedly")
                text = estimate_failed_words(error)
            else:
                continue
            if query is self._query:
                self._refuse(text)
                return


def answer_to(query: LoadEstimateQuery) -> OutlookResult:
    """Answer a query; blocks while device and disk are measured.

    Raises:
        RequestError: The formats can't be combined.
        PlanError: The processor's parts don't fit in memory.
        TierError: The disk can't be measured.
    """
    config, heads, choice = query.config, query.heads, query.choice
    budget, context = query.budget, choice.context_tokens
    if query.places is not None:
        options = LoadOptions(
            device=query.device,
            tier_disk=query.layers_dir,
            # A shorter context is planned only where the user has none to choose.
            context_tokens=context if choice.plan.max_context else 0,
        )
        options = query.places.apply_to(options)
        device = device_with(budget, options)
        found = plan_cpu(config, heads, choice, device, options, query.draft_model)
        if found is not None:
            return found
    if choice.plan.fit is not Fit.NO:
        rate = measure_read_rate(
            budget.hardware.device, rate_limiting_format(choice.formats, config, budget)
        )
        return forecast(config, heads, choice.formats, budget, rate)
    if query.layers_dir is None:
        return None
    options = LoadOptions(device=query.device).with_layers_in(query.layers_dir)
    device = device_with(budget, options)
    may_shorten = not choice.plan.max_context  # else the user may choose to
    return plan_offload(config, heads, choice, device, query.draft_model, may_shorten=may_shorten)
