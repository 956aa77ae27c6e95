"""Formats of reasoning, learned from templates."""

from __future__ import annotations

import time

import pytest

from medusa_core.engine.transcript import Transcript
from medusa_core.errors import TemplateError
from medusa_core.messages import NO_REASONING, THINK_TAGS, ReasoningFormat, ThinkingSwitch
from medusa_core.models.text.reasoning_formats import learn_reasoning, with_token_ids
from medusa_core.models.text.template import ChatTemplate
from medusa_core.models.text.tokenizer import Tokenizer
from tests.support.models.tiny import make_tokenizer

USERS = "{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}</u>\n{% endif %}"
END = "{% endfor %}"
OPENS = "{% if add_generation_prompt %}<a>\n{% endif %}"


def assistant(turn: str) -> str:
    """Build a chat template; `turn` renders the content of assistant messages."""
    return USERS + "{% if m.role == 'assistant' %}<a>\n" + turn + "</a>\n{% endif %}" + END + OPENS


def tagged(field: str, start: str, end: str) -> str:
    """Build a chat template that writes a message's `field` between two tags, then its content."""
    return assistant(
        f"{{% if m.{field} %}}{start}{{{{ m.{field} }}}}{end}{{% endif %}}{{{{ m.content }}}}"
    )


MESSAGES = (
    "{% for m in messages %}{% if m.role == 'user' %}<|s|>user<|m|>{{ m.content }}<|e|>"
    "{% else %}{% if m.thinking %}<|s|>bot<|k|>own<|m|>{{ m.thinking }}<|e|>{% endif %}"
    "<|s|>bot<|k|>out<|m|>{{ m.content }}<|e|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|s|>bot{% endif %}"
)
BLOCKS = assistant(
    "{% if m.content is string %}{{ m.content }}{% else %}{% for b in m.content %}"
    "{% if b.type == 'thinking' %}[MIND]{{ b.thinking }}[/MIND]{% else %}{{ b.text }}{% endif %}"
    "{% endfor %}{% endif %}"
)
OPENED = tagged("reasoning_content", "<muse>\n", "\n</muse>\n\n").replace(
    OPENS,
    "{% if add_generation_prompt %}<a>\n{% if enable_thinking is defined and not enable_thinking %}"
    "<muse>\n\n</muse>\n\n{% else %}<muse>\n{% endif %}{% endif %}",
)
WITH_CALLS = assistant(
    "{% if m.tool_calls %}<|ponder>{{ m.reasoning }}<ponder|>{{ m.tool_calls[0].function.name }}"
    "{% else %}{{ m.content }}{% endif %}"
)
SHUT = assistant("{{ m.content.split('</mull>')[-1] }}").replace(OPENS, OPENS + "<mull>\n")
CASES = {
    "a field": (tagged("reasoning_content", "<a:mull>", "</a:mull>\n"), ("<a:mull>", "</a:mull>")),
    "another field": (tagged("thinking", "<|pon|>\n", "\n<|der|>"), ("<|pon|>", "<|der|>")),
    "blocks": (BLOCKS, ("[MIND]", "[/MIND]")),
    "opened by each prompt": (OPENED, ("<muse>", "</muse>")),
    "shown before calls alone": (WITH_CALLS, ("<|ponder>", "<ponder|>")),
    "stripped from old answers": (SHUT, ("<mull>", "</mull>")),
    "messages": (
        MESSAGES,
        ("<|k|>own<|m|>", "<|e|>", "<|s|>bot", ("<|k|>out<|m|>",), ("<|e|>",)),
    ),
    "a response tag": (
        assistant(
            "{% if m.thought %}<|T|>{{ m.thought }}<|/T|><|R|>{% endif %}{{ m.content }}<|/R|>"
        ),
        ("<|T|>", "<|/T|>", "", ("<|R|>",), ("<|/R|>",)),
    ),
    "none": (assistant("{{ m.content }}"), NO_REASONING),
    "dropped from old answers": (assistant("{{ m.content.split('</think>')[-1] }}"), THINK_TAGS),
    "named alone": (
        assistant("{{ m.content.split('[/THINK]')[-1] }}[THINK]"),
        ("[THINK]", "[/THINK]"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_reasoning_format_is_learned_by_rendering(name: str) -> None:
    source, wanted = CASES[name]
    assert ChatTemplate(source, {}).reasoning == ReasoningFormat(*wanted)


def test_a_prompt_may_open_the_reasoning_in_any_format() -> None:
    assert ChatTemplate(OPENED, {}).thinking == ThinkingSwitch(True, True, True)
    assert ChatTemplate(SHUT, {}).thinking == ThinkingSwitch(False, True, True)
    assert ChatTemplate(CASES["a field"][0], {}).thinking == ThinkingSwitch()


def test_a_template_that_refuses_everything_gets_the_format_it_names() -> None:
    def refuse(*_: object) -> str:
        raise TemplateError("No.")

    assert learn_reasoning(refuse, "") == NO_REASONING
    assert learn_reasoning(refuse, "{{ '<think>' }}") == THINK_TAGS


def test_learning_is_abandoned_if_rendering_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now, num_rendered = [0.0], 0
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def render(*_: object) -> str:
        nonlocal num_rendered
        num_rendered += 1
        now[0] += 1.5
        raise TemplateError("The chat template doesn't come to an end.")

    assert learn_reasoning(render, "") == NO_REASONING
    assert num_rendered == 2


def test_tags_that_are_tokens_are_recognised_by_their_ids() -> None:
    tokenizer = Tokenizer(make_tokenizer())
    special = dict(tokenizer.special_tokens)
    number, name = next(iter(special.items()))
    tags = ReasoningFormat(f"{name}own", "</unknown>")
    assert with_token_ids(tags, tokenizer).tokens == ((number, name),)
    assert with_token_ids(THINK_TAGS, tokenizer).tokens == ()


def test_think_tags_that_are_tokens_are_reasoning_whatever_the_template_renders() -> None:
    plain = make_tokenizer()
    assert with_token_ids(NO_REASONING, Tokenizer(plain)) == NO_REASONING
    plain.add_special_tokens(["<think>", "</think>"])
    tokenizer = Tokenizer(plain)
    found = with_token_ids(NO_REASONING, tokenizer)
    assert found._replace(tokens=()) == THINK_TAGS
    assert dict(found.tokens) == {tokenizer.token_id(tag): tag for tag in THINK_TAGS.tags}


def test_a_prompt_without_reasoning_opens_none() -> None:
    template = ChatTemplate(CASES["none"][0], {})
    assert template.thinking == ThinkingSwitch()
    transcript = Transcript([1], [], None, prompt="<a>\n")
    assert not transcript.opens_reasoning(template.reasoning)
