"""Statistics of a drafter's steps in a race, and the form of its trees in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

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
    rows, tau = f"{speed.num_rows:.1f}", f"{speed.tau:.1f}"
    if speed.num_rows == 1:
        return f"It drafted nothing: {tau} tokens come of a step of one row."
    times = f"A step of {rows} rows takes {speed.step_x:.1f} times as long as one of one row"
    if speed.growth == NOTHING:
        return (
            f"{times}, and drafting {speed.draft_ms:.1f} ms, for {tau} tokens; in most steps no "
            "draft token was worth its row."
        )
    if speed.growth == CHAIN:
        return f"{times}; a chain of {speed.levels:.1f} brings {tau} tokens."
    return f"{times}; a tree of them, {speed.levels:.1f} deep, brings {tau} tokens."
