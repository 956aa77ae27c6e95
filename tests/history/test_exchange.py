"""Conversations in files: ours, those for people, those of others, and hostile ones."""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import fastjsonschema
import pytest

from medusa_core.__main__ import main
from medusa_core.errors import ConversationFileError
from medusa_core.history.exchange.export import FileKind, export, export_gently
from medusa_core.history.exchange.reading import ConversationFile
from medusa_core.history.history import History
from medusa_core.history.tree import path_to
from medusa_core.messages import GenerateSettings, Role
from medusa_core.resources import resources_dir
from tests.history.samples import Clock, done, filled, steps, tell

EVIL = "<script>alert(1)</script><img src=https://x/y onerror=a> &amp; \x00 \ud83d"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = filled(tmp_path / "history.db", Clock())
    yield history
    history.close()


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[History]:
    history = History(tmp_path / "other.db", Clock(1_800_000_000.0))
    yield history
    history.close()


def take(history: History, path: Path) -> tuple[int, int]:
    with ConversationFile(path) as found:
        return tuple(history.take(found))  # type: ignore[return-value]


def test_json_holds_everything_by_its_schema_and_comes_back(
    history: History, empty: History, tmp_path: Path
) -> None:
    history.move("tea", history.add_folder("Kitchen").id)
    history.set_leaf("tea", "tea-3")
    history.set_settings("tea", '{"seed": 3}')
    path = tmp_path / "all.json"
    assert export(history, path, FileKind.JSON) == 2
    schema = json.loads((resources_dir() / "schemas" / "conversations-1.json").read_text())
    fastjsonschema.compile(schema)(json.loads(path.read_text(encoding="utf-8")))
    assert "/models/pebble" not in path.read_text(encoding="utf-8"), "folders name their owner"
    assert take(empty, path) == (2, 0)
    assert take(empty, path) == (0, 2)
    assert [info.id for info in empty.conversations()] == ["ships", "tea"]
    tea = empty.conversation("tea")
    assert (tea.leaf_id, tea.num_messages) == ("tea-3", 6)
    assert [f.name for f in empty.folders() if f.id == tea.folder_id] == ["Kitchen"]
    assert empty.settings("tea") == '{"seed": 3}'
    for old, new in zip(history.messages("tea"), empty.messages("tea"), strict=True):
        assert (old.id, old.parent_id, old.text) == (new.id, new.parent_id, new.text)
        assert old.attachments == new.attachments
        if old.answer is not None:
            assert new.answer is not None
            assert new.answer.done == done(new.text)
            assert new.answer.steps == tuple(steps(new.text))
    assert empty.search("minutes")


