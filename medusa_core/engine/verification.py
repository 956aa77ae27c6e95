"""Verification of a given text: the target's most likely token after each prefix.

If every output equals the next input, the text is what the target generates itself: a fixed point
of Jacobi iteration (Santilli et al. 2023, "Accelerating Transformer Inference for Translation via
Parallel Decoding", section 3). The first output that differs is still what it would generate.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

from medusa_core.engine.admission import admit
from medusa_core.engine.transcript import transcribe
from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.loading.target import Target
from medusa_core.messages import Alternative, GenerateSettings, Verified, VerifiedToken, Verify
from medusa_core.speculation.tuning.chunks import Chunks

_LOGITS_ROWS = 64  # logits of a whole text would take more memory than the model


CheckCancelled = Callable[[Verify], None]


def verify(
    command: Verify, target: Target, check_cancelled: CheckCancelled = lambda _: None
) -> Verified:
    """Compute the target's most likely token after each token of a text.

    Args:
        command: The command with the text.
        target: The loaded target.
        check_cancelled: Called before every chunk; may raise to stop.

    Raises:
        OutOfMemoryError: Running answers leave no room for the text.
        RequestError: There is no text, it is too long, or a token isn't in the vocabulary.
    """
    admit(command.messages, GenerateSettings())
    token_ids, answers = _tokenized(command, target)
    started = time.perf_counter()
    with torch.inference_mode():
        outputs = _outputs(token_ids, target, partial(check_cancelled, command))
    seconds = time.perf_counter() - started
    bytes_of = target.tokenizer.bytes_of
    tokens = tuple(
        VerifiedToken(token_id, bytes_of(token_id), Alternative(best, bytes_of(best), chance))
        for token_id, (best, chance) in zip(token_ids, outputs, strict=True)
    )
    return Verified(*command.ids, tokens, seconds, answers)


def _tokenized(command: Verify, target: Target) -> tuple[list[int], tuple[tuple[int, int], ...]]:
    """The text's tokens, and the ranges of answers in them, EOS tokens included."""
    if not command.messages:
        return _token_ids(command, target), ()
    transcript = transcribe(command.messages, None, target)
    token_ids = transcript.token_ids
    _check(token_ids, target)
    ends = [
        stop < len(token_ids) and token_ids[stop] in target.eos_token_ids
        for _, stop in transcript.answers
    ]
    return token_ids, tuple(
        (start, stop + has_end)
        for (start, stop), has_end in zip(transcript.answers, ends, strict=True)
    )


def _token_ids(command: Verify, target: Target) -> list[int]:
    """Tokens of an edited text between the given tokens before and after it."""
    encode = target.tokenizer.encode_within if command.before_ids else target.tokenizer.encode
    token_ids = [*command.before_ids, *encode(command.text), *command.after_ids]
    _check(token_ids, target)
    return token_ids


def _check(token_ids: list[int], target: Target) -> None:
    """Refuse an empty text, one longer than the context, and tokens of another vocabulary."""
    if not token_ids:
        raise RequestError("There is nothing to verify.", "Write or paste a text first.")
    limit = target.config.context_tokens
    if len(token_ids) > limit:
        raise RequestError(
            tr("The text has {0} tokens, but {1} reads {2}.", len(token_ids), target.name, limit),
            "Shorten it.",
            num_tokens=len(token_ids),
            context_tokens=limit,
        )
    foreign = [i for i in token_ids if not 0 <= i < target.config.vocab_size]
    if foreign:
        raise RequestError(
            tr("Token {0} is none of {1}.", foreign[0], target.name),
            "The text was read by another model: verify it anew.",
        )


def _outputs(
    token_ids: list[int], target: Target, before_chunk: Callable[[], None]
) -> list[tuple[int, float]]:
    """The most likely token after each token, and its probability."""
    cache, chunks = target.allocate_cache(len(token_ids) + 1), Chunks(target)
    outputs: list[tuple[int, float]] = []
    while cache.length < len(token_ids):
        before_chunk()
        hidden = chunks.read(token_ids, cache)
        for start in range(0, len(hidden), _LOGITS_ROWS):
            scores = target.runner.logits(hidden[start : start + _LOGITS_ROWS])
            best = torch.softmax(scores, dim=-1, dtype=torch.float32).max(dim=-1)
            outputs += zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return outputs
