"""llama-server's own tests against this server, from llama.cpp's sources."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.conftest import MISSING
from tests.tools import llama_server_tests

pytestmark = pytest.mark.slow

_WORDS = "compares the words, the token count or the first token of llama-server's own test model"
_TEMPLATE = "starts llama-server with another chat template, which this server reads from the model"
_VERBOSE = "looks for the prompt in `__verbose`, which llama-server adds with `--verbose`"
_PROGRESS = "asks with `return_progress` for events that only llama-server sends"
_DELTA = "the first delta has an empty content, as OpenAI sends it; llama-server has null"
# What fails, and why that is no fault.
EXPECTED = {
    "chat_completion::test_chat_completion": _WORDS,
    "chat_completion::test_chat_completion_cached_tokens": _WORDS,
    "chat_completion::test_apply_chat_template": _TEMPLATE,
    "chat_completion::test_chat_completion_stream": _DELTA,
    "chat_completion::test_chat_completion_with_timings_per_token": _DELTA,
    "chat_completion::test_logprobs_stream": _DELTA,
    "chat_completion::test_chat_completion_with_openai_library": (
        "wants `system_fingerprint` to begin with the b of llama.cpp's builds"
    ),
    "chat_completion::test_chat_template": _VERBOSE,
    "chat_completion::test_chat_template_assistant_prefill": _VERBOSE,
    "chat_completion::test_chat_template_continue_final_message_vllm_compat": _VERBOSE,
    "chat_completion::test_return_progress": _PROGRESS,
    "chat_completion::test_verbose_debug": _VERBOSE,
    "compat_anthropic::test_anthropic_empty_messages": "an empty conversation is refused here",
    "compat_anthropic::test_anthropic_thinking_history_in_count_tokens": _TEMPLATE,
    "compat_anthropic::test_anthropic_thinking_history_in_template": _TEMPLATE,
    "compat_anthropic::test_anthropic_tool_result_with_image": (
        "wants an error; here the model reads a note in place of the picture of a tool"
    ),
    "compat_anthropic::test_anthropic_vision_base64_with_multimodal_model": (
        "downloads a model that sees"
    ),
    "compat_anthropic::test_anthropic_vision_format_accepted": (
        "wants 500 for a picture; the error is the client's, so it is 400 here"
    ),
    "compat_oai_responses::test_responses_with_openai_library": _WORDS,
    "compat_oai_responses::test_responses_stream_with_llama_telemetry": _PROGRESS,
    "template::test_add_generation_prompt": _TEMPLATE,
    "template::test_date_inside_prompt": _TEMPLATE,
    "template::test_reasoning": _TEMPLATE,
    "tokenize::test_tokenize_with_bos": _WORDS,
}


def test_failures_of_llama_servers_tests_are_known(tmp_path: Path) -> None:
    try:
        outcomes = llama_server_tests.run(tmp_path)
    except subprocess.CalledProcessError:
        pytest.skip(MISSING + "llama-server's tests")
    failed = {name for name, problem in outcomes.items() if problem}
    unexpected = {name: outcomes[name] for name in failed if name.partition("[")[0] not in EXPECTED}
    assert not unexpected
    # A reason must go with its failure.
    assert not EXPECTED.keys() - {name.partition("[")[0] for name in failed}
    assert len(outcomes) - len(failed) >= 57
