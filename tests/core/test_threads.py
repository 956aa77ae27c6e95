"""The choice of how many threads decode."""

from collections.abc import Iterator

import pytest
import torch

from medusa_core.engine import threads
from medusa_core.engine.threads import settle_threads
from medusa_core.target import Target


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("seconds", "best"),
    [
        ({1: 1.0, 2: 0.9, 4: 0.8}, 1),  # more threads gain little: not worth the risk
        ({1: 1.0, 2: 0.6, 4: 0.5}, 2),
        ({1: 4.0, 2: 2.0, 4: 1.0}, 4),
        ({1: 1.0, 2: 9.0, 4: 0.5}, 4),
    ],
)
def test_more_threads_must_be_worthwhile(
    tiny: Target, monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], best: int
) -> None:
    monkeypatch.setattr(threads, "_pass_s", lambda target, count: seconds[count])
    assert settle_threads(tiny, 4) == best
    assert torch.get_num_threads() == best


def test_it_tries_no_more_threads_than_there_are(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def note(target: Target, count: int) -> float:
        tried.append(count)
        return 1.0 / count

    monkeypatch.setattr(threads, "_pass_s", note)
    assert settle_threads(tiny, 6) == 6
    assert tried == [1, 2, 4, 6]


def test_real_passes_settle_on_a_count_within_the_limit(tiny: Target) -> None:
    assert settle_threads(tiny, 2) in (1, 2)
