"""An engine that answers from a script, at once or step by step, in a thread of its own."""

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from medusa_core.messages import (
    DESCRIBED_JSON,
    NO_SWITCH,
    TARGET,
    THINK_TAGS,
    Advice,
    Alternative,
    AnswerStarted,
    BestNode,
    Calibrate,
    Calibrated,
    Cancel,
    Command,
    Count,
    Counted,
    Cut,
    EngineLost,
    Event,
    Failed,
    Fit,
    Generate,
    GenerationDone,
    LoadModel,
    MemoryPlan,
    ModelLoaded,
    Planned,
    Progress,
    ReasoningFormat,
    StepDone,
    StepTimes,
    StepTrace,
    StopReason,
    ThinkingSwitch,
    TokenSource,
    ToolCallFormat,
    Unload,
    Unloaded,
    Verified,
    VerifiedToken,
    Verify,
)
from tests.support.chats.made_traces import judged_trace
from tests.support.window.engine_events import DRAFTERS, RULES, SOURCES

HEADS = tuple(TokenSource("medusa", head) for head in range(1, 5))
TREE = (TARGET, *[HEADS[depth] for depth in (0, 0, 0, 1, 1, 2)])
CONTEXT_TOKENS = 64
BEST_NODES = tuple(BestNode(k, k + 1, 0, 0.7 ** (k + 1)) for k in range(4)) + tuple(
    BestNode(0, 1, rank, 0.1 / rank) for rank in range(1, 8)
)
TREE_STEP_S = tuple(0.002 + 0.0001 * k for k in range(len(BEST_NODES)))
_TOLD = (n << 20 for n in (10, 2, 16, 4, 5, 6, 57, 100, 0))
PLAN = MemoryPlan(*_TOLD, CONTEXT_TOKENS, CONTEXT_TOKENS, Fit.FITS, True)


# An answer that goes on for a while.
LONG = " ".join(f"word{number}" for number in range(400))

# As the makers of the demo advise.
GREEDY = Advice(temperature=0.0)


@dataclass(frozen=True, slots=True)
class Script:
    """Settings of the fake engine's answers.

    Attributes:
        answer: Text of every answer; its words are the tokens.
        accept: Accepted tokens per step, in turns.
        load_error: Message of the error that loading ends with; empty for none.
        prefill_error: Message of the error that an answer ends with at once.
        loses_device: That error is the last one of the engine.
        decode_error: Message of the error that an answer ends with after three steps.
        stop_reason: Why an answer that isn't cancelled ends.
        calibrates: Whether step costs can be measured.
        verifies_at_once: Whether a verification doesn't wait for the gate.
        learned_rows: Rows of the best tree after an answer; 0 where nothing is learned.
        advice: As of the model that is loaded.
        thinking: As of that.
        reasoning: As of that.
        tool_calls: As of that.
        continues_text: It is a base model.
        num_parameters: Of the model that is loaded.
    """

    answer: str = "One two three. Four five six seven eight nine ten."
    accept: tuple[int, ...] = (2, 0, 1, 3)
    load_error: str = ""
    prefill_error: str = ""
    decode_error: str = ""
    loses_device: bool = False
    stop_reason: StopReason = StopReason.EOS
    calibrates: bool = True
    verifies_at_once: bool = True
    learned_rows: int = 0
    advice: Advice | None = GREEDY
    thinking: ThinkingSwitch = NO_SWITCH
    reasoning: ReasoningFormat = THINK_TAGS
    tool_calls: ToolCallFormat = DESCRIBED_JSON
    continues_text: bool = False
    num_parameters: int = 6_000_000


def words(text: str) -> tuple[bytes, ...]:
    """Tokens of a text: its words, each with the space before it."""
    first, *rest = text.split(" ")
    return tuple(piece.encode() for piece in (first, *(f" {word}" for word in rest)))


def steps_of(
    request: Generate, pieces: tuple[bytes, ...], accept: tuple[int, ...]
) -> Iterator[StepDone]:
    """Return the steps of an answer: one token from prefill, then the given numbers of accepted
    tokens with a bonus each.
    """
    shown = number = 0
    while shown < len(pieces):
        num_accepted = 0 if number == 0 else accept[(number - 1) % len(accept)]
        num_accepted = min(num_accepted, len(pieces) - shown - 1)
        if request.settings.drafter == "none":
            num_accepted = 0
        given = pieces[shown : shown + num_accepted + 1]
        shown += len(given)
        yield StepDone(
            request.session_id,
            request.request_id,
            step=number,
            token_ids=tuple(range(shown - len(given), shown)),
            pieces=given,
            sources=(*HEADS[:num_accepted], TARGET),
            num_visible_bytes=sum(len(piece) for piece in pieces[:shown]),
            num_rows=8,
            node_sources=TREE if number and request.settings.drafter != "none" else (TARGET,),
            times=StepTimes(0.0001, 0.002, 0.0001, 0.0001),
            step_s=0.0025,
            num_context_tokens=10 + shown,
        )
        number += 1


