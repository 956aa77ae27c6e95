"""The tree of a step as lines of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from medusa_core.messages import ModelLoaded, StepTrace, TraceNode

_MOST_LINES = 60
_ACCEPTED, _REJECTED = "●", "○"
Paint = Callable[[str, TraceNode], str]


def tree_lines(trace: StepTrace, loaded: ModelLoaded, paint: Paint) -> list[str]:
    """A step's guesses: which were accepted, who made them, and how likely they were.

    Args:
        trace: The step.
        loaded: The model, which names sources.
        paint: Colours the text of an accepted guess.

    Returns:
        A line for the step, one for each node, and one for the bonus token.
    """
    nodes = trace.nodes
    num_guesses, num_accepted = len(nodes) - 1, len(trace.path) - 1
    head = f"step {trace.step}: {num_accepted} of {num_guesses} guesses accepted"
    bonus = trace.verdicts[-1].choice
    labels = {one.name: one.label for one in loaded.sources}
    drawn = _Drawn(nodes, frozenset(trace.path), labels, paint)
    lines = [head, *drawn.lines()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more"]
    return [*lines, f"+ {token_text(bonus.text)}  chosen by the model, {bonus.probability:.0%}"]


def token_text(text: bytes) -> str:
    """A token between quotes, with what can't be seen written out."""
    shown = text.decode("utf-8", "backslashreplace") or "special"
    return repr(shown)


class _Drawn:
    """The branches of a tree, the likeliest first."""

    def __init__(
        self,
        nodes: Sequence[TraceNode],
        path: frozenset[int],
        labels: dict[str, str],
        paint: Paint,
    ) -> None:
        self._nodes, self._path, self._labels, self._paint = nodes, path, labels, paint
        self._children: dict[int, list[int]] = defaultdict(list)
        for index, node in enumerate(nodes):
            if node.parent >= 0:
                self._children[node.parent].append(index)

    def lines(self) -> list[str]:
        """The root, and all below it."""
        found = [f"{_ACCEPTED} {token_text(self._nodes[0].text)}  decided before"]
        waiting = [(child, "", is_last) for child, is_last in self._below(0)]
        while waiting:
            index, lead, is_last = waiting.pop()
            found.append(f"{lead}{'└' if is_last else '├'}─{self._line(index)}")
            deeper = lead + ("  " if is_last else "│ ")
            waiting += [(child, deeper, last) for child, last in self._below(index)]
        return found

    def _below(self, index: int) -> list[tuple[int, bool]]:
        """Children, the last one first, and whether each is that one; accepted ones come first."""
        found = sorted(self._children[index], key=lambda child: child not in self._path)
        return [(child, place == 0) for place, child in enumerate(reversed(found))]

    def _line(self, index: int) -> str:
        node = self._nodes[index]
        is_accepted = index in self._path
        text = token_text(node.text)
        shown = self._paint(text, node) if is_accepted else text
        who = "+".join(self._labels.get(name, name) for name in node.source.proposers)
        chance = "" if node.probability is None else f", {node.probability:.0%}"
        return (
            f"{_ACCEPTED if is_accepted else _REJECTED} {shown}  {who} {node.source.head}{chance}"
        )
