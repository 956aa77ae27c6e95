"""What the loop works on: decoding sequences, prompts in prefill, and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from medusa_core.engine.answer import AppendedRun
from medusa_core.engine.forward import Chunk, Output
from medusa_core.messages import StepTimes
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.step import Acceptance, Proposal, WalkContext
from medusa_core.speculation.drafters.drafter import Drafter
from medusa_core.speculation.rules.rule import Rule, RuleNumbers


class Step(NamedTuple):
    """One decoding step of one sequence.

    Attributes:
        proposal: The draft that was verified.
        acceptance: The rule's decision.
        token_ids: The accepted tokens, then the bonus token.
        logits: The target's logits at every node of the tree. [n, vocabulary]
        states: Its final hidden states there. [n, hidden]
        deep: Inputs of the tapped layers there; None without taps. [n, taps · hidden]
        times: Seconds by phase.
        ridden: The target's most likely token after every rider.
        kept: The part of `token_ids` that was appended to the answer.
        numbers: The rule's probabilities and thresholds, for a trace; empty without one.
    """

    proposal: Proposal
    acceptance: Acceptance
    token_ids: tuple[int, ...]
    logits: Tensor
    states: Tensor
    deep: Tensor | None
    times: StepTimes
    ridden: Sequence[int] = ()
    kept: AppendedRun = AppendedRun((), None)
    numbers: tuple[RuleNumbers, ...] = ()

    @property
    def num_appended(self) -> int:
        """Number of tokens that were appended to the answer."""
        return len(self.kept.pieces)


class DecodingSequence(Protocol):
    """A decoding sequence. All its tokens have rows in `kv`, except the last, the next root.

    Attributes:
        kv: The KV cache.
        context: The tokens, and the rule's other inputs.
        drafter: Proposes token trees.
        rule: Chooses paths through them.
        max_rows: Maximum number of rows of the next tree, root included.
    """

    @property
    def kv(self) -> KvCache:
        """The KV cache of the sequence."""

    @property
    def context(self) -> WalkContext:
        """Decided tokens and the other inputs of the acceptance rule."""

    @property
    def drafter(self) -> Drafter:
        """The drafter of the next step."""

    @property
    def rule(self) -> Rule:
        """The acceptance rule."""

    @property
    def max_rows(self) -> int:
        """Maximum number of rows of the next tree, root included."""

    def append(self, step: Step) -> bool:
        """Append a step's tokens, up to one that ends the answer.

        Returns:
            Whether the answer is unfinished.
        """


class PrefillSequence(Protocol):
    """A sequence whose prompt is being prefilled.

    Attributes:
        chunk: The next chunk.
        decoding: The sequence after prefill.
    """

    @property
    def chunk(self) -> Chunk:
        """The next chunk of the prompt."""

    @property
    def decoding(self) -> DecodingSequence:
        """The same sequence once its prompt is prefilled."""

    def append(self, output: Output) -> None:
        """Receive the target's results for the chunk."""
