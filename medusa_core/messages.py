"""Commands that go to the engine and events that come back.

Every message is frozen and made of str, bytes, int, float, bool, enums, tuples and paths alone, so
that it can be pickled and the worker may become a process. Messages belong to a session (one
conversation) and a request (one command); the sender chooses both names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple


class Role(str, Enum):
    """Who speaks in a chat message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


class ChatMessage(NamedTuple):
    """One turn of a conversation.

    Attributes:
        role: Who speaks.
        content: What is said.
        token_ids: Of an answer, the tokens it was decoded as (`GenerationDone.token_ids`): the
            model then reads what it wrote, and nothing of it is computed again. Where they don't
            fit the content, the content counts.
    """

    role: Role
    content: str
    token_ids: tuple[int, ...] = ()


class StopReason(str, Enum):
    """Why an answer ended."""

    EOS = "eos"
    STOP_STRING = "stop_string"
    MAX_TOKENS = "max_tokens"
    CONTEXT = "context"
    CANCELLED = "cancelled"


class TokenSource(NamedTuple):
    """Where a token came from.

    Attributes:
        drafter: `"target"` for a token the target chose itself (the first token and every bonus
            token), `"given"` for a token of an answer that is gone on with, else the name of the
            drafter whose proposal was accepted.
        head: Draft depth of the accepted token, 1-based (head k drafts depth k); 0 for the others.
    """

    drafter: str
    head: int


TARGET = TokenSource("target", 0)
GIVEN = TokenSource("given", 0)


@dataclass(frozen=True, slots=True)
class GenerateSettings:
    """How an answer is to be decoded.

    Attributes:
        drafter: Name of a registered drafter: `medusa`, `medusa-dynamic` (a tree for each step),
            `medusa-chain` (each head's best guess), `ngram` (prompt lookup), `composite` (heads and
            lookup) or `none` (plain decoding).
        rule: Name of a registered acceptance rule: `greedy`, `sample` or `typical`.
        temperature: Divides the logits under `sample` and `typical`; > 0.
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
        delta: `typical` asks for less than that where the target is unsure; > 0.
        seed: Key of the sampling noise; the same seed repeats the same text.
        max_new_tokens: Token budget of the answer, EOS included; >= 1.
        stop: Strings that end the answer; they are not part of it.
        tree_rows: Rows of the verified tree, root included; 0 lets the engine choose.
        rests: Where the engine chooses and drafts gain less than 5 %, decode plainly for a while.
    """

    drafter: str = "medusa"
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
    delta: float = 0.3
    seed: int = 0
    max_new_tokens: int = 512
    stop: tuple[str, ...] = ()
    tree_rows: int = 0
    rests: bool = True


class Fit(str, Enum):
    """Does a model fit a device?"""

    FITS = "fits"
    TIGHT = "tight"
    NO = "no"


@dataclass(frozen=True, slots=True)
class HeadsShape:
    """Sizes of Medusa heads.

    Attributes:
        num_heads: How many there are.
        num_layers: Residual layers of each.
        columns: Tokens that each drafts from; 0 where they share the target's projection.
        hidden_size: Their width; 0 if unknown.
        is_reduced: They draft from a choice of the target's vocabulary.
    """

    num_heads: int = 0
    num_layers: int = 1
    columns: int = 0
    hidden_size: int = 0
    is_reduced: bool = False


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Where a device's memory goes.

    Attributes:
        weights_bytes: The target.
        heads_bytes: Its Medusa heads.
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


@dataclass(frozen=True, slots=True)
class Message:
    """What every command and event carries."""

    session_id: str
    request_id: str


# Commands ---------------------------------------------------------------------------------------


class WeightFormats(NamedTuple):
    """Which weight format each part of a model takes; empty for what suits the others.

    Attributes:
        linears: The linear layers of all blocks: `fp32`, `bf16`, `fp16`, `int8`, `nf4`, `nf4-dq`.
        lm_head: The projection to the vocabulary; dense unless told otherwise.
        embedding: The token vectors: a dense format.
        heads: The Medusa heads; as the linear layers unless told otherwise.
        embedding_in_ram: Keep the token vectors in the computer's memory: a step reads few of them.
    """

    linears: str = ""
    lm_head: str = ""
    embedding: str = ""
    heads: str = ""
    embedding_in_ram: bool = False


