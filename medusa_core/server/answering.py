"""Answers requests by the engine, whichever API they came by."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from medusa_core.chats.conversation import new_id
from medusa_core.client import Client
from medusa_core.errors import MedusaError
from medusa_core.messages import (
    Advice,
    ChatMessage,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    ModelLoaded,
    Role,
    StepDone,
    StepLogprobs,
    StopReason,
)
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answer_reader import AnswerReader
from medusa_core.server.api_error import ApiError, api_error_of
from medusa_core.server.chat import AnswerEnd, AnswerPart, ChatRequest, TextDelta
from medusa_core.server.served_models import ServedModels
from medusa_core.server.session_pool import Lease, SessionHistory, SessionPool

_USUAL = Advice(temperature=0.7, top_p=0.95)  # as the window draws where makers advise nothing


class Answering:
    """Runs requests on one engine: they wait for their turn, and share its passes."""

    def __init__(
        self, client: Client, models: ServedModels, queue: AnswerQueue, sessions: SessionPool
    ) -> None:
        """Answer requests.

        Args:
            client: The engine.
            models: Its models.
            queue: Says whose turn it is.
            sessions: Conversations that the engine has read.
        """
        self._client, self._models = client, models
        self._queue, self._sessions = queue, sessions

    async def answer(self, request: ChatRequest) -> AsyncGenerator[AnswerPart, None]:
        """Answer a request.

        Args:
            request: What is asked.

        Yields:
            Text as it comes, calls of functions, and at last one `AnswerEnd`. Leaving earlier
            frees the answer's rows within a step; use `aclosing`.

        Raises:
            ApiError: It can't be answered.
        """
        if self._models.is_lost:
            raise ApiError(
                503, "The engine can't answer any more. Start the server again.", code="engine_lost"
            )
        model = await self._models.find(request.model)
        async with self._queue.turn(model):
            facts = self._models.facts
            if facts is None:
                raise ApiError(503, "No model is loaded.", code="no_model")
            with self._sessions.lease(request.messages, request.prompt_ids) as lease:
                async with aclosing(self._run(request, facts, lease)) as parts:
                    async for part in parts:
                        yield part

    async def _run(
        self, request: ChatRequest, facts: ModelLoaded, lease: Lease
    ) -> AsyncGenerator[AnswerPart, None]:
        """The parts of an answer that has its turn and its session."""
        settings = decoding_settings(request, facts)
        begins_inside = not request.prompt_ids and facts.thinking.opens(settings.thinks)
        is_scored = request.num_logprobs >= 0
        reader = AnswerReader(begins_inside, facts.end_ids, settings.stop, is_scored)
        said = ""
        try:
            async with aclosing(
                self._client.generate(_command(request, settings, lease))
            ) as events:
                async for event in events:
                    for part in _read(reader, event):
                        if isinstance(part, AnswerEnd):
                            lease.conclude(_history(request, lease, part.done, said))
                        elif not part.is_thought:
                            said += part.text
                        yield part
        except MedusaError as error:
            raise api_error_of(error) from error


def decoding_settings(request: ChatRequest, facts: ModelLoaded) -> GenerateSettings:
    """How an answer is decoded by a model: what the request leaves open is as its makers advise.

    Raises:
        ApiError: The model has no such drafter or rule.
    """
    settings = request.settings
    _check_choice("drafter", settings.drafter, [one.name for one in facts.drafters])
    _check_choice("rule", settings.rule, [one.name for one in facts.rules])
    advice = facts.advice or _USUAL
    advised = {
        name: value for name, value in advice._asdict().items() if name in request.open_settings
    }
    settings = replace(settings, **advised)
    if "rule" in request.open_settings:
        settings = replace(settings, rule="sample" if settings.temperature else "greedy")
    return settings


def _check_choice(noun: str, name: str, known: list[str]) -> None:
    if name and name not in known:
        raise ApiError(
            400,
            f"There is no {noun} {name!r} here. There are: {', '.join(known)}.",
            f"medusa.{noun}",
        )


def _command(request: ChatRequest, settings: GenerateSettings, lease: Lease) -> Generate:
    return Generate(
        lease.session_id,
        new_id(),
        lease.messages,
        settings,
        tools=request.tools,
        prompt_ids=request.prompt_ids,
        num_logprobs=request.num_logprobs,
    )


def _read(reader: AnswerReader, event: Event) -> Iterator[TextDelta | AnswerEnd]:
    """What an event of an answer brings those who wait for it.

    Raises:
        ApiError: Somebody stopped the answer.
    """
    if isinstance(event, StepDone):
        yield from reader.step(event)
    elif isinstance(event, StepLogprobs):
        yield from reader.logprobs(event)
    elif isinstance(event, GenerationDone):
        if event.stop_reason is StopReason.CANCELLED:
            raise ApiError(503, "The answer was stopped here. Try again.", code="stopped")
        yield from reader.finish(event)


def _history(request: ChatRequest, lease: Lease, done: GenerationDone, said: str) -> SessionHistory:
    """What the session has read and written, as a later request will send it."""
    if request.prompt_ids:
        return (*request.prompt_ids, *done.token_ids)
    messages, given = lease.messages, ""
    if messages[-1].role is Role.ASSISTANT:
        given, messages = messages[-1].content, messages[:-1]
    text = given + said
    token_ids = done.token_ids if text == done.text else ()
    return (*messages, ChatMessage(Role.ASSISTANT, text, token_ids))
