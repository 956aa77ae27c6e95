"""What a recorded step was decided from."""

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
    """A token that the target might have chosen.

    Attributes:
        token_id: The token.
        text: Its bytes.
        probability: The target's own, before the rule changes anything.
    """

    token_id: int
    text: bytes
    probability: float


class Odds(NamedTuple):
    """What a drafter gives the nodes of its tree.

    Attributes:
        chances: float32, of its guesses, in the tree or not.
        places: Which of them each draft node is, −1 where it is none; empty if the drafter says
            nothing of any.
    """

    chances: bytes
    places: tuple[int, ...]

    def of_drafts(self, num_drafts: int) -> tuple[float | None, ...]:
        """Of every draft node; None where unknown."""
        floats = memoryview(self.chances).cast("f").tolist()
        if not floats:
            return (None,) * num_drafts
        known = [None if math.isnan(p) else p for p in floats]
        return tuple(known[place] if place >= 0 else None for place in self.places)


NO_ODDS = Odds(b"", ())


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


class DroppedToken(NamedTuple):
    """A guess that was kept out of the tree: by the answer's grammar, or by what a row costs.

    Attributes:
        node: Index of the node that it would have hung under.
        token_id: It.
        probability: What its drafter gave it.
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
    """`StepTrace.offers` of a tree beside which these were pruned.

    Args:
        parents: Of its nodes.
        token_ids: Theirs.
        chances: Of its drafts.
        pruned: They.

    Raises:
        struct.error: A token's id has no room in 32 bits.
    """
    drafts = zip(parents[1:], token_ids[1:], chances, strict=True)
    drafted = ((parent, i, 1.0 if chance is None else chance) for parent, i, chance in drafts)
    return b"".join(_OFFER.pack(node - 1, *rest) for node, *rest in (*drafted, *pruned))


class StepTrace(NamedTuple):
    """All about one step; sent while recording, after its `StepDone`.

    It is packed: `nodes` and `verdicts` take it apart. And it is a tuple, as `StepDone` is.

    Attributes:
        session_id: As in all messages.
        request_id: As in all messages.
        step: Number of the step, as in its `StepDone`.
        root_place: Place of the root in the session.
        token_ids: Tokens of the verified tree's n nodes; the root first.
        parents: Index of each node's parent; −1 for the root.
        ranks: As in `TraceNode`.
        sources: Who drafted each.
        path: The root and the p − 1 accepted nodes.
        choice_ids: What the rule put behind each of them; the last is the bonus token.
        pieces: Bytes of tokens by id, of all that are named here and maybe of more; empty where an
            id is missing. Traces of one tokenizer share it; comparisons leave it out.
        odds: What the drafter gave its guesses.
        judged: float32: what the target gave every choice and five alternatives of each; then
            these alternatives' ids as int32. 44 · p bytes
        numbers: What the rule decided by, at every node of the path; empty where the
            probabilities say it all.
        num_kept: How many of the choices the answer kept: it may have ended among them.
        times: Where the time went.
        step_s: Seconds of the whole step, the making of text included.
        num_riders: Rows that were computed beside the tree and are never candidates.
        forbidden: The likeliest guesses that the answer's grammar kept out of the tree.
        offers: The likeliest guesses that sources offered, in the tree or not; empty where that
            isn't known. Of each the offer that it follows, -1 for the root, and its token, as
            int32; then how likely it was as float32. 12 bytes each
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
    num_kept: int
    times: StepTimes
    step_s: float
    num_riders: int = 0
    forbidden: tuple[DroppedToken, ...] = ()
    offers: bytes = b""

    @property
    def pruned(self) -> tuple[DroppedToken, ...]:
        """The likeliest guesses that weren't verified: not worth a row, or of another shape.

        Those that follow one of them aren't told.
        """
        drafted = {
            (parent, token_id): node
            for node, (parent, token_id) in enumerate(
                zip(self.parents, self.token_ids, strict=True)
            )
        }
        reached: list[tuple[int | None, float]] = []  # of every offer its node, and its worth
        found: list[tuple[float, DroppedToken]] = []
        for above, token_id, chance in _OFFER.iter_unpack(self.offers):
            parent, worth = (0, 1.0) if above < 0 else reached[above]
            node = None if parent is None else drafted.get((parent, token_id))
            reached.append((node, worth * chance))
            if parent is not None and node is None:
                found.append((worth * chance, DroppedToken(parent, token_id, chance)))
        found.sort(key=lambda entry: -entry[0])
        return tuple(guess for _, guess in found[:MOST_PRUNED])

    @property
    def nodes(self) -> tuple[TraceNode, ...]:
        """The verified tree; the root first."""
        texts, known = self._texts(self.token_ids), (None, *self._known())
        columns = (self.token_ids, texts, self.parents, self.ranks, self.sources, known)
        return tuple(map(TraceNode, *columns))

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """One for the root and one for every accepted node, in order.

        The choice of each is the token of the next; the last one's is the bonus token.
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
        held = (self.pieces, self.odds, self.offers)  # the same may be held otherwise
        rest = (value for value in self if not any(value is one for one in held))
        return (*rest, self._known(), self.pruned)

    def _known(self) -> tuple[float | None, ...]:
        return self.odds.of_drafts(len(self.token_ids) - 1)

    def _texts(self, token_ids: Iterable[int]) -> list[bytes]:
        return [self.pieces.get(token_id, b"") for token_id in token_ids]
