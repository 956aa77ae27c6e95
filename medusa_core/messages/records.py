"""What commands and events are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class Role(str, Enum):
    """Who speaks in a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(NamedTuple):
    """A function that the model wants called.

    Attributes:
        call_id: Names the call, so that its result can.
        name: Of the function.
        arguments: A JSON object, as text.
    """

    call_id: str
    name: str
    arguments: str


class ChatMessage(NamedTuple):
    """One turn of a conversation.

    Attributes:
        role: Who speaks.
        content: What is said.
        token_ids: Of an answer, the tokens it was decoded as (`GenerationDone.token_ids`): the
            model then reads what it wrote, and nothing of it is computed again. Where they don't
            fit the content, the content counts.
        tool_calls: Of an answer, the functions it wants called.
        tool_name: Of a tool's result, the function it comes from.
        call_id: Of a tool's result, the call it answers.
    """

    role: Role
    content: str
    token_ids: tuple[int, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""
    call_id: str = ""


class EndpointModel(NamedTuple):
    """A model of another machine, behind an OpenAI-compatible address.

    Attributes:
        endpoint: The address up to `/v1`.
        model_id: Its name there; empty for the first that is offered.
        place: What people call that machine.
    """

    endpoint: str
    model_id: str
    place: str


class StopReason(str, Enum):
    """Why an answer ended."""

    EOS = "eos"
    STOP_STRING = "stop_string"
    MAX_TOKENS = "max_tokens"
    CONTEXT = "context"
    REPETITION = "repetition"
    CANCELLED = "cancelled"


class Overflow(str, Enum):
    """What is done with a conversation that is longer than the model reads."""

    STOP = "stop"
    ROLLING = "rolling"
    MIDDLE = "middle"


class MoveReason(str, Enum):
    """Why layers went from one machine to another."""

    LOST = "lost"
    SLOW = "slow"
    JOINED = "joined"


class Move(NamedTuple):
    """Layers of a model on several machines went from one to others.

    Attributes:
        reason: That machine doesn't answer any more or was too slow, or another one has joined.
        place: Who had most of them.
        successors: Who has them now, or has some of them.
        num_layers: How many.
    """

    reason: MoveReason
    place: str
    successors: tuple[str, ...]
    num_layers: int

    @property
    def text(self) -> str:
        """What happened, for people."""
        others = ", ".join(self.successors)
        if self.reason is MoveReason.LOST:
            text = f"{self.place} is lost: its layers ({self.num_layers}) are now at {others}."
        elif self.reason is MoveReason.SLOW:
            text = f"{self.place} is slow: {self.num_layers} of the layers went to {others}."
        else:
            text = f"{others} joined and took {self.num_layers} of the layers."
        return text


class Machine(NamedTuple):
    """Another machine that has layers of a model.

    Attributes:
        place: Its name for people.
        num_layers: How many it has.
    """

    place: str
    num_layers: int


class Cut(NamedTuple):
    """What of a conversation the model doesn't read, for want of room.

    Attributes:
        num_messages: Messages that are left out; the conversation itself keeps them.
        num_tokens: Their tokens.
    """

    num_messages: int
    num_tokens: int


class TokenSource(NamedTuple):
    """Where a token came from.

    Attributes:
        drafter: `"target"` for a token the target chose itself (the first token and every bonus
            token), `"given"` for a token of an answer that is gone on with, else who proposed the
            accepted token: names of sources, with `+` between.
        head: Draft depth of the accepted token, 1-based (head k drafts depth k); 0 for the others.
    """

    drafter: str
    head: int

    @property
    def proposers(self) -> tuple[str, ...]:
        """All who proposed it; nobody proposes what the target chose itself or what was given."""
        return () if self.head == 0 else tuple(self.drafter.split("+"))


TARGET = TokenSource("target", 0)
GIVEN = TokenSource("given", 0)
# Text that another machine sent as reasoning, apart from the answer.
REASONING = TokenSource("reasoning", 0)


class DrafterChoice(NamedTuple):
    """A drafter that people choose.

    Attributes:
        name: Its name in settings.
        label: What a list shows.
        explanation: One sentence.
        drafts: Whether it ever guesses; else it is plain decoding.
        looks_ahead: Whether it reads the sizes of lookahead decoding.
    """

    name: str
    label: str
    explanation: str
    drafts: bool = True
    looks_ahead: bool = False


_NOISE = 1.05  # of a speed-up that was measured


def is_plausible_speed_up(speed_up: float, tokens_per_step: float) -> bool:
    """Whether a speed-up over plain decoding can be true.

    A step with drafts takes at least as long as a plain one, so it is at most the tokens per step;
    where more was measured, the computer was busy with something else in one of the two.
    """
    return speed_up <= tokens_per_step * _NOISE


class DrafterSpeed(NamedTuple):
    """How fast a drafter was on this computer, where all of a model's answered the same questions.

    Attributes:
        name: Its name in settings.
        tau: Tokens per decoding step.
        tokens_per_s: Tokens per second of decoding.
        x_plain: That over plain decoding's.
        draft_ms: Milliseconds of a step that drafting took.
        growth: Which form most of its steps had: "chain", "tree", or "none" where nothing was
            drafted.
        num_rows: Mean rows of a step, root included.
        levels: Mean depth of a step's drafts.
        step_x: How many times as long as a step of one row one of so many rows takes; 0 where that
            wasn't measured.
        why: Why that form, in one sentence with these figures; English.
    """

    name: str
    tau: float
    tokens_per_s: float
    x_plain: float
    draft_ms: float
    growth: str = "none"
    num_rows: float = 1.0
    levels: float = 0.0
    step_x: float = 0.0
    why: str = ""


class RuleChoice(NamedTuple):
    """An acceptance rule that people choose.

    Attributes:
        name: Its name in settings.
        label: What a list shows.
        explanation: One sentence.
        is_exact: The text has the target's own distribution.
        draws: It chooses by the seed's noise; else the same scores always give the same token.
        numbers: What it decides by, as `Verdict.numbers` names it, and what people call that.
    """

    name: str
    label: str
    explanation: str
    is_exact: bool
    draws: bool
    numbers: tuple[tuple[str, str], ...] = ()

    def number_label(self, name: str) -> str:
        """What people call a number; its name where the rule doesn't know it."""
        return dict(self.numbers).get(name, name)


class SourceInfo(NamedTuple):
    """How a source of drafts is shown.

    Attributes:
        name: As in `TokenSource.proposers`.
        label: A word for it, such as "suffix".
        badge: A short one, for a node of a tree.
        explanation: What its mark means, such as "found in the text so far".
        colours: Names of colours of the window's palette, for depth 1, 2, ...; they begin again.
        line: How its tokens are underlined: solid, dash, dot, dash-dot or wave.
        is_numbered: Each depth has a mark of its own, and label and badge are followed by it.
        draws_block: All guesses of a step are drawn in one pass, as a block of places.
    """

    name: str
    label: str
    badge: str
    explanation: str
    colours: tuple[str, ...]
    line: str
    is_numbered: bool = False
    draws_block: bool = False


AUTO_GROWTH, CHAIN, TREE = GROWTHS = ("auto", "chain", "tree")


class Lookahead(NamedTuple):
    """Sizes of lookahead decoding, as its paper names them.

    Attributes:
        window: W: places behind the root at which tokens are guessed in parallel, in each step.
        size: N: tokens of an n-gram; of each place the last N − 1 guesses ride.
        guesses: G: n-grams that are kept and offered behind one token.
    """

    window: int = 7
    size: int = 4
    guesses: int = 7


@dataclass(frozen=True, slots=True)
class GenerateSettings:
    """How an answer is to be decoded.

    Attributes:
        drafter: Name of a registered drafter, such as `medusa` or `none`; empty, in a command to
            the engine, for the loaded model's default.
        rule: Name of a registered acceptance rule, such as `greedy`.
        temperature: Divides the logits under `sample` and `typical`; at 0 every rule is `greedy`.
        top_k: Keep the k best tokens when drawing; 0 keeps all.
        top_p: Keep the smallest set of tokens whose probability reaches this, in (0, 1].
        min_p: Keep the tokens at least this share as probable as the best, in [0, 1]; 0 keeps all.
        repetition_penalty: Divides positive and multiplies negative logits of every token that the
            prompt or the answer holds; > 0, 1 changes nothing (CTRL, Keskar et al. 2019).
        presence_penalty: Subtracted from the logit of every token that the answer holds.
        frequency_penalty: Subtracted once for every time the answer holds it.
        logit_bias: Pairs (token id, what is added to its logit).
        banned: Tokens that never come.
        forbidden: Pairs (place in the answer, counted from 0; token that may not stand there).
        epsilon: `typical` accepts what is more probable than this, in (0, 1); see the rule.
        delta: `typical` asks for less than that where the target is unsure; 0 for √ε.
        seed: Key of the sampling noise; the same seed repeats the same text.
        max_new_tokens: Token budget of the answer, EOS included; 0 for what the context leaves.
        stop: Strings that end the answer; they are not part of it.
        stop_on_repetition: End an answer that only repeats itself; see `chats.repetition`.
        tree_rows: Most rows of a verified tree, root included; 0 lets the engine choose.
        growth: One of `GROWTHS`: drafts are a `chain` without branches, or a `tree`; `auto` lets
            the engine choose in each step, nothing included.
        lookahead_window: W of lookahead decoding; see `Lookahead`.
        lookahead_size: N of it.
        lookahead_guesses: G of it.
        overflow: `stop` refuses a conversation that is too long. The others leave messages out,
            but never a system prompt or the last message: `rolling` the oldest ones, `middle` those
            behind the first quarter. They also keep an eighth of the context free for the answer.
        thinks: Whether a model that may think before it answers does; None for its template's
            usual. Other models don't mind.
    """

    drafter: str = ""
    rule: str = "greedy"
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    banned: tuple[int, ...] = ()
    forbidden: tuple[tuple[int, int], ...] = ()
    epsilon: float = 0.09
    delta: float = 0.0
    seed: int = 0
    max_new_tokens: int = 512
    stop: tuple[str, ...] = ()
    stop_on_repetition: bool = False
    tree_rows: int = 0
    growth: str = AUTO_GROWTH
    lookahead_window: int = Lookahead().window
    lookahead_size: int = Lookahead().size
    lookahead_guesses: int = Lookahead().guesses
    overflow: Overflow = Overflow.STOP
    thinks: bool | None = None

    @property
    def lookahead(self) -> Lookahead:
        """The sizes of lookahead decoding."""
        return Lookahead(self.lookahead_window, self.lookahead_size, self.lookahead_guesses)


class ThinkingSwitch(NamedTuple):
    """What a model's template does about thoughts before the answer.

    Attributes:
        can_switch: It can be told whether to think.
        opens_usually: Not told, it opens a thought at the end of the prompt: answers begin in it.
        opens_on_request: Asked to think, it does.
    """

    can_switch: bool = False
    opens_usually: bool = False
    opens_on_request: bool = False

    def opens(self, thinks: bool | None) -> bool:
        """Whether an answer begins within a thought, under this setting."""
        return self.opens_usually if thinks is None else thinks and self.opens_on_request


NO_SWITCH = ThinkingSwitch()


class ReasoningFormat(NamedTuple):
    """Tags by which a model sets its reasoning apart from the answer.

    Attributes:
        start: Tag before the reasoning; empty for a model that doesn't reason.
        end: Tag after it; empty together with `start`.
        header: Beginning of each further message where one answer is several messages, such as
            `<|start|>assistant` of GPT-OSS; empty for others.
        responses: Tags that may stand before the answer itself; they aren't part of it.
        response_ends: Tags that may stand after it.
        tokens: Pairs (id, text) of the parts of these tags that are single tokens of the
            vocabulary. Such a part is recognised by its id alone: spelled out, it is text.
    """

    start: str = "<think>"
    end: str = "</think>"
    header: str = ""
    responses: tuple[str, ...] = ()
    response_ends: tuple[str, ...] = ()
    tokens: tuple[tuple[int, str], ...] = ()

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags."""
        found = (self.start, self.end, self.header, *self.responses, *self.response_ends)
        return tuple(tag for tag in found if tag)


THINK_TAGS = ReasoningFormat()
NO_REASONING = ReasoningFormat("", "")  # all that the model writes is its answer


class FillTokens(NamedTuple):
    """Tokens between the parts of a prompt for filling in the middle (FIM).

    Attributes:
        prefix: Before the text before the gap.
        suffix: Before the text after the gap.
        middle: Before the text that fills it.
        file: Before the name and text of another file; −1 where there is none.
        repository: Before a repository's name; −1 where there is none.
    """

    prefix: int
    suffix: int
    middle: int
    file: int = -1
    repository: int = -1


class Advice(NamedTuple):
    """How the makers of a model advise to sample from it.

    Attributes:
        temperature: As in `GenerateSettings`; 0 where they advise not to draw.
        top_k: As there.
        top_p: As there.
        min_p: As there.
        repetition_penalty: As there.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


class Fit(str, Enum):
    """Does a model fit a device?"""

    FITS = "fits"
    TIGHT = "tight"
    NO = "no"


@dataclass(frozen=True, slots=True)
class HeadsShape:
    """Sizes of heads.

    Attributes:
        num_heads: How many there are.
        num_layers: Residual layers of each.
        columns: Tokens that each drafts from; 0 where they share the target's projection.
        hidden_size: Their width; 0 if unknown.
        is_reduced: They draft from a choice of the target's vocabulary.
        reads_root: Their first layers read the root's vector beside the target's state.
        has_one_projection: One projection serves all of them.
        matrices: Rows and columns of what heads of another kind than Medusa's are made of; the
            sizes above then count for nothing in a plan.
        dense_matrices: Likewise, of those that stay plain numbers in any format.
        num_norm_numbers: Numbers of their norms.
        num_biases: Numbers of the biases of their matrices.
        cache_row: Numbers that a token takes in a cache of their own.
        num_vector_numbers: Numbers of token vectors of their own.
        kind: The name of their kind.
        reads_width: Width of the target's states that they read; 0 for `hidden_size`.
        made_for_vocab: Tokens of the target that they were made for; 0 if they don't say.
        deepest_layer: Of the target's layers that they read the last one; 0 for any target's.
        num_ids: Token ids that they keep, of eight bytes each.
        families: Of targets that they can read; empty for any.
    """

    num_heads: int = 0
    num_layers: int = 1
    columns: int = 0
    hidden_size: int = 0
    is_reduced: bool = False
    reads_root: bool = False
    has_one_projection: bool = False
    matrices: tuple[tuple[int, int], ...] = ()
    dense_matrices: tuple[tuple[int, int], ...] = ()
    num_norm_numbers: int = 0
    num_biases: int = 0
    cache_row: int = 0
    num_vector_numbers: int = 0
    kind: str = "medusa"
    reads_width: int = 0
    made_for_vocab: int = 0
    deepest_layer: int = 0
    num_ids: int = 0
    families: tuple[str, ...] = ()


class Tier(str, Enum):
    """Where a layer's weights, or its keys and values, lie."""

    DEVICE = "device"
    MEMORY = "memory"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Placement:
    """Which layers lie where; those below the device are brought to it once a pass.

    Attributes:
        tiers: Of every layer.
        layer_bytes: Of every layer the bytes that are brought.
        buffer_bytes: Of the device's memory what the brought layers pass through.
        prompt_rows: Most rows of a prompt that are computed at once: layers come once for all of
            them.
        pass_rows: Rows of prompts that a pass reads, batch by batch; 0 for no more than are
            computed at once.
        cache_tiers: Of every layer where its keys and values lie; empty where all lie on the
            device.
        attention: Where attention to rows below the device is computed.
        states: Where what goes from one layer to the next lies, for batches that aren't computed.
        batch: Sequences that are computed at once; 0 for all of a pass.
        tree_rows: Most rows of a step of one sequence, where cached rows lie below the device.
    """

    tiers: tuple[Tier, ...]
    layer_bytes: tuple[int, ...]
    buffer_bytes: int
    prompt_rows: int = 64
    pass_rows: int = 0
    cache_tiers: tuple[Tier, ...] = ()
    attention: Tier = Tier.DEVICE
    states: Tier = Tier.DEVICE
    batch: int = 0
    tree_rows: int = 1

    def layers(self, tier: Tier) -> tuple[int, ...]:
        """The layers of a tier."""
        return tuple(index for index, its in enumerate(self.tiers) if its is tier)

    def cached_layers(self, tier: Tier) -> tuple[int, ...]:
        """The layers whose keys and values lie in a tier."""
        return tuple(index for index, its in enumerate(self.cache_tiers) if its is tier)

    def nbytes(self, tier: Tier) -> int:
        """Bytes of the layers of a tier."""
        return sum(self.layer_bytes[index] for index in self.layers(tier))

    @property
    def offloaded_bytes(self) -> int:
        """Bytes that a pass brings."""
        return self.nbytes(Tier.MEMORY) + self.nbytes(Tier.DISK)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Where a device's memory goes.

    Attributes:
        weights_bytes: The target; of layers that lie below the device, what they pass through.
        heads_bytes: What drafts: its heads, and the weights of a draft model.
        kv_bytes: The cache for the context.
        scratch_bytes: What a step needs besides; an upper estimate.
        runtime_bytes: Torch, CUDA and their kernels.
        other_bytes: Other programs.
        free_bytes: What is left; negative if it doesn't fit.
        total_bytes: All of the device's memory.
        ram_bytes: Token vectors that stay in the computer's memory.
        context_tokens: The context that was planned for.
        max_context: The longest context that has room; 0 if none has.
        fit: Whether it fits.
        is_live: Other programs' share was measured, not assumed.
        draft_model_bytes: Of `heads_bytes`: the weights of a draft model.
        placement: Which layers lie where; None where all lie on the device.
        state_bytes: Of `kv_bytes`: states of recurrent layers, as large for any context.
    """

    weights_bytes: int
    heads_bytes: int
    kv_bytes: int
    scratch_bytes: int
    runtime_bytes: int
    other_bytes: int
    free_bytes: int
    total_bytes: int
    ram_bytes: int
    context_tokens: int
    max_context: int
    fit: Fit
    is_live: bool
    draft_model_bytes: int = 0
    placement: Placement | None = None
    state_bytes: int = 0

    @property
    def model_bytes(self) -> int:
        """What the model holds, and another one in its place would free."""
        return self.weights_bytes + self.heads_bytes + self.kv_bytes


# Of a model that takes no memory of this computer.
NO_PLAN = MemoryPlan(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Fit.FITS, is_live=False)


@dataclass(frozen=True, slots=True)
class Message:
    """What every command and event carries."""

    session_id: str
    request_id: str


class StepTimes(NamedTuple):
    """Where a step's time went.

    On CUDA the forward pass runs on while the rule waits for it: `verify_s` is then the time to
    launch it and `accept_s` holds the rest, and so what `transfer_s` counts; unless the step is
    recorded.

    Attributes:
        draft_s: Seconds spent proposing.
        verify_s: Seconds of the target's forward pass.
        accept_s: Seconds of the acceptance rule.
        commit_s: Seconds to keep the accepted rows.
        transfer_s: Of `verify_s`, seconds in which nothing was computed: layers were on their way
            from below the device, or rows between machines.
        remote_s: Of `verify_s`, seconds in which other machines computed.
    """

    draft_s: float
    verify_s: float
    accept_s: float
    commit_s: float
    transfer_s: float = 0.0
    remote_s: float = 0.0

    @property
    def parts(self) -> tuple[float, float, float, float, float, float]:
        """Seconds of parts that don't overlap: draft, verify, transfer, remote, accept, commit."""
        here = max(0.0, self.verify_s - self.transfer_s - self.remote_s)
        return self.draft_s, here, self.transfer_s, self.remote_s, self.accept_s, self.commit_s


class WeightFormats(NamedTuple):
    """Which weight format each part of a model takes; empty for what suits the others.

    Attributes:
        linears: The linear layers of all blocks: `bf16`, `int8`, `q4` on a CPU, `nf4` on a card.
        lm_head: The projection to the vocabulary; dense unless told otherwise.
        embedding: The token vectors: a dense format.
        heads: The Medusa heads; as the linear layers unless told otherwise.
        embedding_in_ram: Keep the token vectors in the computer's memory: a step reads few of them.
        cache: Keys and values: `q4`, or empty for plain numbers.
        attended: Rows whose values attention takes, those of the largest weights; 0 for all, which
            alone is exact.
        per_layer: Where per-layer embeddings lie: `disk`, in the model's file, which is read row by
            row; `ram`; or `device`. Empty for the disk.
    """

    linears: str = ""
    lm_head: str = ""
    embedding: str = ""
    heads: str = ""
    embedding_in_ram: bool = False
    cache: str = ""
    attended: int = 0
    per_layer: str = ""
