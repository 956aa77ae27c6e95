"""Run requests of all APIs on the engine."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace

from medusa_core.chats.conversation import new_id
from medusa_core.chats.tool_calls.parser import ToolCallParser
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
)
from medusa_core.server.answer_form import AnswerForm, answer_form, check_text_length
from medusa_core.server.answer_queue import AnswerQueue
from medusa_core.server.answer_reader import AnswerReader
from medusa_core.server.api_error import ApiError, api_error_of, bad_request
from medusa_core.server.chat import (
    Answer,
    AnswerEnd,
    AnswerPart,
    ChatRequest,
)
from medusa_core.server.limits import Limits
from medusa_core.server.served_models import ServedModels
from medusa_core.server.session_pool import Lease, SessionPool

_DEFAULT = Advice(temperature=0.7, top_p=0.95)  # the window's settings without advice


class Answering:
    """Runs requests on one engine, many at a time."""

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
            client: Client of the engine.
            models: Models that requests can name.
            queue: Admits answers.
            sessions: Sessions of the engine.
            limits: Limits of the server.
        """
        self._client, self._models = client, models
        self._queue, self._sessions = queue, sessions
        self._limits = limits

    async def answer(
        self, request: ChatRequest, cache_salt: str = ""
    ) -> AsyncGenerator[AnswerPart, None]:
        """Queue a request, run it on the engine, and yield the parts of its answer.

        Args:
            cache_salt: See `Generate`.

        Yields:
            Text, tool calls, and at last one `AnswerEnd`. Closing the generator earlier frees the
            answer's KV rows within a step; use `aclosing`.

        Raises:
            ApiError: The request can't be answered.
        """
        if self._models.is_lost:
            raise ApiError(
                503, "The engine has stopped. Start the server again.", code="engine_lost"
            )
        model = await self._models.find_to_answer(request.model)
        async with self._queue.turn(model):
            facts = self._models.facts
            if facts is None:
                raise ApiError(503, "No model is loaded.", code="no_model")
            settings = decoding_settings(request, facts)
            form = answer_form(request, facts, settings)
            check_text_length(form.messages, form.tools, facts, self._limits)
            with self._sessions.lease(form.messages, request.prompt_ids, cache_salt) as lease:
                command = _command(request, settings, form, lease, cache_salt)
                reader = _reader(request, settings, form, facts)
                answer = _SessionAnswer(request, form, lease)
                async with aclosing(self._run(command, reader, answer)) as parts:
                    async for part in parts:
                        yield part

    async def _run(
        self, command: Generate, reader: AnswerReader, answer: _SessionAnswer
    ) -> AsyncGenerator[AnswerPart, None]:
        """Yield the parts of an admitted answer."""
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
    """Return the generation settings, with the model's `Advice` for open ones.

    Raises:
        ApiError: The model has no such drafter or rule.
    """
    settings = request.settings
    _check_choice("drafter", settings.drafter, [drafter.name for drafter in facts.drafters])
    _check_choice("rule", settings.rule, [rule.name for rule in facts.rules])
    advice = facts.advice or _DEFAULT
    advised = {
        name: value for name, value in advice._asdict().items() if name in request.open_settings
    }
    settings = replace(settings, **advised)
    if "rule" in request.open_settings:
        settings = replace(settings, rule="sample" if settings.temperature else "greedy")
    return settings


def _check_choice(noun: str, name: str, names: list[str]) -> None:
    """Refuse an unknown drafter or rule."""
    if name and name not in names:
        raise ApiError(
            400,
            f"There is no {noun} {name!r}. There are: {', '.join(names)}.",
            f"medusa.{noun}",
        )


def _command(
    request: ChatRequest,
    settings: GenerateSettings,
    form: AnswerForm,
    lease: Lease,
    cache_salt: str,
) -> Generate:
    """Make the engine's command for an admitted request."""
    return Generate(
        lease.session_id,
        new_id(),
        lease.decoded,
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
    """Make the reader of an answer's events."""
    tools = map(json.loads, request.tools)
    calls = None if form.tool_format is None else ToolCallParser(form.tool_format, tools)
    is_scored = request.num_logprobs >= 0
    return AnswerReader(
        facts.reasoning,
        facts.end_ids,
        settings.stop,
        is_scored,
        calls,
        form.markers,
    )


def _read(reader: AnswerReader, event: Event) -> Iterator[AnswerPart]:
    """Convert an event of the engine to parts of the answer.

    Raises:
        ApiError: The answer was stopped on the server's side.
    """
    if isinstance(event, AnswerStarted):
        reader.begin(event.begins_inside)
    elif isinstance(event, StepDone):
        yield from reader.step(event)
    elif isinstance(event, StepLogprobs):
        yield from reader.logprobs(event)
    elif isinstance(event, GenerationDone):
        if event.stop_reason is StopReason.CANCELLED:
            raise ApiError(503, "The answer was stopped on the server. Try again.", code="stopped")
        yield from reader.finish(event)


class _SessionAnswer:
    """Collects an answer and stores it in the history of its session."""

    def __init__(self, request: ChatRequest, form: AnswerForm, lease: Lease) -> None:
        self._request, self._form, self._lease = request, form, lease
        self.constraint = form.constraint
        self._answer = Answer()

    def add(self, part: AnswerPart) -> None:
        """Add a part; the last one updates the session."""
        self._answer.add(part)
        if isinstance(part, AnswerEnd):
            self._update_session(part.done)

    def _update_session(self, done: GenerationDone) -> None:
        """Store prompt and answer in the form in which a later request will send them."""
        request, lease = self._request, self._lease
        if request.prompt_ids:
            lease.update((*request.prompt_ids, *done.token_ids))
            return
        messages, given = lease.messages, ""
        if messages[-1].role is Role.ASSISTANT:
            given, messages = messages[-1].text, messages[:-1]
        answer = self._answer
        sent = ChatMessage(Role.ASSISTANT, given + answer.text, tool_calls=tuple(answer.calls))
        message = self._form.as_message(sent)
        if message.text == done.text and not message.tool_calls:
            message = message._replace(token_ids=done.token_ids)
        lease.update((*messages, message), self._as_decoded(done))

    def _as_decoded(self, done: GenerationDone) -> ChatMessage | None:
        """Return an answer with tool calls as it was decoded; None if later prompts differ.

        Templates leave out the reasoning before a call.
        """
        tool_format, answer = self._form.tool_format, self._answer
        if not answer.calls or answer.reasoning or tool_format is None:
            return None
        if not tool_format.is_replayed:
            return None
        return ChatMessage(Role.ASSISTANT, done.text, done.token_ids)
