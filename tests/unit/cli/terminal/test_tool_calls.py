"""Tools in a terminal chat: what is shown and asked, and the rounds of an answer."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.chats.history.history import History
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.chats.rounds import CallState
from medusa_core.chats.settings import ChatSettings
from medusa_core.cli.terminal.chat import ChosenModel, TerminalChat
from medusa_core.cli.terminal.chat_record import ChatRecord
from medusa_core.cli.terminal.screen import Screen
from medusa_core.cli.terminal.tool_calls import QUESTION, ReadLine, TerminalTools
from medusa_core.client import Client
from medusa_core.errors import Cancelled, MedusaError, RequestError
from medusa_core.messages import (
    Event,
    Generate,
    ModelLoaded,
    Role,
    StopReason,
    ToolCallFormat,
)
from medusa_core.tools.arguments import visible_text
from medusa_core.tools.toolbox import Toolbox
from tests.support.messages import EXAMPLES
from tests.support.server.answer_steps import done, step
from tests.support.toolboxes import opened, program

LOADED = replace(next(one for one in EXAMPLES if isinstance(one, ModelLoaded)), quant="")


def calling(expression: str) -> str:
    return json.dumps({"name": "calculate", "arguments": {"expression": expression}})


class Model(Client):
    """A client whose answers are given; it keeps the requests."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.requests = list(answers), list[Generate]()

    stop_reason = StopReason.EOS
    error: MedusaError | None = None

    async def generate(self, command: Generate) -> AsyncIterator[Event]:  # type: ignore[override]
        self.requests.append(command)
        text = self.answers.pop(0)
        yield step(0, (text.encode(),), len(text.encode()))
        if self.error is not None:
            raise self.error
        yield done(text, self.stop_reason)


class Chat:
    """A chat with a model whose answers are given, at a terminal whose lines are given."""

    def __init__(
        self, folder: Path, model: Model, tools: str = "calculate", read: ReadLine | None = None
    ) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        self.model = model
        self.toolbox = Toolbox(folder)
        screen = Screen(self.out, self.err, {"NO_COLOR": "1"})
        self.tools = TerminalTools(self.toolbox, tuple(tools.split(",")), screen, read)
        self.history = History(folder / "history.db")
        record = ChatRecord(self.history, pytest.fail)
        chosen = ChosenModel("m", LOADED)
        self.chat = TerminalChat(model, chosen, ChatSettings(), screen, record, self.tools)

    async def ask(self, text: str) -> bool:
        await self.tools.connect()
        try:
            return await self.chat.ask(text, records=False)
        finally:
            self.toolbox.close()

    def stored(self) -> list[CallState]:
        found = open_conversation(self.history, self.chat.conversation.session_id)
        rounds = found.turns[-1].answer.rounds
        return [call.state for one in rounds for call in one.calls]


def typing(*lines: str) -> tuple[ReadLine, list[str]]:
    questions: list[str] = []
    waiting = list(lines)

    async def read(question: str) -> str:
        questions.append(question)
        await asyncio.sleep(0)
        return waiting.pop(0)

    return read, questions


def test_an_allowed_call_runs_and_the_next_round_reads_its_result(tmp_path: Path) -> None:
    read, questions = typing("y")
    chat = Chat(tmp_path, Model(calling("6 * 7"), "It is 42."), read=read)
    assert asyncio.run(chat.ask("What is 6 * 7?"))
    shown = chat.out.getvalue()
    assert '▸ Calculator\n  {"expression": "6 * 7"}\n✓ 42\nIt is 42.\n' in shown
    assert '"arguments"' not in shown
    assert questions == [QUESTION]
    first, second = chat.model.requests
    assert '"calculate"' in first.messages[0].text  # described, since the model has no template
    assert second.messages[-1].text.endswith("42")
    assert second.messages[:2] == first.messages
    assert chat.stored() == [CallState.DONE]
    texts = [message.text for message in chat.history.messages(second.session_id)]
    assert texts[-1] == "It is 42."


@pytest.mark.parametrize("line", ["", "n", "Y es", "\x1b[A"])
def test_all_else_denies_the_call_and_the_model_goes_on(tmp_path: Path, line: str) -> None:
    read, _ = typing(line)
    chat = Chat(tmp_path, Model(calling("1"), "As you like."), read=read)
    assert asyncio.run(chat.ask("Calculate."))
    assert chat.stored() == [CallState.DENIED]
    assert chat.model.requests[1].messages[-1].text.endswith("The user denied this call.")


