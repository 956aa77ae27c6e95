"""Conversations in files: ours, those for people, those of others, and hostile ones."""

import asyncio
import io
import json
import math
import os
import random
import re
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import fastjsonschema
import pytest

from medusa_core.__main__ import main
from medusa_core.chats.history.answers import Answers
from medusa_core.chats.history.exchange import import_worker
from medusa_core.chats.history.exchange.export import (
    FileKind,
    export,
    export_gently,
)
from medusa_core.chats.history.exchange.for_people import path_to
from medusa_core.chats.history.exchange.html_text import rendered
from medusa_core.chats.history.exchange.our_json import conversation_as_json
from medusa_core.chats.history.exchange.pieces import JsonPieces
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import (
    History,
    open_history,
)
from medusa_core.chats.history.packing import steps_as_json
from medusa_core.chats.history.records import AnswerState
from medusa_core.errors import ConversationFileError
from medusa_core.messages import GenerateSettings, Role
from medusa_core.system.resources import resources_dir
from tests.support.history.damage import harm_pack
from tests.support.history.samples import Clock, done, filled, steps, tell
from tests.support.spoiled_json import places, spoil

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


def import_file(history: History, path: Path) -> tuple[int, int]:
    with ConversationFile(path) as found:
        return tuple(history.import_all(found))  # type: ignore[return-value]


def test_a_json_export_holds_everything_by_its_schema_and_can_be_imported(
    history: History, empty: History, tmp_path: Path
) -> None:
    history.move("tea", history.add_folder("Kitchen").id)
    history.set_leaf("tea", "tea-3")
    history.set_settings("tea", '{"seed": 3}')
    path = tmp_path / "all.json"
    assert export(history, path, FileKind.JSON) == (2, 0)
    schema = json.loads((resources_dir() / "schemas" / "conversations-4.json").read_text())
    fastjsonschema.compile(schema)(json.loads(path.read_text(encoding="utf-8")))
    assert "/models/pebble" not in path.read_text(encoding="utf-8"), "folders name their owner"
    assert import_file(empty, path) == (2, 0)
    assert import_file(empty, path) == (0, 2)
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
    assert import_file(history, path) == (0, 2)


def import_unsandboxed(history: History, path: Path) -> tuple[int, int]:
    """Import a file in this process."""
    with path.open(encoding="utf-8") as file:
        refused: list[ConversationFileError] = []
        lines = import_worker.lines_of(JsonPieces(file), path.name, refused)
        taken = history.import_all(map(json.loads, lines))
    if refused:
        raise refused[0]
    return tuple(taken)  # type: ignore[return-value]


def changed_pack(change: Callable[[dict[str, Any]], object]) -> bytes:
    raw = steps_as_json(tuple(steps("Two minutes")))
    raw = json.loads(json.dumps(raw))
    change(raw)
    return zlib.compress(json.dumps(raw).encode())


WHOLE_PACK = changed_pack(lambda raw: None)
ODD_PACKS = {
    "a flipped byte": WHOLE_PACK[:30] + bytes([WHOLE_PACK[30] ^ 4]) + WHOLE_PACK[31:],
    "nothing": b"",
    "cut off": WHOLE_PACK[:-9],
    "no JSON": zlib.compress(b"Dear diary"),
    "no text": zlib.compress(b"\xff\xfe"),
    "another value": zlib.compress(b"[1, 2]"),
    "deep": zlib.compress(b"[" * 100_000),
    "a number for a piece": changed_pack(lambda raw: raw["steps"][0].__setitem__(3, [5])),
    "a text for an id": changed_pack(lambda raw: raw["steps"][0].__setitem__(2, ["5"])),
    "huge visible": changed_pack(lambda raw: raw["steps"][0].__setitem__(5, 10**400)),
    "negative visible": changed_pack(lambda raw: raw["steps"][0].__setitem__(5, -1)),
    "huge seconds": changed_pack(lambda raw: raw["steps"][0].__setitem__(9, 10**400)),
    "no number": changed_pack(lambda raw: raw["steps"][0].__setitem__(9, math.nan)),
    "infinite": changed_pack(lambda raw: raw["steps"][0][8].__setitem__(0, math.inf)),
    "no such source": changed_pack(lambda raw: raw["steps"][0].__setitem__(4, ["x", 99])),
}


