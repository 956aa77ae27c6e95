"""Statistics of a drafter's steps in a race, and the form of its trees in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from medusa_core.i18n import tr
from medusa_core.messages import CHAIN, TREE, DrafterSpeed, GenerationDone, StepDone
from medusa_core.speculation.tuning.step_costs import StepCosts

NOTHING = "none"


@dataclass(slots=True)
class RaceSums:
    """Sums over answers: tokens after the first, steps, seconds, rows, levels, forms of trees."""

    tokens: int = 0
    steps: int = 0
    decode_s: float = 0.0
    draft_s: float = 0.0
    rows: int = 0
    levels: int = 0
    forms: Counter[str] = field(default_factory=Counter)

    def add(self, other: RaceSums) -> None:
        """Add the sums of other answers."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def add_step(self, step: StepDone) -> None:
        """Add a step's rows and form; prefill isn't counted."""
        if step.step == 0:
            return
        levels = max(source.head for source in step.node_sources)
        self.draft_s += step.times.draft_s
        self.rows += step.num_rows
        self.levels += levels
        self.forms[form_name(len(step.node_sources), levels)] += 1

    def add_answer(self, done: GenerationDone) -> None:
        """Add an answer's tokens and time."""
        self.steps += len(done.accept_lengths)
        self.tokens += sum(done.accept_lengths)
        self.decode_s += done.decode_s

    def speed(self, name: str, plain_speed: float, costs: StepCosts) -> DrafterSpeed:
        """The drafter's speed.

        Args:
            name: Name of the drafter.
            plain_speed: Tokens per second of plain decoding.
            costs: Measured costs of steps.
        """
        num_steps, tokens_per_s = max(1, self.steps), self.tokens / max(1e-9, self.decode_s)
        num_rows, length = max(1.0, self.rows / num_steps), costs.lengths[0]
        measured = DrafterSpeed(
            name,
            tau=self.tokens / num_steps,
            tokens_per_s=tokens_per_s,
            x_plain=tokens_per_s / plain_speed,
            draft_ms=self.draft_s / num_steps * 1000,
            growth=max(self.forms, key=lambda form: self.forms[form], default=NOTHING),
            num_rows=num_rows,
            levels=self.levels / num_steps,
            step_x=costs.step_s(num_rows, length) / costs.plain_s(length),
        )
        return measured._replace(why=why_of(measured))


def form_name(num_nodes: int, levels: int) -> str:
    """Name of a tree's form: chain, tree or none.

    Args:
        num_nodes: Number of nodes, root included.
        levels: Depth of the tree.
    """
    if num_nodes < 2:
        return NOTHING
    return CHAIN if levels == num_nodes - 1 else TREE


def why_of(speed: DrafterSpeed) -> str:
    """Why most of a drafter's trees have their form: one sentence with the measurements."""
    if speed.num_rows == 1:
        return tr("It drafted nothing: {0:.1f} tokens come of a step of one row.", speed.tau)
    times = tr(
        "A step of {0:.1f} rows takes {1:.1f} times as long as one of one row",
        speed.num_rows,
        speed.step_x,
    )
    if speed.growth == NOTHING:
        return tr(
            "{0}, and drafting {1:.1f} ms, for {2:.1f} tokens; in most steps no draft token was "
            "worth its row.",
            times,
            speed.draft_ms,
            speed.tau,
        )
    if speed.growth == CHAIN:
        return tr("{0}; a chain of {1:.1f} brings {2:.1f} tokens.", times, speed.levels, speed.tau)
    return tr(
        "{0}; a tree of them, {1:.1f} deep, brings {2:.1f} tokens.", times, speed.levels, speed.tau
    )