@dataclass(frozen=True, slots=True)
class LoadModel(Message):
    """Load a target and, if given, its Medusa heads; replaces what is loaded.

    If that fails, what was loaded before is loaded again.

    Attributes:
        model_dir: Folder in Hugging Face layout.
        heads_dir: Folder with Medusa heads, or None.
        dtype: `float64`, `float32`, `bfloat16` or `float16`, to compute in; empty for the best on
            this device with these formats.
        device: A torch device name; empty for CUDA where there is one, else the CPU.
        formats: Weight formats.
        context_tokens: Longest prompt plus answer; 0 for what fits, up to 8,192.
        ignores_plan: Load although the plan says that it doesn't fit.
        kept_dir: Folder where quantized models are kept for the next load; None keeps nothing.
        calibrations_dir: Folder where measured step costs are kept; None keeps nothing.
    """

    model_dir: Path
    heads_dir: Path | None = None
    dtype: str = ""
    device: str = ""
    formats: WeightFormats = field(default_factory=WeightFormats)
    context_tokens: int = 0
    ignores_plan: bool = False
    kept_dir: Path | None = None
    calibrations_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Unload(Message):
    """Forget the loaded model and free its memory."""


@dataclass(frozen=True, slots=True)
class Calibrate(Message):
    """Measure the time of a step at several row counts on the loaded model."""


@dataclass(frozen=True, slots=True)
class Generate(Message):
    """Answer a conversation; what the session already holds in its cache is not computed again.

    Attributes:
        messages: The turns, oldest first. An assistant's message at the end is an answer to go on
            with: the text is what it would have been without the pause.
        settings: How to decode.
        keep_tokens: How many tokens of that answer to keep, for another one from there on; None
            for all. Under a rule that chooses without chance, the token that stood there is
            forbidden there; else `settings.seed` makes the difference.
        records: Send a `StepTrace` for every step.
    """

    messages: tuple[ChatMessage, ...]
    settings: GenerateSettings = field(default_factory=GenerateSettings)
    keep_tokens: int | None = None
    records: bool = False


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """Stop the Generate with this session and request; takes effect within one step."""


@dataclass(frozen=True, slots=True)
class CloseSession(Message):
    """Forget a session and free its cache."""


@dataclass(frozen=True, slots=True)
class Verify(Message):
    """Read a text in one forward pass: what would the target have written at each place?

    The text is that of the messages if there are any; else the tokens of `before_ids`, those of
    `text`, and those of `after_ids`, which stay as they are.

    Attributes:
        messages: A conversation, as the target reads it; its last answer belongs to it.
        before_ids: Tokens before the text.
        text: A text that may have been edited.
        after_ids: Tokens behind it.
    """

    messages: tuple[ChatMessage, ...] = ()
    before_ids: tuple[int, ...] = ()
    text: str = ""
    after_ids: tuple[int, ...] = ()


Command = LoadModel | Unload | Calibrate | Generate | Cancel | CloseSession | Verify

# Events -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress(Message):
    """Work under way.

    Attributes:
        stage: `import`, `weights`, `heads`, `calibrate` or `prefill`.
        fraction: Share done, 0 to 1.
        text: What is being done, for people.
    """

    stage: str
    fraction: float
    text: str


