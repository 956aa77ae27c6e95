"""What other programs ask for besides a chat: functions, raw prompts, log-probabilities, tokens."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from medusa_core.engine.direct import events_of
from medusa_core.engine.overflow import fit
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.engine.text_commands import count, tokenize
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Count,
    Event,
    Generate,
    GenerateSettings,
    GenerationDone,
    Overflow,
    Role,
    StepDone,
    StepLogprobs,
    Tokenize,
    ToolCall,
)
from medusa_core.models.text.template import ChatTemplate
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.laws import user_says
from tests.support.models.tiny import EOS_ID

SETTINGS = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=12)
WEATHER = json.dumps({"name": "weather", "parameters": {"type": "object"}})
KNOWS_TOOLS = (
    "{% if tools %}[{% for tool in tools %}{{ tool.function.name }}{% endfor %}]{% endif %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for call in m.tool_calls %}({{ call.function.name }}:"
    "{% for key, value in call.function.arguments.items() %}{{ key }}={{ value }}{% endfor %})"
    "{% endfor %}{% if m.role == 'tool' %}for {{ m.tool_call_id }} of {{ m.name }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)
KNOWS_NONE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
CALLING = (
    *user_says("rain?"),
    ChatMessage(Role.ASSISTANT, "", (), (ToolCall("c1", "weather", '{"city": "Ulm"}'),)),
    ChatMessage(Role.TOOL, "wet", tool_name="weather", call_id="c1"),
)


@pytest.fixture
def with_template(tiny: Target) -> Callable[[str], Target]:
    """The tiny target with another template."""
    return lambda source: replace(tiny, template=ChatTemplate(source, {}))


def answer(target: Target, request: Generate) -> list[Event]:
    """Return all events of an answer."""
    generation = start_generation(request, target, Session(target), RowPolicy(target))
    return list(events_of(generation))


def prompt_of(target: Target, messages: tuple[ChatMessage, ...], tools: tuple[str, ...]) -> str:
    command = Count("s", "r", messages, wants_prompt=True, tools=tools)
    return count(command, target).prompt


def test_a_template_renders_functions_calls_and_their_results(
    with_template: Callable[[str], Target],
) -> None:
    target = with_template(KNOWS_TOOLS)
    assert prompt_of(target, CALLING, (WEATHER,)) == (
        "[weather]<user>rain?<assistant>(weather:city=Ulm)<tool>wetfor c1 of weather<assistant>"
    )


def test_a_template_without_functions_renders_calls_and_results_as_text(
    with_template: Callable[[str], Target],
) -> None:
    target = with_template(KNOWS_NONE)
    more = (*CALLING, ChatMessage(Role.TOOL, "cold", tool_name="wind"))
    assert prompt_of(target, more, ()) == (
        '<user>rain?<assistant>{"name": "weather", "arguments": {"city": "Ulm"}}'
        "<user>Result of weather:\nwet\n\nResult of wind:\ncold<assistant>"
    )


def test_functions_count_towards_the_context(
    with_template: Callable[[str], Target],
) -> None:
    target = with_template(KNOWS_TOOLS)
    settings = replace(SETTINGS, overflow=Overflow.ROLLING)
    long = tuple(
        message
        for index in range(20)
        for message in (*user_says(f"question {index} " * 6), ChatMessage(Role.ASSISTANT, "yes"))
    )
    fitted = fit((*long, *user_says("last")), None, target, settings, 0, (WEATHER,))
    read = target.tokenizer.decode(fitted.transcript.token_ids)
    assert fitted.cut is not None
    assert read.startswith("[weather]")
    assert read.endswith("<user>last<assistant>")


def test_a_raw_prompt_is_continued_unchanged(tiny: Target) -> None:
    prompt = tuple(tiny.tokenizer.encode_prompt("once upon a"))
    request = Generate("s", "r", (), SETTINGS, prompt_ids=prompt)
    done = answer(tiny, request)[-1]
    assert isinstance(done, GenerationDone)
    assert done.num_prompt_tokens == len(prompt)
    generation = start_generation(request, tiny, Session(tiny), RowPolicy(tiny))
    assert generation.prefill.prompt_ids == list(prompt)


@pytest.mark.parametrize("prompt", [(10**6,), (-1,), (1,) * 10_000])
def test_a_raw_prompt_with_invalid_tokens_is_refused(tiny: Target, prompt: tuple[int, ...]) -> None:
    request = Generate("s", "r", (), SETTINGS, prompt_ids=prompt)
    with pytest.raises(RequestError, match=r"none of the model's|limit is"):
        answer(tiny, request)


@pytest.mark.parametrize("drafter", ["none", "suffix"])
def test_log_probabilities_are_those_of_the_model(tiny: Target, drafter: str) -> None:
    settings = replace(SETTINGS, drafter=drafter, banned=(1,))
    request = Generate("s", "r", user_says("abc abc abc"), settings, num_logprobs=3)
    events = answer(tiny, request)
    steps = [event for event in events if isinstance(event, StepDone)]
    scored = [event for event in events if isinstance(event, StepLogprobs)]
    assert [event.step for event in scored] == [event.step for event in steps]
    done = events[-1]
    assert isinstance(done, GenerationDone)
    chosen = [token for event in scored for token in event.chosen]
    assert tuple(token.token_id for token in chosen) == done.token_ids
    prompt = fit(request.messages, None, tiny, settings).transcript.prompt_ids
    kv = tiny.allocate_cache(len(prompt) + len(done.token_ids) + 1)
    with torch.inference_mode():
        logits = tiny.runner.logits(tiny.runner.extend([*prompt, *done.token_ids[:-1]], kv))
    tiny.caches.release(kv)
    rows = logits[len(prompt) - 1 :].double().log_softmax(-1)
    others = [best for event in scored for best in event.alternatives]
    for token, best, row in zip(chosen, others, rows, strict=True):
        assert token.logprob == pytest.approx(float(row[token.token_id]), abs=1e-6)
        assert [one.token_id for one in best] == row.topk(3).indices.tolist()
        assert [one.logprob for one in best] == pytest.approx(row.topk(3).values.tolist())
        assert -math.inf < token.logprob <= 0


def test_too_many_alternatives_are_refused(tiny: Target) -> None:
    request = Generate("s", "r", user_says("x"), SETTINGS, num_logprobs=21)
    with pytest.raises(RequestError, match="21 alternatives"):
        answer(tiny, request)


@pytest.mark.parametrize("tool", ["{", "[]", '{"description": "x"}', '{"name": 1}'])
def test_an_invalid_function_is_refused(tiny: Target, tool: str) -> None:
    request = Generate("s", "r", user_says("x"), SETTINGS, tools=(tool,))
    with pytest.raises(RequestError, match="function"):
        answer(tiny, request)


def test_text_and_tokens_convert_into_each_other(tiny: Target) -> None:
    tokenized = tokenize(Tokenize("s", "r", "some words"), tiny)
    assert tokenized.token_ids == tuple(tiny.tokenizer.encode("some words"))
    assert b"".join(tokenized.pieces) == b"some words"
    back = tokenize(Tokenize("s", "r", token_ids=tokenized.token_ids), tiny)
    assert back.text == "some words"
    with pytest.raises(RequestError, match="none of the model's"):
        tokenize(Tokenize("s", "r", token_ids=(10**6,)), tiny)


def test_special_tokens_are_named(tiny: Target) -> None:
    token_id, name = tiny.tokenizer.special_tokens[0]
    tokenized = tokenize(Tokenize("s", "r", token_ids=(token_id,)), tiny)
    assert tokenized.pieces == (name.encode(),)


def test_names_of_special_tokens_can_be_plain_text(tiny: Target) -> None:
    special = tokenize(Tokenize("s", "r", "a<|end|>"), tiny)
    literal = tokenize(Tokenize("s", "r", "a<|end|>", is_literal=True), tiny)
    assert EOS_ID in special.token_ids
    assert EOS_ID not in literal.token_ids
    assert literal.text == "a<|end|>"
