"""What heads learn from: the frozen target's states over answers, and the tokens that follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from medusa_core.errors import TrainingError
from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.training.documents import ANSWER, EncodedDocument
from medusa_core.training.order import places_at

_CHUNK_ROWS = 256


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions inside answers, those before their first tokens too: there heads draft first.

    Attributes:
        hidden: state after the last norm, bfloat16 [N, H].
        roots: the token behind it, int64 [N].
        targets: int64 [N, heads]; column k is the token k + 2 places on, -1 past the answer.
        places: of the roots in their document, int64 [N].
        seeds: of the noise that drew the answer, int64 [N].
    """

    hidden: Tensor
    roots: Tensor
    targets: Tensor
    places: Tensor
    seeds: Tensor

    def __len__(self) -> int:
        return len(self.roots)

    def at(self, chosen: Tensor) -> Positions:
        """Some of them, [n]."""
        return Positions(
            self.hidden[chosen.to(self.hidden.device)],
            self.roots[chosen],
            self.targets[chosen],
            self.places[chosen],
            self.seeds[chosen],
        )

    def batch(self, step: int, size: int, seed: int) -> Positions:
        """Those of one training step, in a seeded order."""
        return self.at(torch.from_numpy(places_at(step, len(self), size, seed)))


def collect(target: Target, documents: Sequence[EncodedDocument], num_heads: int) -> Positions:
    """Run the target over documents and keep its states where heads would draft.

    Args:
        target: it isn't changed.
        documents: what is longer than the context is cut.
        num_heads: how many tokens ahead are wanted.

    Returns:
        Positions on the CPU, in the documents' order.

    Raises:
        TrainingError: no document holds an answer.
    """
    answers = [document for document in documents if has_answer(document)]
    if not answers:
        raise TrainingError("There is no answer to learn from.", "Name rows with answers.")
    longest = target.config.context_tokens
    return positions_of(answers, computed(target, answers, longest), num_heads, longest)


def positions_of(
    documents: Sequence[EncodedDocument], states: Iterable[Tensor], num_heads: int, longest: int
) -> Positions:
    """Positions of documents with answers, whose states are known.

    Args:
        documents: Those with answers.
        states: Of each, of all tokens but the last two at least. [n, at least hidden]
        num_heads: How many tokens ahead are wanted.
        longest: What is longer is cut.

    Returns:
        As `collect` does.
    """
    pairs = zip(documents, states, strict=True)
    parts = [_positions(document, own, num_heads, longest) for document, own in pairs]
    columns = zip(*((p.hidden, p.roots, p.targets, p.places, p.seeds) for p in parts), strict=True)
    return Positions(*(torch.cat(column) for column in columns))


def has_answer(document: EncodedDocument) -> bool:
    """Whether heads draft anywhere in it."""
    return bool((document.kinds[1:] == ANSWER).any())


def computed(
    target: Target, documents: Sequence[EncodedDocument], longest: int
) -> Iterator[Tensor]:
    """The target's states over documents, of all tokens. bfloat16, on the CPU

    Args:
        target: It isn't changed.
        documents: One after the other.
        longest: What is longer is cut.
    """
    longest = min(max(len(document.ids) for document in documents), longest)
    kv = target.runner.new_cache(longest)
    with torch.inference_mode():
        for document in documents:
            ids = document.ids[:longest].astype(np.int64).tolist()
            yield states_of(target, ids, kv).to("cpu", torch.bfloat16)


def _positions(
    document: EncodedDocument, states: Tensor, num_heads: int, longest: int
) -> Positions:
    ids = torch.from_numpy(document.ids[:longest].astype(np.int64))
    is_answer = torch.from_numpy(document.kinds[:longest] == ANSWER)
    is_answer[:1] = False  # nothing comes before it
    places = is_answer.nonzero().squeeze(1)
    places = places[places <= len(states)]  # behind the last of which nothing is learned
    return Positions(
        states[places - 1],
        ids[places],
        later_tokens(ids, is_answer, num_heads)[places],
        places,
        torch.full_like(places, document.seed),
    )


def states_of(target: Target, token_ids: Sequence[int], kv: KvCache) -> Tensor:
    """States behind each of some tokens, [n, H], on the target's device."""
    kv.truncate(0)
    chunks = (token_ids[i : i + _CHUNK_ROWS] for i in range(0, len(token_ids), _CHUNK_ROWS))
    return torch.cat([target.runner.extend(chunk, kv).clone() for chunk in chunks])


def later_tokens(ids: Tensor, is_answer: Tensor, num_heads: int) -> Tensor:
    """Row i: tokens i + 1 .. i + num_heads, -1 from where the answer isn't going on. [n, heads]"""
    length = len(ids)
    padded = torch.cat([ids, ids.new_zeros(num_heads)])
    goes_on = torch.cat([is_answer, is_answer.new_zeros(num_heads)])
    columns, known = [], torch.ones(length, dtype=torch.bool)
    for ahead in range(1, num_heads + 1):
        known = known & goes_on[ahead : ahead + length]
        columns.append(torch.where(known, padded[ahead : ahead + length], -1))
    return torch.stack(columns, dim=1)
