"""Documents to train on: tokens marked as prompt or answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PROMPT, ANSWER = 1, 2

TokenIds = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """One document.

    Attributes:
        ids: Tokens.
        kinds: PROMPT or ANSWER for each token.
        seed: Seed of the answer's sampling noise; 0 for greedy answers.
    """

    ids: TokenIds
    kinds: npt.NDArray[np.uint8]
    seed: int = 0


def answered(
    prompt_ids: Sequence[int], answer_ids: Sequence[int], seed: int = 0
) -> EncodedDocument:
    """Return a prompt and its answer as a document."""
    kinds = [PROMPT] * len(prompt_ids) + [ANSWER] * len(answer_ids)
    ids = np.array([*prompt_ids, *answer_ids], dtype=np.uint32)
    return EncodedDocument(ids, np.array(kinds, dtype=np.uint8), seed)
