"""Models that requests can name, and the loaded one."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple, Protocol

from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import EngineLost, Event, LoadModel, ModelLoaded, Unloaded
from medusa_core.server.api_error import ApiError, api_error_of

_LIST_S = 10.0  # the list of installed models is cached so long
_MOST_SHOWN = 100  # characters of an unknown name in an error
_OWNER_S = 120.0  # timeout for a window to load its model


class ServedModel(NamedTuple):
    """A model that requests can name.

    Attributes:
        model_id: Name in requests.
        path: Folder or GGUF file; None if unknown.
        created: Time of installation, as Unix time in seconds.
    """

    model_id: str
    path: Path | None = None
    created: int = 0


class ModelSource(Protocol):
    """Models that a server can load."""

    def models(self) -> tuple[ServedModel, ...]:
        """List the models, the one to load first at the head; may read the disk.

        Raises:
            MedusaError: The models can't be listed.
        """

    def load_command(self, model: ServedModel) -> LoadModel | None:
        """Return the command that loads a model; may read the disk.

        None if the owner of the engine has begun to load it; the server then waits.

        Raises:
            MedusaError: The model can't be loaded.
        """


class ServedModels:
    """Tracks the loaded model, and loads others.

    Attributes:
        loaded: The loaded model; None for none.
        facts: Event of the loaded model: context, drafters, rules, chat template.
        is_lost: Whether the engine has died.
    """

    def __init__(self, client: Client, source: ModelSource, is_strict: bool = False) -> None:
        """Track an engine's model.

        Args:
            client: Client of the engine.
            source: Models that can be loaded.
            is_strict: Refuse requests for unknown models instead of answering them with the loaded
                one.
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
        self._stop_listening = client.listen(self._receive)

    @property
    def loaded_id(self) -> str:
        """Id of the loaded model; empty for none."""
        return "" if self.loaded is None else self.loaded.model_id

    def close(self) -> None:
        """Stop listening to the engine."""
        self._stop_listening()

    async def all(self) -> tuple[ServedModel, ...]:
        """List the models that requests can name, the loaded one included.

        Raises:
            ApiError: The models can't be listed.
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
        """Return the model for a request: the named one, or the loaded one for unknown names.

        Many clients send a fixed name such as `gpt-4o`.

        Raises:
            ApiError: The name is unknown, and the server is strict or has no model loaded.
        """
        try:
            return await self.find(name)
        except ApiError:
            if self._is_strict or self.loaded is None:
                raise
            return self.loaded

    async def find(self, name: str) -> ServedModel:
        """Return the model of this name; for an empty name the loaded one, or the first.

        Raises:
            ApiError: There is no such model.
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
        """Load a model in place of the loaded one.

        Raises:
            MedusaError: The model can't be loaded.
            ApiError: The owner of the engine didn't load it in time.
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
            self._client.calibrate_when_idle()
        finally:
            self._loading = None

    async def _wait_for_owner(self) -> None:
        """Wait until the owner of the engine has loaded the model.

        Raises:
            ApiError: The timeout passed.
        """
        try:
            await asyncio.wait_for(self._has_loaded.wait(), _OWNER_S)
        except TimeoutError as error:
            raise ApiError(503, "The model could not be loaded.", code="no_model") from error

    def _receive(self, event: Event) -> None:
        """Track models that this server or the owner of the engine loads."""
        if isinstance(event, Unloaded) or (isinstance(event, ModelLoaded) and event.is_remote):
            # A remote model is used with the user's own key, so programs don't get it.
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


def _not_found(name: str, names: tuple[str, ...]) -> ApiError:
    """Make the error for an unknown model, which lists the known ones."""
    if not name:
        return ApiError(503, "No model is loaded.", code="no_model")
    there = f"There are: {', '.join(names)}." if names else "No model is loaded."
    shown = name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}…"
    return ApiError(404, f"There is no model {shown!r} here. {there}", "model", "model_not_found")
