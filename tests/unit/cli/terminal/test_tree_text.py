"""A step's tree as text, against a tree that is drawn by hand."""

from __future__ import annotations

import struct

from medusa_core.cli.terminal.tree_text import tree_lines
from medusa_core.messages import TARGET, SourceInfo, StepTimes, StepTrace, TokenSource, TraceNode
from medusa_core.messages.traces import Odds

HEAD = "heads"
TEXTS = {1: b" a", 2: b" b", 3: b" c", 4: b"\n", 5: b" e", 0: b"", 9: b""}


def heads(depth: int) -> TokenSource:
    return TokenSource(HEAD, depth)


def trace() -> StepTrace:
    """Return a trace with a root, two drafts after it, and two after the second, one of them
    accepted.
    """
    path = (0, 2, 4)
    choices = (3, 5, 9)
    floats = (0.5, 0.75, 0.25) + (0.1,) * 15
    judged = struct.pack("18f", *floats) + struct.pack("15i", *(1,) * 15)
    chances = struct.pack("4f", 0.2, 0.6, 0.3, 0.4)
    return StepTrace(
        "s", "r", 7, 3, (1, 2, 3, 4, 5), (-1, 0, 0, 2, 2), (-1, 0, 1, 0, 1),
        (TARGET, heads(1), heads(1), heads(2), heads(2)), path, choices, TEXTS,
        Odds(chances, (0, 1, 2, 3)), judged, (), 3, StepTimes(0, 0, 0, 0), 0.0,
    )  # fmt: skip


def test_accepted_drafts_come_first_and_are_coloured() -> None:
    source = SourceInfo(HEAD, "head", "h", "", (), "solid")

    def paint(text: str, node: TraceNode) -> str:
        return f"<{text}>"

    assert tree_lines(trace(), (source,), ((9, "</s>"),), paint) == [
        "step 7: 2 of 4 draft tokens accepted",
        "● ' a'  decided before",
        "├─● <' c'>  head 1, 60%",
        "│ ├─● <' e'>  head 2, 40%",
        "│ └─○ '\\n'  head 2, 30%",
        "└─○ ' b'  head 1, 20%",
        "+ </s>  chosen by the model, 25%",
    ]


def test_drafts_after_the_end_of_an_answer_are_not_accepted() -> None:
    ended = trace()._replace(num_appended=1)
    lines = tree_lines(ended, (), (), lambda text, _: text)
    assert lines[0] == "step 7: 1 of 4 draft tokens accepted"
    assert [line for line in lines[2:] if "●" in line] == ["├─● ' c'  heads 1, 60%"]
    assert lines[-1] == "the answer ended there"
