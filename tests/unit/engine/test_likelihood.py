"""Log-probabilities of texts, and bits per byte."""

import math

import pytest
import torch

from medusa_core.engine.likelihood import bits_per_byte, log_probability
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from tests.support.engine.laws import plain_states
from tests.support.models.targets import Folders

TEXT = "the quick brown fox jumps over the lazy dog, again and again"


def test_the_log_probability_of_a_text_is_the_sum_over_its_tokens(folders: Folders) -> None:
    folder, _ = folders["grouped"]
    target = load_target(folder, None, LoadOptions("float64", "cpu", context_tokens=128))
    ids = target.tokenizer.encode(TEXT)
    assert len(ids) > 20
    with torch.inference_mode():
        scores = target.runner.logits(plain_states(target, ids)[0])[:-1].log_softmax(-1)
    each = scores.gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    for first in (1, 7, len(ids) - 1):
        expected = float(each[first - 1 :].sum())
        assert log_probability(target, ids, first) == pytest.approx(expected, rel=1e-5)
    num_bytes = len(target.tokenizer.decode(ids[1:]).encode())
    expected = -float(each.sum()) / math.log(2) / num_bytes
    assert bits_per_byte(target, [TEXT]) == pytest.approx(expected, rel=1e-5)
    assert bits_per_byte(target, [TEXT, TEXT]) == pytest.approx(expected, rel=1e-5)
    free = target.caches.free_rows
    bits_per_byte(target, [TEXT * 20])  # as much as the context takes
    assert target.caches.free_rows == free