def test_always_asks_once_for_all_chats(tmp_path: Path) -> None:
    read, questions = typing("always")
    answers = (calling("1"), calling("2"), "Done.")
    chat = Chat(tmp_path, Model(*answers), read=read)
    assert asyncio.run(chat.ask("Calculate."))
    assert len(questions) == 1
    # Without a terminal what is always approved runs, and is shown.
    piped = Chat(tmp_path, Model(calling("3"), "Done."))
    assert asyncio.run(piped.ask("Calculate."))
    assert piped.stored() == [CallState.DONE]
    assert '{"expression": "3"}' in piped.out.getvalue()


def test_without_a_terminal_calls_are_denied(tmp_path: Path) -> None:
    chat = Chat(tmp_path, Model(calling("1"), "No."))
    assert asyncio.run(chat.ask("Calculate."))
    assert chat.stored() == [CallState.DENIED]
    assert "Nobody can be asked" in chat.err.getvalue()


def test_ctrl_c_ends_the_answer_at_the_question_and_in_a_call(tmp_path: Path) -> None:
    async def leave(question: str) -> str:
        raise KeyboardInterrupt

    chat = Chat(tmp_path, Model(calling("1")), read=leave)
    assert asyncio.run(chat.ask("Calculate."))
    assert chat.stored() == [CallState.REQUESTED]

    async def wait(question: str) -> str:
        asyncio.get_running_loop().call_soon(waiting.chat.stop)
        await asyncio.sleep(60)
        return "y"

    waiting = Chat(tmp_path, Model(calling("1")), read=wait)
    assert asyncio.run(waiting.ask("Calculate."))
    assert waiting.chat.last.is_stopped
    assert waiting.stored() == [CallState.REQUESTED]


@pytest.mark.parametrize("how", ["stop", "limit", "failure"])
def test_no_call_of_an_answer_that_was_cut_runs(tmp_path: Path, how: str) -> None:
    model = Model(calling("1"), "No.")
    if how == "failure":
        model.error = Cancelled("")
    else:
        model.stop_reason = StopReason.CANCELLED if how == "stop" else StopReason.MAX_TOKENS
    chat = Chat(tmp_path, model, read=None)
    asyncio.run(chat.ask("Calculate."))
    assert chat.stored() == [CallState.REQUESTED]
    assert len(model.requests) == 1


def test_a_call_that_is_denied_again_is_shown(tmp_path: Path) -> None:
    read, questions = typing("n")
    chat = Chat(tmp_path, Model(calling("1"), calling("1"), "No."), read=read)
    assert asyncio.run(chat.ask("Calculate."))
    assert (questions, chat.stored()) == ([QUESTION], [CallState.DENIED] * 2)
    assert chat.out.getvalue().count("▸ Calculator") == 2


def test_a_call_that_a_window_has_denied_does_not_run(tmp_path: Path) -> None:
    async def decide_in_the_window(question: str) -> str:
        turn = chat.chat.conversation.turns[-1]
        call = replace(turn.answer.last.calls[0], state=CallState.DENIED)
        chat.history.save_call(turn.answer.id, 0, call)
        return "y"

    chat = Chat(tmp_path, Model(calling("1"), "No."), read=decide_in_the_window)
    assert asyncio.run(chat.ask("Calculate."))
    assert chat.stored() == [CallState.DENIED]
    assert len(chat.model.requests) == 1
    assert "A window has decided" in chat.out.getvalue() + chat.err.getvalue()


def test_arguments_are_shown_whole_and_move_no_cursor(tmp_path: Path) -> None:
    read, _ = typing("n")
    expression = "1 + " * 300 + "1"
    text = json.dumps({"name": "calculate", "arguments": {"expression": expression}})
    chat = Chat(tmp_path, Model(text, "No."), read=read)
    asyncio.run(chat.ask("Calculate."))
    assert f'  {{"expression": "{expression}"}}\n' in chat.out.getvalue()
    assert visible_text("ü 日本 👍\n") == "ü 日本 👍\n"
    assert visible_text("a\x1b[2J\u202eb\u2800\u00a0\U000e0041\r") == (
        r"a\u001b[2J\u202eb\u2800\u00a0\udb40\udc41\r"
    )


