"""Traces of recorded steps: trees, candidates, probabilities and decisions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from medusa_core.messages.records import StepTimes, TokenSource

NUM_ALTERNATIVES = 5
MOST_PRUNED = 16
_OFFER = Struct("iif")


class Alternative(NamedTuple):
    """A candidate for the next token.

    Attributes:
        token_id: Id of the token.
        text: Bytes of the token.
        probability: The target's probability before temperature, filters and penalties.
    """

    token_id: int
    text: bytes
    probability: float


class Odds(NamedTuple):
    """The drafter's probabilities of its candidates.

    Attributes:
        chances: Probabilities of all candidates, as float32 bytes.
        places: Index of each draft node's candidate, −1 for none; empty if the drafter has no
            probabilities.
    """

    chances: bytes
    places: tuple[int, ...]

    def of_drafts(self, num_drafts: int) -> tuple[float | None, ...]:
        """Return the probability of every draft node; None if unknown."""
        floats = memoryview(self.chances).cast("f").tolist()
        if not floats:
            return (None,) * num_drafts
        known = [None if math.isnan(p) else p for p in floats]
        return tuple(known[place] if place >= 0 else None for place in self.places)


NO_ODDS = Odds(b"", ())


class TraceNode(NamedTuple):
    """A node of a verified tree.

    Attributes:
        token_id: Id of the token.
        text: Bytes of the token; empty for a special token.
        parent: Index of the parent; −1 for the root.
        rank: Rank among the drafter's candidates for its depth, from 0; −1 for the root.
        source: Source of the token.
        probability: The drafter's probability, given the root alone (head k doesn't see the drafts
            of heads 1 to k−1); None for the root, or if unknown.
    """

    token_id: int
    text: bytes
    parent: int
    rank: int
    source: TokenSource
    probability: float | None


class Verdict(NamedTuple):
    """The decision after one node of the accepted path.

    Attributes:
        node: Index of the node.
        choice: The token that the rule chose after it.
        alternatives: The five most likely other tokens, best first.
        numbers: Numbers of the rule's decision by name; see `resources/schemas/trace-1.json`.
    """

    node: int
    choice: Alternative
    alternatives: tuple[Alternative, ...]
    numbers: tuple[tuple[str, float], ...]


class DroppedToken(NamedTuple):
    """A candidate that was left out of the tree, because of the grammar or the cost of a row.

    Attributes:
        node: Index of its parent in the tree.
        token_id: Id of the token.
        probability: The drafter's probability.
    """

    node: int
    token_id: int
    probability: float


def offers_with(
    parents: Sequence[int],
    token_ids: Sequence[int],
    chances: Sequence[float | None],
    pruned: Iterable[DroppedToken],
) -> bytes:
    """Return `StepTrace.offers` for a tree and the candidates that were left out.

    Args:
        parents: Parents of the nodes.
        token_ids: Token ids of the nodes.
        chances: Probabilities of the draft nodes.
        pruned: Candidates that were left out.

    Raises:
        struct.error: A token id exceeds 32 bits.
    """
    drafts = zip(parents[1:], token_ids[1:], chances, strict=True)
    drafted = ((parent, i, 1.0 if chance is None else chance) for parent, i, chance in drafts)
    return b"".join(_OFFER.pack(node - 1, *rest) for node, *rest in (*drafted, *pruned))


class StepTrace(NamedTuple):
    """Trace of a step; sent while recording, after its `StepDone`.

    It is packed (about 2 KB per step); `nodes` and `verdicts` unpack it. It is a tuple for the
    same reason as `StepDone`.

    Attributes:
        session_id: Conversation, as in `Message`.
        request_id: Id of the command, as in `Message`.
        step: Number of the step, as in its `StepDone`.
        root_place: Position of the root in the session.
        token_ids: Tokens of the n nodes of the verified tree, the root first.
        parents: Index of each node's parent; −1 for the root.
        ranks: Rank of each node; see `TraceNode`.
        sources: Source of each node.
        path: Indices of the root and the p − 1 accepted nodes.
        choice_ids: The rule's choice after each node of the path; the last is the bonus token.
        pieces: Bytes of tokens by id; a missing id has none. Shared by all traces of a tokenizer,
            so it is not part of comparisons.
        odds: The drafter's probabilities.
        judged: The target's probabilities of every choice and of five alternatives each, as
            float32; then the ids of these alternatives as int32. 44 · p bytes.
        numbers: Numbers of the rule's decision at every node of the path; empty if it decides by
            the probabilities alone.
        num_appended: Number of choices in the answer, which may have ended within the step.
        times: Times of the parts of the step.
        step_s: Seconds of the whole step, decoding of text included.
        num_riders: Rows that were computed beside the tree and aren't candidates.
        forbidden: The most likely candidates that the grammar excluded.
        offers: The most likely candidates of the sources; empty if unknown. 12 bytes each: index of
            the preceding candidate (−1 for the root) and token id as int32, probability as
            float32.
    """

    session_id: str
    request_id: str
    step: int
    root_place: int
    token_ids: tuple[int, ...]
    parents: tuple[int, ...]
    ranks: tuple[int, ...]
    sources: tuple[TokenSource, ...]
    path: tuple[int, ...]
    choice_ids: tuple[int, ...]
    pieces: Mapping[int, bytes]
    odds: Odds
    judged: bytes
    numbers: tuple[tuple[tuple[str, float], ...], ...]
    num_appended: int
    times: StepTimes
    step_s: float
    num_riders: int = 0
    forbidden: tuple[DroppedToken, ...] = ()
    offers: bytes = b""

    @property
    def pruned(self) -> tuple[DroppedToken, ...]:
        """The most likely candidates that weren't verified, without their own successors."""
        drafted = {
            (parent, token_id): node
            for node, (parent, token_id) in enumerate(
                zip(self.parents, self.token_ids, strict=True)
            )
        }
        reached: list[tuple[int | None, float]] = []  # node and path probability of each candidate
        dropped: list[tuple[float, DroppedToken]] = []
        for previous, token_id, chance in _OFFER.iter_unpack(self.offers):
            parent, parent_chance = (0, 1.0) if previous < 0 else reached[previous]
            node = None if parent is None else drafted.get((parent, token_id))
            reached.append((node, parent_chance * chance))
            if parent is not None and node is None:
                dropped.append((parent_chance * chance, DroppedToken(parent, token_id, chance)))
        dropped.sort(key=lambda entry: -entry[0])
        return tuple(token for _, token in dropped[:MOST_PRUNED])

    @property
    def nodes(self) -> tuple[TraceNode, ...]:
        """Nodes of the verified tree, the root first."""
        texts, known = self._texts(self.token_ids), (None, *self._known())
        columns = (self.token_ids, texts, self.parents, self.ranks, self.sources, known)
        return tuple(map(TraceNode, *columns))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Decisions after the root and after every accepted node, in order.

        Each choice is the token of the next node; the last one is the bonus token.
        """
        length = len(self.path)
        packed, at_ids = memoryview(self.judged), length * (1 + NUM_ALTERNATIVES)
        floats = packed.cast("f")[:at_ids].tolist()
        ids = packed.cast("i")[at_ids:].tolist()
        choices = tuple(map(Alternative, self.choice_ids, self._texts(self.choice_ids), floats))
        others = tuple(map(Alternative, ids, self._texts(ids), floats[length:]))
        return tuple(
            Verdict(
                node,
                choices[place],
                others[place * NUM_ALTERNATIVES : (place + 1) * NUM_ALTERNATIVES],
                self.numbers[place] if self.numbers else (),
            )
            for place, node in enumerate(self.path)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StepTrace) and self._compared == other._compared

    def __ne__(self, other: object) -> bool:  # a tuple has its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[object, ...]:
        """All fields for comparisons, with unpacked probabilities and offers."""
        packed = (self.pieces, self.odds, self.offers)  # equal contents may be packed differently
        rest = (value for value in self if not any(value is field for field in packed))
        return (*rest, self._known(), self.pruned)

    def _known(self) -> tuple[float | None, ...]:
        """The drafter's probability of every draft node; None if unknown."""
        return self.odds.of_drafts(len(self.token_ids) - 1)

    def _texts(self, token_ids: Iterable[int]) -> list[bytes]:
        """Bytes of tokens; none for an id without a piece."""
        return [self.pieces.get(token_id, b"") for token_id in token_ids]
