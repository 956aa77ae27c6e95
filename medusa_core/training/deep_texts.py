"""What heads that read whole texts learn from: what enters tapped layers at every token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from medusa_core.target import Target
from medusa_core.training.packing import ANSWER, EncodedDocument
from medusa_core.training.positions import states_of
from medusa_core.training.states import Shard


def deep_texts(target: Target, documents: Sequence[EncodedDocument], context: int) -> Shard:
    """Run a target over documents and keep what its tapped layers get, one text after the other.

    Args:
        target: Its runner is tapped; it isn't changed.
        documents: What is longer than the context is cut.
        context: Most tokens of a text.

    Returns:
        On the CPU: `deep`, bfloat16 [tokens, taps · hidden]; `ids`, int64, and `is_answer`, bool,
        [tokens]; `lengths` and `seeds`, int64 [texts].
    """
    size = target.config.hidden_size
    longest = min(context, target.config.context_tokens)
    kv = target.runner.new_cache(max(min(len(d.ids), longest) for d in documents))
    deep, ids, answers, lengths, seeds = [], [], [], [], []
    with torch.inference_mode():
        for document in documents:
            own = document.ids[:longest].astype(np.int64)
            heard = states_of(target, own.tolist(), kv)[:, size:]
            deep.append(heard.to("cpu", torch.bfloat16))
            ids.append(torch.from_numpy(own))
            answers.append(torch.from_numpy(document.kinds[:longest] == ANSWER))
            lengths.append(len(own))
            seeds.append(document.seed)
    return {
        "deep": torch.cat(deep),
        "ids": torch.cat(ids),
        "is_answer": torch.cat(answers),
        "lengths": torch.tensor(lengths),
        "seeds": torch.tensor(seeds),
    }
