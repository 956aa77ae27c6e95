"""Records of commands and events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Self

from medusa_core.i18n import tr
from medusa_core.messages.content import Content, as_content, content_text, with_text


class Role(str, Enum):
    """Role of a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(NamedTuple):
    """A tool call of a model.

    Attributes:
        call_id: Id of the call, to which its result refers.
        name: Name of the function.
        arguments: Arguments as a JSON object, as text.
    """

    call_id: str
    name: str
    arguments: str


class _MessageFields(NamedTuple):
    """Fields of a `ChatMessage`, whose constructor takes text, too."""

    role: Role
    content: Content
    token_ids: tuple[int, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""
    call_id: str = ""


class ChatMessage(_MessageFields):
    """A message of a conversation.

    Attributes:
        role: Role of the message.
        content: Text and images of the message.
        token_ids: Tokens of an answer as decoded (`GenerationDone.token_ids`), its tool calls
            included, so that its cached rows are reused; ignored if they don't match the answer.
        tool_calls: Tool calls of an answer.
        tool_name: Function of a tool's result.
        call_id: Id of the call of a tool's result.
    """

    __slots__ = ()

    def __new__(
        cls,
        role: Role,
        content: str | Content,
        token_ids: tuple[int, ...] = (),
        tool_calls: tuple[ToolCall, ...] = (),
        tool_name: str = "",
        call_id: str = "",
    ) -> Self:
        """Make a message; a string is content of text alone."""
        parts = as_content(content) if isinstance(content, str) else content
        return super().__new__(cls, role, parts, token_ids, tool_calls, tool_name, call_id)

    @property
    def text(self) -> str:
        """The text parts."""
        return content_text(self.content)

    def with_text(self, text: str) -> ChatMessage:
        """Return the message with another text."""
        return self._replace(content=with_text(self.content, text))


class Purpose(str, Enum):
    """What a text is embedded for; many models prefix queries, and some documents, too."""

    ANY = "any"  # no prefix
    QUERY = "query"
    DOCUMENT = "document"


class EndpointModel(NamedTuple):
    """A model of an OpenAI-compatible endpoint.

    Attributes:
        endpoint: URL up to `/v1`.
        model_id: Id of the model; empty for the first of the endpoint.
        place: Name of the endpoint, for people.
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
    """What to do with a conversation that exceeds the context."""

    STOP = "stop"
    ROLLING = "rolling"
    MIDDLE = "middle"


class MoveReason(str, Enum):
    """Why layers moved to another machine."""

    LOST = "lost"
    SLOW = "slow"
    JOINED = "joined"


class Move(NamedTuple):
    """A move of layers within a cluster.

    Attributes:
        reason: Whether a machine was lost or slow, or another one joined.
        place: Name of the machine that had most of the layers.
        successors: Names of the machines that have them now.
        num_layers: Number of moved layers.
    """

    reason: MoveReason
    place: str
    successors: tuple[str, ...]
    num_layers: int

    @property
    def text(self) -> str:
        """Description of the move, for people."""
        others = ", ".join(self.successors)
        if self.reason is MoveReason.LOST:
            text = tr(
                "{0} is lost: its layers ({1}) are now at {2}.", self.place, self.num_layers, others
            )
        elif self.reason is MoveReason.SLOW:
            text = tr(
                "{0} is slow: {1} of the layers went to {2}.", self.place, self.num_layers, others
            )
        else:
            text = tr("{0} joined and took {1} of the layers.", others, self.num_layers)
        return text


class Machine(NamedTuple):
    """A machine of a cluster.

    Attributes:
        place: Name of the machine, for people.
        num_layers: Number of its layers.
    """

    place: str
    num_layers: int


class Cut(NamedTuple):
    """Messages left out of a prompt because the conversation exceeds the context.

    Attributes:
        num_messages: Number of messages; the conversation itself keeps them.
        num_tokens: Number of their tokens.
    """

    num_messages: int
    num_tokens: int


class TokenSource(NamedTuple):
    """Source of a token.

    Attributes:
        drafter: `"target"` for the first token and bonus tokens, `"given"` for tokens of a
            prefilled answer, else the names of the sources that drafted the token, joined by `+`.
        head: 1-based depth of an accepted draft token (head k drafts depth k); 0 for others.
    """

    drafter: str
    head: int

    @property
    def proposers(self) -> tuple[str, ...]:
        """Names of the sources that drafted the token; empty if none did."""
        return () if self.head == 0 else tuple(self.drafter.split("+"))


TARGET = TokenSource("target", 0)
GIVEN = TokenSource("given", 0)
# Reasoning that an endpoint sends apart from the answer.
REASONING = TokenSource("reasoning", 0)


class DrafterChoice(NamedTuple):
    """A drafter that users can choose.

    Attributes:
        name: Name in settings.
        label: Name in lists.
        explanation: Description in one sentence.
        drafts: Whether it drafts at all; False for plain decoding.
        looks_ahead: Whether the sizes of lookahead decoding apply.
    """

    name: str
    label: str
    explanation: str
    drafts: bool = True
    looks_ahead: bool = False


_NOISE = 1.05  # tolerance of a measured speed-up


def is_plausible_speed_up(speed_up: float, tokens_per_step: float) -> bool:
    """Return whether a measured speed-up over plain decoding is plausible.

    A step with drafts takes at least as long as a plain one, so a speed-up is at most the tokens
    per step. If more was measured, other programs disturbed one of the measurements.
    """
    return speed_up <= tokens_per_step * _NOISE


class DrafterSpeed(NamedTuple):
    """Measured speed of a drafter, compared with the model's other drafters.

    Attributes:
        name: Name in settings.
        tau: Mean tokens per decoding step.
        tokens_per_s: Tokens per second of decoding.
        x_plain: Speed-up over plain decoding.
        draft_ms: Milliseconds of drafting per step.
        growth: Most frequent form of the drafts: "chain", "tree", or "none" without drafts.
        num_rows: Mean rows per step, root included.
        levels: Mean depth of the drafts.
        step_x: Time of a step of `num_rows` rows relative to one row; 0 if unknown.
        why: Reason for the form, in one English sentence with these figures.
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
    """An acceptance rule that users can choose.

    Attributes:
        name: Name in settings.
        label: Name in lists.
        explanation: Description in one sentence.
        is_exact: Whether the text has the target's distribution.
        draws: Whether it samples with the seed's noise; False for a deterministic rule.
        numbers: Names of `Verdict.numbers`, with labels for people.
    """

    name: str
    label: str
    explanation: str
    is_exact: bool
    draws: bool
    numbers: tuple[tuple[str, str], ...] = ()

    def number_label(self, name: str) -> str:
        """Return the label of a number; its name if the rule has none."""
        return dict(self.numbers).get(name, name)


class SourceInfo(NamedTuple):
    """Presentation of a draft source.

    Attributes:
        name: Name in `TokenSource.proposers`.
        label: Label, such as "suffix".
        badge: Short label for a node of a tree.
        explanation: Meaning of its mark, such as "found in the text so far".
        colours: Colours of the window's palette for depth 1, 2, ...; repeated for deeper nodes.
        line: Style of the underline: solid, dash, dot, dash-dot or wave.
        is_numbered: Whether label and badge are followed by the depth.
        draws_block: Whether all draft tokens of a step come from one pass (block drafting).
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
    """Sizes of lookahead decoding (Fu et al., 2024).

    Attributes:
        window: W: positions after the root at which tokens are guessed in each step.
        size: N: length of an n-gram; rows of the last N − 1 guesses of each position are computed.
        guesses: G: most n-grams per first token that are stored and verified.
    """

    window: int = 7
    size: int = 4
    guesses: int = 7


@dataclass(frozen=True, slots=True)
class GenerateSettings:
    """Generation settings.

    Attributes:
        drafter: Name of a registered drafter, such as `medusa` or `none`; empty for the model's
            default.
        rule: Name of a registered acceptance rule, such as `greedy`.
        temperature: Divides the logits under `sample` and `typical`; at 0 every rule is `greedy`.
        top_k: Keep the k best tokens when drawing; 0 keeps all.
        top_p: Keep the smallest set of tokens whose probability reaches this, in (0, 1].
        min_p: Keep the tokens with at least this fraction of the best token's probability, in
            [0, 1]; 0 keeps all.
        repetition_penalty: Divides positive and multiplies negative logits of every token of prompt
            and answer; > 0, 1 for none (CTRL, Keskar et al. 2019).
        presence_penalty: Subtracted from the logit of every token of the answer.
        frequency_penalty: Subtracted from it once per occurrence.
        logit_bias: Pairs (token id, addend of its logit).
        banned: Tokens that are never generated.
        forbidden: Pairs (position in the answer, from 0; token that is not allowed there).
        epsilon: Probability above which `typical` accepts a token, in (0, 1); see the rule.
        delta: Factor of exp(−entropy), the threshold of `typical` where it is lower; 0 for √ε.
        seed: Key of the sampling noise; the same seed repeats the same text.
        max_new_tokens: Most tokens of the answer, EOS included; 0 for the rest of the context.
        stop: Stop strings, which are not part of the answer.
        stop_on_repetition: Whether to end an answer that only repeats itself; see
            `chats.repetition`.
        tree_rows: Most rows of a verified tree, root included; 0 lets the engine choose.
        growth: One of `GROWTHS`: drafts are a `chain` without branches, or a `tree`; `auto` lets
            the engine choose in each step, no drafts included.
        lookahead_window: W of lookahead decoding; see `Lookahead`.
        lookahead_size: N of lookahead decoding.
        lookahead_guesses: G of lookahead decoding.
        overflow: `stop` refuses a conversation that is too long. The others leave messages out,
            but never a system prompt or the last message: `rolling` the oldest ones, `middle` those
            after the first quarter. They also keep an eighth of the context free for the answer.
        thinks: Whether the model reasons before it answers; None for the template's default.
            Ignored by models without this option.
        json_schema: JSON schema of the answer; empty for any text. Whoever asks sends its grammar
            with the request, except to endpoints.
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
    json_schema: str = ""

    @property
    def lookahead(self) -> Lookahead:
        """Sizes of lookahead decoding."""
        return Lookahead(self.lookahead_window, self.lookahead_size, self.lookahead_guesses)


class ThinkingSwitch(NamedTuple):
    """How a chat template switches reasoning.

    Attributes:
        can_switch: Whether the template has a switch such as `enable_thinking`.
        opens_usually: Whether the prompt ends with the start tag of reasoning by default.
        opens_on_request: Whether it does if reasoning is switched on.
    """

    can_switch: bool = False
    opens_usually: bool = False
    opens_on_request: bool = False

    def opens(self, thinks: bool | None) -> bool:
        """Return whether the prompt ends with the start tag of reasoning, under this setting."""
        return self.opens_usually if thinks is None else thinks and self.opens_on_request


NO_SWITCH = ThinkingSwitch()


class ReasoningFormat(NamedTuple):
    """Tags that separate a model's reasoning from its answer.

    Attributes:
        start: Tag before the reasoning; empty for a model that doesn't reason.
        end: Tag after it; empty together with `start`.
        header: Beginning of each further message if an answer has several messages, such as
            `<|start|>assistant` of GPT-OSS; empty for others.
        responses: Tags before the answer itself, of which they are no part.
        response_ends: Tags after the answer.
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
NO_REASONING = ReasoningFormat("", "")


class FillTokens(NamedTuple):
    """Tokens between the parts of a prompt for filling in the middle (FIM).

    Attributes:
        prefix: Token before the text before the gap.
        suffix: Token before the text after the gap.
        middle: Token before the text in the gap.
        file: Token before the name and text of another file; −1 for none.
        repository: Token before the name of a repository; −1 for none.
    """

    prefix: int
    suffix: int
    middle: int
    file: int = -1
    repository: int = -1


class Advice(NamedTuple):
    """Sampling settings that a model's makers recommend; see `GenerateSettings`."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


class Fit(str, Enum):
    """Whether a model fits a device."""

    FITS = "fits"
    TIGHT = "tight"
    NO = "no"


@dataclass(frozen=True, slots=True)
class HeadsShape:
    """Sizes of heads.

    Attributes:
        num_heads: Number of heads.
        num_layers: Residual layers of each Medusa head.
        columns: Vocabulary size of each head's own projection; 0 if they share the target's.
        hidden_size: Hidden size; 0 if unknown.
        is_reduced: Whether they draft from a subset of the target's vocabulary.
        reads_root: Whether their first layers also read the root's embedding.
        has_one_projection: Whether all heads share one projection.
        matrices: Rows and columns of the matrices of heads of other kinds than Medusa's, which
            replace the sizes above in a plan.
        dense_matrices: Rows and columns of matrices that are never quantized.
        num_norm_numbers: Number of norm weights.
        num_biases: Number of biases.
        cache_row: Elements of a token's row in the heads' own KV cache.
        num_vector_numbers: Elements of the heads' own token embeddings.
        kind: Name of the kind of heads.
        reads_width: Width of the target's hidden states that they read; 0 for `hidden_size`.
        made_for_vocab: Vocabulary size of the target that they were trained for; 0 if unknown.
        deepest_layer: Last layer of the target that they read; 0 for any.
        num_ids: Number of stored token ids, 8 bytes each.
        families: Families of targets that they support; empty for any.
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
    """Place of a layer's weights or KV cache."""

    DEVICE = "device"
    MEMORY = "memory"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Placement:
    """Places of the layers; offloaded layers are loaded to the device once per pass.

    Attributes:
        tiers: Tier of every layer.
        layer_bytes: Bytes of every layer that are loaded if it is offloaded.
        buffer_bytes: Bytes of the device's buffers for offloaded layers.
        prompt_rows: Most rows of a prompt that are computed at once, for each load of a layer.
        pass_rows: Prompt rows of a pass, batch by batch; 0 for those that are computed at once.
        cache_tiers: Tier of every layer's KV cache; empty if all are on the device.
        attention: Tier where attention to offloaded KV rows is computed.
        states: Tier of the activations between layers, for waiting batches.
        batch: Sequences per batch; 0 for all of a pass.
        tree_rows: Most rows of a step of one sequence with an offloaded KV cache.
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
        """Return the layers of a tier."""
        return tuple(index for index, other in enumerate(self.tiers) if other is tier)

    def cached_layers(self, tier: Tier) -> tuple[int, ...]:
        """Return the layers whose KV cache is in a tier."""
        return tuple(index for index, other in enumerate(self.cache_tiers) if other is tier)

    def nbytes(self, tier: Tier) -> int:
        """Return the bytes of the layers of a tier."""
        return sum(self.layer_bytes[index] for index in self.layers(tier))

    @property
    def offloaded_bytes(self) -> int:
        """Bytes that a pass loads to the device."""
        return self.nbytes(Tier.MEMORY) + self.nbytes(Tier.DISK)


class CpuReason(str, Enum):
    """Why the processor computes a part of a model on a card."""

    REQUESTED = "requested"
    ONLY_WAY = "only_way"  # on the card it doesn't fit, and nothing else was allowed
    FASTER = "faster"  # than to stream layers to the card


@dataclass(frozen=True, slots=True)
class CpuParts:
    """MLPs and experts in host memory that the processor computes beside a card.

    Attributes:
        layers: Indices of the layers that they belong to.
        num_experts: Number of these layers that have experts; the others have one MLP.
        num_layers: Layers of the model.
        nbytes: Bytes of host memory.
        reason: Why they aren't on the card.
        drafter_layers: Number of these layers that would be on the card without a drafter.
        step_s: Expected seconds of a step of one row; 0 if unknown.
        streamed_s: As `step_s`, if layers were streamed to the card instead; 0 if unknown.
    """

    layers: tuple[int, ...]
    num_experts: int
    num_layers: int
    nbytes: int
    reason: CpuReason = CpuReason.ONLY_WAY
    drafter_layers: int = 0
    step_s: float = 0.0
    streamed_s: float = 0.0

    @property
    def num_mlps(self) -> int:
        """Layers whose only MLP they are."""
        return len(self.layers) - self.num_experts

    @property
    def summary(self) -> str:
        """What they are, for people."""
        found = [f"the experts of {self.num_experts}"] if self.num_experts else []
        found += [f"the MLPs of {self.num_mlps}"] if self.num_mlps else []
        return f"the processor computes {' and '.join(found)} of {self.num_layers} layers"

    @property
    def displaced(self) -> str:
        """How many make room for a drafter, to follow `summary`; empty for none."""
        return f", {self.drafter_layers} of them for the drafter" if self.drafter_layers else ""

    @property
    def why(self) -> str:
        """Why the processor computes them, for people."""
        if self.reason is CpuReason.REQUESTED:
            return "--experts or --cpu-layers ask for it"
        if self.reason is CpuReason.FASTER:
            return (
                f"a step takes {1000 * self.step_s:.1f} ms so, and {1000 * self.streamed_s:.1f} ms "
                "with layers streamed to the card"
            )
        return "the card has no room for them"


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Memory plan of a device.

    Attributes:
        weights_bytes: Bytes of the target's weights, with the buffers of offloaded layers.
        heads_bytes: Bytes of heads and draft model.
        kv_bytes: Bytes of the KV cache.
        scratch_bytes: Upper estimate of the temporary tensors of a step.
        runtime_bytes: Bytes of torch, CUDA and their kernels.
        other_bytes: Bytes of other programs.
        free_bytes: Bytes that stay free; negative if the model doesn't fit.
        total_bytes: Bytes of the device's memory.
        ram_bytes: Bytes of host memory: token embeddings, and what the processor computes.
        context_tokens: Context size of the plan.
        max_context: Longest context that fits; 0 if none does.
        fit: Whether the model fits.
        is_live: Whether the memory of other programs was measured instead of assumed.
        draft_model_bytes: Bytes of the draft model's weights in `heads_bytes`.
        placement: Places of the layers; None if all are on the device.
        state_bytes: Bytes of recurrent states in `kv_bytes`, independent of the context.
        cpu_parts: Parts that the processor computes beside a card; None for none.
        cache_type: Type of keys and values: `f32`, `bf16`, `f16`, `q8_0` or `q4`.
        shrinks_cache: Whether `q8_0` was chosen because the context doesn't fit otherwise.
        reserved_bytes: Bytes that stay free for an embedding model.
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
    cpu_parts: CpuParts | None = None
    cache_type: str = ""
    shrinks_cache: bool = False
    reserved_bytes: int = 0

    @property
    def quantizes_cache(self) -> bool:
        """Whether keys and values are quantized."""
        return self.cache_type.startswith("q")

    @property
    def cache_note(self) -> str:
        """Type of quantized keys and values, and why it was chosen; empty for unquantized ones."""
        if not self.shrinks_cache:
            return tr("KV cache {0}", self.cache_type) if self.quantizes_cache else ""
        tokens = f"{self.context_tokens:,}"
        return tr("KV cache in 8 bits (q8_0): otherwise {0} tokens don't fit", tokens)

    @property
    def model_bytes(self) -> int:
        """Bytes that unloading the model frees."""
        return self.weights_bytes + self.heads_bytes + self.kv_bytes


# Plan of a remote model.
NO_PLAN = MemoryPlan(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Fit.FITS, is_live=False)


@dataclass(frozen=True, slots=True)
class Message:
    """Base of commands and events.

    Attributes:
        session_id: Id of the conversation, or of another sender of commands.
        request_id: Id of the command; its events have the same.
    """

    session_id: str
    request_id: str

    @property
    def ids(self) -> tuple[str, str]:
        """Session id and request id, which together identify a request."""
        return self.session_id, self.request_id


class StepTimes(NamedTuple):
    """Times of the parts of a step.

    CUDA runs asynchronously: `verify_s` is then the time to launch the kernels, and `accept_s` and
    `transfer_s` include the rest, unless the step is recorded.

    Attributes:
        draft_s: Seconds of drafting.
        verify_s: Seconds of the target's forward pass.
        accept_s: Seconds of the acceptance rule.
        commit_s: Seconds to commit the accepted rows.
        transfer_s: Seconds of `verify_s` waiting for offloaded layers or for other machines' rows.
        remote_s: Seconds of `verify_s` in which other machines computed.
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
        local_s = max(0.0, self.verify_s - self.transfer_s - self.remote_s)
        return self.draft_s, local_s, self.transfer_s, self.remote_s, self.accept_s, self.commit_s


class WeightFormats(NamedTuple):
    """Weight formats of the parts of a model; empty for the default.

    Attributes:
        linears: Format of the blocks' linear layers: `bf16`, `int8`, `q4` on a CPU, `nf4` on a GPU.
        lm_head: Format of the output projection; dense by default.
        embedding: Format of the token embeddings, which must be dense.
        heads: Format of the heads; by default that of the linear layers.
        embedding_in_ram: Whether to keep the token embeddings in host memory.
        cache: Type of keys and values: `q8_0` or `q4`; `f32`, `bf16` or `f16` where the device has
            them so. Empty or `auto`: unquantized, or `q8_0` if only so a requested context fits.
        attended: Number of KV rows with the largest attention weights whose values are used; 0 for
            all, which alone is exact.
        per_layer: Place of per-layer embeddings: `disk` (read by row from the model's file), `ram`
            or `device`; empty for `disk`.
    """

    linears: str = ""
    lm_head: str = ""
    embedding: str = ""
    heads: str = ""
    embedding_in_ram: bool = False
    cache: str = ""
    attended: int = 0
    per_layer: str = ""


CLUSTER = "cluster:"  # before HOST:PORT: a cluster is chosen as a device is


def cluster_of(device: str) -> str:
    """Return HOST:PORT of a cluster that was chosen as a device; empty for a local device."""
    return device.removeprefix(CLUSTER) if device.startswith(CLUSTER) else ""


def local_device(device: str) -> str:
    """Return the torch device of this computer; empty (the best one) with a cluster."""
    return "" if cluster_of(device) else device
