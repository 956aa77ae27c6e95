"""Conversations to prompts, by a model's own chat template."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from medusa_core.chats.thinking import OPEN
from medusa_core.errors import TemplateError
from medusa_core.messages import ChatMessage, Role, ThinkingSwitch
from medusa_core.models.text.gguf_tokenizer import (
    read_chat,
    token_texts,
)
from medusa_core.models.text.known_templates import (
    is_shipped,
    known_template,
)
from medusa_core.models.text.raw_text import RawText
from medusa_core.models.text.rendering import (
    MOST_SOURCE_CHARS,
    Rendering,
    too_long,
)
from medusa_core.models.text.template_process import TemplateProcess
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.system.files.gguf import (
    Gguf,
    read_headers,
)
from medusa_core.system.files.json_file import read_json

_MOST_NAME_CHARS = 1000  # patterns are looked for in it
_NUM_KEPT = 64  # openings of the turns of a conversation or two


class ChatTemplate:
    """A compiled chat template.

    Attributes:
        continues_text: It asks for answers, not for more of the text.
    """

    continues_text = False

    def __init__(self, source: str, special_tokens: dict[str, str]) -> None:
        """Compile a template; a foreign one in a process of its own.

        Raises:
            TemplateError: It doesn't parse, or is out of bounds.
        """
        kind = Rendering if is_shipped(source) else TemplateProcess
        rendering = kind(source, special_tokens)
        self._can_switch = bool(rendering.switch)

        def render(
            turns: tuple[tuple[str, str], ...],
            opens_answer: bool,
            thinks: bool | None,
            _: datetime.date,
        ) -> str:
            return rendering.render(turns, opens_answer, thinks)

        # Each turn of a conversation renders the openings of all earlier ones again.
        self._kept = lru_cache(maxsize=_NUM_KEPT)(render)

    @cached_property
    def takes_system(self) -> bool:
        """Whether a conversation may begin with a system prompt; Mistral's first ones refuse it."""
        begun = (ChatMessage(Role.SYSTEM, "a"), ChatMessage(Role.USER, "a"))
        try:
            self.render(begun)
        except TemplateError:
            return False
        return True

    @cached_property
    def thinking(self) -> ThinkingSwitch:
        """What it does about thoughts before the answer."""
        begun = (ChatMessage(Role.USER, "a"),)

        def opens(thinks: bool | None) -> bool:
            try:
                return self.render(begun, thinks=thinks).rstrip().endswith(OPEN)
            except TemplateError:  # which the first message will tell
                return False

        return ThinkingSwitch(self._can_switch, opens(None), opens(True))

    def render(
        self,
        messages: Sequence[ChatMessage],
        opens_answer: bool = True,
        thinks: bool | None = None,
    ) -> str:
        """The prompt of a conversation.

        Args:
            messages: The turns, oldest first.
            opens_answer: End with the marker that asks for the assistant's answer.
            thinks: Whether to think before the answer; None for what the template takes for usual.
                Templates that know no such choice don't mind.

        Raises:
            TemplateError: The template refuses the conversation or fails.
        """
        # By text alone: hashing the answers' tokens would take longer than all else here.
        # The date takes part: a template may write it.
        turns = tuple([(role._value_, content) for role, content, _ in messages])
        told = thinks if self._can_switch else None
        text = self._kept(turns, opens_answer, told, datetime.date.today())
        _check_characters(text)
        return text


Template = ChatTemplate | RawText


def open_template(model: Path | Gguf, tokenizer: Tokenizer) -> Template:
    """Read `chat_template.jinja`, else the template in `tokenizer_config.json`, or a GGUF file's.

    Models that have none but are known (Vicuna, Llama 2) get the one they were trained on; all
    others are base models, which go on with a text.

    Args:
        model: Folder, file, or the headers of GGUF files.
        tokenizer: The model's.

    Raises:
        CheckpointError: The GGUF file is damaged.
        TemplateError: It doesn't parse.
    """
    headers = read_headers(model, with_tensors=False)
    written = _written(headers)
    source = written.source
    if source is None:
        source = known_template(_path(headers), written.names, tokenizer.knows)
    return RawText() if source is None else ChatTemplate(source, written.tokens)


def is_base_model(model: Path | Gguf) -> bool:
    """Is it a model without a chat template? Its tokenizer isn't built to find out.

    Args:
        model: Folder, file, or the headers of GGUF files.

    Raises:
        CheckpointError: Its files are damaged.
        TemplateError: Its template can't be read.
    """
    headers = read_headers(model, with_tensors=False)
    written = _written(headers)
    if written.source is not None:
        return False
    return known_template(_path(headers), written.names, _knows(headers)) is None


class _Written(NamedTuple):
    """What a model's files say of conversations.

    Attributes:
        source: Its chat template, if it has one.
        tokens: Texts of the tokens that it may name.
        names: Other names of the model.
    """

    source: str | None
    tokens: dict[str, str]
    names: str


def _path(model: Path | Gguf) -> Path:
    return model.path if isinstance(model, Gguf) else model


def _written(model: Path | Gguf) -> _Written:
    if isinstance(model, Gguf):
        chat = read_chat(model)
        return _Written(chat.template or None, chat.tokens, chat.names)
    source, tokens = _of_folder(model)
    return _Written(source, tokens, _names(model) if source is None else "")


def _knows(model: Path | Gguf) -> Callable[[str], bool]:
    """Whether a text is a token, by the files alone."""
    if isinstance(model, Gguf):
        return token_texts(model).__contains__
    file = model / "tokenizer.json"
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    return lambda token: json.dumps(token, ensure_ascii=False) in text


def _check_characters(text: str) -> None:
    """Refuse what no tokenizer reads."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TemplateError(
            f"The prompt holds half a character (U+{ord(text[error.start]):04X}).",
            "Take it out of the message, or mend the model's chat_template.jinja.",
        ) from error


def _named(templates: object) -> str | None:
    """The template to chat with: some models list several by name."""
    if isinstance(templates, list):
        found = [t for t in templates if isinstance(t, dict) and isinstance(t.get("template"), str)]
        default = [t for t in found if t.get("name") == "default"]
        templates = next((t["template"] for t in default or found), None)
    return templates if isinstance(templates, str) else None


def _of_folder(model_dir: Path) -> tuple[str | None, dict[str, str]]:
    """Template and special tokens of a folder."""
    path = model_dir / "tokenizer_config.json"
    config = read_json(path) if path.exists() else {}
    file = model_dir / "chat_template.jinja"
    source = _read(file) if file.exists() else _named(config.get("chat_template"))
    return source, _special_tokens(config)


def _names(model_dir: Path) -> str:
    """Names that a model's configuration calls it."""
    path = model_dir / "config.json"
    name = read_json(path).get("_name_or_path") if path.exists() else None
    return name[:_MOST_NAME_CHARS] if isinstance(name, str) else ""


def _read(file: Path) -> str:
    try:
        if (size := file.stat().st_size) > 4 * MOST_SOURCE_CHARS:
            raise too_long(size // 4)
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            f"{file.name} can't be read as UTF-8 text: {error}.", "Download the file again."
        ) from error


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = config.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            found[name] = text
    return found
