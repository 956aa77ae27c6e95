"""Events that come back from the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from medusa_core.messages.records import (
    NO_SWITCH,
    THINK_TAGS,
    Advice,
    Cut,
    DrafterChoice,
    DrafterSpeed,
    FillTokens,
    GenerateSettings,
    Machine,
    MemoryPlan,
    Message,
    Move,
    ReasoningFormat,
    RuleChoice,
    SourceInfo,
    StepTimes,
    StopReason,
    ThinkingSwitch,
    TokenSource,
    is_plausible_speed_up,
)
from medusa_core.messages.tool_calls import DESCRIBED_JSON, ToolCallFormat
from medusa_core.messages.traces import Alternative, StepTrace


@dataclass(frozen=True, slots=True)
class Progress(Message):
    """Work under way.

    Attributes:
        stage: `import`, `connect`, `weights`, `heads`, `calibrate` or `prefill`.
        fraction: Share done, 0 to 1.
        text: What is being done, for people.
        num_done: Of a prompt, tokens that are read; 0 elsewhere.
        num_total: Of a prompt, all of its tokens; 0 elsewhere.
    """

    stage: str
    fraction: float
    text: str
    num_done: int = 0
    num_total: int = 0


@dataclass(frozen=True, slots=True)
class ModelLoaded(Message):
    """The model is ready.

    Attributes:
        name: Name to show.
        num_parameters: Parameters of the target.
        num_heads: Heads at hand; 0 without.
        context_tokens: Longest prompt plus answer.
        vocab_size: Rows of the target's output projection.
        dtype: Name of the compute dtype.
        quant: Weight format of the blocks' linear layers; GGUF's name of the mix, such as Q4_K_M,
            where they are as in the file.
        plan: Where the device's memory goes.
        device: Torch device name.
        drafters: The drafters that can run on it, the default first.
        rules: The acceptance rules, the default first.
        sources: All sources of drafts, in the order in which they are listed.
        load_s: Seconds from the command to this event.
        device_note: Why a card that is here isn't used; empty if none is passed over.
        end_ids: Tokens that end an answer.
        special_tokens: Ids and names of the tokens that have no text.
        advice: How its makers advise to sample; None where they don't.
        thinking: What its template does about thoughts before the answer.
        reasoning: How it sets them apart from the answer.
        tool_calls: How it writes calls of functions.
        head_source: Which source its heads are; empty without heads.
        speeds: How fast its drafters are, the default first; empty where that isn't known yet.
        machines: Others that have its layers, in the order of these; empty where none has.
        continues_text: It has no chat template: it goes on with a text as it stands.
        serving: Names of the sources that can draft for it.
        chat_template: Its template; empty where it has none.
        runner_note: How it runs where transformers runs it, for people; empty for families here.
        draft_model: Name of the smaller model that is loaded to draft for it; empty without one.
        fill_tokens: How it fills text in; None where it can't.
        place: The machine on which it runs, for people; empty for this one. Of a model elsewhere
            nothing is known but its name and maybe its context: all numbers are 0.
    """

    name: str
    num_parameters: int
    num_heads: int
    context_tokens: int
    vocab_size: int
    dtype: str
    quant: str
    plan: MemoryPlan
    device: str
    drafters: tuple[DrafterChoice, ...]
    rules: tuple[RuleChoice, ...]
    sources: tuple[SourceInfo, ...]
    load_s: float
    device_note: str = ""
    end_ids: frozenset[int] = frozenset()
    special_tokens: tuple[tuple[int, str], ...] = ()
    advice: Advice | None = None
    thinking: ThinkingSwitch = NO_SWITCH
    reasoning: ReasoningFormat = THINK_TAGS
    tool_calls: ToolCallFormat = DESCRIBED_JSON
    head_source: str = ""
    speeds: tuple[DrafterSpeed, ...] = ()
    machines: tuple[Machine, ...] = ()
    continues_text: bool = False
    serving: frozenset[str] = frozenset()
    chat_template: str = ""
    place: str = ""
    runner_note: str = ""
    draft_model: str = ""
    fill_tokens: FillTokens | None = None

    @property
    def is_remote(self) -> bool:
        """Whether it runs behind another machine's address."""
        return bool(self.place)


@dataclass(frozen=True, slots=True)
class Unloaded(Message):
    """The model is gone and its memory is free.

    Attributes:
        freed_bytes: What its weights and caches had taken.
    """

    freed_bytes: int


class BestNode(NamedTuple):
    """A draft node of the best trees: the first n of them are the best tree of n.

    Attributes:
        parent: Which node it hangs under: 0 for the root, k for the k-th of these.
        head: Who drafts it, 1-based; its depth.
        rank: Place among that head's guesses, from 0.
        chance: That the whole path down to it is right: the product of its ranks' accuracies.
    """

    parent: int
    head: int
    rank: int
    chance: float


@dataclass(frozen=True, slots=True)
class Calibrated(Message):
    """The measured step costs of the loaded model.

    Attributes:
        step_s: Pairs (rows, seconds of a verification of that many rows), the cache being short.
        plain_step_s: Seconds of a whole step of plain decoding, then.
    """

    step_s: tuple[tuple[int, float], ...]
    plain_step_s: float


