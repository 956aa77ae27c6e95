"""The calls of a round: approved, stored, run, and read by the model, whatever happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from medusa_core.chats.rounds import Approval, CallState, Round, RoundCall, ToolResult
from medusa_core.errors import ToolError
from medusa_core.messages import ToolCall
from medusa_core.tools.approvals import Approvals
from medusa_core.tools.arguments import arguments_problem
from medusa_core.tools.call_loop import CallLoop
from medusa_core.tools.offered_tool import OfferedTool
from medusa_core.tools.results import REPEATED, RunningCall, text_result
from medusa_core.tools.tool import Tool

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "unit": {"enum": ["s", "m"]}},
    "required": ["n"],
    "additionalProperties": False,
}
ADD = Tool("add", "Adds.", json.dumps(SCHEMA))
PAGE = Tool("page", "Reads a page.", "{}")
TOOLS = (
    OfferedTool(ADD, "builtin/add", None, "Add", ADD),
    OfferedTool(
        PAGE, "builtin/page", None, "Page", PAGE, lambda arguments: json.loads(arguments)["host"]
    ),
)


class FakeToolbox:
    """Runs nothing until told to."""

    def __init__(self, folder: Path) -> None:
        self.approvals = Approvals(folder / "approvals.json")
        self.started: list[tuple[str, str]] = []
        self.finish: Callable[[ToolResult], None] = lambda _: None
        self.num_cancelled = 0

    def run(
        self, tool: OfferedTool, arguments: str, on_done: Callable[[ToolResult], None]
    ) -> RunningCall:
        self.started.append((tool.tool.name, arguments))
        self.finish = on_done

        def stop() -> None:
            self.num_cancelled += 1

        return RunningCall(on_done, stop)


class FakeHost:
    """Keeps what was stored, and runs posted functions when told to."""

    def __init__(self) -> None:
        self.saved: list[tuple[int, str]] = []
        self.asked: list[int] = []
        self.ends: list[bool] = []
        self.posted: list[Callable[[], None]] = []
        self.warnings: list[ToolError] = []
        self.can_store = True

    def save(self, place: int, call: RoundCall) -> bool:
        self.saved.append((place, call.state.value))
        return self.can_store

    def ask(self, place: int, call: RoundCall) -> None:
        assert call.state is CallState.REQUESTED
        self.asked.append(place)

    def post(self, function: Callable[[], None]) -> None:
        self.posted.append(function)

    def run_posted(self) -> None:
        while self.posted:
            self.posted.pop(0)()

    def end(self, *, goes_on: bool) -> None:
        self.ends.append(goes_on)

    def warn(self, error: ToolError) -> None:
        self.warnings.append(error)


class Case:
    """A round with calls, and what happens to it."""

    def __init__(
        self,
        folder: Path,
        *calls: tuple[str, str],
        before: tuple[RoundCall, ...] = (),
    ) -> None:
        requested = (ToolCall(f"c{n}", *call) for n, call in enumerate(calls))
        self.round = Round("r", calls=tuple(map(RoundCall, requested)))
        self.toolbox, self.host = FakeToolbox(folder), FakeHost()
        self.loop = CallLoop(
            self.round,
            TOOLS,
            self.toolbox,
            "chat",
            self.host,
            before=before,
        )

    @property
    def states(self) -> list[str]:
        return [call.state.value for call in self.round.calls]

    def finish(self, text: str, *, is_error: bool = False) -> None:
        self.toolbox.finish(text_result(text, is_error=is_error))
        self.host.run_posted()


def test_an_approved_call_is_stored_before_it_runs(tmp_path: Path) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'), ("add", '{"n": 2}'))
    case.loop.start()
    assert (case.host.asked, case.loop.waiting, case.toolbox.started) == ([0], 0, [])
    case.loop.approve(Approval.ONCE)
    assert case.toolbox.started == [("add", '{"n": 1}')]
    assert case.host.saved == [(0, "approved"), (0, "running")]
    case.finish("2")
    assert (case.states, case.host.asked) == (["done", "requested"], [0, 1])
    assert case.round.calls[0].message.text == "2"
    case.loop.deny()
    assert (case.states, case.host.ends) == (["done", "denied"], [True])
    assert case.round.calls[0].approval is Approval.ONCE


@pytest.mark.parametrize("approval", [Approval.CONVERSATION, Approval.ALWAYS])
def test_nobody_is_asked_twice_about_what_was_approved(tmp_path: Path, approval: Approval) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'), ("add", '{"n": 2}'))
    case.loop.start()
    case.loop.approve(approval)
    case.finish("2")
    assert (case.host.asked, len(case.toolbox.started)) == ([0], 2)
    case.finish("3", is_error=True)
    assert (case.states, case.host.ends) == (["done", "failed"], [True])
    assert [call.approval for call in case.round.calls] == [approval, approval]


@pytest.mark.parametrize(
    "arguments",
    ['{"n": 1, "n": 2}', '{"n": {"a": 1, "a": 1}}', '{"n": NaN}', '{"n": "\\ud800"}', "[" * 99_999],
)
def test_arguments_that_can_be_read_in_two_ways_are_refused(arguments: str) -> None:
    assert "The arguments" in arguments_problem(arguments, "{}")


def test_a_call_that_was_answered_or_denied_runs_only_once(tmp_path: Path) -> None:
    done = ToolCall("a", "add", '{"n": 1}')
    denied, failed = ToolCall("b", "add", '{"n":2}'), ToolCall("c", "add", '{"n": 3}')
    stopped = ToolCall("d", "add", '{"n": 4}')
    before = (
        RoundCall(done, CallState.DONE, Approval.ONCE, text_result("2")),
        RoundCall(denied, CallState.DENIED),
        RoundCall(failed, CallState.FAILED, Approval.ONCE, text_result("no", is_error=True)),
        RoundCall(stopped, CallState.INTERRUPTED),
    )
    calls = [("add", f'{{ "n" : {n} }}') for n in (1, 2, 3, 4, 4)]
    case = Case(tmp_path, *calls, before=before)
    case.loop.start()
    assert case.states == ["done", "denied", "failed", "requested", "requested"]
    assert (case.host.asked, case.toolbox.started) == ([3], []), "its result is unknown"
    first, _, third, *_ = (call.result for call in case.round.calls)
    assert first == text_result(REPEATED + "2")
    assert third == text_result(REPEATED + "no", is_error=True)
    case.loop.approve(Approval.ALWAYS)
    case.finish("5")
    assert case.round.calls[4].result == text_result(REPEATED + "5")
    assert (len(case.toolbox.started), case.host.ends) == (1, [True])
    again = Case(tmp_path, calls[0], before=case.round.calls)
    again.loop.start()
    assert again.round.calls[0].result == first, "the note comes once"


def test_an_approval_holds_for_the_host_of_the_edited_arguments(tmp_path: Path) -> None:
    first, second = '{"host": "a.org"}', '{"host": "b.org"}'
    other = '{"host": "b.org", "part": 2}'
    case = Case(tmp_path, ("page", first), ("page", other), ("page", first))
    case.loop.start()
    case.loop.approve(Approval.ALWAYS, second)
    assert list(case.toolbox.approvals._labels.values()) == ["Page · b.org"]
    assert case.toolbox.started == [("page", second)]
    assert case.round.calls[0].call.arguments == second
    case.finish("b")
    assert len(case.toolbox.started) == 2, "b.org is approved"
    case.finish("b")
    assert case.host.asked == [0, 2], "a.org is not"


def test_what_cant_run_fails_without_a_question(tmp_path: Path) -> None:
    case = Case(tmp_path, ("rm", "{}"), ("add", "{"), ("add", '{"n": "x"}'), ("add", "{}"))
    case.loop.start()
    assert (case.host.asked, case.toolbox.started) == ([], [])
    assert (case.states, case.host.ends) == (["failed"] * 4, [True])
    texts = [call.message.text for call in case.round.calls]
    assert "no tool 'rm'" in texts[0]
    assert "add" in texts[0]
    assert "JSON" in texts[1]
    assert "integer" in texts[2]
    assert "n missing" in texts[3]


def test_stop_while_a_call_waits_leaves_it_requested(tmp_path: Path) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'))
    case.loop.start()
    case.loop.stop()
    assert (case.states, case.host.saved, case.host.ends) == (["requested"], [], [False])
    case.loop.approve(Approval.ONCE)
    case.loop.deny()
    case.loop.stop()
    assert (case.toolbox.started, case.host.ends) == ([], [False])


def test_stop_while_a_call_runs_interrupts_it(tmp_path: Path) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'), ("add", '{"n": 2}'))
    case.loop.start()
    case.loop.approve(Approval.ONCE)
    case.loop.stop()
    assert case.toolbox.num_cancelled == 1
    assert (case.states, case.host.ends) == (["interrupted", "requested"], [False])
    case.finish("too late")
    assert (case.states, case.host.ends) == (["interrupted", "requested"], [False])


def test_what_cant_be_stored_doesnt_run(tmp_path: Path) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'))
    case.host.can_store = False
    case.loop.start()
    case.loop.approve(Approval.ONCE)
    assert (case.toolbox.started, case.states) == ([], ["failed"])
    assert case.host.ends == [True]


def test_an_approval_that_cant_be_stored_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'))
    case.loop.start()

    def fail(*_: object) -> None:
        raise ToolError("full")

    monkeypatch.setattr(case.toolbox.approvals, "approve", fail)
    case.loop.approve(Approval.ALWAYS)
    assert (len(case.host.warnings), case.states) == (1, ["running"])


def test_calls_that_ended_earlier_are_left_alone(tmp_path: Path) -> None:
    """A round of an earlier session: one call was denied, the other waits."""
    case = Case(tmp_path, ("add", '{"n": 1}'), ("add", '{"n": 2}'))
    denied = RoundCall(case.round.calls[0].call, CallState.DENIED)
    case.round.calls = (denied, case.round.calls[1])
    case.loop.start()
    assert (case.host.asked, case.host.saved) == ([1], [])
    case.loop.approve(Approval.ONCE)
    case.finish("2")
    assert (case.states, case.host.ends) == (["denied", "done"], [True])


def test_a_call_that_was_left_is_asked_about_even_if_it_is_approved(tmp_path: Path) -> None:
    case = Case(tmp_path, ("add", '{"n": 1}'), ("add", '{"n": 2}'))
    key = TOOLS[0].approval_key("{}")
    case.toolbox.approvals.approve(key, Approval.ALWAYS, "")
    case.loop.start(asks_first=True)
    assert (case.host.asked, case.toolbox.started) == ([0], [])
    case.loop.deny()
    assert (case.states, case.host.asked) == (["denied", "running"], [0])


def test_arguments_are_checked_by_what_reaches_nothing() -> None:
    deep = {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "null"}}}}
    hostile = {
        "properties": {"n": {"pattern": "(a+)+$", "$ref": "https://example.org/x"}},
        "patternProperties": {"(a+)+$": False},
        "additionalProperties": False,
    }
    cases = (
        ('{"n": 1.0, "unit": "m"}', SCHEMA, ""),
        ('{"n": true}', SCHEMA, "integer"),
        ('{"n": 1, "unit": "h"}', SCHEMA, "one of"),
        ('{"n": 1, "x": 2}', SCHEMA, "there is no 'x'"),
        ('{"list": [null, 1]}', deep, "list[1]"),
        ("[]", {}, "no JSON object"),
        ("", {"type": "object"}, ""),
        (json.dumps({"n": "a" * 4000 + "b"}), hostile, ""),
        ('{"n": 1}', {"type": ["object", 7], "required": 3, "properties": []}, ""),
    )
    for arguments, schema, part in cases:
        found = arguments_problem(arguments, json.dumps(schema))
        assert part in found if part else not found, (arguments, found)
