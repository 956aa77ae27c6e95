"""A text that a source of drafts hears as an answer would tell it, and what it then proposes."""

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.runtime.runner.runner import Runner
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import (
    CandidateSource,
    Paths,
    ReadsStates,
    Source,
    UsesTargetCache,
)

TEXT = [5, 40, 60, 61, 200, 7, 7, 33, 90, 12, 300]


@torch.inference_mode()
def hear(
    target: Target,
    source: Source,
    text: Sequence[int],
    pieces: Sequence[int],
    runner: Runner | None = None,
) -> Tensor:
    """Pass a text to a source as prefill and steps do.

    Args:
        target: Computes the states.
        source: Hears them.
        text: Token ids.
        pieces: Lengths of the prompt, which is read in two parts, and of the steps behind it; what
            they leave of the text is one more step.
        runner: Runs the target; None for its own.

    Returns:
        What the heads read: of every token what enters the tapped layers, or the final state if
        none is tapped.
    """
    runner, text = runner or target.runner, list(text)
    kv, size = runner.new_cache(len(text) + 8), target.config.hidden_size
    reported = runner.extend(text, kv)
    final = reported[:, :size]
    deep = reported[:, size:] if reported.shape[1] > size else None
    at = pieces[0]
    source.begin(text[:at])
    if isinstance(source, ReadsStates):
        assert source.resume(text[:at], {}) == 0
        for start, end in ((0, at // 2), (at // 2, at)):
            if end > start:
                source.read(start, final[start:end], None if deep is None else deep[start:end])
    for piece in (*pieces[1:], len(text) - sum(pieces)):
        if piece:
            rows = range(at - 1, at - 1 + piece)
            source.observe(Observation(text[at : at + piece], final, rows, None, deep))
        at += piece
    if isinstance(source, UsesTargetCache):
        source.attach_cache(kv)
    return final if deep is None else deep


@torch.inference_mode()
def candidates_of(source: CandidateSource, *paths: tuple[int, ...]) -> list[dict[int, float]]:
    """Return the candidates after paths of one length with their probabilities, the likeliest
    first.
    """
    joined = array("i", [token for path in paths for token in path])
    found = source.candidates(Paths(len(paths), len(paths[0]), joined))
    assert found is not None
    every = list(zip(found.token_ids, found.chances, strict=True))
    if found.counts is None:
        return [dict(every)] * len(paths)
    ends = list(accumulate(found.counts))
    assert len(ends) == len(paths)
    return [dict(every[start:end]) for start, end in pairwise([0, *ends])]


def candidates_behind(source: CandidateSource, path: tuple[int, ...] = ()) -> dict[int, float]:
    """Return the candidates after one path with their probabilities, the likeliest first."""
    return candidates_of(source, path)[0]


def best_path(source: CandidateSource, length: int) -> list[int]:
    """Return the path of the most likely candidates."""
    path: list[int] = []
    while len(path) < length:
        path.append(next(iter(candidates_behind(source, tuple(path)))))
    return path
