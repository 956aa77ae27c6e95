"""What can be done about a failure, as buttons on its card."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.chat.error_card import ErrorCard
from app.widgets.numbers import Number
from app.widgets.sizes import speed
from app.widgets.stream_words import here_words
from medusa_core.errors import MedusaError
from medusa_core.messages import EngineLost, Failed, cluster_of

if TYPE_CHECKING:
    from app.window.main_window import MainWindow
    from medusa_core.api import LoadOffer, Streamed
    from medusa_core.loading.choice import ModelChoice

log = logging.getLogger(__name__)

_LACKS_MEMORY = ("OutOfMemoryError", "PlanError")


class Remedies(QObject):
    """Puts buttons on the cards of failures that something can be done about."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._work: set[asyncio.Task[None]] = set()
        window.chat.errors.failure_shown.connect(self.offer)

    def offer(self, card: ErrorCard, failed: Failed) -> None:
        """Put on a card what helps against its failure."""
        if isinstance(failed, EngineLost):
            card.add_action(self.tr("Save and restart"), self._window.desk.restart)
        elif failed.kind in _LACKS_MEMORY:
            task = asyncio.ensure_future(self._offer_smaller(card))
            self._work.add(task)
            task.add_done_callback(self._work.discard)

    async def _offer_smaller(self, card: ErrorCard) -> None:
        from medusa_core.api import smaller_loads, streamed_load

        keeper = self._window.keeper
        loaded = keeper.status.loaded
        plan = None if loaded is None else loaded.plan
        own = 0 if plan is None else plan.weights_bytes + plan.heads_bytes + plan.kv_bytes
        context = 0 if loaded is None else loaded.context_tokens
        device = self._window.settings.values.device
        if cluster_of(device):
            return
        choice, layers_dir = keeper.choice, self._window.desk.layers_dir
        try:
            for offer in await asyncio.to_thread(smaller_loads, choice, context, device, own):
                self._add(card, offer)
            streamed = await asyncio.to_thread(streamed_load, choice, layers_dir, device, own)
        except MedusaError as error:
            log.info("nothing else can be offered: %s", error.message)
            return
        if streamed is not None:
            self._add_streamed(card, choice.with_layers_in(layers_dir), streamed)

    def _add_streamed(self, card: ErrorCard, choice: ModelChoice, streamed: Streamed) -> None:
        words = self.tr("Stream it: {0}, about {1} tokens/s").format(
            here_words(streamed.placement), speed(streamed.tokens_per_s)
        )
        card.add_action(words, lambda: self._window.keeper.load(choice))

    def _add(self, card: ErrorCard, offer: LoadOffer) -> None:
        context = f"{Number(offer.context_tokens):,}"
        words = (
            self.tr("Load with {0}").format(offer.format_label)
            if offer.format_label
            else self.tr("Load with a context of {0} tokens").format(context)
        )
        card.add_action(words, lambda: self._window.keeper.load(offer.choice))
