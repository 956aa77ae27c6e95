"""A conversation with a loaded model in a terminal."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass, field

from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.chats.settings import SETTINGS, ChatSettings
from medusa_core.cli.terminal.answer_writer import AnswerWriter
from medusa_core.cli.terminal.chat_record import ChatRecord
from medusa_core.cli.terminal.screen import Screen
from medusa_core.cli.terminal.tool_calls import TerminalTools
from medusa_core.client import Client
from medusa_core.errors import Cancelled, MedusaError, RequestError
from medusa_core.messages import (
    AnswerStarted,
    ContextCut,
    Event,
    Generate,
    GenerationDone,
    LayersMoved,
    ModelLoaded,
    Progress,
    StepDone,
    StepTrace,
)
from medusa_core.models.text.answer_form import chat_form
from medusa_core.tools.call_loop import MOST_ROUNDS
from medusa_core.tools.offered_tool import OfferedTool

_SAVE_S = 0.5
_SEED_BITS = 31


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """The model that answers.

    Attributes:
        key: Its folder or file, as in the history.
        loaded: Its description.
    """

    key: str
    loaded: ModelLoaded


@dataclass(slots=True)
class LastAnswer:
    """Steps, trace and figures of the last answer, for the slash commands.

    Attributes:
        steps: All steps.
        trace: The last decoding step; None without one.
        done: Statistics; None until the answer is complete.
        is_stopped: Whether the user has stopped it.
    """

    steps: list[StepDone] = field(default_factory=list)
    trace: StepTrace | None = None
    done: GenerationDone | None = None
    is_stopped: bool = False


class TerminalChat:
    """Sends prompts, shows answers and records both in the history.

    Attributes:
        conversation: The current conversation.
        settings: Settings of the next answer.
        model: The model that answers.
        last: The last answer.
        tools: Tools that the model may call; None for none.
    """

    def __init__(
        self,
        client: Client,
        model: ChosenModel,
        settings: ChatSettings,
        screen: Screen,
        record: ChatRecord,
        tools: TerminalTools | None = None,
    ) -> None:
        self._client, self._screen, self._record = client, screen, record
        self.conversation = Conversation()
        self.settings = settings
        self.tools = tools
        self.last = LastAnswer()
        self._request: Generate | None = None
        self.use_model(model)

    def use_model(self, model: ChosenModel) -> None:
        """Use a model for the next answers."""
        self.model = model
        self._screen.use_sources(model.loaded.sources)

    async def use_conversation(self, conversation: Conversation | None = None) -> None:
        """Continue a conversation; without one, begin a new one."""
        await self._client.close_session(self.conversation.session_id)
        self.conversation = conversation or Conversation()
        self.last = LastAnswer()

    @property
    def description(self) -> str:
        """The model in one line."""
        loaded = self.model.loaded
        if loaded.is_remote:
            return f"{loaded.name} · on another machine: {loaded.place}"
        device, quant = loaded.device, loaded.quant or loaded.dtype
        words = (loaded.name, f"{quant} on {device}", f"context {loaded.context_tokens:,}")
        parts = loaded.plan.cpu_parts
        notes = (
            loaded.not_compiled.rstrip("."),
            loaded.plan.cache_note,
            "" if parts is None else parts.summary + parts.displaced,
        )
        return " · ".join((*words, *filter(None, notes)))

    async def measure(self) -> str:
        """Measure the model again, and return the result in one line.

        Raises:
            MedusaError: The model is remote, or the measurement failed.
        """
        if self.model.loaded.is_remote:
            raise RequestError(
                "This model runs on another machine.", "Measure it there, or choose another one."
            )
        measured = await self._client.calibrate(is_anew=True)
        rows, seconds = measured.step_s[-1]
        plain_ms = measured.step_s[0][1] * 1000
        return f"a step of 1 row takes {plain_ms:.1f} ms, of {rows} rows {seconds * 1000:.1f} ms"

    def why_unused(self, name: str) -> str:
        """Return why a setting has no effect; empty if it has one."""
        loaded = self.model.loaded
        rule = next((one for one in loaded.rules if one.name == self.settings.rule), None)
        chosen = self.settings.drafter or loaded.drafters[0].name
        drafter = next((one for one in loaded.drafters if one.name == chosen), None)
        setting = SETTINGS.get(name)
        return "" if setting is None else setting.when.reason_ignored(rule, drafter)

    def use_saved_settings(self, raw: str) -> None:
        """Use the settings saved with a conversation, if there are any."""
        try:
            saved = json.loads(raw or "{}")
        except ValueError:
            return
        if isinstance(saved, dict):
            self.settings = self.settings.with_json(saved)

    def stop(self) -> None:
        """Stop the current answer or its calls, and keep its text."""
        self.last.is_stopped = True
        if self._request is not None:
            self._client.cancel(self._request)
        if self.tools is not None:
            self.tools.stop()

    async def ask(self, text: str, *, records: bool) -> bool:
        """Send a prompt, and stream the answer to the screen.

        Args:
            text: The prompt.
            records: Keep the tree of the last step.

        Returns:
            False if there is no answer; the error is on the screen.
        """
        settings = self.settings.generate_settings(secrets.randbits(_SEED_BITS))
        turn = self.conversation.ask(text, settings)
        answer, loaded = turn.answer, self.model.loaded
        answer.model, answer.model_key = loaded.name, self.model.key
        answer.content.expect(loaded.reasoning, begins_inside=False)
        self._record.begin_turn(self.conversation, turn, self.settings)
        self.last = LastAnswer()
        while True:
            tools = () if self.tools is None else self.tools.offered
            if not await self._answer_round(turn, tools, records=records):
                return False
            if self.last.is_stopped or not turn.answer.last.ends_with_calls:
                return True
            if not await self._run_calls(turn, tools) or self.last.is_stopped:
                return True
            self.conversation.next_round(turn)
            self._record.begin_round(self.conversation, turn)

    async def _answer_round(
        self, turn: Turn, tools: tuple[OfferedTool, ...], *, records: bool
    ) -> bool:
        """Generate a round, and show it.

        Args:
            turn: The turn whose last round is generated.
            tools: Tools that the model may call.
            records: Keep the tree of the last step.

        Returns:
            False if there is no answer; the error is on the screen.
        """
        answer = turn.answer
        messages = self.settings.framed(self.conversation.messages())
        try:
            offered = tuple(tool.tool.as_text for tool in tools)
            num_rounds = len(answer.rounds)
            form = chat_form(
                *(self.model.loaded, answer.settings, messages, offered, num_rounds),
                quotes_results=answer.has_unmarked_calls,
            )
            if num_rounds > MOST_ROUNDS:
                self._screen.print_dim(
                    f"After {MOST_ROUNDS} rounds of calls the model is offered no more tools: it "
                    "answers from the results so far."
                )
            answer.content.expect_calls(form.calls)
            self._request = Generate(
                self.conversation.session_id,
                answer.id,
                form.messages,
                answer.settings,
                records=records,
                tools=form.tools,
                grammar=form.grammar,
                requires_grammar=bool(answer.settings.json_schema),
            )
            await self._receive(self._request, turn)
        except MedusaError as error:
            return self._end_failed(turn, error)
        finally:
            self._request = None
        self._end(turn)
        return True

    async def _run_calls(self, turn: Turn, tools: tuple[OfferedTool, ...]) -> bool:
        """Run the calls of the last round; return whether the next round reads the results."""
        assert self.tools is not None  # or nothing is a call
        answer = turn.answer
        round_id = answer.id
        return await self.tools.run(
            answer,
            tools,
            self.conversation.session_id,
            lambda place, call: self._record.save_call(round_id, place, call),
            lambda place: self._record.is_requested(round_id, place),
        )

    async def _receive(self, request: Generate, turn: Turn) -> None:
        """Show and record the events of an answer."""
        content = turn.answer.content
        writer = AnswerWriter(self._screen, content)
        num_kept, kept_at_s = 0, time.monotonic()
        try:
            async with aclosing(self._client.generate(request)) as events:
                async for event in events:
                    self._on_event(event, turn, writer)
                    now_s = time.monotonic()
                    if now_s - kept_at_s >= _SAVE_S:
                        self._record.add_steps(turn, tuple(content.steps[num_kept:]))
                        num_kept, kept_at_s = len(content.steps), now_s
        finally:
            self._screen.progress("")
            self._record.add_steps(turn, tuple(content.steps[num_kept:]))
            turn.answer.end(turn.answer.done)
            writer.finish()

    def _on_event(self, event: Event, turn: Turn, writer: AnswerWriter) -> None:
        """Show and store an event of the answer."""
        match event:
            case Progress() if not turn.answer.content.steps:
                self._screen.progress(f"{event.text} {event.fraction:.0%}")
            case AnswerStarted():
                content = turn.answer.content
                content.expect(content.reasoning, event.begins_inside)
                self._record.set_reasoning(turn)
            case StepDone():
                if not turn.answer.content.steps:
                    self._screen.progress("")
                turn.answer.content.append(event)
                writer.show()
            case StepTrace() if event.step:
                self.last.trace = event
            case ContextCut():
                self._screen.print_dim("A part of this conversation no longer fits the context.")
            case LayersMoved():
                self._screen.print_dim(event.move.text)
            case GenerationDone():
                turn.answer.last.done = event

    def _end_failed(self, turn: Turn, error: MedusaError) -> bool:
        """End an answer that failed; return whether it has text."""
        self._end(turn)
        if not isinstance(error, Cancelled):  # the user cancelled it
            self._screen.print_error(error.message, error.hint)
        return turn.answer.is_cut

    def _end(self, turn: Turn) -> None:
        """Store the end of an answer; an empty one is removed."""
        self.last.steps, self.last.done = turn.answer.content.steps, turn.answer.done
        self._record.end_turn(turn)
        if not turn.answer.text and not turn.answer.last.calls:
            self.conversation.remove_last_round(turn)
            self._record.move(self.conversation)