def test_damaged_steps_lose_only_their_marks(tmp_path: Path) -> None:
    for number, (what, packed) in enumerate(ODD_PACKS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        history, path = filled(folder / "history.db", Clock()), folder / "all.json"
        harm_pack(history, packed)
        assert history.problems() == (), "the file itself looks well"
        (odd,) = (
            m for m in history.messages("tea") if m.answer and packed in m.answer.packed_steps
        )
        assert odd.answer is not None
        assert odd.answer.steps == (), what
        assert export(history, path, FileKind.JSON) == (2, 1), what
        for kind in (FileKind.HTML, FileKind.MARKDOWN):
            assert export(history, folder / "other", kind) == (2, 0), what
        texts = [message.text for message in history.messages("tea")]
        with closing(History(folder / "other.db", Clock())) as other:
            assert import_unsandboxed(other, path) == (2, 0), what
            assert [message.text for message in other.messages("tea")] == texts
            taken = [one.answer.steps for one in other.messages("tea") if one.answer]
            assert sum(not found for found in taken) == 1, what
        # And so does a start after a kill.
        history._database.write("UPDATE answers SET state = 'streaming'")
        history.close()
        with closing(open_history(folder / "history.db", Clock())) as history:
            assert (history.is_saved, history.notice) == (True, ""), what
            answers = [message for message in history.messages("tea") if message.answer]
            assert {one.answer.state for one in answers if one.answer} == {AnswerState.CUT}, what
            assert [message.text for message in answers][1:], what


def test_invalid_rows_of_answers_dont_hide_their_conversation(
    history: History, tmp_path: Path
) -> None:
    huge = "1" + "0" * 400
    odd = (f'{{"temperature": {huge}}}', '{"temperature": NaN}', f'{{"top_k": {huge}}}')
    for number, odd_text in enumerate((*odd, "[" * 100_000, "no JSON", "5")):
        history._database.write("UPDATE answers SET settings = ?, done = ?", odd_text, odd_text)
        (_, first, *_) = history.messages("tea")
        assert first.answer is not None
        assert first.answer.settings == GenerateSettings(), odd_text[:30]
        assert first.answer.done is None
        assert export(history, tmp_path / "all.json", FileKind.JSON) == (2, 0)
        with closing(History(tmp_path / f"{number}.db", Clock())) as other:
            assert import_unsandboxed(other, tmp_path / "all.json") == (2, 0), odd_text[:30]


def test_a_history_that_fails_unexpectedly_is_read_from_memory(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history.close()

    def fail(_: Answers) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Answers, "cut_unfinished", fail)
    opened = open_history(tmp_path / "history.db", Clock())
    assert not opened.is_saved
    assert "can't be used" in opened.notice
    assert len(opened.messages("tea")) == 6
    opened.close()


def test_unvalidated_numbers_do_no_harm(history: History, empty: History) -> None:
    info, messages = history.conversation("ships"), history.messages("ships")
    for index, number in enumerate((10**400, -(10**400), 1e300, math.inf, math.nan)):
        name = f"ships {index}"
        raw = conversation_as_json(info, None, "", messages, set())
        raw["id"] = name
        raw["created_s"] = raw["changed_s"] = raw["messages"][0]["created_s"] = number
        answer = raw["messages"][1]["answer"]
        answer["settings"]["temperature"] = answer["settings"]["top_k"] = number
        answer["done"]["decode_s"] = number
        assert empty.import_all([raw]) == (1, 0), number
        (_, reported) = empty.messages(name)
        assert empty.conversation(name).created_s == 0.0, number
        assert reported.answer is not None
        assert reported.answer.settings.top_k == 0, number


def test_no_text_of_an_import_becomes_a_file_name(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "all.json", tmp_path / "temporary"
    folder.mkdir()
    export(history, path, FileKind.JSON)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with ConversationFile(path) as found:
        if os.name == "posix":  # so that a kill leaves nothing
            assert not any(folder.iterdir())
        assert [raw["id"] for raw in found] == [raw["id"] for raw in found]
    assert not any(folder.iterdir())
    path.write_text("no JSON", encoding="utf-8")
    with pytest.raises(ConversationFileError):
        ConversationFile(path)
    assert not any(folder.iterdir())


def test_the_reader_unlinks_its_file_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, seen = tmp_path / "output", list[bool]()

    def look(_: Path) -> Iterator[Any]:
        seen.append(output.exists())
        return iter(())

    monkeypatch.setattr(import_worker, "_files_of", look)
    assert import_worker._read(tmp_path / "file", output).num_conversations == 0
    assert seen == [os.name != "posix"]


class Tags(HTMLParser):
    """Parser that collects the tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


RICH = """### A plan

1. one
2. two **bold**
   - inner

| a | b |
|---|---|
| 1 | <i>2</i> |

```rust
fn main() {
    let x = "<script>";
}
```

> said ~~never~~

$a_1 * b_2 * c$ costs $5 or $6.
"""


def page_of(history: History, tmp_path: Path) -> Tags:
    path = tmp_path / "page.html"
    export(history, path, FileKind.HTML)
    tags = Tags()
    tags.feed(path.read_text(encoding="utf-8"))
    return tags


def test_an_exported_page_runs_and_loads_nothing(history: History, tmp_path: Path) -> None:
    history.begin("evil", EVIL)
    tell(history, "evil", EVIL, EVIL)
    tags = page_of(history, tmp_path)
    assert not tags.found & {"script", "img", "onerror", "src", "href", "a", "iframe", "link"}
    assert tags.text.count("<script>alert(1)</script>") == 3
    assert "Four minutes." not in tags.text, "it isn't on the path that is shown"
    assert "default-src 'none'" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_exported_page_shows_an_answer_as_the_chat_does(
    history: History, tmp_path: Path
) -> None:
    history.begin("rich", "A <plan>")
    tell(history, "rich", "How?\n  Like *this*?", "<think>\nHmm, *so*.\n</think>\n\n" + RICH)
    tags = page_of(history, tmp_path)
    shown = {"h3", "ol", "ul", "li", "strong", "table", "th", "td", "pre", "code", "blockquote"}
    assert shown <= tags.found
    assert {"s", "details", "em"} <= tags.found
    assert not {"i", "script"} & tags.found
    for text in (
        'fn main() {\n    let x = "<script>";\n}\n',
        "How?\n  Like *this*?",
        "$a_1 * b_2 * c$ costs $5 or $6.",
        "<i>2</i>",
    ):
        assert text in tags.text
    for raw in ("###", "**", "|---|", "```", "<think>", "~~"):
        assert raw not in tags.text
    export(history, tmp_path / "one.html", FileKind.HTML, ["rich"])
    one = (tmp_path / "one.html").read_text(encoding="utf-8")
    assert "<title>A &lt;plan&gt;</title>" in one


EVIL_MARKDOWN = (
    "[x](javascript:alert(1)) [y](data:text/html,z) [z](file:///etc/passwd) [w](//x/y)",
    "![x](http://x/y.png) ![y](data:image/svg+xml,z)",
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    '```"onload="alert(1)\nx\n```',
    '<a href="http://x" onclick=alert(1)>x</a>',
    "| a |\n|---|\n| <img src=x onerror=alert(1)> |",
    "[a](<relative.html>)",
)


def test_exported_markdown_has_no_script_picture_or_unsafe_link() -> None:
    for markdown in EVIL_MARKDOWN:
        tags = Tags()
        tags.feed(rendered(markdown))
        odd = tags.found & {"script", "img", "src", "href", "onerror", "onload", "onclick"}
        assert not odd, markdown


def test_web_links_stay_links_and_cannot_escape_their_quotes() -> None:
    html = rendered("[w](https://a.b/?a=1&b=2'\"><script> 'title') <https://c.d> <me@x.org>")
    assert "<script>" not in html
    assert re.findall('href="([^"]*)"', html)[-2:] == ["https://c.d", "mailto:me@x.org"]


def test_hostile_markdown_is_rendered_in_bounded_time() -> None:
    repeated = (("> ", 3_000), ("- ", 3_000), ("*", 9_000), ("[", 9_000), ("$a", 9_000))
    repeated += (("\\[", 9_000), ("![", 5_000), ("`", 9_000), ("x", 400_000))
    texts = [part * count + "x" for part, count in repeated]
    for text in (*texts, "| a " * 3_000 + "\n" + "|---" * 3_000):
        begin_s = time.process_time()
        assert rendered(text)
        assert time.process_time() - begin_s < 2, text[:10]


def test_an_exported_markdown_file_holds_the_shown_path(history: History, tmp_path: Path) -> None:
    path = tmp_path / "tea.md"
    assert export(history, path, FileKind.MARKDOWN, ["tea"]) == (1, 0)
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


def test_an_export_of_chatgpt_keeps_branches_and_omits_hidden_messages(
    empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chatgpt()), encoding="utf-8")
    assert import_file(empty, path) == (1, 0)
    assert import_file(empty, path) == (0, 1)
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


def test_an_export_of_chatgpt_is_imported_as_downloaded(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations-000.json", json.dumps(chatgpt()))
        archive.writestr("conversations-001.json", json.dumps(chatgpt()).replace("abc", "def"))
    assert import_file(empty, path) == (2, 0)
    raw = bytearray(path.read_bytes())
    raw[200:260] = bytes(60)
    path.write_bytes(raw)
    with pytest.raises(ConversationFileError):
        import_file(empty, path)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:  # 100 MB in 100 KB
        archive.writestr("conversations.json", "[" + " " * 100_000_000)
    with pytest.raises(ConversationFileError):
        import_file(empty, path)
    with ZipFile(path, "w") as archive:
        archive.writestr("../../evil.txt", "nothing is unpacked")
    with pytest.raises(ConversationFileError, match="no conversations"):
        import_file(empty, path)


def lm_studio() -> dict[str, Any]:
    def output_text(text: str) -> Any:
        return [{"type": "text", "text": text}]

    thought = {
        "type": "contentBlock",
        "content": output_text("Hmm."),
        "style": {"type": "thinking"},
    }
    reply = {"type": "contentBlock", "content": output_text("Blue.")}
    answers = [
        {"type": "multiStep", "role": "assistant", "steps": [thought, reply]}
        | {"senderInfo": {"senderName": "qwen"}},
        {"type": "multiStep", "role": "assistant", "steps": [reply]},
    ]
    ask = {"type": "singleStep", "role": "user", "content": output_text("Which colour?")}
    more = {"type": "singleStep", "role": "user", "content": output_text("Sure?")}
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


def test_an_exported_page_renders_like_the_window() -> None:
    assert "<strong>「中文」</strong>后面" in rendered("**「中文」**后面")
    assert rendered("a<br>b H<sub>2</sub>O") == "<p>a<br />b H<sub>2</sub>O</p>\n"
    assert "&lt;sup onclick=" in rendered("<sup onclick=a>1</sup>")
    long = r"\[ \{x\} " + "+ *x* " * 200 + r"\]"
    assert long in rendered(long)
    assert r"\{a\} \\ b" in rendered("\\begin{align}\n\\{a\\} \\\\ b\n\\end{align}")


def test_a_conversation_of_lm_studio_keeps_versions(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "1700.conversation.json"
    path.write_text(json.dumps(lm_studio()), encoding="utf-8")
    assert import_file(empty, path) == (1, 0)
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
    "newer": '{"format": "medusa-chat-conversations", "version": 5, "conversations": []}',
}


def test_a_hostile_file_is_refused_in_one_sentence_and_nothing_is_imported(
    empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "hostile.json"
    for what, text in HOSTILE.items():
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConversationFileError) as caught:
            import_unsandboxed(empty, path)
        assert caught.value.hint, what
        assert empty.conversations() == (), what


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
    "huge created": lambda raw: raw.update(created_s=10**400),
    "huge changed": lambda raw: raw.update(changed_s=-(10**400)),
    "huge said": lambda raw: raw["messages"][0].update(created_s=10**400),
    "a huge setting": lambda raw: raw["messages"][1]["answer"]["settings"].update(
        temperature=10**400
    ),
    "a huge value in a list": lambda raw: raw["messages"][1]["answer"]["settings"].update(
        logit_bias=[[1, 10**400]]
    ),
    "a huge figure": lambda raw: raw["messages"][1]["answer"]["done"].update(decode_s=10**400),
    "a huge setting of a figure": lambda raw: raw["messages"][1]["answer"]["done"][
        "settings"
    ].update(top_k=10**400),
    "huge seconds": lambda raw: raw["messages"][1]["answer"]["steps"][0]["steps"][0].__setitem__(
        9, 10**400
    ),
}


def test_a_modified_conversation_of_ours_is_refused_and_the_others_are_imported(
    history: History, empty: History, tmp_path: Path
) -> None:
    path = tmp_path / "all.json"
    export(history, path, FileKind.JSON, ["tea", "ships"])
    for number, (what, change) in enumerate(OURS.items()):
        raw = json.loads(path.read_text(encoding="utf-8"))
        raw["conversations"][0]["id"] = f"tea {number}"
        change(raw["conversations"][1])
        refused: list[ConversationFileError] = []
        pieces = JsonPieces(io.StringIO(json.dumps(raw)))
        lines = list(import_worker.lines_of(pieces, "changed.json", refused))
        assert (len(lines), len(refused)) == (1, 1), what
        assert empty.import_all(map(json.loads, lines)) == (1, 0), what
        assert "“Ships” can't be read: " in refused[0].message, what
        if what.startswith("huge "):
            assert re.search(r"isn't valid|beyond all bounds", refused[0].message), what
    assert {info.id for info in empty.conversations()} == {f"tea {n}" for n in range(len(OURS))}


BROKEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "parents form a circle": lambda raw: raw["mapping"]["ask"].update(parent="reply1"),
    "a missing parent": lambda raw: raw["mapping"]["ask"].update(parent="nobody"),
    "no node": lambda raw: raw["mapping"].update(ask=None),
    "no mapping": lambda raw: raw.update(mapping=None),
    "a list for a mapping": lambda raw: raw.update(mapping=[1]),
    "something else": lambda raw: raw.clear(),
}


def test_broken_conversations_among_many_affect_no_other(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    many = [{**chatgpt()[0], "conversation_id": f"c{n}", "title": f"Chat {n}"} for n in range(20)]
    broken = [{**chatgpt()[0], "title": what} for what in BROKEN]
    for conversation, change in zip(broken, BROKEN.values(), strict=True):
        change(conversation)
    path.write_text(json.dumps([*many[:10], *broken, None, *many[10:]]), encoding="utf-8")
    with ConversationFile(path) as found:
        assert (found.num_conversations, found.num_refused) == (20, len(BROKEN) + 1)
        assert empty.import_all(found) == (20, 0)
        for what, conversation, reason in zip(BROKEN, broken, found.reasons, strict=False):
            assert f"“{what}” can't be read: " in reason or not conversation
        assert found.reasons[len(BROKEN)] == "An entry of the file is no conversation."
    assert {info.title for info in empty.conversations()} == {one["title"] for one in many}


def test_the_command_says_which_conversations_it_omitted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "conversations.json"
    broken = {**chatgpt()[0], "title": "Broken", "mapping": None}
    path.write_text(json.dumps([*chatgpt(), broken]), encoding="utf-8")
    assert main(["history", "check", str(path)]) == 1
    words = ["history", "import", str(path), "--history", str(tmp_path / "history.db")]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert told.count("1 not:\n  The conversation “Broken” can't be read: it has no messages") == 2
    assert "1 new, 0 known already" in told


WRONG: tuple[Any, ...] = (
    None,
    0,
    -1,
    1e308,
    True,
    "",
    "x",
    "\ud83d",
    "\0",
    [],
    [None],
    {},
    {"parts": [None]},
)


def harmed(chance: random.Random) -> Any:
    """Return another program's conversation with some values removed or replaced."""
    raw = json.loads(json.dumps(chance.choice((chatgpt()[0], lm_studio()))))
    for _ in range(chance.randint(1, 4)):
        path = chance.choice(list(places(raw))[1:] or [("title",)])
        wrong = json.loads(json.dumps(chance.choice((*WRONG, "ask", "root", "yes"))))
        is_missing = isinstance(path[-1], str) and chance.random() < 0.5
        raw = spoil(raw, path, wrong, is_missing=is_missing)
    return raw


def test_a_corrupted_conversation_doesnt_affect_its_neighbours() -> None:
    chance = random.Random(7)
    for _ in range(150):
        check_neighbours(harmed(chance))


def check_neighbours(raw: Any) -> None:
    first, last = chatgpt()[0], {**chatgpt()[0], "conversation_id": "last"}
    refused: list[ConversationFileError] = []
    text = io.StringIO(json.dumps([first, raw, last]))
    lines = list(import_worker.lines_of(JsonPieces(text), "file.json", refused))
    assert len(lines) + len(refused) == 3
    taken = [json.loads(line) for line in lines]
    assert taken[0]["title"] == taken[-1]["title"] == "Ulm"
    assert taken[0]["id"] != taken[-1]["id"]
    assert all(error.message and error.hint for error in refused)


def test_odd_but_harmless_values_are_accepted(
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
    assert import_file(empty, path) == (1, 0)
    (info,) = empty.conversations()
    assert info.changed_s == 0.0
    reported = empty.messages("ships")[1].answer
    assert reported is not None
    assert reported.done is None
    assert reported.settings == GenerateSettings(seed=5)
    tell(empty, "ships", "Another?", "No.", "ships-1")


def test_a_decompression_bomb_takes_neither_time_nor_memory(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "bomb.json"
    path.write_text('[{"mapping": {"a": "' + "x" * (40 << 20), encoding="utf-8")
    with pytest.raises(ConversationFileError, match="too large"):
        import_file(empty, path)
    path.write_text(json.dumps(chatgpt()), encoding="utf-8")
    with pytest.raises(ConversationFileError, match="within"):
        ConversationFile(path, most_s=0.0)


@pytest.mark.slow
def test_a_gigabyte_is_refused_within_the_limits(empty: History, tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    one = json.dumps(chatgpt()[0])
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        for _ in range((1 << 30) // (len(one) * 100)):
            file.write((one + ",\n") * 100)
        file.write(one + "]")
    with pytest.raises(ConversationFileError, match="within 10 seconds"):
        import_file(empty, path)
    with path.open("w", encoding="utf-8") as file:
        file.truncate(1 << 30)
    with pytest.raises(ConversationFileError):
        import_file(empty, path)
    path.write_text('[{"mapping": {"a": [' + "[]," * (10 << 20) + "0]}}]", encoding="utf-8")
    with pytest.raises(ConversationFileError, match=r"too large|memory|within"):
        import_file(empty, path)


def test_a_large_import_lets_others_write_and_becomes_visible_at_once(
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
        assert (await export_gently(history, path, FileKind.JSON)) == (2, 0)
        (tea, ships) = json.loads(path.read_text(encoding="utf-8"))["conversations"]
        many = [{**raw, "id": f"{raw['id']} {n}"} for n in range(60) for raw in (tea, ships)]
        watching = asyncio.ensure_future(watch())
        assert await empty.import_in_thread(many) == (120, 0)
        watching.cancel()

        def broken() -> Iterator[dict[str, Any]]:
            yield {**tea, "id": "half"}
            raise ConversationFileError("The file is gone.")

        with pytest.raises(ConversationFileError):
            await empty.import_in_thread(broken())

    asyncio.run(work())
    assert set(seen) <= {0, 120}
    assert seen.count(0) > 1
    assert len(empty.conversations()) == 120
    assert empty.problems() == ()


async def long_talk(history: History, path: Path, num_messages: int = 200) -> list[dict[str, Any]]:
    """Return one conversation with 5,000 characters in each message."""
    await export_gently(history, path, FileKind.JSON)
    talk = json.loads(path.read_text(encoding="utf-8"))["conversations"][0]
    prompt = next(m for m in talk["messages"] if m["parent_id"] is None)
    many = [{**prompt, "id": f"m{n}", "text": f"word{n} " * 700} for n in range(num_messages)]
    return [{**talk, "id": "long", "leaf_id": "m0", "messages": many}]


def test_the_event_loop_runs_during_a_long_conversations_import(
    history: History, empty: History, tmp_path: Path
) -> None:
    num_turns = 0

    async def work() -> None:
        nonlocal num_turns
        talk = await long_talk(history, tmp_path / "all.json")
        taking = asyncio.ensure_future(empty.import_in_thread(talk))
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


def test_an_import_stopped_within_a_conversation_leaves_nothing(
    history: History, empty: History, tmp_path: Path
) -> None:
    def num_rows() -> tuple[int, ...]:
        tables = ("conversations", "messages", "message_words")
        counts = [empty._database.row(f"SELECT count(*) FROM {one}") for one in tables]
        return tuple(int(row[0]) for row in counts if row is not None)

    async def work() -> None:
        talk = await long_talk(history, tmp_path / "all.json", 2000)
        taking = asyncio.ensure_future(empty.import_in_thread(talk))
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
