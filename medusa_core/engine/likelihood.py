"""Log-likelihood of texts under a target."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch

from medusa_core.loading.target import Target


@torch.inference_mode()
def log_probability(target: Target, token_ids: Sequence[int], first: int = 1) -> float:
    """Sum of the log-probabilities of a text's tokens, in nats.

    Args:
        target: The loaded target.
        token_ids: The text.
        first: Index of the first token that counts; at least 1.

    Raises:
        OutOfMemoryError: There is no room for its rows.
    """
    kv = target.allocate_cache(len(token_ids) + 1)
    rows, total = target.chunk_rows, 0.0
    for start in range(0, len(token_ids) - 1, rows):
        chunk = token_ids[start : min(start + rows, len(token_ids) - 1)]
        states = target.runner.extend(chunk, kv)
        followers = torch.tensor(token_ids[start + 1 : start + 1 + len(chunk)])
        wanted = torch.arange(start + 1, start + 1 + len(chunk)) >= first
        if wanted.any():
            scores = target.runner.logits(states)[wanted.to(states.device)].float().log_softmax(-1)
            chosen = followers[wanted].to(scores.device).unsqueeze(1)
            total += float(scores.gather(1, chosen).sum())
    target.caches.release(kv)
    return total


def bits_per_byte(target: Target, texts: Iterable[str]) -> float:
    """Bits per byte of some texts, without the first token of each.

    Args:
        target: The loaded target.
        texts: Texts, cut to the context; at least one of them has two tokens.
    """
    bits, num_bytes = 0.0, 0
    for text in texts:
        token_ids = target.tokenizer.encode(text)[: target.config.context_tokens - 1]
        bits -= log_probability(target, token_ids) / math.log(2)
        num_bytes += len(target.tokenizer.decode(token_ids[1:]).encode())
    return bits / num_bytes