@dataclass(frozen=True, slots=True)
class ModelLoaded(Message):
    """The model is ready.

    Attributes:
        name: Name to show.
        num_parameters: Parameters of the target.
        num_heads: Medusa heads at hand; 0 without.
        context_tokens: Longest prompt plus answer.
        vocab_size: Rows of the target's output projection.
        dtype: Name of the compute dtype.
        quant: Weight format of the blocks' linear layers.
        plan: Where the device's memory goes.
        device: Torch device name.
        drafters: Names of the drafters that can run on it.
        rules: Names of the acceptance rules.
        head_accuracies: Per head, probability that rank 0, 1, ... is the right token; may be empty.
        load_s: Seconds from the command to this event.
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
    drafters: tuple[str, ...]
    rules: tuple[str, ...]
    head_accuracies: tuple[tuple[float, ...], ...]
    load_s: float


@dataclass(frozen=True, slots=True)
class Unloaded(Message):
    """The model is gone and its memory is free.

    Attributes:
        freed_bytes: What its weights and caches had taken.
    """

    freed_bytes: int


class Alternative(NamedTuple):
    """A token that the target might have chosen.

    Attributes:
        token_id: The token.
        text: Its bytes.
        probability: The target's own, before the rule changes anything.
    """

    token_id: int
    text: bytes
    probability: float


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
        tree_rows: The row count the engine chooses with `tree_rows=0`, then.
        best_nodes: Draft nodes of the heads' best trees, the most valuable first; empty without.
        tree_step_s: Seconds of a whole step with a tree of 2, 3, ... rows: drafting, verification
            and what comes besides; as many as `best_nodes`.
    """

    step_s: tuple[tuple[int, float], ...]
    plain_step_s: float
    tree_rows: int
    best_nodes: tuple[BestNode, ...] = ()
    tree_step_s: tuple[float, ...] = ()


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
    """

    tokens: tuple[VerifiedToken, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class StepDone(Message):
    """One forward pass of the target is done: the first (prefill) or one decoding step.

    Text is bytes until it is shown: `pieces[i]` is the UTF-8 that token i completes (empty while a
    character is still open, and for special tokens). All pieces of an answer concatenated are
    its text, of which the first `num_visible_bytes` may be shown now: the rest may be the start
    of a stop string.

    Attributes:
        step: 0 for prefill, then 1, 2, ...
        token_ids: Tokens decided in this step, in order: accepted ones, then the bonus token. In
            prefill: those that were given, then the first token.
        pieces: Bytes that each of them completes.
        sources: Where each of them came from.
        num_visible_bytes: Bytes of the answer so far that may be shown.
        num_rows: Rows that the target computed: the prompt's new tokens in prefill, else the tree.
        proposed_per_depth: Draft nodes offered at depth 1, 2, ...; empty without a tree.
        draft_s: Seconds spent proposing.
        verify_s: Seconds of the target's forward pass.
        accept_s: Seconds of the acceptance rule.
        commit_s: Seconds to keep the accepted rows.
        step_s: Seconds of the whole step, the making of text included.
        num_context_tokens: Tokens of the session decided so far, prompt included.
    """

    step: int
    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    sources: tuple[TokenSource, ...]
    num_visible_bytes: int
    num_rows: int
    proposed_per_depth: tuple[int, ...]
    draft_s: float
    verify_s: float
    accept_s: float
    commit_s: float
    step_s: float
    num_context_tokens: int


NUM_ALTERNATIVES = 5


class TraceNode(NamedTuple):
    """A node of a verified tree.

    Attributes:
        token_id: Its token.
        text: The token's bytes; empty for a special token.
        parent: Index of its parent; −1 for the root.
        rank: Place among the drafter's guesses for its depth, from 0; −1 for the root.
        source: Who drafted it.
        probability: What the drafter gave it, given nothing but the root's past (head k doesn't
            know what heads 1 to k−1 drafted); None for the root, or where the drafter doesn't say.
    """

    token_id: int
    text: bytes
    parent: int
    rank: int
    source: TokenSource
    probability: float | None


class Verdict(NamedTuple):
    """What was decided behind one node of the path.

    Attributes:
        node: Index of the node.
        choice: The token that the rule put behind it.
        alternatives: The five most probable tokens besides, best first.
        numbers: What the rule decided by, by name; see `docs/trace.md`.
    """

    node: int
    choice: Alternative
    alternatives: tuple[Alternative, ...]
    numbers: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class StepTrace(Message):
    """All about one step; sent while recording, after its `StepDone`.

    It is packed: `nodes` and `verdicts` take it apart.

    Attributes:
        step: Number of the step, as in its `StepDone`.
        root_place: Place of the root in the session.
        token_ids: Tokens of the verified tree's n nodes; the root first.
        parents: Index of each node's parent; −1 for the root.
        ranks: As in `TraceNode`.
        sources: Who drafted each.
        path: The root and the p − 1 accepted nodes.
        choice_ids: What the rule put behind each of them; the last is the bonus token.
        texts: Bytes of the tokens of all nodes, of the choices, and of the alternatives.
        probabilities: float32: of every node (NaN where unknown), of every choice, of five
            alternatives of each; then these alternatives' ids as int32. 4 · (n + 11 p) bytes
        numbers: What the rule decided by, at every node of the path.
        num_kept: How many of the choices the answer kept: it may have ended among them.
        draft_s: Seconds spent proposing.
        verify_s: Seconds of the target's forward pass.
        accept_s: Seconds of the acceptance rule.
        commit_s: Seconds to keep the accepted rows.
        step_s: Seconds of the whole step, the making of text included.
    """

    step: int
    root_place: int
    token_ids: tuple[int, ...]
    parents: tuple[int, ...]
    ranks: tuple[int, ...]
    sources: tuple[TokenSource, ...]
    path: tuple[int, ...]
    choice_ids: tuple[int, ...]
    texts: tuple[bytes, ...]
    probabilities: bytes
    numbers: tuple[tuple[tuple[str, float], ...], ...]
    num_kept: int
    draft_s: float
    verify_s: float
    accept_s: float
    commit_s: float
    step_s: float

    @property
    def nodes(self) -> tuple[TraceNode, ...]:
        """The verified tree; the root first."""
        floats = memoryview(self.probabilities).cast("f")[: len(self.token_ids)].tolist()
        known = (None if math.isnan(p) else p for p in floats)
        columns = (self.token_ids, self.texts, self.parents, self.ranks, self.sources, known)
        return tuple(map(TraceNode, *columns))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for the root and one for every accepted node, in order.

        The choice of each is the token of the next; the last one's is the bonus token.
        """
        num_nodes, length = len(self.token_ids), len(self.path)
        packed, at_ids = memoryview(self.probabilities), num_nodes + length * (1 + NUM_ALTERNATIVES)
        floats = packed.cast("f")[num_nodes:at_ids].tolist()
        ids = packed.cast("i")[at_ids:].tolist()
        choices = tuple(map(Alternative, self.choice_ids, self.texts[num_nodes:], floats))
        others = tuple(map(Alternative, ids, self.texts[num_nodes + length :], floats[length:]))
        return tuple(
            Verdict(
                node,
                choices[place],
                others[place * NUM_ALTERNATIVES : (place + 1) * NUM_ALTERNATIVES],
                self.numbers[place],
            )
            for place, node in enumerate(self.path)
        )


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
        settings: What it was decoded with; `tree_rows` is the count really used.
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

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens from decode steps ÷ decode steps, bonus included; 0 without a decode step."""
        return sum(self.accept_lengths) / self.num_steps if self.num_steps else 0.0

    @property
    def decode_tokens_per_s(self) -> float:
        """Tokens from decode steps per second of decoding; 0 without a decode step."""
        return sum(self.accept_lengths) / self.decode_s if self.num_steps else 0.0

    @property
    def tokens_per_s(self) -> float:
        """All new tokens of the answer per second, prefill included."""
        seconds = self.prefill_s + self.decode_s
        return (len(self.token_ids) - self.num_given_tokens) / seconds if seconds else 0.0


@dataclass(frozen=True, slots=True)
class Failed(Message):
    """A command failed; the engine lives on.

    Attributes:
        kind: Name of the error's class, as in `medusa_core.errors`.
        message: What happened.
        hint: What to do about it; may be empty.
    """

    kind: str
    message: str
    hint: str


Event = (
    Progress
    | ModelLoaded
    | Unloaded
    | Calibrated
    | StepDone
    | StepTrace
    | GenerationDone
    | Verified
    | Failed
)
