"""Unusual conversations in the chat templates of llama.cpp's sources: no text is lost or moved."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from medusa_core.errors import TemplateError
from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.models.text.template import ChatTemplate
from tests.conftest import MISSING
from tests.tools import llama_cpp_files

pytestmark = pytest.mark.slow

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
NAMES = ("weather", "clock")
TOOLS = tuple(
    json.dumps({"name": name, "description": "", "parameters": {"type": "object"}})
    for name in NAMES
)


def system(text: str) -> ChatMessage:
    return ChatMessage(Role.SYSTEM, text)


def user(text: str) -> ChatMessage:
    return ChatMessage(Role.USER, text)


def says(text: str, *calls: ToolCall) -> ChatMessage:
    return ChatMessage(Role.ASSISTANT, text, tool_calls=calls)


def call(name: str, value: str) -> ToolCall:
    return ToolCall(f"toolu_{name}_0123456789", name, json.dumps({"place": value, "days": 2}))


def result(name: str, text: str) -> ChatMessage:
    return ChatMessage(Role.TOOL, text, tool_name=name, call_id=f"toolu_{name}_0123456789")


ASK, MORE, THIRD = user("Frage eins"), user("Frage <zwei>"), user("Frage drei")
ANSWER, AGAIN = says("Antwort eins.\n\nUnd Schluss."), says("Antwort zwei")
RULE, SECOND, LATER = system("Regel Anfang"), system("Regel Mitte"), system("Regel Ende")
HISTORY = (
    *(RULE, ASK, says("", call("weather", "Köln")), result("weather", '{"t": "kalt\\n"}')),
    *(AGAIN, MORE),
)
PARALLEL = (
    *(ASK, says("Ich sehe nach.", call("weather", "Ulm"), call("clock", "Bonn"))),
    *(result("weather", "warm"), result("clock", "spät"), MORE),
)
COLUMNS: dict[str, tuple[ChatMessage, ...]] = {
    "first": (RULE, ASK, ANSWER, MORE),
    "2nd sys": (RULE, SECOND, ASK, ANSWER, MORE),
    "mid": (RULE, ASK, ANSWER, SECOND, MORE),
    "mid alone": (ASK, ANSWER, SECOND, MORE, AGAIN, LATER, THIRD),
    "last": (RULE, ASK, ANSWER, LATER),
    "alone": (RULE,),
    "empty sys": (system(""), ASK),
    "U,U": (RULE, ASK, MORE, AGAIN, THIRD),
    "A,A": (ASK, ANSWER, AGAIN, MORE),
    "A first": (ANSWER, ASK, AGAIN, MORE),
    "S,A": (RULE, ANSWER, ASK),
    "U,S,A": (ASK, SECOND, ANSWER, MORE),
    "prefill": (RULE, ASK, ANSWER, MORE),
    "history, tools": HISTORY,
    "history, none": HISTORY,
    "parallel, tools": PARALLEL,
    "parallel, none": PARALLEL,
    "T,S": (*HISTORY[:4], LATER),
    "T,U": (*HISTORY[:4], MORE, AGAIN, THIRD),
}


def words_of(message: ChatMessage) -> list[str]:
    """Words that must be in a prompt."""
    texts = [message.text]
    for one in message.tool_calls:
        texts += [one.name, json.loads(one.arguments)["place"], "days"]
    return [word for text in texts for word in re.findall(r"\w+", text.replace("\\n", " "))]


def has_in_order(prompt: str, messages: Iterable[ChatMessage]) -> bool:
    """Return whether the words of each message follow those of the previous one."""
    position = 0
    for message in messages:
        found = [prompt.find(word, position) for word in words_of(message)]
        if -1 in found:
            return False
        position = max(found, default=position)
    return True


def paired(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Return calls each followed by its result, as templates for one call at a time require."""
    results = {one.call_id: one for one in messages if one.role is Role.TOOL}
    turns: list[ChatMessage] = []
    for message in messages:
        if message.role is not Role.TOOL:
            turns.append(message._replace(tool_calls=()))
        for one in message.tool_calls:
            turns += [says("", one), results[one.call_id]]
    return turns


def fitted(
    template: ChatTemplate, messages: tuple[ChatMessage, ...], tools: tuple[str, ...] = ()
) -> tuple[ChatMessage, ...]:
    """The conversation in the form that the template takes."""
    return template.conversations.fit(
        messages, lambda turns: template.render(turns, tools=tools), bool(tools)
    )


def rewritten_earlier(template: ChatTemplate, messages: tuple[ChatMessage, ...]) -> set[int]:
    """Lengths at which a prompt doesn't begin with the one before, up to the end of its question.

    What the template itself rewrites in a conversation that it takes as it is doesn't count.
    """
    roles = [message.role for message in messages]
    answers = [n for n, role in enumerate(roles) if role is Role.ASSISTANT]
    ends = [n for n in answers if roles[n - 1] is not Role.ASSISTANT]
    found = set()
    for shorter, longer in pairwise((*ends, len(messages))):
        conversations = messages[:shorter], messages[:longer]
        turns = [fitted(template, one) for one in conversations]
        if tuple(turns) == conversations:
            continue
        before, after = map(template.render, turns)
        word = words_of(messages[shorter - 1])[-1]
        if not after.startswith(before[: before.rindex(word) + len(word)]):
            found.add(shorter)
    return found


def state(template: ChatTemplate, title: str) -> str:
    """Return the outcome of a conversation: `·`, `ERR`, `LOST` or `moved`."""
    messages = COLUMNS[title]
    try:
        tools = TOOLS if title.endswith(", tools") else ()
        prompt = template.render(fitted(template, messages, tools), tools=tools)
    except TemplateError as error:
        print(title, error)
        return "ERR"
    prompt = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), prompt)
    if has_in_order(prompt, messages) or has_in_order(prompt, paired(messages)):
        return "·"
    words = (word for message in messages for word in words_of(message))
    return "moved" if all(word in prompt for word in words) else "LOST"


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return llama_cpp_files.fetch()
    except subprocess.CalledProcessError:
        pytest.skip(MISSING + "llama.cpp's templates")


def test_every_template_renders_every_conversation(folder: Path) -> None:
    paths = sorted((folder / "templates").glob("*.jinja"))
    assert len(paths) == 70
    counts: Counter[str] = Counter()
    print(f"\n{'template':38}", *(f"{title:>15}" for title in COLUMNS))
    for path in paths:
        template = ChatTemplate(path.read_text(encoding="utf-8"), TOKENS)
        states = [state(template, title) for title in COLUMNS]
        counts.update(states)
        print(f"{path.stem[:38]:38}", *(f"{one:>15}" for one in states))
    print(counts)
    assert set(counts) == {"·"}


def test_the_prompt_of_a_longer_conversation_begins_with_the_shorter_one(folder: Path) -> None:
    plain = (RULE, ASK, ANSWER, MORE, AGAIN, THIRD)
    unusual = (
        *(RULE, SECOND, ASK, ANSWER, LATER, MORE, AGAIN, THIRD, ASK, ANSWER, AGAIN, SECOND),
        *(ANSWER, MORE),
    )
    for path in sorted((folder / "templates").glob("*.jinja")):
        template = ChatTemplate(path.read_text(encoding="utf-8"), TOKENS)
        assert not rewritten_earlier(template, plain), path.stem
        assert not rewritten_earlier(template, unusual), path.stem