def test_a_call_that_nobody_is_asked_about_is_shown_too(tmp_path: Path) -> None:
    read, questions = typing()
    chat = Chat(tmp_path, Model('{"name": "calculate", "arguments": {}}', "No."), read=read)
    asyncio.run(chat.ask("Calculate."))
    assert questions == []
    assert "▸ Calculator\n  {}\n✗ The call was not run." in chat.out.getvalue()


def test_after_ten_rounds_of_calls_the_model_answers_without_tools(tmp_path: Path) -> None:
    read, questions = typing(*["y"] * 10)
    chat = Chat(tmp_path, Model(*(calling(str(n)) for n in range(10)), "All done."), read=read)
    asyncio.run(chat.ask("Calculate."))
    assert (len(questions), chat.stored()) == (10, [CallState.DONE] * 10)
    last = chat.model.requests[-1]
    assert (last.tools, last.grammar) == ((), "")
    assert 'calculate {"expression": "9"} returned:\n9' in last.messages[-1].text
    assert "After 10 rounds of calls" in chat.out.getvalue() + chat.err.getvalue()
    assert chat.chat.conversation.turns[-1].answer.text == "All done."


def test_a_model_that_writes_calls_without_markers_gets_results_quoted(tmp_path: Path) -> None:
    read, _ = typing("y", "y")
    fenced = f"```json\n{calling('6*7')}\n```"
    chat = Chat(tmp_path, Model(fenced, calling("6*8"), "Done."), read=read)
    marked = ToolCallFormat(section_open="<call>")
    chat.chat.use_model(ChosenModel("m", replace(LOADED, tool_calls=marked)))
    asyncio.run(chat.ask("Calculate."))
    first, second, third = chat.model.requests
    assert first.tools == second.tools == third.tools != ()
    assert [one.role for one in second.messages] == [Role.USER]
    assert 'calculate {"expression": "6*7"} returned:\n42' in second.messages[0].text
    assert "Otherwise call another function." in second.messages[0].text
    assert "returned:\n48" in third.messages[0].text


def test_a_repeated_call_does_not_run_again(tmp_path: Path) -> None:
    read, questions = typing("y")
    chat = Chat(tmp_path, Model(calling("6*7"), calling("6*7"), "It is 42."), read=read)
    asyncio.run(chat.ask("Calculate."))
    assert (len(questions), chat.stored()) == (1, [CallState.DONE] * 2)
    assert "was not run again" in chat.out.getvalue()
    assert chat.model.requests[-1].tools == ()


def named(toolbox: Toolbox, names: str) -> list[str]:
    return [tool.id for tool in toolbox.named(names.split(","))]


def test_tools_are_named_by_id_pattern_server_or_label(tmp_path: Path) -> None:
    with opened(tmp_path, program("tea")) as toolbox:
        out = io.StringIO()
        screen = Screen(out, out, {})
        asyncio.run(TerminalTools(toolbox, ("tea/ec*",), screen, None).connect())
        assert named(toolbox, "tea/echo,tea/die") == ["tea/die", "tea/echo"]
        assert named(toolbox, "tea/*") == named(toolbox, "tea") == named(toolbox, "*")
        assert named(toolbox, "calculator") == named(toolbox, "calculate") == ["builtin/calculate"]
        toolbox.set_builtin("date_time", on=True)
        assert named(toolbox, "*")[0] == "builtin/date_time"
        with pytest.raises(RequestError, match="no tool shell, coffee") as caught:
            asyncio.run(TerminalTools(toolbox, ("tea", "shell", "coffee"), screen, None).connect())
        assert "tea/echo" in caught.value.hint
        assert "calculate" in caught.value.hint


def test_a_server_that_fails_is_named(tmp_path: Path) -> None:
    with opened(tmp_path, program("bad", "wrong types")) as toolbox:
        err = io.StringIO()
        screen = Screen(io.StringIO(), err, {})
        with pytest.raises(RequestError, match="no tool bad"):
            asyncio.run(TerminalTools(toolbox, ("bad",), screen, None).connect())
        assert "bad: The server's answer doesn't follow the protocol" in err.getvalue()


def test_an_unknown_tool_is_named_before_the_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Hi"))
    words = ("run", "no-such-model", "--data-dir", str(tmp_path), "--tools", "shell,calculate")
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "There is no tool shell." in said
    assert "mcp.json" in said
