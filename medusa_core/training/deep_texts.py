"""What heads that read whole texts learn from: what enters tapped layers at every token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.training.documents import ANSWER, EncodedDocument
from medusa_core.training.states import Shard


def deep_texts(
    documents: Sequence[EncodedDocument], states: Iterable[Tensor], size: int, context: int
) -> Shard:
    """What the target's tapped layers get over documents, one text after the other.

    Args:
        documents: What is longer than the context is cut.
        states: Of each, of all tokens but the last two at least. [n, (1 + taps) · hidden]
        size: The target's hidden size.
        context: Most tokens of a text.

    Returns:
        On the CPU: `deep`, bfloat16 [tokens, taps · hidden], 0 where no state is known; `ids`,
        int64, and `is_answer`, bool, [tokens]; `lengths` and `seeds`, int64 [texts].
    """
    deep, ids, answers, lengths, seeds = [], [], [], [], []
    for document, own in zip(documents, states, strict=True):
        text = document.ids[:context].astype(np.int64)
        entering = own[: len(text), size:]
        deep.append(F.pad(entering, (0, 0, 0, len(text) - len(entering))))
        ids.append(torch.from_numpy(text))
        answers.append(torch.from_numpy(document.kinds[:context] == ANSWER))
        lengths.append(len(text))
        seeds.append(document.seed)
    return {
        "deep": torch.cat(deep),
        "ids": torch.cat(ids),
        "is_answer": torch.cat(answers),
        "lengths": torch.tensor(lengths),
        "seeds": torch.tensor(seeds),
    }