def plan_of(command: Command, num_rows: int = 8) -> Planned:
    """Return the engine's planned trees, with the given number of rows chosen."""
    return Planned(
        command.session_id,
        command.request_id,
        temperature=0.0,
        num_learned=0,
        head_accuracies=((0.7, 0.1), (0.5,)),
        tree_rows=num_rows,
        source="medusa",
        best_nodes=BEST_NODES,
        tree_step_s=TREE_STEP_S,
    )


def trace_of(step: StepDone, before: tuple[bytes, ...]) -> StepTrace:
    """Return the trace of a fake step: a chain of its accepted tokens and one rejected sibling."""
    accepted = step.token_ids[:-1] if step.step else ()
    path = tuple(range(len(accepted) + 1))
    parents, sources = tuple(range(-1, len(accepted))), (TARGET, *HEADS[: len(accepted)])
    root, ids = (len(before) - 1 if before else 98), (*accepted,)
    if step.step:
        parents, sources, ids = (*parents, path[-1]), (*sources, HEADS[len(accepted)]), (*ids, 99)
    others = tuple(range(100, 105))
    pieces = dict.fromkeys(others, b"other") | {root: before[-1] if before else b"root"}
    pieces |= {99: b" wrong"} | dict(zip(step.token_ids, step.pieces, strict=True))
    return judged_trace(
        path,
        others,
        session_id=step.session_id,
        request_id=step.request_id,
        step=step.step,
        root_place=9 + len(before),
        token_ids=(root, *ids),
        parents=parents,
        ranks=tuple(-1 if i == 0 else 0 for i in range(len(parents))),
        sources=sources,
        choice_ids=step.token_ids,
        pieces=pieces,
        num_appended=len(step.token_ids),
        times=step.times,
        step_s=step.step_s,
    )


def done_of(
    request: Generate, steps: tuple[StepDone, ...], stop_reason: StopReason
) -> GenerationDone:
    """The end of an answer after these steps."""
    decode = [step for step in steps if step.step > 0]
    pieces = [piece for step in steps for piece in step.pieces]
    return GenerationDone(
        request.session_id,
        request.request_id,
        text=b"".join(pieces).decode(),
        token_ids=tuple(token for step in steps for token in step.token_ids),
        stop_reason=stop_reason,
        num_prompt_tokens=10,
        num_given_tokens=0,
        num_cached_tokens=4,
        num_steps=len(decode),
        accept_lengths=tuple(len(step.token_ids) for step in decode),
        time_to_first_token_s=0.012,
        prefill_s=0.01,
        decode_s=0.0025 * len(decode),
        num_plain_steps=0,
        settings=replace(request.settings, tree_rows=8),
        plain_step_s=0.0 if request.settings.drafter == "none" else 0.002,
    )


