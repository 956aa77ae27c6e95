"""What heads learn from: the frozen target's states over answers, and the tokens that follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from medusa_core.errors import TrainingError
from medusa_core.kv.cache import KvCache
from medusa_core.target import Target
from medusa_core.training.packing import ANSWER, EncodedDocument, places_at

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
    answers = [d for d in documents if (d.kinds[1:] == ANSWER).any()]
    if not answers:
        raise TrainingError("There is no answer to learn from.", "Name rows with answers.")
    longest = min(max(len(d.ids) for d in answers), target.config.context_tokens)
    kv = target.runner.new_cache(longest)
    with torch.inference_mode():
        parts = [_positions(target, document, num_heads, kv) for document in answers]
    columns = zip(*((p.hidden, p.roots, p.targets, p.places, p.seeds) for p in parts), strict=True)
    return Positions(*(torch.cat(column) for column in columns))


def _positions(target: Target, document: EncodedDocument, num_heads: int, kv: KvCache) -> Positions:
    ids = torch.from_numpy(document.ids[: kv.capacity].astype(np.int64))
    is_answer = torch.from_numpy(document.kinds[: kv.capacity] == ANSWER)
    is_answer[:1] = False  # nothing comes before it
    places = is_answer.nonzero().squeeze(1)
    states = states_of(target, ids[:-1].tolist(), kv)
    hidden = states[(places - 1).to(states.device)]
    return Positions(
        hidden.to("cpu", torch.bfloat16),
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
