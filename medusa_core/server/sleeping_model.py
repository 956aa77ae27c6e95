"""The model of a window, as programs may use it."""

from __future__ import annotations

from collections.abc import Callable

from medusa_core.messages import LoadModel
from medusa_core.server.served_models import ServedModel
from medusa_core.server.shared_engine import SharedEngine


class SleepingModel:
    """Offers the model that the window had loaded, while it sleeps.

    Programs choose among what is loaded here: another model would change the user's conversation.
    """

    def __init__(self, shared: SharedEngine, wake: Callable[[], None]) -> None:
        """Offer it.

        Args:
            shared: The engine.
            wake: Asks the window to load it again; called in any thread.
        """
        self._shared, self._wake = shared, wake

    def models(self) -> tuple[ServedModel, ...]:
        last = self._shared.last_loaded
        if last is None or last.is_remote or self._shared.loaded is not None:
            return ()
        return (ServedModel(last.name),)

    def load_command(self, model: ServedModel) -> LoadModel | None:
        self._wake()
        return None
