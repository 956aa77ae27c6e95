"""How published models set reasoning apart, as their own templates show it.

The templates are those of llama.cpp's sources; see `test_llama_cpp_files`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from medusa_core.messages import THINK_TAGS, ReasoningFormat, ThinkingSwitch
from medusa_core.models.text.template import ChatTemplate
from tests.conftest import MISSING
from tests.tools import llama_cpp_files

pytestmark = pytest.mark.slow

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


def test_70_templates_show_their_format(templates: list[Path]) -> None:
    assert len(templates) == 70
    found: dict[str, tuple[ReasoningFormat, ThinkingSwitch]] = {}
    for path in templates:
        template = ChatTemplate(path.read_text(encoding="utf-8"), TOKENS)
        found[path.stem] = template.reasoning, template.thinking
    formats = {name: tags for name, (tags, _) in found.items() if tags != THINK_TAGS}
    assert formats == FORMATS
    assert {name for name, (_, one) in found.items() if one.opens_usually} == OPEN_USUALLY
    assert {name for name, (_, one) in found.items() if one.opens_on_request} == OPEN_ON_REQUEST
