"""Tool calls in the window: asked about, run, stored, and read by the model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel
from pytestqt.qtbot import QtBot

from app.chat.messages import approval_form
from app.chat.messages.approval_form import ApprovalForm
from app.chat.messages.message_widgets import Notice
from app.state.chat import ChatPhase
from app.window.main_window import MainWindow
from medusa_core.api import FileKind, History, open_conversation
from medusa_core.chats.history.exchange.export import export
from medusa_core.chats.rounds import Approval, CallState, ToolResult
from medusa_core.loading.state import Phase
from medusa_core.messages import Count, Generate, Role, ToolCallFormat
from medusa_core.tools.results import REPEATED, RunningCall, text_result
from medusa_core.tools.toolbox import OfferedTool, Toolbox
from tests.support.window.driving import user_messages
from tests.support.window.fakes import LONG, FakeEngine, Script
from tests.support.window.history_fixtures import OpenSaved, open_saved

__all__ = ["open_saved"]

SUM = '{"name": "calculate", "arguments": {"expression": "6*7"}}'
ID = "builtin/calculate"
OpenWithTools = Callable[..., tuple[MainWindow, FakeEngine]]


class SlowToolbox(Toolbox):
    """Runs a call when told to."""

    finish: Callable[[ToolResult], None] | None = None

    def run(
        self, tool: OfferedTool, arguments: str, on_done: Callable[[ToolResult], None]
    ) -> RunningCall:
        self.finish = on_done
        return RunningCall(on_done, lambda: None)


@pytest.fixture
def open_with_tools(open_saved: OpenSaved, tmp_path: Path) -> OpenWithTools:
    """Open windows one after the other, like restarts, with the calculator chosen."""

    def open_one(
        answer: str = SUM, num_before_gate: int = 0, toolbox: type[Toolbox] = Toolbox
    ) -> tuple[MainWindow, FakeEngine]:
        window, engine = open_saved(
            Script(answer=answer, tool_calls=ToolCallFormat()), num_before_gate
        )
        box = toolbox(tmp_path / "tools")
        box.set_builtin("calculate", True)
        window.chat.toolbox = box
        window.page.settings_panel.tools.chosen.emit((ID,))
        return window, engine

    return open_one


def send(window: MainWindow, text: str) -> None:
    QTest.keyClicks(window.page.composer.edit, text)
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)


def form_of(qtbot: QtBot, window: MainWindow) -> ApprovalForm:
    """Wait for the question about a call."""
    phases = ChatPhase.AWAITING_APPROVAL
    qtbot.waitUntil(lambda: window.chat.state.phase is phases)
    form = window.chat.answers[-1].rounds[-1].form
    assert form is not None
    return form


def shown_question(window: MainWindow) -> ApprovalForm:
    form = window.chat.answers[-1].rounds[-1].form
    assert form is not None
    return form


def states(window: MainWindow) -> list[str]:
    rounds = window.chat.conversation.turns[-1].answer.rounds
    return [call.state.value for one in rounds for call in one.calls]


def wait_idle(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(lambda: not window.chat.is_busy)


def test_an_allowed_call_runs_and_the_model_reads_its_result(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    answer = window.chat.answers[-1]
    assert answer.row.isHidden(), "the answer isn't complete"
    assert answer.rounds[0].cards[0].isHidden(), "the question is in place of the card"
    assert answer.view.isHidden(), "the text of the call isn't shown"
    assert json.loads(form.edit.toPlainText()) == {"expression": "6*7"}
    engine.script = Script(answer="It is 42.")
    form.once_button.setFocus()
    form.once_button.click()
    assert window.page.composer.edit.hasFocus(), "not whatever comes next in the window"
    wait_idle(qtbot, window)
    assert states(window) == ["done"]
    assert [one.document.text for one in answer.rounds] == ["", "It is 42."]
    assert answer.rounds[0].form is None
    assert not answer.rounds[0].cards[0].isHidden()
    assert not answer.row.isHidden()
    first, second = engine.of_kind(Generate)
    assert first.messages == second.messages[: len(first.messages)], "a prefix of the next prompt"
    assert first.grammar == second.grammar != ""
    assert second.messages[-1].role is Role.TOOL
    assert second.messages[-1].text == "42"
    assert second.messages[-2].tool_calls[0].name == "calculate"


def test_a_denied_call_lets_the_model_go_on(qtbot: QtBot, open_with_tools: OpenWithTools) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    engine.script = Script(answer="Then not.")
    form.deny_button.click()
    wait_idle(qtbot, window)
    assert states(window) == ["denied"]
    assert "denied" in engine.of_kind(Generate)[-1].messages[-1].text


def test_a_tool_that_goes_while_its_call_waits_cannot_be_allowed_until_it_is_back(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    toolbox = window.chat.toolbox
    assert toolbox is not None
    send(window, "How much?")
    form_of(qtbot, window).edit.setPlainText('{"expression": "1 + 1"}')
    toolbox.set_builtin("calculate", on=False)
    qtbot.waitUntil(lambda: not shown_question(window).once_button.isEnabled())
    assert shown_question(window).deny_button.isEnabled()
    toolbox.set_builtin("calculate", on=True)
    qtbot.waitUntil(lambda: shown_question(window).once_button.isEnabled())
    engine.script = Script(answer="Two.")
    shown_question(window).once_button.click()
    wait_idle(qtbot, window)
    assert engine.of_kind(Generate)[-1].messages[-1].text == "2", "the edited arguments stayed"


def test_edited_arguments_run_and_nonsense_doesnt(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    for wrong in ("{", "[]", "{}", '{"expression": 1}'):
        form.edit.setPlainText(wrong)
        assert not form.once_button.isEnabled()
        assert not form._problem.isHidden()
    assert form.deny_button.isEnabled()
    form.edit.setPlainText('{"expression": "1 + 1"}')
    engine.script = Script(answer="Two.")
    form.once_button.click()
    wait_idle(qtbot, window)
    assert engine.of_kind(Generate)[-1].messages[-1].text == "2"
    assert "1 + 1" in window.chat.conversation.turns[-1].answer.rounds[0].calls[0].call.arguments


class CountingToolbox(Toolbox):
    """Each call lets the model call with another expression."""

    engine: FakeEngine
    num_calls = 0

    def run(
        self, tool: OfferedTool, arguments: str, on_done: Callable[[ToolResult], None]
    ) -> RunningCall:
        self.num_calls += 1
        answer = SUM.replace("6*7", f"6*{self.num_calls}")
        self.engine.script = replace(self.engine.script, answer=answer)
        return super().run(tool, arguments, on_done)


def test_allowed_in_a_chat_asks_no_more_in_it(qtbot: QtBot, open_with_tools: OpenWithTools) -> None:
    window, engine = open_with_tools(SUM, toolbox=CountingToolbox)
    assert isinstance(window.chat.toolbox, CountingToolbox)
    window.chat.toolbox.engine = engine
    send(window, "How much?")
    form_of(qtbot, window).conversation_button.click()
    # The model calls again and again, until it is offered no tools.
    wait_idle(qtbot, window)
    assert states(window) == ["done"] * 10
    *offered, last = engine.of_kind(Generate)
    assert [len(one.tools) for one in offered] == [1] * 10
    assert (last.tools, last.grammar) == ((), "")
    notices = [one for one in window.page.conversation.messages if isinstance(one, Notice)]
    assert any("After 10 rounds" in one.text for one in notices)
    window.chat.new_chat()
    window.page.settings_panel.tools.chosen.emit((ID,))
    send(window, "And here?")
    form_of(qtbot, window)
    window.chat.stop()


def test_a_repeated_call_is_not_run_again_and_then_no_tools_are_offered(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM, toolbox=SlowToolbox)
    send(window, "How much?")
    toolbox = window.chat.toolbox
    assert isinstance(toolbox, SlowToolbox)
    other = SUM.replace("6*7", "6*8")
    for place, following in enumerate((other, SUM, SUM)):
        form = form_of(qtbot, window)
        labels = (label.text() for label in form.findChildren(QLabel) if label.isVisible())
        # Its result may differ, now that something else has run.
        assert any("same call again" in text for text in labels) == (place == 2)
        form.once_button.click()
        engine.script = replace(engine.script, answer=following)
        assert toolbox.finish is not None
        toolbox.finish(text_result("42"))
        qtbot.waitUntil(lambda: window.chat.state.phase is not ChatPhase.ANSWERING)
    wait_idle(qtbot, window)
    assert states(window) == ["done"] * 4
    last = window.chat.conversation.turns[-1].answer.rounds[-2].calls[0]
    assert last.result is not None
    assert last.result.text == REPEATED + "42"
    assert "42" in engine.of_kind(Generate)[-1].messages[-1].text
    assert engine.of_kind(Generate)[-1].tools == ()
    window.page.composer.edit.clear()
    num_counted = len(engine.of_kind(Count))
    window.chat.meter.refresh()
    qtbot.waitUntil(lambda: len(engine.of_kind(Count)) > num_counted)
    counted = engine.of_kind(Count)[-1]
    assert any(message.tool_calls for message in counted.messages), "the next prompt has them again"


@pytest.mark.parametrize("when", ["generates", "waits", "runs"])
def test_stop_works_at_every_moment(
    qtbot: QtBot, open_with_tools: OpenWithTools, when: str
) -> None:
    window, engine = open_with_tools(LONG if when == "generates" else SUM, 3, toolbox=SlowToolbox)
    if when == "generates":
        engine.gate.clear()
    send(window, "How much?")
    if when == "generates":
        qtbot.waitUntil(lambda: bool(window.chat.conversation.turns[-1].answer.content.steps))
    else:
        form = form_of(qtbot, window)
        if when == "runs":
            form.once_button.click()
    window.chat.stop()
    engine.gate.set()
    wait_idle(qtbot, window)
    assert (
        states(window) == {"generates": [], "waits": ["requested"], "runs": ["interrupted"]}[when]
    )
    assert len(engine.of_kind(Generate)) == 1
    row = window.chat.answers[-1].row
    assert not row.isHidden()
    shown = [one.text() for one in row.findChildren(QLabel) if not one.isHidden()]
    assert any("stopped" in text for text in shown), shown
    assert window.page.composer.edit.isEnabled()


def test_a_waiting_call_survives_a_restart_and_is_answered_then(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, _ = open_with_tools(SUM)
    send(window, "How much?")
    form_of(qtbot, window).always_button.setFocus()
    window, engine = open_with_tools("It is 42.")
    assert window.history is not None
    window.history.open_last()
    window.page.settings_panel.tools.chosen.emit((ID,))
    assert window.chat.state.phase is ChatPhase.IDLE
    assert states(window) == ["requested"]
    assert not engine.of_kind(Generate), "nothing runs by itself"
    form = window.chat.answers[-1].rounds[-1].form
    assert form is not None
    form.once_button.click()
    wait_idle(qtbot, window)
    assert states(window) == ["done"]
    assert window.chat.answers[-1].view.toPlainText() == "It is 42."
    window, _ = open_with_tools()
    assert window.history is not None
    window.history.open_last()
    assert (states(window), len(window.chat.answers)) == (["done"], 1)
    assert window.chat.answers[-1].rounds[-1].form is None


def test_a_call_that_was_left_is_denied_even_if_it_is_always_allowed(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form_of(qtbot, window)
    window.chat.stop()
    wait_idle(qtbot, window)
    turn = window.chat.conversation.turns[-1]
    question = window.chat.calls.question(turn)
    assert question is not None
    assert question.tool is not None
    assert window.chat.toolbox is not None
    key = question.tool.approval_key(turn.answer.last.calls[0].call.arguments)
    window.chat.toolbox.approvals.approve(key, Approval.ALWAYS, "")
    engine.script = Script(answer="Then not.")
    form = window.chat.answers[-1].rounds[-1].form
    assert form is not None
    form.deny_button.click()
    wait_idle(qtbot, window)
    assert states(window) == ["denied"]


CLOCK = '{"name": "date_time", "arguments": {"zone": "UTC"}}'


@pytest.mark.parametrize("is_there", [True, False])
def test_a_decision_about_a_left_call_reaches_no_other_call(
    qtbot: QtBot, open_with_tools: OpenWithTools, is_there: bool
) -> None:
    """The tool of the first call isn't chosen any more, or isn't there."""
    window, engine = open_with_tools(f"{CLOCK}\n{SUM}")
    toolbox = window.chat.toolbox
    assert toolbox is not None
    toolbox.set_builtin("date_time", on=True)
    window.page.settings_panel.tools.chosen.emit((ID, "builtin/date_time"))
    send(window, "When, and how much?")
    form_of(qtbot, window)
    window.chat.stop()
    wait_idle(qtbot, window)
    window.page.settings_panel.tools.chosen.emit((ID,))
    toolbox.set_builtin("date_time", on=is_there)
    engine.script = Script(answer="Then not.")
    form = shown_question(window)
    if not is_there:
        qtbot.waitUntil(lambda: shown_question(window).question.tool is None)
        shown_question(window).deny_button.click()
    else:
        form.once_button.click()
    form = form_of(qtbot, window)
    assert form.question.place == 1, "the other call is asked about"
    assert json.loads(form.edit.toPlainText()) == {"expression": "6*7"}
    assert states(window) == ["done" if is_there else "failed", "requested"]
    form.deny_button.click()
    wait_idle(qtbot, window)


def test_the_second_press_of_a_double_click_allows_no_other_call(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, _ = open_with_tools(SUM)
    send(window, "How much?")
    button = form_of(qtbot, window).once_button
    # What reaches a form that has appeared under the mouse meanwhile.
    QTest.mouseDClick(button, Qt.MouseButton.LeftButton)
    QTest.mouseRelease(button, Qt.MouseButton.LeftButton)
    assert states(window) == ["requested"]
    window.chat.stop()
    wait_idle(qtbot, window)


def test_the_user_may_just_write_on(qtbot: QtBot, open_with_tools: OpenWithTools) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form_of(qtbot, window)
    window.chat.stop()
    wait_idle(qtbot, window)
    engine.script = Script(answer="Hello.")
    send(window, "Never mind.")
    wait_idle(qtbot, window)
    assert len(window.chat.answers) == 2
    assert all(one.rounds[-1].form is None for one in window.chat.answers)
    texts = [message.text for message in engine.of_kind(Generate)[-1].messages]
    assert texts[-2:] == ["The call was not run.", "Never mind."]


def test_another_chat_is_shown_while_a_call_waits(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    window.page.settings_panel.choose_rule("greedy")
    send(window, "How much?")
    form_of(qtbot, window)
    waiting = window.chat.conversation
    window.chat.new_chat()
    engine.script = Script(answer="Hello.")
    assert not window.chat.is_busy
    send(window, "Hi")
    wait_idle(qtbot, window)
    assert window.history is not None
    window.history.open_conversation(waiting.session_id)
    assert window.chat.conversation is waiting
    form = form_of(qtbot, window)
    engine.script = Script(answer="It is 42.")
    form.once_button.click()
    window.chat.new_chat()  # its next round begins while it isn't shown
    qtbot.waitUntil(lambda: not window.chat.state.pending_answers)
    window.history.open_conversation(waiting.session_id)
    assert [len(user_messages(window)), *states(window)] == [1, "done"]
    assert window.chat.answers[-1].view.toPlainText() == "It is 42."


def test_a_deleted_chat_ends_its_call(qtbot: QtBot, open_with_tools: OpenWithTools) -> None:
    window, engine = open_with_tools(SUM, toolbox=SlowToolbox)
    send(window, "How much?")
    form_of(qtbot, window).once_button.click()
    assert window.history is not None
    window.history.history.trash((window.chat.conversation.session_id,))
    window.history.forget((window.chat.conversation.session_id,))
    assert not window.chat.state.pending_answers
    engine.script = Script(answer="Hello.")
    send(window, "Hi")
    wait_idle(qtbot, window)
    assert len(window.chat.answers) == 1


def test_a_call_of_a_tool_that_isnt_there_is_told_to_the_model(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    window.page.settings_panel.tools.chosen.emit(())
    send(window, "How much?")
    wait_idle(qtbot, window)
    assert window.chat.answers[-1].view.toPlainText() == SUM, "no tools, no calls"
    request = engine.of_kind(Generate)[-1]
    assert (request.tools, request.grammar) == ((), "")


@pytest.mark.parametrize("is_left", [True, False])
def test_a_call_that_another_program_has_run_isnt_run_again(
    qtbot: QtBot, open_with_tools: OpenWithTools, is_left: bool
) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    if is_left:
        window.chat.stop()
        wait_idle(qtbot, window)
        form = shown_question(window)
    turn = window.chat.conversation.turns[-1]
    call = replace(turn.answer.last.calls[0], state=CallState.DONE, result=text_result("42"))
    assert window.history is not None
    window.history.history.save_call(turn.answer.id, 0, call)
    form.once_button.click()
    wait_idle(qtbot, window)
    assert states(window) == ["done"]
    assert len(engine.of_kind(Generate)) == 1
    assert window.chat.answers[-1].rounds[-1].form is None
    assert not window.chat.answers[-1].row.continue_button.isHidden()


def test_a_chosen_tool_that_isnt_there_is_named(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    """Such as one of a server that is starting."""
    window, _ = open_with_tools("Hello.")
    window.page.settings_panel.tools.chosen.emit((ID, "time/now"))
    send(window, "What time is it?")
    wait_idle(qtbot, window)
    notices = [one for one in window.page.conversation.messages if isinstance(one, Notice)]
    assert len(notices) == 1
    assert "now: time/now" in notices[0].text
    label = notices[0].findChild(QLabel)
    assert label is not None
    assert label.textFormat() is Qt.TextFormat.PlainText
    window.page.settings_panel.tools.chosen.emit((ID,))
    send(window, "And now?")
    wait_idle(qtbot, window)
    assert not any(isinstance(one, Notice) for one in window.page.conversation.messages)


def test_a_stored_state_precedes_what_it_says(qtbot: QtBot, open_with_tools: OpenWithTools) -> None:
    """What a kill would leave, at each moment."""
    window, engine = open_with_tools(SUM, toolbox=SlowToolbox)
    send(window, "How much?")
    form = form_of(qtbot, window)
    assert window.history is not None
    history, name = window.history.history, window.chat.conversation.session_id

    def stored() -> list[CallState]:
        return [call.state for one in history.messages(name) for call in one.calls]

    assert stored() == [CallState.REQUESTED]
    form.once_button.click()
    assert stored() == [CallState.RUNNING]
    toolbox = window.chat.toolbox
    assert isinstance(toolbox, SlowToolbox)
    assert toolbox.finish is not None
    engine.gate.clear()
    toolbox.finish(ToolResult())
    qtbot.waitUntil(lambda: stored() == [CallState.DONE])
    qtbot.waitUntil(lambda: len(history.messages(name)) == 3)
    engine.gate.set()
    window.chat.stop()
    wait_idle(qtbot, window)


@pytest.mark.parametrize("moment", ["waits", "runs"])
def test_a_killed_window_loses_no_call_and_repeats_none(tmp_path: Path, moment: str) -> None:
    """Kill -9 while a call waits for the user, and while it runs."""
    command = [sys.executable, "-m", "tests.support.window.calling_child", str(tmp_path), moment]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout as facts:
        assert facts.readline().strip() == moment
        child.kill()
    child.wait()
    ran = tmp_path / "ran"
    assert (ran.read_text().splitlines() if ran.exists() else []) == (
        ['{"expression": "6*7"}'] if moment == "runs" else []
    )
    history = History(tmp_path / "history.db")
    (info,) = history.conversations()
    (turn,) = open_conversation(history, info.id).turns
    (call,) = turn.answer.last.calls
    assert call.state.value == {"waits": "requested", "runs": "interrupted"}[moment]
    assert (call.call.name, turn.prompt.text) == ("calculate", "How much?")
    assert turn.answer.last.content.answer == "", "the text of the call isn't shown"
    assert turn.answer.lacks_next_round == (moment == "runs")
    history.close()


def test_an_interrupted_call_is_told_to_the_model_when_the_answer_goes_on(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM, toolbox=SlowToolbox)
    send(window, "How much?")
    form_of(qtbot, window).once_button.click()
    window.chat.stop()
    wait_idle(qtbot, window)
    engine.script = replace(engine.script, answer="I don't know.")
    row = window.chat.answers[-1].row
    assert not row.continue_button.isHidden()
    row.continue_button.click()
    wait_idle(qtbot, window)
    assert "interrupted" in engine.of_kind(Generate)[-1].messages[-1].text
    assert len(window.chat.answers) == 1
    assert window.chat.answers[-1].view.toPlainText() == "I don't know."
    assert window.chat.answers[-1].row.continue_button.isHidden()


def test_an_answer_with_calls_is_regenerated_branched_and_exported(
    qtbot: QtBot, open_with_tools: OpenWithTools, tmp_path: Path
) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    engine.script = replace(engine.script, answer="It is 42.")
    form.conversation_button.click()
    wait_idle(qtbot, window)
    engine.script = replace(engine.script, answer="Also 42.")
    window.chat.answers[-1].row.regenerate_button.click()
    wait_idle(qtbot, window)
    assert window.chat.answers[-1].row.versions.text == "2/2"
    assert len(window.chat.answers[-1].rounds) == 1, "the other version has two"
    window.chat.choose_answer(0, 0)
    assert [len(window.chat.answers[-1].rounds), *states(window)] == [2, "done"]
    send(window, "Thanks")
    wait_idle(qtbot, window)
    roles = [message.role for message in engine.of_kind(Generate)[-1].messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT, Role.USER]
    assert window.history is not None
    history, name = window.history.history, window.chat.conversation.session_id
    path = tmp_path / "chat.md"
    export(history, path, FileKind.MARKDOWN, (name,))
    text = path.read_text()
    assert "calculate" in text
    assert "It is 42." in text
    window.chat.edit(0, "How much is it?")
    wait_idle(qtbot, window)
    assert len(window.chat.answers) == 1


def test_a_queued_prompt_is_sent_after_the_calls(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    send(window, "And then?")
    assert window.chat.state.queued is not None
    engine.script = replace(engine.script, answer="It is 42.")
    form.once_button.click()
    qtbot.waitUntil(lambda: len(window.chat.answers) == 2 and not window.chat.is_busy)
    assert window.chat.state.queued is None
    assert engine.of_kind(Generate)[-1].messages[-1].text == "And then?"


def test_a_waiting_call_is_announced_and_reached_by_keys(
    qtbot: QtBot, open_with_tools: OpenWithTools, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(approval_form, "announce", lambda _w, words, **_: said.append(words))
    window, _ = open_with_tools(SUM)
    notified: list[str] = []
    monkeypatch.setattr(window.notices.notifier, "notify", lambda one: notified.append(one.title))
    send(window, "How much?")
    form = form_of(qtbot, window)
    assert ["Calculator" in words and "6*7" in words for words in said] == [True]
    assert notified == ["A tool call waits for you"]
    form.edit.setFocus()
    reached = [form.edit]
    for _ in range(4):
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        reached.append(QApplication.focusWidget())
    buttons = [form.once_button, form.conversation_button, form.always_button, form.deny_button]
    assert reached == [form.edit, *buttons]
    QTest.keyClick(form.deny_button, Qt.Key.Key_Space)
    assert states(window)[0] == "denied"
    window.chat.stop()
    wait_idle(qtbot, window)


def test_a_prompt_with_tools_waits_for_the_model(
    qtbot: QtBot, open_with_tools: OpenWithTools
) -> None:
    """How it writes calls is known once it is loaded."""
    window, engine = open_with_tools(SUM)
    window.loaded_model.sleep()
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.ASLEEP)
    send(window, "How much?")
    assert not engine.of_kind(Generate)
    window.chat.stop()
    assert not window.chat.is_busy
    assert window.page.composer.edit.toPlainText() == "How much?", "it isn't lost"
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.READY)
    window.loaded_model.sleep()
    qtbot.waitUntil(lambda: window.loaded_model.status.phase is Phase.ASLEEP)
    QTest.keyClick(window.page.composer.edit, Qt.Key.Key_Return)
    form = form_of(qtbot, window)
    (request,) = engine.of_kind(Generate)
    assert len(request.tools) == 1
    form.deny_button.click()
    window.chat.stop()
    wait_idle(qtbot, window)


def test_a_round_without_a_word_says_so(qtbot: QtBot, open_with_tools: OpenWithTools) -> None:
    window, engine = open_with_tools(SUM)
    send(window, "How much?")
    form = form_of(qtbot, window)
    engine.script = replace(engine.script, answer="")
    form.once_button.click()
    wait_idle(qtbot, window)
    answer = window.chat.answers[-1]
    assert [len(answer.rounds), *states(window)] == [2, "done"]
    assert not answer._waiting.isHidden()
    assert "without a word" in answer._waiting.text()
