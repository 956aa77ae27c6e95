"""Tool calls and images in conversations of other programs; exports for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from medusa_core.chats.history.exchange.export import FileKind, export
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.chats.rounds import CallState
from medusa_core.errors import ConversationFileError
from medusa_core.messages import ImagePart, TextPart
from tests.support.history.samples import Clock

ASKED = '{"city": "Ulm"}'


def chatgpt() -> Any:
    def node(name: str, parent: str | None, role: str, text: str, **more: Any) -> Any:
        content = {"content_type": "text", "parts": [text]}
        message = {"author": {"role": role}, "content": content, **more}
        return {"id": name, "parent": parent, "message": message}

    code = {"content_type": "code", "text": ASKED}
    output = {"content_type": "execution_output", "text": "wet"}
    nodes = [
        node("ask", None, "user", "Weather?"),
        node("look", "ask", "assistant", "Let me see."),
        node("call", "look", "assistant", "", recipient="weather", content=code),
        node("out", "call", "tool", "", content=output),
        node("said", "out", "assistant", "It rains.", recipient="all"),
    ]
    return [{"title": "Ulm", "mapping": {n["id"]: n for n in nodes}, "current_node": "said"}]


def lm_studio() -> Any:
    def block(*content: Any) -> Any:
        return {"type": "contentBlock", "content": list(content)}

    request = {"type": "toolCallRequest", "callId": 7, "name": "weather"}
    result = {"type": "toolCallResult", "callId": 7, "content": '[{"type":"text","text":"wet"}]'}
    steps = [
        block({"type": "text", "text": "Let me see."}),
        block({**request, "parameters": {"city": "Ulm"}}),
        {"type": "toolStatus", "callId": 7},
        block(result),
        block({"type": "text", "text": "It rains."}),
    ]
    ask = {"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "Weather?"}]}
    reply = {"type": "multiStep", "role": "assistant", "steps": steps}
    messages = [{"versions": [one], "currentlySelected": 0} for one in (ask, reply)]
    return {"name": "Ulm", "messages": messages}


def openai() -> Any:
    function = {"name": "weather", "arguments": ASKED}
    return {
        "title": "Ulm",
        "model": "m",
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [{"id": "c1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "wet"}]},
            {"role": "assistant", "content": "It rains."},
        ],
    }


FILES = {"ChatGPT": chatgpt, "LM Studio": lm_studio, "OpenAI": openai}


def imported(tmp_path: Path, raw: Any) -> History:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(raw), encoding="utf-8")
    history = History(tmp_path / "history.db", Clock())
    with ConversationFile(path) as file:
        assert file.num_refused == 0
        history.import_all(file)
    return history


@pytest.mark.parametrize("program", list(FILES))
def test_calls_of_other_programs_become_rounds(tmp_path: Path, program: str) -> None:
    history = imported(tmp_path, FILES[program]())
    (info,) = history.conversations()
    (turn,) = open_conversation(history, info.id).turns
    first, last = turn.answer.rounds
    (call,) = first.calls
    assert (turn.prompt.text, turn.answer.shown_text) == (
        "Weather?",
        "Let me see.\n\nIt rains.",
    )
    assert (call.call.name, json.loads(call.call.arguments)) == ("weather", {"city": "Ulm"})
    assert call.state is CallState.DONE
    assert call.result is not None
    assert call.result.text == "wet"
    assert last.calls == ()
    history.close()


def test_a_call_without_a_result_does_not_run_here(tmp_path: Path) -> None:
    raw = openai()
    del raw["messages"][3:]
    raw["messages"][2]["tool_calls"][0]["function"]["arguments"] = "not JSON"
    history = imported(tmp_path, raw)
    (info,) = history.conversations()
    (turn,) = open_conversation(history, info.id).turns
    (call,) = turn.answer.last.calls
    assert (call.state, call.result) == (CallState.INTERRUPTED, None)
    assert json.loads(call.call.arguments) == {"input": "not JSON"}
    history.close()


def test_images_of_messages_are_imported_if_the_file_has_them(tmp_path: Path) -> None:
    parts = [
        {"type": "text", "text": "This "},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}},
        {"type": "image_url", "image_url": {"url": "https://a.example/secret.png"}},
        {"type": "text", "text": "one?"},
    ]
    raw = {"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "A"}]}
    history = imported(tmp_path, raw)
    (info,) = history.conversations()
    (turn,) = open_conversation(history, info.id).turns
    picture = ImagePart("image/png", b"\0\1\2")
    assert turn.prompt.content == (TextPart("This "), picture, TextPart("one?"))
    history.close()


def test_images_of_joined_messages_keep_their_places(tmp_path: Path) -> None:
    def user(text: str, data: str) -> Any:
        image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, image]}

    messages = [user("One", "AAEC"), user("", "AwQF"), user("Three", "BgcI")]
    history = imported(tmp_path, {"messages": [*messages, {"role": "assistant", "content": "A"}]})
    (info,) = history.conversations()
    (turn,) = open_conversation(history, info.id).turns
    first, second, third = (ImagePart("image/png", bytes(range(n, n + 3))) for n in (0, 3, 6))
    assert turn.prompt.content == (TextPart("One"), first, second, TextPart("\n\nThree"), third)
    history.close()


@pytest.mark.parametrize("role", ["tool", "narrator"])
def test_a_file_without_messages_is_refused(tmp_path: Path, role: str) -> None:
    path = tmp_path / "file.json"
    messages = [{"role": role, "content": "wet"}]
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    with pytest.raises(ConversationFileError, match="no messages"):
        ConversationFile(path)


def test_exports_for_people_show_rounds_under_one_heading(tmp_path: Path) -> None:
    raw = openai()
    raw["messages"][3]["content"] = "wet\n```\n# <b>no heading</b>"
    history = imported(tmp_path, raw)
    export(history, tmp_path / "out.md", FileKind.MARKDOWN)
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert text.count("\n## ") == 2
    assert "> *Tool call: weather (done)*" in text
    assert "> ````\n> wet\n> ```\n> # <b>no heading</b>\n> ````" in text
    assert text.index("Let me see.") < text.index("*Tool call") < text.index("It rains.")
    export(history, tmp_path / "out.html", FileKind.HTML)
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.count("<h2>") == 2
    assert "<summary>Tool call: weather (done)</summary>" in page
    assert "<b>no heading</b>" not in page
    history.close()
