"""Answers requests by the engine, whichever API they came by."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from medusa_core.chats.conversation import new_id
from medusa_core.client import Client
from medusa_core.errors import GrammarError, MedusaError
from medusa_core.messages import (
    Advice,
    AnswerStarted,
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
    ToolCall,
)
from medusa_core.models.text.tool_calls.events import CallDelta, CallStarted
from medusa_core.models.text.tool_calls.parser import ToolCallParser
from medusa_core.server.answer_form import AnswerForm, answer_form, check_text_length
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answer_reader import AnswerReader
from medusa_core.server.api_error import ApiError, api_error_of, bad_request
from medusa_core.server.chat import (
    AnswerEnd,
    AnswerPart,
    ChatRequest,
)
from medusa_core.server.limits import Limits
from medusa_core.server.served_models import ServedModels
from medusa_core.server.session_pool import Lease, SessionPool

_USUAL = Advice(temperature=0.7, top_p=0.95)  # as the window draws where makers advise nothing


class Answering:
    """Runs requests on one engine: they wait for their turn, and share its passes."""

    def __init__(
        self,
        client: Client,
        models: ServedModels,
        queue: AnswerQueue,
        sessions: SessionPool,
        limits: Limits,
    ) -> None:
        """Answer requests.

        Args:
            client: The engine.
            models: Its models.
            queue: Says whose turn it is.
            sessions: Conversations that the engine has read.
            limits: What a request may cost.
        """
        self._client, self._models = client, models
        self._queue, self._sessions = queue, sessions
        self._limits = limits

    async def answer(
        self, request: ChatRequest, cache_salt: str = ""
    ) -> AsyncGenerator[AnswerPart, None]:
        """Answer a request.

        Args:
            request: What is asked.
            cache_salt: As in `Generate`.

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
        model = await self._models.find_to_answer(request.model)
        async with self._queue.turn(model):
            facts = self._models.facts
            if facts is None:
                raise ApiError(503, "No model is loaded.", code="no_model")
            settings = decoding_settings(request, facts)
            form = answer_form(request, facts, settings)
            check_text_length(form.turns, form.tools, facts, self._limits)
            with self._sessions.lease(form.turns, request.prompt_ids, cache_salt) as lease:
                command = _command(request, settings, form, lease, cache_salt)
                reader = _reader(request, settings, form, facts)
                answer = _Answer(request, form, lease)
                async with aclosing(self._run(command, reader, answer)) as parts:
                    async for part in parts:
                        yield part

    async def _run(
        self, command: Generate, reader: AnswerReader, answer: _Answer
    ) -> AsyncGenerator[AnswerPart, None]:
        """The parts of an answer that has its turn and its session."""
        try:
            async with aclosing(self._client.generate(command)) as events:
                async for event in events:
                    for part in _read(reader, event):
                        answer.add(part)
                        yield part
        except GrammarError as error:
            raise bad_request(str(error), answer.constraint) from error
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


def _command(
    request: ChatRequest,
    settings: GenerateSettings,
    form: AnswerForm,
    lease: Lease,
    cache_salt: str,
) -> Generate:
    return Generate(
        lease.session_id,
        new_id(),
        lease.messages,
        settings,
        tools=form.tools,
        grammar=form.grammar,
        prompt_ids=request.prompt_ids,
        num_logprobs=request.num_logprobs,
        cache_salt=cache_salt,
    )


def _reader(
    request: ChatRequest, settings: GenerateSettings, form: AnswerForm, facts: ModelLoaded
) -> AnswerReader:
    tools = map(json.loads, request.tools)
    calls = None if form.tool_format is None else ToolCallParser(form.tool_format, tools)
    is_scored = request.num_logprobs >= 0
    return AnswerReader(
        facts.reasoning,
        facts.end_ids,
        settings.stop,
        is_scored,
        calls,
        form.marks,
    )


def _read(reader: AnswerReader, event: Event) -> Iterator[AnswerPart]:
    """What an event of an answer brings those who wait for it.

    Raises:
        ApiError: Somebody stopped the answer.
    """
    if isinstance(event, AnswerStarted):
        reader.begin(event.begins_inside)
    elif isinstance(event, StepDone):
        yield from reader.step(event)
    elif isinstance(event, StepLogprobs):
        yield from reader.logprobs(event)
    elif isinstance(event, GenerationDone):
        if event.stop_reason is StopReason.CANCELLED:
            raise ApiError(503, "The answer was stopped here. Try again.", code="stopped")
        yield from reader.finish(event)


class _Answer:
    """What an answer says, for the session that has written it."""

    def __init__(self, request: ChatRequest, form: AnswerForm, lease: Lease) -> None:
        self._request, self._form, self._lease = request, form, lease
        self.constraint = form.constraint
        self._text = ""
        self._has_thoughts = False
        self._calls: list[ToolCall] = []

    def add(self, part: AnswerPart) -> None:
        """Take a part; with the last one the session remembers the answer."""
        if isinstance(part, CallStarted):
            self._calls.append(ToolCall(part.call_id, part.name, ""))
        elif isinstance(part, CallDelta):
            call = self._calls[part.place]
            self._calls[part.place] = call._replace(arguments=call.arguments + part.text)
        elif isinstance(part, AnswerEnd):
            self._conclude(part.done)
        elif part.is_thought:
            self._has_thoughts = True
        else:
            self._text += part.text

    def _conclude(self, done: GenerationDone) -> None:
        """Remember what the session has read and written, as a later request will send it."""
        request, lease = self._request, self._lease
        if request.prompt_ids:
            lease.conclude((*request.prompt_ids, *done.token_ids))
            return
        turns, given = lease.turns, ""
        if turns[-1].role is Role.ASSISTANT:
            given, turns = turns[-1].content, turns[:-1]
        sent = ChatMessage(Role.ASSISTANT, given + self._text, tool_calls=tuple(self._calls))
        turn = self._form.as_turn(sent)
        if turn.content == done.text and not turn.tool_calls:
            turn = turn._replace(token_ids=done.token_ids)
        lease.conclude((*turns, turn), self._written(done))

    def _written(self, done: GenerationDone) -> ChatMessage | None:
        """The answer as it was written, where calls make that something else than what is sent.

        Templates leave out the thoughts before a call.
        """
        tool_format = self._form.tool_format
        if not self._calls or self._has_thoughts or tool_format is None:
            return None
        if not tool_format.is_replayed:
            return None
        return ChatMessage(Role.ASSISTANT, done.text, done.token_ids)