@dataclass
class FakeEngine:
    """An engine without a model; `start` has the shape of `medusa_core.api.start_engine`.

    Attributes:
        script: How it answers.
        gate: Cleared, it holds back every step but the first one in `num_before_gate`.
        num_before_gate: Steps of an answer that pass while the gate is closed.
        commands: All that it was told, in order.
        is_closed: Whether `close` was called.
    """

    script: Script = field(default_factory=Script)
    num_before_gate: int = 0

    def __post_init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.commands: list[Command] = []
        self.is_closed = False
        self._loaded: LoadModel | None = None
        self._cancelled: set[str] = set()
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="fake-engine")

    def start(self, on_event: Callable[[Event], None]) -> "FakeEngine":
        """Start to serve."""
        self._tell = on_event
        self._thread.start()
        return self

    @property
    def is_alive(self) -> bool:
        """Whether the thread still accepts commands."""
        return self._thread.is_alive()

    def die(self) -> None:
        """End the thread without a word, as a fault would."""
        self._queue.put(None)
        self._thread.join()

    def submit(self, command: Command) -> None:
        """Queue a command; `Cancel` takes effect at once."""
        self.commands.append(command)
        if isinstance(command, Cancel):
            self._cancelled.add(command.request_id)
        else:
            self._queue.put(command)

    def close(self, timeout_s: float = 10.0) -> None:
        """End the thread."""
        self.is_closed = True
        self._queue.put(None)
        self.gate.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def of_kind(self, kind: type[Command]) -> list[Command]:
        """The commands of one kind."""
        return [command for command in self.commands if isinstance(command, kind)]

    def _run(self) -> None:
        while (command := self._queue.get()) is not None:
            match command:
                case LoadModel():
                    self._load(command)
                case Calibrate() if self.script.calibrates:
                    costs = ((1, 0.002), (8, 0.0022), (16, 0.003))
                    ids = (command.session_id, command.request_id)
                    self._tell(Calibrated(*ids, costs, 0.002))
                    self._tell(plan_of(command))
                case Verify():
                    self._verify(command)
                case Generate():
                    self._generate(command)
                case Count():
                    self._count(command)
                case Unload():
                    self._tell(Unloaded(command.session_id, command.request_id, 100))

    def _load(self, command: LoadModel) -> None:
        self._tell(Progress(command.session_id, command.request_id, "weights", 0.5, "Reading"))
        if self.script.load_error:
            self._fail(command, self.script.load_error)
            if self._loaded is not None:
                self.script = replace(self.script, load_error="")
                self._load(self._loaded)
            return
        self._loaded = command
        self._tell(
            ModelLoaded(
                command.session_id,
                command.request_id,
                name="Fake",
                num_parameters=self.script.num_parameters,
                num_heads=4,
                context_tokens=CONTEXT_TOKENS,
                vocab_size=4096,
                dtype="float32",
                quant="fp32",
                plan=PLAN,
                device="cpu",
                drafters=DRAFTERS,
                rules=RULES,
                sources=SOURCES,
                load_s=0.1,
                advice=self.script.advice,
                thinking=self.script.thinking,
                reasoning=self.script.reasoning,
                tool_calls=self.script.tool_calls,
                continues_text=self.script.continues_text,
                head_source="medusa",
                serving=frozenset(info.name for info in SOURCES),
            )
        )

    def _generate(self, command: Generate) -> None:
        steps: list[StepDone] = []
        if self.script.prefill_error:
            self._fail(command, self.script.prefill_error)
            return
        if self._loaded is not None:
            ids = (command.session_id, command.request_id)
            begins_inside = self.script.thinking.opens(command.settings.thinks)
            self._tell(AnswerStarted(*ids, self._loaded.request_id, begins_inside))
        for step in steps_of(command, words(self.script.answer), self.script.accept):
            if step.step >= self.num_before_gate:
                while not self.gate.wait(0.005) and command.request_id not in self._cancelled:
                    pass
            if self.is_closed:
                return
            if command.request_id in self._cancelled:
                self._tell(done_of(command, tuple(steps), StopReason.CANCELLED))
                return
            if self.script.decode_error and step.step == 3:
                self._fail(command, self.script.decode_error)
                return
            before = tuple(piece for earlier in steps for piece in earlier.pieces)
            steps.append(step)
            self._tell(step)
            if command.records:
                self._tell(trace_of(step, before))
        self._tell(done_of(command, tuple(steps), self.script.stop_reason))
        if self.script.learned_rows:
            self._tell(plan_of(command, self.script.learned_rows))

    def _count(self, command: Count) -> None:
        """Count words as tokens; a conversation that is too long loses its first two messages."""
        ids = (command.session_id, command.request_id)
        num_tokens = sum(len(words(message.text)) for message in command.messages)
        is_long = num_tokens > CONTEXT_TOKENS
        cut = Cut(2, num_tokens - 10) if is_long else None
        prompt = "|".join(message.text for message in command.messages)
        num_read = 10 if is_long else num_tokens
        reported = prompt if command.wants_prompt else ""
        self._tell(Counted(*ids, num_tokens, num_read, CONTEXT_TOKENS, cut, "", reported))

    def _verify(self, command: Verify) -> None:
        """Verify a text in which every word is a token: after number n the fake predicts word n +
        1.
        """
        while not (self.script.verifies_at_once or self.gate.wait(0.005) or self.is_closed):
            pass
        text = command.text or " ".join(message.text for message in command.messages)
        ids = (*command.before_ids, *(len(word) for word in words(text)), *command.after_ids)
        if not text:
            self._fail(command, "There is nothing to verify.")
            return
        tokens = tuple(
            VerifiedToken(i, b" w%d" % i, Alternative(i + 1, b" w%d" % (i + 1), 0.5)) for i in ids
        )
        self._tell(Verified(command.session_id, command.request_id, tokens, 0.001))

    def _fail(self, command: Command, message: str) -> None:
        kind = EngineLost if self.script.loses_device else Failed
        self._tell(
            kind(command.session_id, command.request_id, "EngineError", message, "Try again.")
        )