@dataclass(frozen=True, slots=True)
class Raced(Message):
    """The drafters of the loaded model were compared.

    Attributes:
        drafters: They, the default, which is the fastest, first.
        speeds: How fast each is, in the same order.
    """

    drafters: tuple[DrafterChoice, ...]
    speeds: tuple[DrafterSpeed, ...]


@dataclass(frozen=True, slots=True)
class Planned(Message):
    """The trees that the engine would take now, by how often the heads have been right so far.

    Comes behind `Calibrated`, and behind every answer that is complete.

    Attributes:
        temperature: Under which the heads are judged; 0 without chance.
        num_learned: Steps under it that were learned from since the model was loaded.
        head_accuracies: Per head, the probability that its rank 0, 1, ... is right where all before
            it were; empty without heads.
        tree_rows: The row count the engine chooses with `tree_rows=0`, the cache being short.
        source: Name of the source that drafts them.
        best_nodes: Draft nodes of the heads' best trees, the most valuable first.
        tree_step_s: Seconds of a whole step with a tree of 2, 3, ... rows: drafting, verification
            and what comes besides; as many as `best_nodes`.
    """

    temperature: float
    num_learned: int
    head_accuracies: tuple[tuple[float, ...], ...]
    tree_rows: int
    source: str
    best_nodes: tuple[BestNode, ...]
    tree_step_s: tuple[float, ...]


class VerifiedToken(NamedTuple):
    """A token of a verified text, and what the target says behind it.

    Attributes:
        token_id: The token.
        text: Its bytes; empty for a special token.
        output: The target's best token behind it: does the text go on like this?
    """

    token_id: int
    text: bytes
    output: Alternative


@dataclass(frozen=True, slots=True)
class Verified(Message):
    """What a `Verify` gave.

    Attributes:
        tokens: The text's tokens in order.
        seconds: Seconds of the forward pass, the scores included.
        answers: Of a conversation, where the tokens lie that a model wrote: from, to. Empty for
            other texts, or where that isn't known.
    """

    tokens: tuple[VerifiedToken, ...]
    seconds: float
    answers: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerStarted(Message):
    """A model takes up an answer; comes before everything else of it.

    Attributes:
        load_id: Request of the command that loaded this model.
        begins_inside: The prompt opened the reasoning, so the answer begins within.
    """

    load_id: str
    begins_inside: bool = False


@dataclass(frozen=True, slots=True)
class ContextCut(Message):
    """An answer begins, and the model reads only a part of the conversation; comes before its text.

    Attributes:
        cut: What it doesn't read.
        num_prompt_tokens: What it reads.
        context_tokens: What it could read, the answer included.
    """

    cut: Cut
    num_prompt_tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class LayersMoved(Message):
    """In the middle of an answer layers went from one machine to others; the text is the same.

    Attributes:
        move: Which, and where to.
    """

    move: Move


@dataclass(frozen=True, slots=True)
class Counted(Message):
    """What a `Count` gave.

    Attributes:
        num_tokens: Tokens of the whole conversation; an estimate where it is far too long.
        num_read: Tokens that the model would read.
        context_tokens: What it reads at most, the answer included.
        cut: What it would leave out, or None.
        lack: Why it could not be answered, for people; empty if it can be.
        prompt: The rendered conversation, as far as it is read, or all of it if it can't be
            answered; empty unless it was asked for.
    """

    num_tokens: int
    num_read: int
    context_tokens: int
    cut: Cut | None
    lack: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Tokenized(Message):
    """What a `Tokenize` gave.

    Attributes:
        token_ids: The tokens.
        pieces: Bytes of each; those of a special token are its name.
        text: Their text.
    """

    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    text: str


class TokenLogprob(NamedTuple):
    """A token and how likely the target finds it.

    Attributes:
        token_id: The token.
        text: Its bytes.
        logprob: Natural logarithm of its probability, before the rule changes anything.
    """

    token_id: int
    text: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class StepLogprobs(Message):
    """How likely the tokens of a step are; comes behind its `StepDone`, where it is asked for.

    Attributes:
        step: Number of the step, as in its `StepDone`.
        chosen: The tokens that the step decided.
        alternatives: Of each, the most likely tokens at its place, the best first.
    """

    step: int
    chosen: tuple[TokenLogprob, ...]
    alternatives: tuple[tuple[TokenLogprob, ...], ...]


