"""Targets that the engine's tests decode with, loaded once."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Protocol

import pytest
import torch

from medusa_core.api import demo_model
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.datastore.phrases import (
    PhraseTable,
    write_phrases,
)
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.training.phrase_counts import OwnText, PhraseRecipe, count_phrases
from tests.core.eagle_files import EagleSpec, write_eagle
from tests.core.hydra_files import random_hydra, write_hydra
from tests.core.laws import Tie, decode, user_says
from tests.core.mtp_files import write_mimo
from tests.core.streams_files import STREAMS, write_streams
from tests.core.tight import with_layers_below
from tests.core.tiny import ACCURACIES, LLAMA3_ROPE, TinySpec, random_heads, write_heads, write_tiny

# Grouped queries, long-context rotation, a projection of its own, heads with theirs.
GROUPED = TinySpec(num_layers=2, rope=LLAMA3_ROPE, seed=3)
# Every query head with its keys, tied embeddings, biases, heads that share the projection.
TIED = TinySpec(num_layers=3, num_kv_heads=4, is_tied=True, has_bias=True, seed=4)
# One of every other family, wide enough for the compiled step.
FAMILIES = {
    name: TinySpec(model_type=name, hidden_size=64, intermediate_size=96, seed=seed)
    for seed, name in enumerate(("mistral", "qwen2", "qwen3"), start=5)
}
# With heads of another kind.
HYDRA = TinySpec(hidden_size=64, intermediate_size=96, seed=11)
# A smaller model with the same tokenizer, which drafts for "assisted".
SMALLER = TinySpec(num_layers=1, hidden_size=64, intermediate_size=48, seed=12)
OUTPUT = "said"  # the folder of what "learned" said before
# Of which one layer lies on the device, and the others on a disk.
STREAMED = TinySpec(num_layers=6, hidden_size=64, intermediate_size=96, seed=13)
TARGET_NAMES = (
    *("grouped", "tied", "eagle", "mimo", "streams", "assisted", "learned"),
    *FAMILIES,
    *("hydra", "pebble"),
)


Folders = dict[str, tuple[Path, Path | None]]


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
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Folders of every target and its heads, by name."""
    root = tmp_path_factory.mktemp("targets")
    made = {
        "grouped": (
            write_tiny(root / "grouped", GROUPED),
            write_heads(root / "grouped-heads", random_heads(GROUPED), ACCURACIES),
        ),
        "tied": (
            write_tiny(root / "tied", TIED),
            write_heads(root / "tied-heads", random_heads(TIED, num_layers=2, is_shared=True)),
        ),
        "eagle": (
            write_tiny(root / "eagle", GROUPED),
            write_eagle(root / "eagle-heads", EagleSpec("eagle3")),
        ),
        "mimo": (write_mimo(root / "mimo"), None),
        "streamed": (
            write_tiny(root / "streamed", STREAMED),
            write_heads(root / "streamed-heads", random_heads(STREAMED), ACCURACIES),
        ),
        "streams": (write_tiny(root / "streams", STREAMS), write_streams(root / "streams-heads")),
        "learned": (
            write_tiny(root / "learned", TIED),
            write_heads(root / "learned-heads", random_heads(TIED, is_shared=True)),
        ),
        **{
            name: (
                write_tiny(root / name, spec),
                write_heads(root / f"{name}-heads", random_heads(spec), ACCURACIES),
            )
            for name, spec in FAMILIES.items()
        },
    }
    made["hydra"] = (
        write_tiny(root / "hydra", HYDRA),
        write_hydra(root / "hydra-heads", random_hydra(HYDRA)),
    )
    for folder, _ in made.values():
        write_phrases(phrases_of(load_target(folder, options=LoadOptions("float64"))), folder)
    learn_answers(made["learned"][0])
    assisted = write_tiny(root / "assisted", GROUPED)
    smaller = write_tiny(root / "smaller", SMALLER)
    return {
        **made,
        "assisted": (assisted, None),
        "smaller": (smaller, None),
        "pebble": demo_model(),
    }


def options_of(name: str, dtype: str, device: str, folders: Folders) -> LoadOptions:
    """How to load one of them."""
    assistant = folders["smaller"][0] if name == "assisted" else None
    output = folders["learned"][0] / OUTPUT if name == "learned" else None
    options = LoadOptions(dtype, device, assistant_dir=assistant, datastore_dir=output)
    return options if name != "streamed" else with_layers_below(*folders[name], options, 1)


def phrases_of(target: Target) -> PhraseTable:
    """What a random target says often."""
    settings = GenerateSettings(drafter="none", max_new_tokens=60)
    answers = [decode(target, settings, user_says(word)) for word in ("one", "two", "three")]
    texts = [OwnText((*a.prompt_ids[-4:], *a.token_ids), 4) for a in answers]
    return count_phrases(texts, replace(PhraseRecipe(), least_count=1))


def learn_answers(folder: Path) -> None:
    """Let a random target say something, which it drafts by from then on."""
    target = load_target(folder, options=LoadOptions("float64", datastore_dir=folder / OUTPUT))
    assert target.learned is not None
    for rule, output in itertools.product(
        ("greedy", "sample"), ("Hi there", "one", "two", "three")
    ):
        settings = GenerateSettings(rule=rule, drafter="none", seed=11, max_new_tokens=60)
        answer = decode(target, settings, user_says(output))
        target.learned.learn("a conversation", answer.prompt_ids, answer.token_ids)
    target.learned.close()


@pytest.fixture(scope="session")
def load(folders: Folders) -> LoadTarget:
    """Targets on demand."""

    @cache
    def load_once(name: str, dtype: str, device: str = "cpu") -> Target:
        return load_target(*folders[name], options_of(name, dtype, device, folders))

    return load_once


@pytest.fixture
def target_of(load: LoadTarget) -> Callable[[str], Target]:
    """A tiny exact target that a drafter can draft for, by the drafter's name."""

    def find(drafter: str) -> Target:
        spec = drafter_registry().get(drafter)
        targets = (load(name, "float64") for name in TARGET_NAMES)
        return next(target for target in targets if spec.serves(target))

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
