"""Targets for the engine's tests, and what they report."""

from collections.abc import Callable, Iterator
from typing import Protocol

import pytest
import torch

from medusa_core.loading.target import Target
from medusa_core.speculation.drafters.lineup import drafter_registry
from tests.core import targets
from tests.core.laws import Tie
from tests.core.targets import (
    FAMILIES,
    GROUPED,
    HYDRA,
    STREAMED,
    TARGET_NAMES,
    TIED,
    Folders,
    options_of,
)

__all__ = [
    "FAMILIES",
    "GROUPED",
    "HYDRA",
    "STREAMED",
    "TARGET_NAMES",
    "TIED",
    "Folders",
    "LoadTarget",
    "options_of",
]


class LoadTarget(Protocol):
    """Loads a target by name, dtype and device, each once."""

    def __call__(self, name: str, dtype: str, device: str = "cpu") -> Target: ...


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Tiny matrices gain nothing from a second thread, and wait for it on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folders() -> Folders:
    """Folders of every target and its heads, by name."""
    return Folders()


@pytest.fixture(scope="session")
def load() -> LoadTarget:
    """Targets on demand."""
    return targets.load


@pytest.fixture
def target_of(load: LoadTarget) -> Callable[[str], Target]:
    """A tiny exact target that a drafter can draft for, by the drafter's name."""

    def find(drafter: str) -> Target:
        spec = drafter_registry().get(drafter)
        loaded = (load(name, "float64") for name in TARGET_NAMES)
        return next(target for target in loaded if spec.serves(target))

    return find


@pytest.fixture
def tiny(load: LoadTarget) -> Target:
    """The target that most tests need: tiny, exact, with heads."""
    return load("grouped", "float64")


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the ties of the run, also when all tests passed."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    calls = [report for report in reports if getattr(report, "when", "") == "call"]
    reported = [pair for report in calls for pair in report.user_properties]
    lines = [line for name, line in reported if name == "tie"]
    if lines:
        terminalreporter.write_sep("-", f"differences at ties: {len(lines)}")
        for line in lines:
            terminalreporter.write_line(line)