def test_a_conversation_in_the_trash_isnt_imported_again(history: History, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    export(history, path, FileKind.JSON)
    history.trash(["tea"])
    assert take(history, path) == (0, 2)


class Tags(HTMLParser):
    """Which tags and attributes a page has."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_runs_and_loads_nothing(history: History, tmp_path: Path) -> None:
    history.begin("evil", EVIL)
    tell(history, "evil", EVIL, EVIL)
    path = tmp_path / "page.html"
    export(history, path, FileKind.HTML)
    tags = Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    assert not tags.found & {"script", "img", "onerror", "src", "href", "a", "iframe", "link"}
    assert tags.text.count("<script>alert(1)</script>") == 3
    assert "Four minutes." not in tags.text, "it isn't on the path that is shown"


def test_markdown_holds_the_path_that_is_shown(history: History, tmp_path: Path) -> None:
    path = tmp_path / "tea.md"
    assert export(history, path, FileKind.MARKDOWN, ["tea"]) == 1
    text = path.read_text(encoding="utf-8")
    assert re.findall("^#.*? ·|^# .*", text, re.MULTILINE)[:3] == [
        "# About tea",
        "## You ·",
        "## Pebble ·",
    ]
    assert "東京の天気は晴れです" in text
    assert "Four minutes." not in text
    with pytest.raises(ConversationFileError, match="can't be written"):
        export(history, tmp_path / "none" / "x.md", FileKind.MARKDOWN)


def node(name: str, parent: str | None, role: str = "", text: str = "", **more: Any) -> Any:
    message = {
        "author": {"role": role},
        "content": {"content_type": "text", "parts": [text]},
        "create_time": 1_700_000_001.5,
        "metadata": {"model_slug": "gpt-5"} if role == "assistant" else {},
        **more,
    }
    return {"id": name, "parent": parent, "children": [], "message": message if role else None}


def chatgpt() -> list[Any]:
    nodes = [
        node("root", None),
        node("hidden", "root", "system", "secret instructions", weight=0),
        node("told", "hidden", "system", "Be brief."),
        node("ask", "told", "user", "Where is Ulm?"),
        node("reply1", "ask", "assistant", "In Bavaria."),
        node("reply2", "ask", "assistant", "Let me look."),
        node("tool", "reply2", "tool", "{search}"),
        node("reply3", "tool", "assistant", "On the Danube."),
        node("thanks", "reply1", "user", "Really?"),
        node("more1", "thanks", "user", "Sure?"),
        node("more2", "thanks", "user", "Truly?"),
        node("yes", "more2", "assistant", "Yes."),
    ]
    mapping = {each["id"]: each for each in nodes}
    return [
        {"title": "Ulm", "create_time": 1.7e9, "update_time": 1.7e9 + 9, "current_node": "reply3"}
        | {"mapping": mapping, "conversation_id": "abc"}
    ]


def test_an_export_of_chatgpt_keeps_branches_and_leaves_out_what_is_hidden(
    empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chatgpt()), encoding="utf-8")
    assert take(empty, path) == (1, 0)
    assert take(empty, path) == (0, 1)
    (info,) = empty.conversations()
    assert (info.title, info.changed_s) == ("Ulm", 1.7e9 + 9)
    messages = empty.messages(info.id)
    shown = path_to(messages, info.leaf_id)
    assert [m.text for m in shown] == ["Where is Ulm?", "Let me look.\n\nOn the Danube."]
    assert [m.text for m in messages if m.parent_id == shown[0].id] == [
        "In Bavaria.",
        "Let me look.\n\nOn the Danube.",
    ]
    assert shown[1].answer is not None
    assert shown[1].answer.model == "gpt-5"
    # Prompts and answers take turns on every path, as the window wants them.
    roles = {m.id: m.role for m in messages}
    for message in messages:
        above = None if message.parent_id is None else roles[message.parent_id]
        assert above is not message.role
        assert message.role is not Role.SYSTEM
    (yes,) = (m for m in messages if m.text == "Yes.")
    assert [m.text for m in path_to(messages, yes.id)][2:] == ["Really?\n\nTruly?", "Yes."]
    assert json.loads(empty.settings(info.id)) == {"system_prompt": "Be brief."}
    assert not empty.search("secret")
    assert empty.search("Danube")


def test_an_export_of_chatgpt_is_taken_as_it_arrives(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations-000.json", json.dumps(chatgpt()))
        archive.writestr("conversations-001.json", json.dumps(chatgpt()).replace("abc", "def"))
    assert take(empty, path) == (2, 0)
    raw = bytearray(path.read_bytes())
    raw[200:260] = bytes(60)
    path.write_bytes(raw)
    with pytest.raises(ConversationFileError):
        take(empty, path)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:  # 100 MB in 100 KB
        archive.writestr("conversations.json", "[" + " " * 100_000_000)
    with pytest.raises(ConversationFileError):
        take(empty, path)
    with ZipFile(path, "w") as archive:
        archive.writestr("../../evil.txt", "nothing is unpacked")
    with pytest.raises(ConversationFileError, match="no conversations"):
        take(empty, path)


def lm_studio() -> dict[str, Any]:
    def said(text: str) -> Any:
        return [{"type": "text", "text": text}]

    thought = {"type": "contentBlock", "content": said("Hmm."), "style": {"type": "thinking"}}
    reply = {"type": "contentBlock", "content": said("Blue.")}
    answers = [
        {"type": "multiStep", "role": "assistant", "steps": [thought, reply]}
        | {"senderInfo": {"senderName": "qwen"}},
        {"type": "multiStep", "role": "assistant", "steps": [reply]},
    ]
    ask = {"type": "singleStep", "role": "user", "content": said("Which colour?")}
    more = {"type": "singleStep", "role": "user", "content": said("Sure?")}
    prompt = {"key": "llm.prediction.systemPrompt", "value": "You know colours."}
    return {
        "name": "Colours",
        "perChatPredictionConfig": {"fields": [prompt]},
        "createdAt": 1_700_000_000_000,
        "messages": [
            {"versions": [ask], "currentlySelected": 0},
            {"versions": answers, "currentlySelected": 0},
            {"versions": [more], "currentlySelected": True},
        ],
    }


def test_a_conversation_of_lm_studio_keeps_versions(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "1700.conversation.json"
    path.write_text(json.dumps(lm_studio()), encoding="utf-8")
    assert take(empty, path) == (1, 0)
    (info,) = empty.conversations()
    messages = empty.messages(info.id)
    assert [m.role for m in messages].count(Role.ASSISTANT) == 2
    shown = path_to(messages, info.leaf_id)
    assert [m.text for m in shown] == [
        "Which colour?",
        "<think>\nHmm.\n</think>\n\nBlue.",
        "Sure?",
    ]
    assert info.created_s == 1.7e9
    assert "You know colours." in empty.settings(info.id)


def harmed(change: Callable[[dict[str, Any]], object]) -> str:
    (conversation,) = chatgpt()
    change(conversation)
    return json.dumps([conversation])


HOSTILE = {
    "no JSON": "Dear diary",
    "nothing": "",
    "another list": "[1, 2]",
    "another object": '{"a": []}',
    "cut off": json.dumps(chatgpt())[:-30],
    "nested": "[" * 100_000,
    "nested object": '[{"mapping": ' + '{"a":' * 100_000,
    "a circle": harmed(lambda raw: raw["mapping"]["ask"].update(parent="reply1")),
    "no parent": harmed(lambda raw: raw["mapping"]["ask"].update(parent="nobody")),
    "no node": harmed(lambda raw: raw["mapping"].update(ask=3)),
    "long number": '[{"mapping": {}, "create_time": ' + "9" * 10_000 + "}]",
    "newer": '{"format": "medusa-chat-conversations", "version": 2, "conversations": []}',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_told_in_a_sentence_and_nothing_is_taken(
    empty: History, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "hostile.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConversationFileError) as caught:
        take(empty, path)
    assert caught.value.hint
    assert empty.conversations() == ()


def deep(depth: int) -> list[Any]:
    return [deep(depth - 1)] if depth else []


OURS: dict[str, Callable[[dict[str, Any]], object]] = {
    "same id twice": lambda raw: raw["messages"][1].update(id="ships-0"),
    "own parent": lambda raw: raw["messages"][0].update(parent_id="ships-1"),
    "wrong type": lambda raw: raw["messages"][0].update(text=5),
    "no text": lambda raw: raw["messages"][0].pop("text"),
    "odd role": lambda raw: raw["messages"][0].update(role="root"),
    "more keys": lambda raw: raw.update(extra=1),
    "odd steps": lambda raw: raw["messages"][1]["answer"]["steps"][0]["steps"].append([1]),
    "no number": lambda raw: raw["messages"][1]["answer"]["done"].update(decode_s=math.inf),
    "deep settings": lambda raw: raw["messages"][1]["answer"].update(settings={"a": deep(500)}),
    "huge number": lambda raw: raw["messages"][0]["attachments"][0].update(num_bytes=1 << 70),
}


def test_a_changed_file_of_ours_is_refused_as_a_whole(
    history: History, empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "all.json"
    export(history, path, FileKind.JSON, ["tea", "ships"])
    for what, change in OURS.items():
        raw = json.loads(path.read_text(encoding="utf-8"))
        change(raw["conversations"][1])
        (tmp_path / "changed.json").write_text(json.dumps(raw), encoding="utf-8")
        with pytest.raises(ConversationFileError):
            take(empty, tmp_path / "changed.json")
        assert empty.conversations() == (), what


def test_odd_values_that_mean_no_harm_are_taken(
    history: History, empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "all.json"
    export(history, path, FileKind.JSON, ["ships"])
    raw = json.loads(path.read_text(encoding="utf-8"))
    (ships,) = raw["conversations"]
    ships["title"] = EVIL
    ships["changed_s"] = 1e300
    ships["messages"][1]["answer"]["done"] = {"odd": 1}
    ships["messages"][1]["answer"]["settings"] = {
        "unknown": [1],
        "temperature": "hot",
        "stop": [1],
        "seed": 5,
        "rule": None,
    }
    # Not as we write it, but the same.
    path.write_text("\ufeff" + json.dumps(raw, indent=3), encoding="utf-8")
    assert take(empty, path) == (1, 0)
    (info,) = empty.conversations()
    assert info.changed_s == 0.0
    told = empty.messages("ships")[1].answer
    assert told is not None
    assert told.done is None
    assert told.settings == GenerateSettings(seed=5)
    tell(empty, "ships", "Another?", "No.", "ships-1")


def test_a_bomb_takes_neither_time_nor_memory(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "bomb.json"
    path.write_text('[{"mapping": {"a": "' + "x" * (40 << 20), encoding="utf-8")
    with pytest.raises(ConversationFileError, match="too large"):
        take(empty, path)
    path.write_text(json.dumps(chatgpt()), encoding="utf-8")
    with pytest.raises(ConversationFileError, match="within"):
        ConversationFile(path, most_s=0.0)


@pytest.mark.slow
def test_a_gigabyte_ends_within_its_bounds(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    one = json.dumps(chatgpt()[0])
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for _ in range((1 << 30) // (len(one) * 100)):
            file.write((one + ",\n") * 100)
        file.write(one + "]")
    with pytest.raises(ConversationFileError, match="within 10 seconds"):
        take(empty, path)
    with path.open("w", encoding="utf-8") as file:
        file.truncate(1 << 30)
    with pytest.raises(ConversationFileError):
        take(empty, path)
    path.write_text('[{"mapping": {"a": [' + "[]," * (10 << 20) + "0]}}]", encoding="utf-8")
    with pytest.raises(ConversationFileError, match=r"too large|memory|within"):
        take(empty, path)


def test_a_large_import_lets_others_write_and_is_seen_as_a_whole(
    history: History, empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "all.json"
    seen: list[int] = []

    async def watch() -> None:
        for number in range(1000):
            empty.set_draft("", f"draft {number}")
            seen.append(len(empty.conversations()) + len(empty.conversations(in_trash=True)))
            await asyncio.sleep(0)

    async def work() -> None:
        assert await export_gently(history, path, FileKind.JSON) == 2
        (tea, ships) = json.loads(path.read_text(encoding="utf-8"))["conversations"]
        many = [{**raw, "id": f"{raw['id']} {n}"} for n in range(60) for raw in (tea, ships)]
        watching = asyncio.ensure_future(watch())
        assert await empty.take_gently(many) == (120, 0)
        watching.cancel()

        def broken() -> Iterator[dict[str, Any]]:
            yield {**tea, "id": "half"}
            raise ConversationFileError("The file is gone.")

        with pytest.raises(ConversationFileError):
            await empty.take_gently(broken())

    asyncio.run(work())
    assert set(seen) <= {0, 120}
    assert seen.count(0) > 1
    assert len(empty.conversations()) == 120
    assert empty.problems() == ()


async def long_talk(history: History, path: Path) -> list[dict[str, Any]]:
    """One conversation of a million characters in 200 messages."""
    await export_gently(history, path, FileKind.JSON)
    talk = json.loads(path.read_text(encoding="utf-8"))["conversations"][0]
    prompt = next(m for m in talk["messages"] if m["parent_id"] is None)
    many = [{**prompt, "id": f"m{n}", "text": f"word{n} " * 700} for n in range(200)]
    return [{**talk, "id": "long", "leaf_id": "m0", "messages": many}]


def test_the_loop_goes_on_within_one_long_conversation(
    history: History, empty: History, tmp_path: Path
) -> None:
    num_turns = 0

    async def work() -> None:
        nonlocal num_turns
        talk = await long_talk(history, tmp_path / "all.json")
        taking = asyncio.ensure_future(empty.take_gently(talk))
        while not taking.done():
            empty.set_draft("", f"draft {num_turns}")
            assert {one.num_messages for one in empty.conversations()} <= {200}
            num_turns += 1
            await asyncio.sleep(0.001)
        assert taking.result() == (1, 0)

    asyncio.run(work())
    assert num_turns > 5
    assert len(empty.messages("long")) == 200
    assert empty.search("word199")


def test_an_import_that_is_stopped_within_a_conversation_leaves_nothing(
    history: History, empty: History, tmp_path: Path
) -> None:
    def num_rows() -> tuple[int, ...]:
        tables = ("conversations", "messages", "message_words")
        counts = [empty._database.row(f"SELECT count(*) FROM {one}") for one in tables]
        return tuple(int(row[0]) for row in counts if row is not None)

    async def work() -> None:
        talk = await long_talk(history, tmp_path / "all.json")
        taking = asyncio.ensure_future(empty.take_gently(talk))
        while not num_rows()[1]:
            await asyncio.sleep(0.001)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    asyncio.run(work())  # which waits for its threads
    assert num_rows() == (0, 0, 0)
    assert empty.problems() == ()


def test_the_command_line_exports_imports_and_checks(
    history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history.close()
    old, new = str(tmp_path / "history.db"), str(tmp_path / "new" / "history.db")
    file = str(tmp_path / "all.json")
    assert main(["history", "export", file, "--history", old]) == 0
    assert main(["history", "check", file]) == 0
    assert main(["history", "import", file, "--history", new]) == 0
    assert main(["history", "check", "--history", new]) == 0
    assert "2 conversations, 8 messages" in capsys.readouterr().out
    assert main(["history", "export", str(tmp_path / "x.doc"), "--history", new]) == 1
    assert ".json, .md or .html" in capsys.readouterr().err
