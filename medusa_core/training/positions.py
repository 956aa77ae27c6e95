"""Training samples of heads that read final states: states in answers, and later tokens."""

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
from medusa_core.training.order import sample_order

_CHUNK_ROWS = 256


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions within answers, including the one before an answer's first token.

    Attributes:
        hidden: States after the final norm, bfloat16 [N, H].
        roots: Token after each state, int64 [N].
        targets: int64 [N, heads]; column k is the token k + 2 positions later, −1 after the answer.
        places: Position of the root in its document, int64 [N].
        seeds: Seed of the answer's sampling noise, int64 [N].
    """

    hidden: Tensor
    roots: Tensor
    targets: Tensor
    places: Tensor
    seeds: Tensor

    def __len__(self) -> int:
        return len(self.roots)

    def at(self, chosen: Tensor) -> Positions:
        """Return some of the positions. [n]"""
        return Positions(
            self.hidden[chosen.to(self.hidden.device)],
            self.roots[chosen],
            self.targets[chosen],
            self.places[chosen],
            self.seeds[chosen],
        )

    def batch(self, step: int, size: int, seed: int) -> Positions:
        """Return the positions of a training step in a seeded order."""
        return self.at(torch.from_numpy(sample_order(step, len(self), size, seed)))


def collect(target: Target, documents: Sequence[EncodedDocument], num_heads: int) -> Positions:
    """Run the target on documents and keep its states at the positions where heads would draft.

    Args:
        documents: Documents; longer ones than the context are cut.
        num_heads: Tokens ahead.

    Returns:
        Positions on the CPU, in the order of the documents.

    Raises:
        TrainingError: No document has an answer.
    """
    answers = [document for document in documents if has_answer(document)]
    if not answers:
        raise TrainingError("There is no answer to learn from.", "Name rows with answers.")
    longest = target.config.context_tokens
    return positions_of(answers, computed(target, answers, longest), num_heads, longest)


def positions_of(
    documents: Sequence[EncodedDocument], states: Iterable[Tensor], num_heads: int, longest: int
) -> Positions:
    """Return the positions of documents with known states.

    Args:
        documents: Documents with answers.
        states: States of each, of all but the last two tokens at least. [n, at least hidden]
        num_heads: Tokens ahead.
        longest: Longer documents are cut.

    Returns:
        Positions as `collect` returns them.
    """
    pairs = zip(documents, states, strict=True)
    parts = [_positions(document, own, num_heads, longest) for document, own in pairs]
    columns = zip(*((p.hidden, p.roots, p.targets, p.places, p.seeds) for p in parts), strict=True)
    return Positions(*(torch.cat(column) for column in columns))


def has_answer(document: EncodedDocument) -> bool:
    """Whether heads would draft anywhere in a document."""
    return bool((document.kinds[1:] == ANSWER).any())


def computed(
    target: Target, documents: Sequence[EncodedDocument], longest: int
) -> Iterator[Tensor]:
    """Yield the target's states of all tokens of documents. bfloat16, on the CPU

    Args:
        documents: Documents.
        longest: Longer documents are cut.
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
    """Return the positions in a document's answers, with the tokens after them."""
    ids = torch.from_numpy(document.ids[:longest].astype(np.int64))
    is_answer = torch.from_numpy(document.kinds[:longest] == ANSWER)
    is_answer[:1] = False  # there is no state before it
    places = is_answer.nonzero().squeeze(1)
    places = places[places <= len(states)]  # nothing is learned after the last state
    return Positions(
        states[places - 1],
        ids[places],
        later_tokens(ids, is_answer, num_heads)[places],
        places,
        torch.full_like(places, document.seed),
    )


def states_of(target: Target, token_ids: Sequence[int], kv: KvCache) -> Tensor:
    """Return the states of tokens on the target's device. [n, H]"""
    kv.truncate(0)
    chunks = (token_ids[i : i + _CHUNK_ROWS] for i in range(0, len(token_ids), _CHUNK_ROWS))
    return torch.cat([target.runner.extend(chunk, kv).clone() for chunk in chunks])


def later_tokens(ids: Tensor, is_answer: Tensor, num_heads: int) -> Tensor:
    """Return tokens i + 1 … i + num_heads in row i, −1 after the answer. [n, heads]"""
    length = len(ids)
    padded = torch.cat([ids, ids.new_zeros(num_heads)])
    goes_on = torch.cat([is_answer, is_answer.new_zeros(num_heads)])
    columns, known = [], torch.ones(length, dtype=torch.bool)
    for ahead in range(1, num_heads + 1):
        known = known & goes_on[ahead : ahead + length]
        columns.append(torch.where(known, padded[ahead : ahead + length], -1))
    return torch.stack(columns, dim=1)
