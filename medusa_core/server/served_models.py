"""Which models can be asked for, and which one is loaded."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import EngineLost, Event, LoadModel, ModelLoaded, Unloaded
from medusa_core.server.api_error import ApiError, api_error_of

_LIST_S = 10.0  # a list of what is installed is good for so long
_MOST_SHOWN = 100  # characters of a name that is none
_OWNER_S = 120.0  # that a window may take to load its model


class ServedModel(NamedTuple):
    """A model that requests can name.

    Attributes:
        model_id: What they call it.
        path: Its folder or GGUF file; None where it isn't known.
        created: When its files came here, in seconds of the epoch.
    """

    model_id: str
    path: Path | None = None
    created: int = 0


class ModelSource(Protocol):
    """What is installed, and how it is loaded."""

    def models(self) -> tuple[ServedModel, ...]:
        """All that can be loaded, the one that is loaded first at the head; may read the disk.

        Raises:
            MedusaError: That can't be found out.
        """

    def load_command(self, model: ServedModel) -> LoadModel | None:
        """The command that loads one of them; may read the disk.

        None where somebody else has begun to load it: then that is waited for.

        Raises:
            MedusaError: It can't be loaded.
        """


class ServedModels:
    """Knows the loaded model, and loads others.

    Attributes:
        loaded: The one that answers; None while there is none.
        facts: The engine's event about it: context, drafters, rules, chat template.
        is_lost: The engine can't answer any more.
    """

    def __init__(self, client: Client, source: ModelSource, is_strict: bool = False) -> None:
        """Follow an engine.

        Args:
            client: Its door.
            source: What else can be loaded.
            is_strict: Refuse requests for a model that isn't here, instead of answering them by
                the loaded one.
        """
        self._client, self._source = client, source
        self._is_strict = is_strict
        self.facts: ModelLoaded | None = None
        self.loaded: ServedModel | None = None
        self.is_lost = False
        self._loading: tuple[str, ServedModel] | None = None
        self._has_loaded = asyncio.Event()
        self._listed: tuple[ServedModel, ...] = ()
        self._listed_at = -_LIST_S
        self._stop_listening = client.listen(self._hear)

    def close(self) -> None:
        """Follow the engine no longer."""
        self._stop_listening()

    async def all(self) -> tuple[ServedModel, ...]:
        """All that requests can name, the loaded one among them.

        Raises:
            ApiError: That can't be found out.
        """
        if time.monotonic() - self._listed_at >= _LIST_S:
            try:
                self._listed = await asyncio.to_thread(self._source.models)
            except MedusaError as error:
                raise api_error_of(error) from error
            self._listed_at = time.monotonic()
        loaded = () if self.loaded is None or self.loaded in self._listed else (self.loaded,)
        return (*loaded, *self._listed)

    async def find_to_answer(self, name: str) -> ServedModel:
        """Return the model that answers a request: as `find`, else the loaded one.

        Many clients ask for a fixed name such as `gpt-4o` whatever the server has.

        Raises:
            ApiError: There is none of that name, and the server is strict or has no model loaded.
        """
        try:
            return await self.find(name)
        except ApiError:
            if self._is_strict or self.loaded is None:
                raise
            return self.loaded

    async def find(self, name: str) -> ServedModel:
        """The model that a request names; without a name the loaded one, or the first.

        Raises:
            ApiError: There is none of that name, or none at all.
        """
        if self.loaded is not None and name in ("", self.loaded.model_id):
            return self.loaded
        models = await self.all()
        if not name and models:
            return models[0]
        wanted = name.casefold().removesuffix(".gguf")
        found = [one for one in models if one.model_id.casefold() == wanted]
        if not found:
            raise _not_found(name, tuple(one.model_id for one in models))
        return found[0]

    async def load(self, model: ServedModel) -> None:
        """Load a model in place of the one before.

        Raises:
            MedusaError: It can't be loaded.
            ApiError: It is none that can be.
        """
        self._loading = ("", model)
        self._has_loaded.clear()
        try:
            command = await asyncio.to_thread(self._source.load_command, model)
            if command is None:
                await self._wait_for_owner()
                return
            self._loading = (command.request_id, model)
            await self._client.load(command)
            await self._client.calibrate()
        finally:
            self._loading = None

    async def _wait_for_owner(self) -> None:
        """Wait until somebody else has loaded what is wanted.

        Raises:
            ApiError: They don't.
        """
        try:
            await asyncio.wait_for(self._has_loaded.wait(), _OWNER_S)
        except TimeoutError as error:
            raise ApiError(503, "The model could not be loaded.", code="no_model") from error

    def _hear(self, event: Event) -> None:
        """Somebody loaded a model, or freed it; maybe not by this server."""
        if isinstance(event, Unloaded) or (isinstance(event, ModelLoaded) and event.is_remote):
            # Another machine's model is the user's own way there, with the user's key.
            self.loaded = self.facts = None
            self._listed_at = -_LIST_S
        elif isinstance(event, ModelLoaded):
            loading = self._loading
            is_ours = loading is not None and loading[0] in ("", event.request_id)
            before = self.loaded
            if loading is not None and is_ours:
                self.loaded = loading[1]
            elif self.facts is None or self.facts.name != event.name or before is None:
                self.loaded = ServedModel(event.name)
            self.facts = event
            self._has_loaded.set()
        elif isinstance(event, EngineLost):
            self.is_lost = True


def _not_found(name: str, known: tuple[str, ...]) -> ApiError:
    if not name:
        return ApiError(503, "No model is loaded.", code="no_model")
    there = f"There are: {', '.join(known)}." if known else "No model is loaded."
    shown = name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}…"
    return ApiError(404, f"There is no model {shown!r} here. {there}", "model", "model_not_found")