class StepDone(NamedTuple):
    """One forward pass of the target is done: the first (prefill) or one decoding step.

    Text is bytes until it is shown: `pieces[i]` is the UTF-8 that token i completes (empty while a
    character is still open, and for special tokens). All pieces of an answer concatenated are
    its text, of which the first `num_visible_bytes` may be shown now: the rest may be the start
    of a stop string.

    It is a tuple, which is made in a third of the time that other messages take: there is one in
    every step.

    Attributes:
        session_id: As in all messages.
        request_id: As in all messages.
        step: 0 for prefill, then 1, 2, ...
        token_ids: Tokens decided in this step, in order: accepted ones, then the bonus token. In
            prefill: those that were given, then the first token. Empty where another machine
            decodes: it sends text.
        pieces: Bytes that each of them completes.
        sources: Where each of them came from.
        num_visible_bytes: Bytes of the answer so far that may be shown.
        num_rows: Rows that the target computed: the prompt's new tokens in prefill, else the tree
            and what rode beside it.
        node_sources: Where each node of the verified tree came from, the root first.
        times: Where the time went.
        step_s: Seconds of the whole step, the making of text included.
        num_context_tokens: Tokens of the session decided so far, prompt included.
    """

    session_id: str
    request_id: str
    step: int
    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    sources: tuple[TokenSource, ...]
    num_visible_bytes: int
    num_rows: int
    node_sources: tuple[TokenSource, ...]
    times: StepTimes
    step_s: float
    num_context_tokens: int


@dataclass(frozen=True, slots=True)
class GenerationDone(Message):
    """An answer is complete.

    Attributes:
        text: The whole answer; equals the visible bytes of its steps, decoded, and after a cancel
            also what was held back for a stop string.
        token_ids: Its tokens, the given ones and EOS included when there were any.
        stop_reason: Why it ended.
        num_prompt_tokens: Tokens of the rendered conversation.
        num_given_tokens: Tokens at the answer's beginning that were given.
        num_cached_tokens: Of both, tokens that the session's cache already held.
        num_steps: Decoding steps (prefill not counted).
        accept_lengths: Tokens each decoding step gave, bonus token included.
        time_to_first_token_s: Seconds from the start of the request to the first token.
        prefill_s: Seconds of prefill.
        decode_s: Seconds of all decoding steps, the making of their events and traces included.
        num_rested: Decoding steps that were plain because drafts didn't pay.
        settings: What it was decoded with; `tree_rows` is what no tree could exceed.
        plain_step_s: Seconds of a step of plain decoding on this model at this length, measured in
            this answer, or before under as much other load; 0 where it wasn't, and for an answer
            that was decoded plainly.
        num_remote_tokens: Tokens that another machine counts in its part of the answer; 0 where it
            doesn't say, −1 for an answer of this computer. Such an answer has no steps and no ids.
        num_drafted: Tokens that were drafted there; 0 where it doesn't say.
        num_draft_accepted: Those of them that were accepted.
        num_reread_tokens: Tokens of the prompt that the session had read before, and that were read
            again, as no state of recurrent layers was known there.
    """

    text: str
    token_ids: tuple[int, ...]
    stop_reason: StopReason
    num_prompt_tokens: int
    num_given_tokens: int
    num_cached_tokens: int
    num_steps: int
    accept_lengths: tuple[int, ...]
    time_to_first_token_s: float
    prefill_s: float
    decode_s: float
    num_rested: int
    settings: GenerateSettings
    plain_step_s: float = 0.0
    num_remote_tokens: int = -1
    num_drafted: int = 0
    num_draft_accepted: int = 0
    num_reread_tokens: int = 0

    @property
    def is_remote(self) -> bool:
        """Whether another machine wrote it."""
        return self.num_remote_tokens >= 0

    @property
    def num_new_tokens(self) -> int:
        """Tokens that were written; 0 where another machine doesn't say how many."""
        if self.is_remote:
            return self.num_remote_tokens
        return len(self.token_ids) - self.num_given_tokens

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens from decode steps ÷ decode steps, bonus included; 0 without a decode step."""
        return sum(self.accept_lengths) / self.num_steps if self.num_steps else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens from decode steps per second of decoding; 0 without a decode step.

        Of another machine's answer: its tokens per second of its decoding.
        """
        if self.is_remote:
            return self.num_remote_tokens / self.decode_s if self.decode_s else 0.0
        return sum(self.accept_lengths) / self.decode_s if self.num_steps else 0.0

    @property
    def speed_up(self) -> float | None:
        """Speed over that of plain decoding; None where that isn't known, or can't be true."""
        speed_up = self.decode_tokens_per_s * self.plain_step_s
        is_known = speed_up > 0 and is_plausible_speed_up(speed_up, self.mean_acceptance_length)
        return speed_up if is_known else None

    @property
    def tokens_per_s(self) -> float:
        """All new tokens of the answer per second, prefill included."""
        seconds = self.prefill_s + self.decode_s
        return self.num_new_tokens / seconds if seconds else 0.0


@dataclass(frozen=True, slots=True)
class Failed(Message):
    """A command failed; the engine goes on.

    Attributes:
        kind: Name of the error's class, as in `medusa_core.errors`.
        message: What happened.
        hint: What to do about it; may be empty.
        data: The values that matter, by name, as in `MedusaError`.
    """

    kind: str
    message: str
    hint: str
    data: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class EngineLost(Failed):
    """The device can't be used any more: this command failed, and so will every later one."""


Event = (
    Progress
    | AnswerStarted
    | ContextCut
    | LayersMoved
    | Counted
    | ModelLoaded
    | Unloaded
    | Calibrated
    | Planned
    | Raced
    | StepDone
    | StepLogprobs
    | StepTrace
    | GenerationDone
    | Verified
    | Tokenized
    | Failed
    | EngineLost
)
