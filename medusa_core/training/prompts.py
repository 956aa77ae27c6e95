"""Prompts for training data, read from files in common formats.

JSON lines, or a JSON list. A row is a prompt of the benchmarks (`turns`), OpenAI's `messages`,
ShareGPT's `conversations`, or a bare `prompt`, `instruction` or `text` of a question. Conversations
are cut before their first answer: the model writes its own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from medusa_core.chats.history.history import History
from medusa_core.errors import TrainingError
from medusa_core.i18n import tr
from medusa_core.messages import ChatMessage, Role
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import (
    bundled_prompts,
    bundled_questions,
)
from medusa_core.training.data_files import files_of, rows_of, text_of

_SUFFIXES = (".jsonl", ".json")
_MOST_CHARS = 8000
_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "human": Role.USER,
}
_BARE = ("prompt", "instruction", "question", "text")


class TrainingPrompt(NamedTuple):
    """A conversation up to the model's answer.

    Attributes:
        messages: Messages of the conversation.
        category: Topic.
    """

    messages: tuple[ChatMessage, ...]
    category: str


def read_training_prompts(paths: Sequence[Path]) -> list[TrainingPrompt]:
    """Return the distinct prompts of files and folders.

    Raises:
        TrainingError: A file can't be read, or a row has no prompt; the message names the line.
    """
    found = [
        prompts for path in paths for file in files_of(path, _SUFFIXES) for prompts in _read(file)
    ]
    once = {prompts.messages: prompts for prompts in found}
    if not once:
        raise TrainingError("There is no prompt to ask.", "Name files of prompts with --data.")
    return list(once.values())


def bundled_training_prompts() -> list[TrainingPrompt]:
    """Return the bundled prompts: the project's own, and others with permissive licences."""
    raw = read_json(bundled_questions())
    found = read_training_prompts([bundled_prompts()])
    for category, parts in raw["categories"].items():
        for task, topic in product(parts["tasks"], parts["topics"]):
            found.append(_question(task.replace("{}", topic), category))
    return found


def prompts_of_chats(path: Path) -> list[TrainingPrompt]:
    """Return the distinct first questions of a history's conversations.

    Raises:
        StorageError: The history can't be opened.
    """
    if not path.is_file():
        return []
    history = History(path)
    try:
        found = [
            prompts
            for info in history.conversations()
            if (prompts := _first_question(history, info.id)) is not None
        ]
    finally:
        history.close()
    return list({prompts.messages: prompts for prompts in found}.values())


def _first_question(history: History, conversation_id: str) -> TrainingPrompt | None:
    """Return a conversation's first question; None if it is empty or too long."""
    first = next((m for m in history.messages(conversation_id) if m.role is Role.USER), None)
    if first is None or not first.text.strip() or len(first.text) > _MOST_CHARS:
        return None
    return _question(first.text, "own chats")


def write_training_prompts(prompts: Sequence[TrainingPrompt], path: Path) -> None:
    """Write prompts in the format of `read_training_prompts`."""
    rows = (
        {
            "category": one.category,
            "messages": [{"role": m.role.value, "content": m.text} for m in one.messages],
        }
        for one in prompts
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def in_order(prompts: Sequence[TrainingPrompt], seed: int) -> list[TrainingPrompt]:
    """Shuffle by a seed, so that the first prompts are a fair sample."""
    order = list(prompts)
    random.Random(seed).shuffle(order)
    return order


def _question(text: str, category: str) -> TrainingPrompt:
    """Return a single user's message as a prompt."""
    return TrainingPrompt((ChatMessage(Role.USER, text),), category)


def _read(path: Path) -> Iterator[TrainingPrompt]:
    """Yield the prompts of a file that aren't too long."""
    for where, row in rows_of(text_of(path), path.name):
        prompts = _prompt_in(row, path.stem)
        if prompts is None:
            raise TrainingError(
                tr("{0} holds no prompt.", where),
                "A row has messages, conversations, turns, prompt, instruction, question or text.",
            )
        if sum(len(message.text) for message in prompts.messages) <= _MOST_CHARS:
            yield prompts


def _prompt_in(row: Any, category: str) -> TrainingPrompt | None:
    """Return the prompt of a row; None if it has none."""
    if not isinstance(row, dict):
        return None
    category = str(row.get("category", category))
    turns = row.get("turns")
    if isinstance(turns, list) and turns and isinstance(turns[0], str):
        return _question(turns[0], category)
    raw_turns = row.get("messages", row.get("conversations"))
    if isinstance(raw_turns, list):
        messages = tuple(_until_answered(raw_turns))
        return (
            TrainingPrompt(messages, category)
            if any(m.role is Role.USER for m in messages)
            else None
        )
    for name in _BARE:
        if isinstance(row.get(name), str) and row[name].strip():
            more = row.get("input")
            whole = f"{row[name]}\n\n{more}" if isinstance(more, str) and more else row[name]
            return _question(whole, category)
    return None


def _until_answered(raw_turns: Sequence[Any]) -> Iterator[ChatMessage]:
    """Yield the messages before the first answer: system prompt and question."""
    for turn in raw_turns:
        if not isinstance(turn, dict):
            return
        role = _ROLES.get(str(turn.get("role", turn.get("from"))))
        content = turn.get("content", turn.get("value"))
        if role is None or not isinstance(content, str) or not content.strip():
            return
        yield ChatMessage(role, content)
        if role is Role.USER:
            return
