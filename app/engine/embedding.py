"""The user's embedding model, which the engine computes; called in background threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from typing import TYPE_CHECKING

from app.engine.bridge import EngineBridge
from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.chats.conversation import new_id
from medusa_core.errors import Cancelled, EngineError, ModelError
from medusa_core.messages import Embed, Embedded, Event, Failed, Purpose

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SESSION = "documents"
_LOOK_S = 0.1
_TOO_LONG = QT_TRANSLATE_NOOP("Engine", "The embedding model takes too long.")
_STOPPED = QT_TRANSLATE_NOOP("Engine", "The engine has stopped.")


class EngineEmbedding:
    """An embedding model as documents use it; create it in the window's thread.

    Attributes:
        name: Name that identifies the model.
    """

    def __init__(
        self,
        bridge: EngineBridge,
        model_dir: Path,
        is_stopped: Callable[[], bool],
        most_query_s: float = 30.0,
    ) -> None:
        """Use a model, which the engine loads when it is needed.

        Args:
            bridge: Sends texts to the engine.
            model_dir: Folder or GGUF file of the model.
            is_stopped: Asked while the engine computes.
            most_query_s: Timeout of a query, which a prompt waits for.
        """
        self._bridge, self._model_dir = bridge, model_dir
        self._is_stopped, self._most_query_s = is_stopped, most_query_s
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        return self._model_dir.name

    def __call__(self, texts: Sequence[str], is_query: bool, /) -> NDArray[np.float32]:
        """Embed texts, in a thread that isn't the window's.

        Returns:
            Vectors of length 1. [n, dimensions]

        Raises:
            MedusaError: The model can't be loaded, fails, or takes too long; or it was stopped.
        """
        import numpy as np

        future = asyncio.run_coroutine_threadsafe(self._embed(texts, is_query), self._loop)
        end_s = time.monotonic() + self._most_query_s
        while True:
            try:
                embedded = future.result(_LOOK_S)
            except FutureTimeoutError:
                is_late = is_query and time.monotonic() > end_s
                if not self._is_stopped() and not is_late:
                    continue
                future.cancel()
                if is_late:
                    raise ModelError(_TOO_LONG) from None
                raise Cancelled("Embedding was stopped.") from None
            return np.frombuffer(embedded.vectors, np.float32).reshape(-1, embedded.width)

    async def _embed(self, texts: Sequence[str], is_query: bool) -> Embedded:
        """Send texts to the engine and wait for their vectors."""
        ended: asyncio.Future[Embedded] = self._loop.create_future()

        def take(events: tuple[Event, ...]) -> None:
            if ended.done():
                return
            match events[-1]:
                case Embedded() as embedded:
                    ended.set_result(embedded)
                case Failed() as failed:
                    ended.set_exception(ModelError(failed.message, failed.hint))

        purpose = Purpose.QUERY if is_query else Purpose.DOCUMENT
        ids = (_SESSION, new_id())
        command = Embed(*ids, self._model_dir, tuple(texts), purpose=purpose, truncates=True)
        request = self._bridge.ask(command, take)
        if request.is_done:
            raise EngineError(_STOPPED)
        try:
            return await ended
        finally:
            request.drop()
