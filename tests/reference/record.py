"""What the engine decodes for fixed prompts, which a change of its structure must keep.

`python -m tests.reference.record` writes it anew, after a change that means to decode otherwise.
"""

import contextlib
import hashlib
import io
import itertools
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from medusa_core.__main__ import main
from medusa_core.api import demo_model
from medusa_core.chats.trace_file import (
    Recording,
    write_trace,
)
from medusa_core.engine.direct import generate
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import TREE, ChatMessage, GenerateSettings, LoadOptions, Role, StepTrace
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import (
    SourceCost,
    StepCosts,
)
from medusa_core.system.resources import resources_dir

FILE = Path(__file__).parent / "answers.json"
PROMPTS = (
    "Tell me a story about a fox.",
    "What is the capital of France?",
    "Write a short script.",
)
# Rows are neither free nor dear; in float64 the best of two scores is the same on every machine.
_DRAFT_S = (0.02, 0.04, 0.06, 0.08, 0.1)
COSTS = StepCosts(
    (64, 768), (1, 64), ((1.0, 2.0), (1.2, 3.0)), {"medusa": SourceCost(_DRAFT_S, _DRAFT_S)}
)
SHAPES = tuple(sorted(path.stem for path in (resources_dir() / "shapes").glob("*.json")))
CARD = ("--num-heads", "3", "--vram-gib", "8", "--capability", "8.6", "--json", "-")
# What the processor computes has measured times.
CARD_ALONE = ("--experts", "card", "--cpu-layers", "0")
RULES = (("greedy", 0), ("sample", 1), ("sample", 2), ("typical", 1))
_NUM_TOKENS = 32


class Unjudged(RowPolicy):
    """Policy that never pauses drafting, as that would depend on the clock."""

    def governor(self, settings: GenerateSettings, length: int) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Case:
    """A reference case: a prompt, a drafter, a rule and a seed."""

    prompt: str
    drafter: str
    rule: str
    seed: int

    def __str__(self) -> str:
        return f"{PROMPTS.index(self.prompt)} {self.drafter} {self.rule} {self.seed}"


@dataclass(frozen=True, slots=True)
class Decoded:
    """Result of a case: its tokens, and a digest of all verified trees."""

    token_ids: list[int]
    trees: str


def target() -> Target:
    """The demo in float64, as torch computes it everywhere."""
    return load_target(*demo_model(), LoadOptions("float64", "cpu"))


def cases(drafters: tuple[str, ...]) -> Iterator[Case]:
    """Return all combinations of prompts, drafters, rules and seeds."""
    for prompt, drafter, (rule, seed) in itertools.product(PROMPTS, drafters, RULES):
        yield Case(prompt, drafter, rule, seed)


def decode(case: Case, loaded: Target) -> Decoded:
    """Decode a case with an engine without learned rates and clocks."""
    settings = GenerateSettings(
        drafter=case.drafter,
        rule=case.rule,
        seed=case.seed,
        temperature=0.8,
        max_new_tokens=_NUM_TOKENS,
        growth=TREE,
    )
    digest = hashlib.sha256()

    def note(trace: StepTrace) -> None:
        digest.update(repr((trace.parents, trace.token_ids, trace.path)).encode())

    messages = [ChatMessage(Role.USER, case.prompt)]
    done = generate(loaded, messages, settings, on_trace=note, row_policy=Unjudged(loaded, COSTS))
    return Decoded(list(done.token_ids), digest.hexdigest()[:16])


def plan(rule: str, loaded: Target) -> str:
    """A digest of the trees that the heads are planned under a rule."""
    planned = RowPolicy(loaded, COSTS).plan("", "", GenerateSettings(rule=rule, temperature=0.8))
    nodes = [(node.parent, node.head, node.rank) for node in planned.best_nodes]
    reported = (planned.tree_rows, nodes, [round(s, 6) for s in planned.tree_step_s])
    return hashlib.sha256(repr(reported).encode()).hexdigest()[:16]


def memory(shape: str) -> str:
    """A digest of where the memory of a card of 8 GiB goes, to the byte."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["plan", shape, *CARD, *CARD_ALONE]) == 0
    return hashlib.sha256(printed.getvalue().encode()).hexdigest()[:16]


def trace(rule: str, loaded: Target) -> str:
    """A digest of the file of a recorded answer, but for its fractions: times and chances."""
    settings = GenerateSettings(rule=rule, temperature=0.8, max_new_tokens=_NUM_TOKENS)
    settings = replace(settings, drafter="composite", seed=1, growth=TREE)
    steps: list[StepTrace] = []
    messages = [ChatMessage(Role.USER, PROMPTS[0])]
    done = generate(
        loaded, messages, settings, on_trace=steps.append, row_policy=Unjudged(loaded, COSTS)
    )
    # Rounding decides which of the least likely offers are told.
    steps = [step._replace(offers=b"") for step in steps]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        write_trace(path, Recording("demo", tuple(steps), done))
        reported = _without_fractions(json.loads(path.read_text(encoding="utf-8")))
    return hashlib.sha256(json.dumps(reported).encode()).hexdigest()[:16]


def _without_fractions(reported: Any) -> Any:
    if isinstance(reported, dict):
        return {key: _without_fractions(value) for key, value in reported.items()}
    if isinstance(reported, list):
        return [_without_fractions(value) for value in reported]
    return None if isinstance(reported, float) else reported


def record() -> None:
    """Write the reference."""
    loaded = target()
    serving = tuple(spec.name for spec in drafter_registry().specs if spec.serves(loaded))
    decoded = {str(case): decode(case, loaded) for case in cases(serving)}
    rows: dict[str, object] = {
        name: {"tokens": one.token_ids, "trees": one.trees} for name, one in decoded.items()
    }
    rows |= {f"plan {rule}": plan(rule, loaded) for rule in ("greedy", "sample")}
    rows |= {f"trace {rule}": trace(rule, loaded) for rule in ("greedy", "sample", "typical")}
    rows |= {f"memory {shape}": memory(shape) for shape in SHAPES}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    FILE.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    record()
