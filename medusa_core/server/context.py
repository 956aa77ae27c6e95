"""What the routes of the server work with."""

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
from medusa_core.server.answer_form import check_text_length, read_turns, tool_call_format
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answering import Answering
from medusa_core.server.api_error import api_error_of, bad_request
from medusa_core.server.chat import AnswerEnd, AnswerPart, ChatRequest
from medusa_core.server.guard import cache_salt
from medusa_core.server.limits import Limits
from medusa_core.server.metrics import Metrics
from medusa_core.server.request_log import tally_of
from medusa_core.server.served_models import ServedModels

_SESSION = "server"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The parts of a server.

    Attributes:
        client: The engine.
        models: Its models.
        queue: Who waits.
        answering: Answers requests.
        limits: What a request may cost.
        metrics: Counts what was done.
    """

    client: Client
    models: ServedModels
    queue: AnswerQueue
    answering: Answering
    limits: Limits
    metrics: Metrics

    async def answer(self, http: Request, request: ChatRequest) -> AsyncGenerator[AnswerPart, None]:
        """Answer a request, and count its tokens for the log; see `Answering.answer`.

        Args:
            http: How it came here.
            request: What is asked.

        Yields:
            As `Answering.answer`.

        Raises:
            ApiError: It can't be answered.
        """
        tally = tally_of(http)
        tally.warning = request.warning
        async with aclosing(self.answering.answer(request, cache_salt(http.headers))) as parts:
            async for part in parts:
                if isinstance(part, AnswerEnd):
                    model = self.models.loaded
                    tally.model = "" if model is None else model.model_id
                    tally.add(part)
                    self.metrics.add(part)
                yield part

    async def tokenize(
        self, model: str, text: str, *, opens_prompt: bool, is_literal: bool = False
    ) -> Tokenized:
        """Which tokens are a text?

        Args:
            model: Id of the model; empty for the loaded one.
            text: The text.
            opens_prompt: Begin as the model's prompts do.
            is_literal: Names of special tokens in the text are mere text.

        Raises:
            ApiError: The model can't be asked, or the text is too long.
        """
        if len(text) > self.limits.text_chars:
            raise bad_request(f"The text is longer than {self.limits.text_chars:,} characters.")
        command = Tokenize(
            _SESSION, new_id(), text, opens_prompt=opens_prompt, is_literal=is_literal
        )
        return await self._with_model(model, self.client.tokenize(command))

    async def detokenize(self, model: str, token_ids: tuple[int, ...]) -> str:
        """Which text are tokens?

        Args:
            model: Id of the model; empty for the loaded one.
            token_ids: The tokens.

        Raises:
            ApiError: The model can't be asked, or a token is none of its own.
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
        """A conversation as the model reads it: its rendered prompt, and how many tokens that is.

        Args:
            model: Id of the model; empty for the loaded one.
            messages: The turns.
            settings: As for an answer.
            tools: Functions that may be called.

        Raises:
            ApiError: The model can't be asked.
        """
        return await self._with_model(model, self._count(messages, settings, tools))

    async def input_tokens(self, request: ChatRequest) -> int:
        """How many tokens the model reads of a request.

        Args:
            request: What is asked.

        Raises:
            ApiError: The model can't be asked, or can't read that.
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
        """As `count`, once the model is loaded."""
        facts = self.models.facts
        messages, tools = read_turns(messages, tools, tool_call_format(facts))
        if facts is not None:
            check_text_length(messages, tools, facts, self.limits)
        command = Count(_SESSION, new_id(), messages, settings, wants_prompt=True, tools=tools)
        return await self.client.count(command)

    async def _with_model(self, model: str, question: Coroutine[Any, Any, _T]) -> _T:
        """The answer to a question that needs no turn where the model is loaded."""
        try:
            found = await self.models.find_to_answer(model)
            if found == self.models.loaded:
                return await question
            async with self.queue.turn(found):
                return await question
        except MedusaError as error:
            raise api_error_of(error) from error
        finally:
            question.close()
