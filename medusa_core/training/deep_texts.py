"""Training data of heads that read whole texts: inputs of tapped layers at every token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.training.documents import ANSWER, EncodedDocument
from medusa_core.training.states import Shard


def deep_texts(
    documents: Sequence[EncodedDocument], states: Iterable[Tensor], size: int, context: int
) -> Shard:
    """Return the inputs of tapped layers over documents, concatenated.

    Args:
        documents: Documents; longer ones than the context are cut.
        states: States of each document, of all but the last two tokens at least.
            [n, (1 + taps) · hidden]
        size: Hidden size of the target.
        context: Maximum tokens of a text.

    Returns:
        On the CPU: `deep`, bfloat16 [tokens, taps · hidden], 0 where states are unknown; `ids`,
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


class PaddedTexts(NamedTuple):
    """A batch of texts, padded to the longest.

    Attributes:
        features: Inputs of tapped layers at all tokens but the last. float32
            [texts, length − 1, taps · hidden]
        ids: int64 [texts, length]
        is_answer: bool [texts, length]
    """

    features: Tensor
    ids: Tensor
    is_answer: Tensor


def pad_texts(shard: Shard, texts: Tensor, device: torch.device) -> PaddedTexts:
    """Return a batch of texts of a shard.

    Args:
        shard: Result of `deep_texts`.
        texts: Indices of the texts. int64 [n]
        device: Device of the result.
    """
    ends = shard["lengths"].cumsum(0)
    spans = [(int(ends[i] - shard["lengths"][i]), int(ends[i])) for i in texts]
    length = max(stop - start for start, stop in spans)
    features = torch.zeros(len(spans), length - 1, shard["deep"].shape[1])
    ids = torch.zeros(len(spans), length, dtype=torch.int64)
    is_answer = torch.zeros(len(spans), length, dtype=torch.bool)
    for row, (start, stop) in enumerate(spans):
        count = stop - start
        features[row, : count - 1] = shard["deep"][start : stop - 1]
        ids[row, :count] = shard["ids"][start:stop]
        is_answer[row, :count] = shard["is_answer"][start:stop]
    return PaddedTexts(features.to(device), ids.to(device), is_answer.to(device))
