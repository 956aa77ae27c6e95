"""Fixtures of targets for every test; torch is imported only when one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from medusa_core.loading.target import Target
    from tests.support.engine.conversations import Conversations, Open
    from tests.support.engine.laws import Tie
    from tests.support.models.targets import Folders

__all__ = ["LoadTarget", "folders", "load", "open_all", "report_ties", "target_of", "tiny"]


class LoadTarget(Protocol):
    """Loads a target by name, dtype and device, each once."""

    def __call__(self, name: str, dtype: str, device: str = "cpu") -> Target: ...


@pytest.fixture(scope="session")
def folders() -> Folders:
    """Folders of every target and its heads, by name."""
    from tests.support.models.targets import Folders

    return Folders()


@pytest.fixture(scope="session")
def load() -> LoadTarget:
    """Targets on demand."""
    from tests.support.models import targets

    return targets.load


@pytest.fixture
def target_of(load: LoadTarget) -> Callable[[str], Target]:
    """A tiny exact target that a drafter can draft for, by the drafter's name."""

    from medusa_core.speculation.drafters.lineup import drafter_registry
    from tests.support.models.targets import PEERS, TARGET_NAMES

    def find(drafter: str) -> Target:
        spec = drafter_registry().get(drafter)
        # That of the same name first, and families that transformers writes last: these take
        # seconds.
        names = sorted(TARGET_NAMES, key=lambda name: (name not in drafter, name in PEERS))
        loaded = (load(name, "float64") for name in names)
        return next(target for target in loaded if spec.serves(target))

    return find


@pytest.fixture
def tiny(load: LoadTarget) -> Target:
    """The target that most tests need: tiny, exact, with heads."""
    return load("grouped", "float64")


@pytest.fixture
def open_all() -> Iterator[Open]:
    """Open conversations, which are closed after the test."""
    from tests.support.engine.conversations import Conversations

    opened: list[Conversations] = []

    def begin(target: Target) -> Conversations:
        opened.append(Conversations(target))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


@pytest.fixture
def report_ties(request: pytest.FixtureRequest) -> Callable[[list[Tie]], None]:
    """Count and print the differences that rounding explains."""

    def report(ties: list[Tie]) -> None:
        found = [
            f"{request.node.name}: at {tie.position}, {tie.plain_id} or {tie.drafted_id}"
            f" (scores are exact to {tie.rounding:.2g})"
            for tie in ties
        ]
        print(*found, sep="\n")
        request.node.user_properties.extend(("tie", line) for line in found)

    return report
