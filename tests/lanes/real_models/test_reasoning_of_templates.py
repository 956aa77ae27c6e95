"""How published models set reasoning apart, as their own templates show it.

The templates are those of llama.cpp's sources; see `test_llama_cpp_files`.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted
from medusa_core.chats.tool_calls.parser import ToolCallParser
from medusa_core.errors import TemplateError
from medusa_core.messages import NO_REASONING, THINK_TAGS, ReasoningFormat, ThinkingSwitch
from medusa_core.models.text.template import ChatTemplate
from medusa_core.server.answer_reader import AnswerReader
from medusa_core.server.chat import TextDelta
from tests.conftest import MISSING
from tests.support.server.answer_steps import done, step
from tests.tools import llama_cpp_files

pytestmark = pytest.mark.slow

TAG = re.compile(r"<[^<>\s][^<>\n]{0,40}>|\[/?[A-Z][A-Z_ ]{1,40}\]")
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
APRIEL = ReasoningFormat(
    "Here are my reasoning steps:",
    "[BEGIN FINAL RESPONSE]",
    response_ends=("[END FINAL RESPONSE]",),
)
COHERE = ReasoningFormat(
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    responses=("<|START_RESPONSE|>", "<|START_TEXT|>"),
    response_ends=("<|END_RESPONSE|>", "<|END_TEXT|>"),
)
GEMMA_4 = ReasoningFormat("<|channel>thought", "<channel|>")
# All others write <think>, or nothing that their template shows.
FORMATS = {
    "Apertus-8B-Instruct": ReasoningFormat("<|inner_prefix|>", "<|inner_suffix|>"),
    "Apriel-1.6-15b-Thinker-fixed": APRIEL,
    "ByteDance-Seed-OSS": ReasoningFormat("<seed:think>", "</seed:think>"),
    "Cohere2MoE": COHERE,
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": COHERE,
    "Kimi-K3": ReasoningFormat(
        "<|open|>think<|sep|>",
        "<|close|>think<|sep|>",
        responses=("<|open|>response<|sep|>",),
        response_ends=("<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    ),
    "MiniMax-M3": ReasoningFormat("<mm:think>", "</mm:think>"),
    "google-gemma-4-31B-it": GEMMA_4,
    "google-gemma-4-31B-it-interleaved": GEMMA_4,
    "ibm-granite-granite-3.3-2B-Instruct": ReasoningFormat(
        responses=("<response>",), response_ends=("</response>",)
    ),
    "mistralai-Ministral-3-14B-Reasoning-2512": ReasoningFormat("[THINK]", "[/THINK]"),
    "muse-glimmer": ReasoningFormat(
        "to=self<|message|>",
        "<|eom|>",
        "<|start|>assistant",
        ("to=user<|message|>",),
        ("<|eot|>",),
    ),
    "openai-gpt-oss-120b": ReasoningFormat(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        "<|start|>assistant",
        ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    ),
    "tencent-Hy3": ReasoningFormat("<think:opensource>", "</think:opensource>"),
    "unsloth-Apriel-1.5": APRIEL,
    "upstage-Solar-Open-100B": ReasoningFormat(
        "<|think|>", "<|end|>", "<|begin|>assistant", ("<|content|>",), ("<|end|>",)
    ),
}
# Whose prompts open the reasoning: where nothing is asked for, and where reasoning is.
OPEN_USUALLY = {
    *("Apriel-1.6-15b-Thinker-fixed", "Cohere2MoE", "GLM-4.7-Flash", "Kimi-K3", "MiniMax-M2"),
    *("NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "NVIDIA-Nemotron-Nano-v2", "Qwen3.5-4B", "Spark2.5"),
    *("StepFun3.5-Flash", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "inclusionai-ling-3.0-flash"),
    *("llama-cpp-deepseek-r1", "poolside-Laguna-S-2.1"),
}
OPEN_ON_REQUEST = OPEN_USUALLY | {
    *("Bielik-11B-v3.0-Instruct", "Qwen-QwQ-32B", "Reka-Edge", "llama-cpp-rwkv-world"),
    *("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai-DeepSeek-V3.1"),
    *("deepseek-ai-DeepSeek-V3.2", "deepseek-ai-DeepSeek-V4", "openbmb-MiniCPM5-1B"),
    *("deepseek-ai-DeepSeek-V4-Flash-0731", "poolside-Laguna-XS-2.1", "poolside-Laguna-XS.2"),
}


@pytest.fixture(scope="module")
def templates() -> list[Path]:
    try:
        return sorted((llama_cpp_files.fetch() / "templates").glob("*.jinja"))
    except subprocess.CalledProcessError:
        pytest.skip(MISSING + "llama.cpp's templates")


def test_the_reasoning_format_of_70_templates_is_learned(templates: list[Path]) -> None:
    assert len(templates) == 70
    found: dict[str, tuple[ReasoningFormat, ThinkingSwitch]] = {}
    for path in templates:
        template = ChatTemplate(path.read_text(encoding="utf-8"), TOKENS)
        found[path.stem] = template.reasoning, template.thinking
    plain = {name for name, (tags, _) in found.items() if tags == NO_REASONING}
    named = {path.stem for path in templates if "think>" in path.read_text(encoding="utf-8")}
    assert len(plain) == 25
    assert not plain & named
    formats = {
        name: tags for name, (tags, _) in found.items() if tags not in (THINK_TAGS, NO_REASONING)
    }
    assert formats == FORMATS
    assert {name for name, (_, one) in found.items() if one.opens_usually} == OPEN_USUALLY
    assert {name for name, (_, one) in found.items() if one.opens_on_request} == OPEN_ON_REQUEST


TOOL = {
    "name": "weather",
    "description": "Weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    },
}
ARGUMENTS = {"city": "Köln", "days": 2}
CALL = {
    "id": "call12345",
    "type": "function",
    "function": {"name": "weather", "arguments": ARGUMENTS},
}
USER = {"role": "user", "content": "zqquestion"}
FIELDS = dict.fromkeys(("reasoning_content", "reasoning", "thinking", "thought"), "zqreasoning")
ASSISTANT = {"role": "assistant", "content": "", "tool_calls": [CALL], **FIELDS}


def written_answer(template: ChatTemplate) -> tuple[str, bool] | None:
    """A turn of reasoning and a call as its model writes it, and whether it begins inside."""
    tools, render = [{"type": "function", "function": TOOL}], template._rendering.render
    for thinks in (None, True):
        try:
            whole = render([USER, ASSISTANT], False, thinks, tools)
            prompt = render([USER], True, thinks, tools)
        except TemplateError:
            return None
        if FIELDS["thought"] in whole and whole.startswith(prompt.rstrip()):
            opens = prompt.rstrip().endswith(template.reasoning.start)
            return whole[len(prompt.rstrip()) :], opens
    return None


@pytest.mark.parametrize("has_text", [False, True], ids=["special", "with text"])
def test_reasoning_before_a_call_is_parsed_apart_from_it(
    templates: list[Path], has_text: bool
) -> None:
    num_read = 0
    for path in templates:
        template = ChatTemplate(path.read_text(encoding="utf-8"), TOKENS)
        answer = written_answer(template)
        if answer is None:
            continue
        text, opens = answer
        names = sorted({part for tag in template.reasoning.tags for part in TAG.findall(tag)})
        ids = {name: 1000 + place for place, name in enumerate(names)}
        calls = template.tool_calls
        marks = {
            number: name for name, number in ids.items() if any(name in t for t in calls.texts)
        }
        tags = template.reasoning._replace(
            tokens=tuple((number, name) for name, number in ids.items())
        )
        reader = AnswerReader(tags, frozenset(), (), False, ToolCallParser(calls, [TOOL]), marks)
        reader.begin(opens)
        parts = re.split(f"({'|'.join(map(re.escape, ids)) or '(?!)'})", text)
        pieces = [(ids[p], p if has_text else "") if p in ids else (1, p) for p in parts if p]
        shown = "".join(piece for _, piece in pieces)
        one = step(0, tuple(piece.encode() for _, piece in pieces), len(shown.encode()))
        one = one._replace(token_ids=tuple(number for number, _ in pieces))
        events = [*reader.step(one), *reader.finish(done(shown))]
        thought = "".join(e.text for e in events if isinstance(e, TextDelta) and e.is_reasoning)
        arguments = "".join(e.text for e in events if isinstance(e, CallDelta))
        assert thought.strip() == FIELDS["thought"], path.name
        assert [e.name for e in events if isinstance(e, CallStarted)] == ["weather"], path.name
        assert json.loads(arguments) == ARGUMENTS, path.name
        num_read += 1
    assert num_read >= 25
