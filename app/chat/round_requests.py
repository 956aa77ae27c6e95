"""Requests of the chat's rounds, with tools and grammar in the form of the loaded model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from PySide6.QtCore import QObject, QTimer

from app.chat.calls import AnswerRun
from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.state.chat import ChatState, Stoppable
from medusa_core.errors import Cancelled, GrammarError
from medusa_core.loading.state import Phase
from medusa_core.messages import Event, Failed, Generate, Role

OnEvents = Callable[[AnswerRun, tuple[Event, ...]], None]


class RoundRequests(QObject):
    """Sends requests of rounds; one whose form depends on the model waits until that is loaded."""

    def __init__(
        self, bridge: EngineBridge, loaded_model: LoadedModel, state: ChatState, on_events: OnEvents
    ) -> None:
        """Prepare.

        Args:
            bridge: Bridge to the engine.
            loaded_model: The model, whose form of prompts is used.
            state: Gets what each answer waits for.
            on_events: Method that gets the events of an answer.
        """
        super().__init__()
        self._bridge, self._loaded_model, self._state = bridge, loaded_model, state
        self._on_events = on_events
        self._deferred: list[_Deferred] = []
        loaded_model.changed.connect(self._send_deferred)

    def send(self, run: AnswerRun, *, records: bool, updates_datastore: bool) -> None:
        """Request the last round of an answer, which becomes pending.

        Args:
            records: As in `Generate`.
            updates_datastore: As in `Generate`.
        """
        answer = run.turn.answer
        request = Generate(
            run.conversation.session_id,
            answer.id,
            (*run.system, *run.conversation.messages()),
            answer.settings,
            keep_tokens=answer.keep_tokens,
            records=records,
            updates_datastore=updates_datastore,
        )
        self._loaded_model.wake()
        work: Stoppable
        if _has_form(run, request) and self._loaded_model.status.phase is Phase.LOADING:
            work = _Deferred(run, request, self._cancel)
            self._deferred.append(work)
        else:
            work = self._ask(run, request)
        if self._state.is_pending(run.turn):
            self._state.wait_for(run.turn, work)
        else:
            self._state.begin(run.turn, work)

    def _ask(self, run: AnswerRun, request: Generate) -> Stoppable:
        on_events = partial(self._on_events, run)
        try:
            return self._bridge.ask(self._with_form(run, request), on_events)
        except GrammarError as error:  # the schema is still being written
            kind = type(error).__name__
            return _Refused(on_events, Failed(*request.ids, kind, error.message, error.hint))

    def _with_form(self, run: AnswerRun, request: Generate) -> Generate:
        """Add tools and grammar to a request, and expect the model's calls in its answer.

        Raises:
            GrammarError: The schema of the answer can't be used.
        """
        answer, loaded = run.turn.answer, self._loaded_model.status.loaded
        if loaded is None or not _has_form(run, request):
            return request
        from medusa_core.api import chat_form

        tools = tuple(one.tool.as_text for one in run.tools)
        form = chat_form(
            *(loaded, answer.settings, request.messages, tools, run.num_rounds),
            quotes_results=answer.has_unmarked_calls,
        )
        answer.content.expect_calls(form.calls)
        return replace(
            request,
            messages=form.messages,
            tools=form.tools,
            grammar=form.grammar,
            requires_grammar=bool(answer.settings.json_schema),
        )

    def _send_deferred(self) -> None:
        """Send what waited for the model."""
        if self._loaded_model.status.phase is Phase.LOADING:
            return
        deferred, self._deferred = self._deferred, []
        for one in deferred:
            if self._state.is_pending(one.run.turn):
                self._state.wait_for(one.run.turn, self._ask(one.run, one.request))

    def _cancel(self, deferred: _Deferred, reports: bool) -> None:
        """Forget a round that waits for the model."""
        self._deferred.remove(deferred)
        if reports:
            failed = Failed(*deferred.request.ids, Cancelled.__name__, "", "")
            self._on_events(deferred.run, (failed,))


def _has_form(run: AnswerRun, request: Generate) -> bool:
    """Whether a request depends on the model: by its tools, their results or a schema."""
    has_results = any(message.role is Role.TOOL for message in request.messages)
    return bool(run.tools or request.settings.json_schema or has_results)


class _Refused:
    """A round that can't be sent: it fails once its answer is pending."""

    def __init__(self, on_events: Callable[[tuple[Event, ...]], None], failed: Failed) -> None:
        self._report = partial(on_events, (failed,))
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._report)
        self._timer.start(0)

    def cancel(self) -> None:
        self._timer.stop()
        self._report()

    def drop(self) -> None:
        self._timer.stop()


class _Deferred:
    """A round that waits for the model, as work of its pending answer."""

    def __init__(
        self, run: AnswerRun, request: Generate, cancel: Callable[[_Deferred, bool], None]
    ) -> None:
        self.run, self.request, self._cancel = run, request, cancel

    def cancel(self) -> None:
        self._cancel(self, True)

    def drop(self) -> None:
        self._cancel(self, False)
