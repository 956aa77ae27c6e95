"""Logit processors: changes of the target's logits before a rule uses them.

In this order: repetition penalty, presence and frequency penalties, logit bias, bans, the answer's
grammar. Temperature and filters follow, if the rule draws (`sampling.py`).

Every node is processed along its own path: drafts before it count as decided tokens, so that plain
decoding processes the same logits in the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medusa_core.errors import GrammarError, RequestError
from medusa_core.i18n import tr
from medusa_core.messages import GenerateSettings
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.step import WalkContext

_MAX_PENALTY = 100.0


class Shaping:
    """The logit processors of one answer.

    Attributes:
        is_idle: The settings change nothing.
    """

    def __init__(self, settings: GenerateSettings) -> None:
        """Check the settings.

        Raises:
            RequestError: A number makes no sense.
        """
        _check(settings)
        self._settings = settings
        self._counts = bool(settings.presence_penalty or settings.frequency_penalty)
        self._forbidden = _by_place(settings.forbidden)
        self._history: Sequence[int] = ()
        self._num_seen, self._seen = 0, np.zeros(0, dtype=np.int64)
        self.is_idle = not (
            settings.repetition_penalty != 1
            or self._counts
            or settings.logit_bias
            or settings.banned
            or settings.forbidden
        )

    def __call__(self, row: Tensor, context: WalkContext, path: Sequence[int]) -> Tensor:
        """Process the logits of a node.

        Args:
            row: The target's logits at the node. [vocabulary]
            context: The decided tokens, the tree's root included.
            path: Draft tokens from the root's child down to the node.

        Returns:
            [vocabulary], in the precision of `row`; the same tensor if nothing changes.

        Raises:
            GrammarError: All tokens that the grammar allows are banned.
        """
        shaped = row if self.is_idle else self._by_settings(row.clone(), context, path)
        return shaped if context.grammar is None else _within(context.grammar, shaped, path)

    def _seen_in(self, history: Sequence[int]) -> NDArray[np.int64]:
        """Distinct tokens of an answer's history, which only grows. [n]"""
        if history is not self._history or len(history) < self._num_seen:
            self._history, self._num_seen = history, 0
            self._seen = np.zeros(0, dtype=np.int64)
        if self._num_seen < len(history):
            new = np.array(history[self._num_seen :], dtype=np.int64)
            self._seen, self._num_seen = np.union1d(self._seen, new), len(history)
        return self._seen

    def _by_settings(self, row: Tensor, context: WalkContext, path: Sequence[int]) -> Tensor:
        """Apply penalties, biases and bans to a copied row, in place."""
        settings = self._settings
        if settings.repetition_penalty != 1:
            seen = self._seen_in(context.history)
            if path:
                seen = np.union1d(seen, np.array(path))
            _penalise_repetition(row, torch.from_numpy(seen), settings.repetition_penalty)
        if self._counts:
            answer = Counter(context.history[context.num_prompt_tokens :])
            answer.update(path)
            ids, counts = _tensors(answer, row)
            row[ids] -= settings.presence_penalty + settings.frequency_penalty * counts
        if settings.logit_bias:
            ids, biases = _tensors(dict(settings.logit_bias), row)
            row[ids] += biases
        place = len(context.history) - context.num_prompt_tokens + len(path)
        banned = (*settings.banned, *self._forbidden.get(place, ()))
        if banned:
            row[torch.tensor(banned, device=row.device)] = -math.inf
        return row


def _penalise_repetition(row: Tensor, seen: Tensor, penalty: float) -> None:
    """Divide positive and multiply negative logits of seen tokens, in place."""
    ids = seen.to(row.device)
    scores = row[ids]
    row[ids] = torch.where(scores > 0, scores / penalty, scores * penalty)


def _within(grammar: Grammar, row: Tensor, path: Sequence[int]) -> Tensor:
    """The logits of the tokens that a grammar allows; −inf for the others."""
    allowed = grammar.allowed(path, len(row))
    if allowed is None:
        return row
    # With numpy, as torch's threads wait for each other, which takes longer if they share cores.
    scores = numbers_of(row).copy()
    scores[~allowed] = -math.inf
    if scores.max() == -np.inf:
        raise GrammarError(
            "All that the grammar allows here is banned.", "Ban less, or choose another grammar."
        )
    return torch.from_numpy(scores)


def numbers_of(row: Tensor) -> NDArray[np.float32] | NDArray[np.float64]:
    """A row of logits for numpy, half precision as float32; a view if the tensor is on the CPU."""
    row = row.cpu()
    is_wide = row.dtype in (torch.float32, torch.float64)
    numbers: NDArray[np.float32] = (row if is_wide else row.float()).numpy()
    return numbers


def check_tokens(settings: GenerateSettings, vocab_size: int) -> None:
    """Check the token ids in settings.

    Raises:
        RequestError: A token isn't in the target's vocabulary, or all tokens are banned.
    """
    named = {
        *settings.banned,
        *(token_id for token_id, _ in settings.logit_bias),
        *(token_id for _, token_id in settings.forbidden),
    }
    foreign = [token_id for token_id in sorted(named) if not 0 <= token_id < vocab_size]
    if foreign:
        raise RequestError(
            tr("Token {0} is none of the model's {1}.", foreign[0], vocab_size),
            "Token ids belong to one model: look them up again after changing it.",
        )
    if len({*settings.banned, *(token_id for _, token_id in settings.forbidden)}) >= vocab_size:
        raise RequestError("Every token is banned.", "Leave some for the answer.")


def _tensors(values: dict[int, float] | Counter[int], row: Tensor) -> tuple[Tensor, Tensor]:
    """Token ids and their values as tensors like a row of logits."""
    ids = torch.tensor(list(values), dtype=torch.int64, device=row.device)
    return ids, torch.tensor(list(values.values()), dtype=row.dtype, device=row.device)


def _by_place(forbidden: Sequence[tuple[int, int]]) -> dict[int, tuple[int, ...]]:
    """Forbidden tokens by position in the answer."""
    places: dict[int, tuple[int, ...]] = {}
    for place, token_id in forbidden:
        places[place] = (*places.get(place, ()), token_id)
    return places


def _check(settings: GenerateSettings) -> None:
    """Check penalties, logit biases and forbidden places."""
    if not 0 < settings.repetition_penalty <= _MAX_PENALTY:
        raise RequestError(
            tr("A repetition penalty of {0} makes no sense.", settings.repetition_penalty),
            "Choose one between 1 (off) and 2.",
        )
    for name in ("presence_penalty", "frequency_penalty"):
        value = getattr(settings, name)
        if not abs(value) <= _MAX_PENALTY:
            raise RequestError(
                tr("A {0} of {1} makes no sense.", name.replace("_", " "), value),
                "Choose one between -2 and 2; 0 is off.",
            )
    if not all(math.isfinite(bias) for _, bias in settings.logit_bias):
        raise RequestError("A logit bias is no finite number.", "Ban the token instead.")
    if any(place < 0 for place, _ in settings.forbidden):
        raise RequestError("A place in the answer is negative.", "Places count from 0.")
