"""What the loop works on: sequences that are decoded, prompts that are read, and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from torch import Tensor

from medusa_core.engine.forward import Chunk, Output
from medusa_core.messages import StepTimes
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.tree.step import Acceptance, Proposal, WalkContext
from medusa_core.speculation.drafters.drafter import Drafter
from medusa_core.speculation.rules.rule import Rule


class Step(NamedTuple):
    """What one step decided for one sequence.

    Attributes:
        proposal: What was verified.
        acceptance: What the rule made of it.
        token_ids: The accepted tokens, then the bonus token.
        logits: The target's scores at every node. [n, vocabulary]
        states: Its final states there. [n, hidden]
        deep: What enters the tapped layers there; None where none are. [n, taps · hidden]
        times: Where the time went.
        ridden: The target's best token behind every rider.
    """

    proposal: Proposal
    acceptance: Acceptance
    token_ids: tuple[int, ...]
    logits: Tensor
    states: Tensor
    deep: Tensor | None
    times: StepTimes
    ridden: Sequence[int] = ()


class DecodingSequence(Protocol):
    """A sequence that is decoded: all its tokens but the last, the next root, have rows in `kv`.

    Attributes:
        kv: Its cache.
        context: Its tokens, and what else the rule knows.
        drafter: Proposes trees.
        rule: Picks paths.
        max_rows: Most rows of its next tree, root included.
    """

    @property
    def kv(self) -> KvCache: ...

    @property
    def context(self) -> WalkContext: ...

    @property
    def drafter(self) -> Drafter: ...

    @property
    def rule(self) -> Rule: ...

    @property
    def max_rows(self) -> int: ...

    def append(self, step: Step) -> bool:
        """Take the tokens of a step, up to one that ends the answer.

        Returns:
            Whether the answer goes on behind them.
        """


class PrefillSequence(Protocol):
    """A sequence whose prompt is read.

    Attributes:
        chunk: What is read next.
        decoding: What the sequence becomes behind the last chunk.
    """

    @property
    def chunk(self) -> Chunk: ...

    @property
    def decoding(self) -> DecodingSequence: ...

    def append(self, output: Output) -> None:
        """Take the chunk as read.

        Args:
            output: What the target says of it.
        """
