"""Tool calls in the chat templates of llama.cpp's sources: each form is learned and read back."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from medusa_core.errors import TemplateError
from medusa_core.messages import ChatMessage, Role, ToolCall, ToolCallFormat
from medusa_core.models.text.answer_grammar import (
    AnswerRules,
    ReasoningState,
    ToolChoice,
    ToolMode,
    answer_grammar,
)
from medusa_core.models.text.template import ChatTemplate
from medusa_core.models.text.tool_calls.comparing import header_length, num_turn_end
from medusa_core.models.text.tool_calls.round_trip import check_round_trip
from tests.conftest import MISSING
from tests.support.server.grammar_checks import matches
from tests.tools import llama_cpp_files

pytestmark = pytest.mark.slow

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
# Their templates don't tell the model which functions there are.
WITHOUT_CALLS = {
    "HuggingFaceTB-SmolLM3-3B",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-ai-DeepSeek-V3.1",
    "google-gemma-2-2b-it",
    "llama-cpp-rwkv-world",
    "microsoft-Phi-3.5-mini-instruct",
}
# What is enforced isn't what the template writes, which indents arguments.
ENFORCED_OTHERWISE = {"CohereForAI-c4ai-command-r-plus-tool_use"}
# The form is known, but the template wants arguments as a text, names the recipient before the
# channel, where models mostly name it after, or wraps texts in tags (Kimi).
NOT_WRITTEN = {
    "Kimi-K3",
    "meetkai-functionary-medium-v3.2",
    "openai-gpt-oss-120b",
}
TOOL = {
    "name": "lay_table",
    "description": "Lays a table.",
    "parameters": {
        "type": "object",
        "properties": {
            "cloth": {"type": "string", "description": "Its colour"},
            "seats": {"type": "integer", "description": "How many"},
        },
        "required": ["cloth", "seats"],
    },
}
ASKS = ChatMessage(Role.USER, "Who comes?")


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return llama_cpp_files.fetch()
    except subprocess.CalledProcessError:
        pytest.skip(MISSING + "llama.cpp's templates")


def written(template: ChatTemplate, arguments: str) -> str:
    """A call as the template writes it."""
    tools = (json.dumps(TOOL),)

    def shown(*turns: ChatMessage, opens: bool = False) -> str:
        prompt = template.render((ASKS, *turns), opens, tools=tools)
        return prompt.rpartition(ASKS.text)[2].rstrip()

    call = ToolCall("Ab1Cd2Ef3", "lay_table", arguments)
    answer = shown(ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)))
    plain = shown(ChatMessage(Role.ASSISTANT, "Nobody."))
    opening = template.tool_calls.opening.strip()
    begin = max(header_length(answer, plain), header_length(answer, shown(opens=True)))
    begin = max(begin, answer.find(opening))
    return answer[begin : len(answer) - num_turn_end(answer, plain)].strip()


def enforced(template: ChatTemplate, mode: ToolMode) -> str:
    shape = template.tool_calls
    rules = (shape, (json.dumps(TOOL),), ToolChoice(mode), "", ReasoningState.NONE, {})
    return answer_grammar(AnswerRules(*rules))


def is_read_back(template: ChatTemplate) -> bool:
    def text_of(turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
        try:
            prompt = template.render(turns, opens, tools=tools)
        except TemplateError:
            return ""
        for tag in template.reasoning.response_ends:
            prompt = prompt.replace(tag, "")
        return prompt

    try:
        check_round_trip(template.tool_calls, text_of)
    except ValueError as error:
        print(error)
        return False
    return True


def described(shape: ToolCallFormat) -> str:
    parts = (shape.section_open, *shape.call_open)
    shown = "".join(part if isinstance(part, str) else f"{{{part.value}}}" for part in parts)
    return f"{shape.style.value:10} {shown.strip()!r}"


def test_calls_of_every_template_with_functions_parse_back(folder: Path) -> None:
    paths = sorted((folder / "templates").glob("*.jinja"))
    assert len(paths) == 70
    without, not_written, wrong = set(), set(), {}
    for path in paths:
        template = ChatTemplate(path.read_text(encoding="utf-8"), TOKENS)
        shape = template.tool_calls
        print(f"{path.stem[:40]:40} {described(shape) if shape.is_described else 'described'}")
        if not shape.is_described:
            without.add(path.stem)
            continue
        if not is_read_back(template):
            not_written.add(path.stem)
            continue
        right = written(template, '{"cloth": "red", "seats": 4}')
        bad = written(template, '{"cloth": "red", "seats": "four"}')
        for mode in (ToolMode.AUTO, ToolMode.REQUIRED):
            grammar = enforced(template, mode)
            if not matches(grammar, right) or matches(grammar, bad):
                wrong[path.stem] = (mode, right, grammar)
    for name, (mode, right, grammar) in wrong.items():
        print(name, mode, repr(right), grammar)
    assert without == WITHOUT_CALLS
    assert not_written == NOT_WRITTEN
    assert wrong.keys() == ENFORCED_OTHERWISE
