"""The objects that all routes share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from starlette.requests import Request

from medusa_core.chats.conversation import new_id
from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import (
    ChatMessage,
    Count,
    Counted,
    GenerateSettings,
    Tokenize,
    Tokenized,
)
from medusa_core.models.text.answer_form import prompt_messages, tool_call_format
from medusa_core.server.answer_form import check_text_length
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answering import Answering
from medusa_core.server.api_error import api_error_of, bad_request
from medusa_core.server.chat import AnswerEnd, AnswerPart, ChatRequest
from medusa_core.server.guard import cache_salt
from medusa_core.server.limits import Limits
from medusa_core.server.metrics import Metrics
from medusa_core.server.request_log import tally_of
from medusa_core.server.served_embedding import ServedEmbedding
from medusa_core.server.served_models import ServedModels

_SESSION = "server"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The objects that all routes share.

    Attributes:
        client: Client of the engine.
        models: Models that requests can name.
        queue: Admits answers.
        answering: Runs requests.
        embedding: Embeds texts.
        limits: Limits of the server.
        metrics: Counters of the server.
    """

    client: Client
    models: ServedModels
    queue: AnswerQueue
    answering: Answering
    embedding: ServedEmbedding
    limits: Limits
    metrics: Metrics

    async def answer(self, http: Request, request: ChatRequest) -> AsyncGenerator[AnswerPart, None]:
        """Answer a request, and count its tokens for log and metrics.

        Yields:
            The parts of the answer; see `Answering.answer`.

        Raises:
            ApiError: The request can't be answered.
        """
        tally = tally_of(http)
        tally.warning = request.warning
        async with aclosing(self.answering.answer(request, cache_salt(http.headers))) as parts:
            async for part in parts:
                if isinstance(part, AnswerEnd):
                    tally.model = self.models.loaded_id
                    tally.add(part)
                    self.metrics.add(part)
                yield part

    async def tokenize(
        self, model: str, text: str, *, opens_prompt: bool, is_literal: bool = False
    ) -> Tokenized:
        """Tokenize a text.

        Args:
            model: Id of the model; empty for the loaded one.
            opens_prompt: Whether to add the BOS token, if the model's prompts have one.
            is_literal: Whether names of special tokens in the text are plain text.

        Raises:
            ApiError: The model can't be loaded, or the text is too long.
        """
        if len(text) > self.limits.text_chars:
            raise bad_request(f"The text is longer than {self.limits.text_chars:,} characters.")
        command = Tokenize(
            _SESSION, new_id(), text, opens_prompt=opens_prompt, is_literal=is_literal
        )
        return await self._with_model(model, self.client.tokenize(command))

    async def detokenize(self, model: str, token_ids: tuple[int, ...]) -> str:
        """Return the text of tokens.

        Args:
            model: Id of the model; empty for the loaded one.

        Raises:
            ApiError: The model can't be loaded, or a token isn't in its vocabulary.
        """
        if not token_ids:
            return ""
        command = Tokenize(_SESSION, new_id(), token_ids=token_ids)
        return (await self._with_model(model, self.client.tokenize(command))).text

    async def count(
        self,
        model: str,
        messages: tuple[ChatMessage, ...],
        settings: GenerateSettings,
        tools: tuple[str, ...] = (),
    ) -> Counted:
        """Render a conversation and count its tokens.

        Args:
            model: Id of the model; empty for the loaded one.
            settings: Generation settings.
            tools: Functions that may be called.

        Raises:
            ApiError: The model can't be loaded.
        """
        return await self._with_model(model, self._count(messages, settings, tools))

    async def input_tokens(self, request: ChatRequest) -> int:
        """Count the prompt tokens of a request.

        Raises:
            ApiError: The model can't be loaded, or the conversation can't be rendered.
        """
        counted = await self.count(request.model, request.messages, request.settings, request.tools)
        if counted.lack and not counted.num_tokens:
            raise bad_request(counted.lack, "messages")
        return counted.num_tokens

    async def _count(
        self,
        messages: tuple[ChatMessage, ...],
        settings: GenerateSettings,
        tools: tuple[str, ...],
    ) -> Counted:
        """Count the tokens once the model is loaded."""
        facts = self.models.facts
        messages, tools = prompt_messages(messages, tools, tool_call_format(facts))
        if facts is not None:
            check_text_length(messages, tools, facts, self.limits)
        command = Count(_SESSION, new_id(), messages, settings, wants_prompt=True, tools=tools)
        return await self.client.count(command)

    async def _with_model(self, model: str, query: Coroutine[Any, Any, _T]) -> _T:
        """Await a query of the engine; it waits in the queue only if the model must be loaded."""
        try:
            found = await self.models.find_to_answer(model)
            if found == self.models.loaded:
                return await query
            async with self.queue.turn(found):
                return await query
        except MedusaError as error:
            raise api_error_of(error) from error
        finally:
            query.close()
