"""Events that the engine sends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Progress of a command.

    Attributes:
        stage: `import`, `connect`, `weights`, `heads`, `calibrate` or `prefill`.
        fraction: Fraction done, 0 to 1.
        text: Description of the work, for people.
        num_done: Prompt tokens computed so far; 0 in other stages.
        num_total: Prompt tokens to compute; 0 in other stages.
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
        num_heads: Number of heads; 0 for none.
        context_tokens: Longest prompt plus answer.
        vocab_size: Rows of the target's output projection.
        dtype: Name of the compute dtype.
        quant: Weight format of the blocks' linear layers; GGUF's name of the mix, such as Q4_K_M,
            if they keep the file's formats.
        plan: Memory plan of the device.
        device: Torch device name.
        drafters: Drafters for this model, the default first.
        rules: Acceptance rules, the default first.
        sources: All draft sources, in the order of display.
        load_s: Seconds from the command to this event.
        device_note: Why an installed GPU isn't used; empty if none is unused.
        end_ids: EOS tokens.
        special_tokens: Ids and names of the special tokens.
        advice: Recommended sampling settings; None for none.
        thinking: Whether reasoning can be switched on and off.
        reasoning: Format of the reasoning.
        tool_calls: Format of tool calls.
        head_source: Name of the source of its heads; empty without heads.
        speeds: Measured speeds of the drafters, the default first; empty before the measurement.
        machines: Machines that have layers of the model, in layer order; empty without a cluster.
        continues_text: Whether the model has no chat template and continues plain text.
        serving: Names of the sources that can draft for the model.
        chat_template: Chat template; empty for none.
        runner_note: How transformers runs the model, for people; empty for native families.
        not_compiled: Why a CPU runs the model without the compiled step, or which kernels are wrong
            on its card, for people; empty for neither.
        draft_model: Name of the draft model; empty for none.
        fill_tokens: Tokens for filling in the middle; None for none.
        place: Name of the endpoint of a remote model; empty for a local one. Of a remote model only
            the name and maybe the context size are known; all other numbers are 0.
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
    not_compiled: str = ""
    draft_model: str = ""
    fill_tokens: FillTokens | None = None

    @property
    def is_remote(self) -> bool:
        """Whether the model is remote."""
        return bool(self.place)


@dataclass(frozen=True, slots=True)
class Unloaded(Message):
    """The model was unloaded.

    Attributes:
        freed_bytes: Bytes of its weights and caches.
    """

    freed_bytes: int


class BestNode(NamedTuple):
    """A draft node of the best trees: the first n of them are the best tree of n nodes.

    Attributes:
        parent: Parent node: 0 for the root, k for the k-th of the best nodes.
        head: 1-based number of the head that drafts it, which is its depth.
        rank: Rank among the head's candidates, from 0.
        chance: Probability that its path is accepted: the product of the ranks' accuracies.
    """

    parent: int
    head: int
    rank: int
    chance: float


@dataclass(frozen=True, slots=True)
class Calibrated(Message):
    """The measured step costs of the loaded model.

    Attributes:
        step_s: Pairs (rows, seconds of a forward pass of that many rows), with a short cache.
        plain_step_s: Seconds of a step of plain decoding, with a short cache.
    """

    step_s: tuple[tuple[int, float], ...]
    plain_step_s: float


@dataclass(frozen=True, slots=True)
class Raced(Message):
    """The speeds of the loaded model's drafters.

    Attributes:
        drafters: The drafters, the fastest first, which is now the default.
        speeds: Their speeds, in the same order.
    """

    drafters: tuple[DrafterChoice, ...]
    speeds: tuple[DrafterSpeed, ...]


@dataclass(frozen=True, slots=True)
class Planned(Message):
    """The trees that the engine would use now, from the heads' measured accuracies.

    Sent after `Calibrated` and after every complete answer.

    Attributes:
        temperature: Temperature of the accuracies; 0 for greedy decoding.
        num_learned: Steps at this temperature that were measured since the model was loaded.
        head_accuracies: Per head, the probability that its rank 0, 1, ... is accepted if its path
            is; empty without heads.
        tree_rows: Rows that the engine chooses for `tree_rows=0`, with a short cache.
        source: Name of the draft source.
        best_nodes: Draft nodes of the heads' best trees, the most likely first.
        tree_step_s: Seconds of a complete step with a tree of 2, 3, ... rows, as many as
            `best_nodes`.
    """

    temperature: float
    num_learned: int
    head_accuracies: tuple[tuple[float, ...], ...]
    tree_rows: int
    source: str
    best_nodes: tuple[BestNode, ...]
    tree_step_s: tuple[float, ...]


class VerifiedToken(NamedTuple):
    """A token of a verified text, and the target's prediction after it.

    Attributes:
        token_id: Id of the token.
        text: Bytes of the token; empty for a special token.
        output: The target's most likely token after it.
    """

    token_id: int
    text: bytes
    output: Alternative


@dataclass(frozen=True, slots=True)
class Verified(Message):
    """Result of `Verify`.

    Attributes:
        tokens: Tokens of the text in order.
        seconds: Seconds of the forward pass.
        answers: Token ranges (start, end) of the assistant's messages of a conversation; empty for
            other texts, or if unknown.
    """

    tokens: tuple[VerifiedToken, ...]
    seconds: float
    answers: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerStarted(Message):
    """The first event of an answer.

    Attributes:
        load_id: Request id of the command that loaded the model.
        begins_inside: Whether the prompt ends with the start tag of reasoning.
    """

    load_id: str
    begins_inside: bool = False


@dataclass(frozen=True, slots=True)
class ContextCut(Message):
    """Messages were left out of the prompt of an answer; sent before its text.

    Attributes:
        cut: The messages that were left out.
        num_prompt_tokens: Tokens of the shortened prompt.
        context_tokens: Context size, prompt and answer together.
    """

    cut: Cut
    num_prompt_tokens: int
    context_tokens: int


@dataclass(frozen=True, slots=True)
class LayersMoved(Message):
    """Layers moved between machines within an answer, without changing its text.

    Attributes:
        move: The move.
    """

    move: Move


@dataclass(frozen=True, slots=True)
class Counted(Message):
    """Result of `Count`.

    Attributes:
        num_tokens: Tokens of the whole conversation; an estimate if it is far too long.
        num_read: Tokens of the prompt.
        context_tokens: Context size, prompt and answer together.
        cut: Messages that would be left out of the prompt, or None.
        lack: Why the conversation can't be answered, for people; empty if it can.
        prompt: The rendered prompt, or the whole conversation if it can't be answered; empty unless
            requested.
    """

    num_tokens: int
    num_read: int
    context_tokens: int
    cut: Cut | None
    lack: str
    prompt: str


@dataclass(frozen=True, slots=True)
class Tokenized(Message):
    """Result of `Tokenize`.

    Attributes:
        token_ids: The tokens.
        pieces: Bytes of each token; the name of a special token.
        text: Text of the tokens.
    """

    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Embedded(Message):
    """Result of `Embed`.

    Attributes:
        vectors: Vectors of all texts, each of length 1, one after the other in float32.
        width: Dimensions of a vector.
        num_tokens: Number of tokens of each text.
    """

    vectors: bytes
    width: int
    num_tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class EmbedderUnloaded(Message):
    """The embedding model was unloaded.

    Attributes:
        freed_bytes: Bytes of its weights and cache; 0 if none was loaded.
    """

    freed_bytes: int


class TokenLogprob(NamedTuple):
    """A token and the target's log probability of it.

    Attributes:
        token_id: Id of the token.
        text: Bytes of the token.
        logprob: Natural logarithm of its probability before temperature, filters and penalties.
    """

    token_id: int
    text: bytes
    logprob: float


@dataclass(frozen=True, slots=True)
class StepLogprobs(Message):
    """Log probabilities of a step's tokens; sent after its `StepDone` if requested.

    Attributes:
        step: Number of the step, as in its `StepDone`.
        chosen: Tokens of the step.
        alternatives: The most likely tokens at the position of each, best first.
    """

    step: int
    chosen: tuple[TokenLogprob, ...]
    alternatives: tuple[tuple[TokenLogprob, ...], ...]


class StepDone(NamedTuple):
    """Result of one forward pass of the target: prefill, or a decoding step.

    `pieces[i]` is the UTF-8 text that token i completes (empty within a character, and for special
    tokens). The concatenated pieces of an answer are its text, whose first `num_visible_bytes` may
    be shown: the rest may be the beginning of a stop string.

    It is a tuple, which takes a third of the time of a dataclass to create: there is one per step.

    Attributes:
        session_id: Conversation, as in `Message`.
        request_id: Id of the command, as in `Message`.
        step: 0 for prefill, then 1, 2, ...
        token_ids: Tokens of this step: accepted tokens, then the bonus token. In prefill: prefilled
            tokens of the answer, then the first token. Empty for a remote answer.
        pieces: Bytes that each token completes.
        sources: Source of each token.
        num_visible_bytes: Bytes of the answer so far that may be shown.
        num_rows: Rows of the forward pass: new prompt tokens in prefill, else the tree and rows
            beside it.
        node_sources: Source of each node of the verified tree, the root first.
        times: Seconds of the parts of the step.
        step_s: Seconds of the whole step, decoding of text included.
        num_context_tokens: Tokens of the session so far, prompt included.
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
        text: The whole answer: the visible text of its steps, and after a cancel also text that was
            held back for a stop string.
        token_ids: Tokens of the answer, prefilled ones and EOS included.
        stop_reason: Why it ended.
        num_prompt_tokens: Tokens of the rendered conversation.
        num_given_tokens: Prefilled tokens of the answer.
        num_cached_tokens: Tokens of both that were cached.
        num_steps: Decoding steps (prefill not counted).
        accept_lengths: Tokens of each decoding step, bonus token included.
        time_to_first_token_s: Seconds from the start of the request to the first token.
        prefill_s: Seconds of prefill.
        decode_s: Seconds of all decoding steps, their events and traces included.
        num_plain_steps: Steps of plain decoding, because drafting was paused.
        settings: Settings of the answer; `tree_rows` is the limit that was used.
        plain_step_s: Seconds of a step of plain decoding at this length, measured in this answer,
            or earlier under the same load; 0 if unknown, and for plainly decoded answers.
        num_remote_tokens: Tokens of a remote answer as the endpoint counts them; 0 if unknown, −1
            for a local answer. A remote answer has no steps and no token ids.
        num_drafted: Draft tokens of a remote answer; 0 if unknown.
        num_draft_accepted: Accepted draft tokens of a remote answer.
        num_reread_tokens: Prompt tokens that were computed again, because no state of the recurrent
            layers was cached at their end.
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
    num_plain_steps: int
    settings: GenerateSettings
    plain_step_s: float = 0.0
    num_remote_tokens: int = -1
    num_drafted: int = 0
    num_draft_accepted: int = 0
    num_reread_tokens: int = 0

    @property
    def is_remote(self) -> bool:
        """Whether the answer is remote."""
        return self.num_remote_tokens >= 0

    @property
    def num_new_tokens(self) -> int:
        """New tokens of the answer; 0 if an endpoint doesn't count them."""
        if self.is_remote:
            return self.num_remote_tokens
        return len(self.token_ids) - self.num_given_tokens

    @property
    def mean_acceptance_length(self) -> float:
        """Mean tokens per decode step, bonus included; 0 without a decode step."""
        return sum(self.accept_lengths) / self.num_steps if self.num_steps else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens of decode steps per second of decoding; 0 without a decode step."""
        if self.is_remote:
            return self.num_remote_tokens / self.decode_s if self.decode_s else 0.0
        return sum(self.accept_lengths) / self.decode_s if self.num_steps else 0.0

    @property
    def speed_up(self) -> float | None:
        """Speed-up over plain decoding; None if unknown or implausible."""
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
    """A command failed; the engine keeps running.

    Attributes:
        kind: Name of the error's class, as in `medusa_core.errors`.
        message: The problem, for people.
        hint: How users can solve it; may be empty.
        data: Values of the error by name; see `MedusaError`.
    """

    kind: str
    message: str
    hint: str
    data: Mapping[str, str | int | float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class EngineLost(Failed):
    """The device has failed: this command and all later ones fail."""


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
    | Embedded
    | EmbedderUnloaded
    | Failed
    | EngineLost
)

# A request gets exactly one of these, which is its last event.
FINAL_EVENTS = (
    Calibrated,
    Counted,
    Embedded,
    EmbedderUnloaded,
    Failed,
    GenerationDone,
    ModelLoaded,
    Raced,
    Tokenized,
    Unloaded,
    Verified,
)


def shown_text(steps: Sequence[StepDone]) -> str:
    """Return the visible text after the first steps of an answer."""
    if not steps:
        return ""
    whole = b"".join(piece for step in steps for piece in step.pieces)
    return whole[: steps[-1].num_visible_bytes].decode("utf-8", "ignore")
