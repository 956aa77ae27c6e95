"""The tree of a step as lines of text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from medusa_core.messages import SourceInfo, StepTrace, TraceNode

_MOST_LINES = 60
_ACCEPTED, _REJECTED = "●", "○"
Paint = Callable[[str, TraceNode], str]


def tree_lines(
    trace: StepTrace,
    sources: Iterable[SourceInfo],
    special_tokens: Iterable[tuple[int, str]],
    paint: Paint,
) -> list[str]:
    """Return the drafted tree of a step: verdicts, sources and probabilities.

    Args:
        sources: All sources, with their labels.
        special_tokens: Ids and names of tokens without a text.
        paint: Colours the text of an accepted token.

    Returns:
        A line for the step, one for each node, and one for the bonus token, if the answer has it.
    """
    nodes = trace.nodes
    path = trace.path[: trace.num_appended + 1]  # the answer may end within a step
    num_guesses, num_accepted = len(nodes) - 1, len(path) - 1
    head = f"step {trace.step}: {num_accepted} of {num_guesses} draft tokens accepted"
    labels = _Labels({one.name: one.label for one in sources}, dict(special_tokens))
    drawn = _TreeDrawing(nodes, frozenset(path), labels, paint)
    lines = [head, *drawn.lines()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} more"]
    if trace.num_appended < len(trace.path):
        return [*lines, "the answer ended there"]
    bonus = trace.verdicts[-1].choice
    text = labels.of_token(bonus.token_id, bonus.text)
    return [*lines, f"+ {text}  chosen by the model, {bonus.probability:.0%}"]


class _Labels(NamedTuple):
    """Labels of sources and special tokens."""

    sources: Mapping[str, str]
    special_tokens: Mapping[int, str]

    def of_token(self, token_id: int, text: bytes) -> str:
        """Return the quoted and escaped text of a token, or the name of a special one."""
        if not text:
            return self.special_tokens.get(token_id, f"token {token_id}")
        return repr(text.decode("utf-8", "backslashreplace"))


class _TreeDrawing:
    """Draws a tree with the accepted path first."""

    def __init__(
        self,
        nodes: Sequence[TraceNode],
        path: frozenset[int],
        labels: _Labels,
        paint: Paint,
    ) -> None:
        self._nodes, self._path, self._labels, self._paint = nodes, path, labels, paint
        self._children: dict[int, list[int]] = defaultdict(list)
        for index, node in enumerate(nodes):
            if node.parent >= 0:
                self._children[node.parent].append(index)

    def lines(self) -> list[str]:
        """Return a line for each node, in depth-first order."""
        root = self._labels.of_token(self._nodes[0].token_id, self._nodes[0].text)
        found = [f"{_ACCEPTED} {root}  decided before"]
        stack = [(child, "", is_last) for child, is_last in self._children_of(0)]
        while stack:
            index, lead, is_last = stack.pop()
            found.append(f"{lead}{'└' if is_last else '├'}─{self._line(index)}")
            deeper = lead + ("  " if is_last else "│ ")
            stack += [(child, deeper, last) for child, last in self._children_of(index)]
        return found

    def _children_of(self, index: int) -> list[tuple[int, bool]]:
        """Return children in stack order, and whether each is the last one drawn."""
        found = sorted(self._children[index], key=lambda child: child not in self._path)
        return [(child, place == 0) for place, child in enumerate(reversed(found))]

    def _line(self, index: int) -> str:
        """Return a node's line: verdict, token, source and probability."""
        node = self._nodes[index]
        is_accepted = index in self._path
        text = self._labels.of_token(node.token_id, node.text)
        shown = self._paint(text, node) if is_accepted else text
        who = "+".join(self._labels.sources.get(name, name) for name in node.source.proposers)
        chance = "" if node.probability is None else f", {node.probability:.0%}"
        return (
            f"{_ACCEPTED if is_accepted else _REJECTED} {shown}  {who} {node.source.head}{chance}"
        )
