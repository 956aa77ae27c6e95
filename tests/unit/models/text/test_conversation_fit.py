"""Conversations in templates that refuse, drop, move or rewrite messages: nothing is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from medusa_core.engine.overflow import fit
from medusa_core.engine.transcript import transcribe
from medusa_core.errors import RequestError, TemplateError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Overflow, Role, ToolCall
from medusa_core.models.text import template
from medusa_core.models.text.presence import first_missing
from medusa_core.models.text.template import ChatTemplate
from medusa_core.models.text.tokenizer import Tokenizer
from tests.support.cases import case
from tests.support.engine.fixtures import LoadTarget
from tests.support.models.tiny import make_tokenizer

_MESSAGE = "<|{{ m.role }}|>{{ m.content }}"
_END = "{% if add_generation_prompt %}<|assistant|>{% endif %}"
_CALLS = (
    "{% for c in m.tool_calls or [] %}"
    "[{{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}"
)
_ALL = "{% for m in messages %}" + _MESSAGE + _CALLS + "{% endfor %}" + _END
_REFUSES_LATE_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
    + _MESSAGE
    + _CALLS
    + "{% endfor %}"
    + _END
)
_ALTERNATES = (
    "{% set rest = messages[1:] if messages[0].role == 'system' else messages %}"
    "{% if messages[0].role == 'system' %}<|system|>{{ messages[0].content }}{% endif %}"
    "{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate.') }}{% endif %}" + _MESSAGE + "{% endfor %}" + _END
)
TEMPLATES = {
    "takes everything": _ALL,
    "drops later system messages": "{% if messages[0].role == 'system' %}<|system|>"
    "{{ messages[0].content }}{% endif %}{% for m in messages if m.role != 'system' %}"
    + _MESSAGE
    + _CALLS
    + "{% endfor %}"
    + _END,
    "shows the last system message at the top": "{% set ns = namespace(text='') %}"
    "{% for m in messages if m.role == 'system' %}{% set ns.text = m.content %}{% endfor %}"
    "<|system|>{{ ns.text }}{% for m in messages if m.role != 'system' %}"
    + _MESSAGE
    + _CALLS
    + "{% endfor %}"
    + _END,
    "moves system messages to the top": "{% for m in messages if m.role == 'system' %}"
    "<|system|>{{ m.content }}{% endfor %}{% for m in messages if m.role != 'system' %}"
    + _MESSAGE
    + _CALLS
    + "{% endfor %}"
    + _END,
    "moves the system message to the last turn": "{% for m in messages if m.role != 'system' %}"
    "{% if loop.last and messages[0].role == 'system' %}<|system|>{{ messages[0].content }}"
    "{% endif %}" + _MESSAGE + _CALLS + "{% endfor %}" + _END,
    "refuses late system messages": _REFUSES_LATE_SYSTEM,
    "refuses all system messages": "{% for m in messages %}{% if m.role == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}"
    + _MESSAGE
    + _CALLS
    + "{% endfor %}"
    + _END,
    "insists on alternation": _ALTERNATES,
    "insists on alternation but for calls": "{% set ns = namespace(n=0) %}{% for m in messages %}"
    "{% if m.role != 'tool' and not m.tool_calls %}{% if (m.role == 'user') != (ns.n % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate.') }}{% endif %}{% set ns.n = ns.n + 1 %}"
    "{% endif %}{% endfor %}" + _ALL,
    "iterates over tools": "{% for t in tools %}{{ t | tojson }}{% endfor %}" + _ALL,
    "wants functions as a text": "{{ 'Functions: ' + functions + datetime }}" + _ALL,
    "drops calls without tools": _ALL.replace(_CALLS, "{% if tools %}" + _CALLS + "{% endif %}"),
    "refuses several calls": _ALL.replace(
        _CALLS,
        "{% if m.tool_calls and m.tool_calls | length > 1 %}"
        "{{ raise_exception('one call at a time') }}{% endif %}" + _CALLS,
    ),
    "drops text beside calls": _ALL.replace(
        _MESSAGE, "<|{{ m.role }}|>{% if not m.tool_calls %}{{ m.content }}{% endif %}"
    ),
    "wants arguments as text": _ALL.replace(
        "{{ c.function.arguments | tojson }}", "{{ '' + c.function.arguments }}"
    ),
    "wants short ids": _ALL.replace(
        _CALLS,
        "{% for c in m.tool_calls or [] if c.id | length != 9 %}{{ raise_exception('id') }}"
        "{% endfor %}" + _CALLS,
    ),
    "writes JSON": "{% for m in messages %}{{ m | tojson }}{% endfor %}" + _END,
    "escapes all but ASCII": "{% for m in messages %}{{ m | tojson(ensure_ascii=True) }}"
    "{% endfor %}" + _END,
    "escapes HTML": "{% for m in messages %}{{ m.role | e }}: {{ m.content | e }}"
    "{% for c in m.tool_calls or [] %}[{{ c.function.name }} "
    "{{ c.function.arguments | string | e }}]{% endfor %}{% endfor %}" + _END,
    "strips and indents": _ALL.replace("m.content", "m.content | trim | indent(4)"),
    "drops thoughts": _ALL.replace("m.content", "m.content.split('</think>')[-1]"),
}


@pytest.fixture(autouse=True)
def rendered_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render in this process: one for each template would take most of the time."""
    monkeypatch.setattr(template, "is_shipped", lambda _: True)


def system(text: str) -> ChatMessage:
    return ChatMessage(Role.SYSTEM, text)


def user(text: str) -> ChatMessage:
    return ChatMessage(Role.USER, text)


def says(text: str, *calls: ToolCall) -> ChatMessage:
    return ChatMessage(Role.ASSISTANT, text, tool_calls=calls)


def call(name: str) -> ToolCall:
    arguments = {"place": f"Köln for {name}", "lines": ["eins\nzwei", '"quoted"'], "days": 2}
    return ToolCall(f"toolu_{name}_012345", name, json.dumps(arguments))


def result(name: str, text: str) -> ChatMessage:
    return ChatMessage(Role.TOOL, text, tool_name=name, call_id=f"toolu_{name}_012345")


ASK, MORE, THIRD = user("first question"), user("second <question>"), user("third question")
ANSWER, AGAIN = says("first answer\n\n  with lines"), says('second "answer"')
RULE, SECOND, LATER = system("rule one"), system("rule two"), system("rule three & last")
CALLED = (
    *(RULE, ASK, says("", call("weather")), result("weather", '{"t": "cold\\n"}'), AGAIN),
    *(MORE, says("I look.", call("clock"), call("map")), result("clock", "late")),
    *(result("map", "grün"), says("third answer"), THIRD),
)
CONVERSATIONS = {
    "one system message": (RULE, ASK, ANSWER, MORE),
    "two at the start": (RULE, SECOND, ASK, ANSWER, MORE),
    "in the middle": (RULE, ASK, ANSWER, SECOND, MORE, AGAIN, LATER, THIRD),
    "in the middle alone": (ASK, ANSWER, SECOND, MORE),
    "at the end": (RULE, ASK, ANSWER, LATER),
    "alone": (RULE,),
    "before an answer": (ASK, SECOND, ANSWER, MORE),
    "empty": (system(""), ASK),
    "users in a row": (RULE, ASK, MORE, AGAIN, THIRD),
    "answers in a row": (ASK, ANSWER, AGAIN, MORE),
    "an answer first": (ANSWER, ASK, AGAIN, MORE),
    "an answer behind a system message": (RULE, ANSWER, ASK),
    "calls": CALLED,
    "a system message behind a result": (*CALLED[:4], LATER),
    "a question behind a result": (*CALLED[:4], THIRD),
}


def with_template(target: Target, source: str) -> Target:
    return replace(target, template=ChatTemplate(source, {}))


def unescaped(prompt: str) -> str:
    """A prompt without escapes and white space."""
    prompt = prompt.replace("\\u00f6", "ö").replace("\\u00fc", "ü").replace("\\n", "")
    for name, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&#34;", '"')):
        prompt = prompt.replace(name, char)
    return "".join(prompt.replace("\\", "").split())


def texts_of(message: ChatMessage) -> list[str]:
    """Texts that must be in the prompt."""
    texts = [message.text]
    for one in message.tool_calls:
        texts += [one.name, f"Köln for {one.name}", "eins", "zwei", "quoted"]
    return [unescaped(text) for text in texts]


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_message_is_in_the_prompt_in_order(tiny: Target, name: str) -> None:
    target = with_template(tiny, TEMPLATES[name])
    for title, messages in CONVERSATIONS.items():
        with case(title):
            check_places(messages, transcribe(messages, None, target).prompt)


def check_places(messages: tuple[ChatMessage, ...], prompt: str) -> None:
    """Check that every message is in the prompt, in order."""
    shown, position = unescaped(prompt), 0
    results = {one.call_id: one for one in messages if one.role is Role.TOOL}
    pending = []
    for message in messages:
        if message.role is Role.TOOL:
            continue
        places = [shown.find(text, position) for text in texts_of(message)]
        assert -1 not in places, (message, prompt)
        pending = [results[one.call_id] for one in message.tool_calls if one.call_id in results]
        position = max(places)
        # Results of parallel calls come behind all of them, or each behind its own.
        assert all(shown.find(unescaped(one.text), places[0]) > 0 for one in pending), prompt


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_prompt_of_a_longer_conversation_extends_the_shorter_one(
    tiny: Target, name: str
) -> None:
    target = with_template(tiny, TEMPLATES[name])
    longest = (
        *(RULE, SECOND, ASK, ANSWER, LATER, MORE, AGAIN, system("rule four"), ASK, ANSWER),
        *(user("a"), user("b"), AGAIN, user("c")),
    )
    ends = [
        index + 1
        for index, (one, after) in enumerate(pairwise((*longest, ANSWER)))
        if one.role is Role.USER and after.role is Role.ASSISTANT
    ]
    shorter = [transcribe(longest[:end], None, target).prompt_ids for end in ends]
    answers_at = target.tokenizer.encode("<|assistant|>")
    for before, after in pairwise(shorter):
        # The generation prompt is what a template may write in another way before an answer.
        begin = before[: -len(answers_at)] if before[-len(answers_at) :] == answers_at else before
        assert after[: len(begin)] == begin
    assert len(shorter) == 5


def test_a_system_message_is_merged_into_the_following_question(tiny: Target) -> None:
    target = with_template(tiny, _REFUSES_LATE_SYSTEM)
    assert transcribe((RULE, ASK, ANSWER, SECOND, MORE), None, target).prompt == (
        "<|system|>rule one<|user|>first question<|assistant|>first answer\n\n  with lines"
        "<|user|>rule two\n\nsecond <question><|assistant|>"
    )
    assert transcribe((RULE, ASK, ANSWER, LATER), None, target).prompt.endswith(
        "with lines<|user|>rule three & last<|assistant|>"
    )


def test_an_accepted_conversation_is_rendered_unchanged(tiny: Target) -> None:
    target = with_template(tiny, _ALL)
    messages = (RULE, SECOND, ASK, MORE, ANSWER, AGAIN, LATER)
    assert transcribe(messages, None, target).prompt == target.template.render(messages)


def test_native_calls_stay_where_the_template_writes_them(tiny: Target) -> None:
    target = with_template(tiny, TEMPLATES["drops calls without tools"])
    tool = json.dumps({"name": "weather", "parameters": {"type": "object"}})
    with_tools = transcribe(CALLED[:4], None, target, tools=(tool,)).prompt
    assert '[weather {"place": "Köln for weather"' in with_tools
    without = transcribe(CALLED[:4], None, target).prompt
    assert '{"name": "weather", "arguments": {"place": "Köln for weather"' in without


def test_only_calls_that_a_template_refuses_become_text(tiny: Target) -> None:
    target = with_template(tiny, TEMPLATES["insists on alternation but for calls"])
    before = (ASK, says("", call("weather")), result("weather", "cold"), AGAIN, MORE)
    prompt = transcribe(before, None, target).prompt
    assert "[weather {" in prompt
    # A user speaks right behind a result, where this template wants an answer.
    messages = (*before, says("", call("clock")), result("clock", "late"), THIRD)
    longer = transcribe(messages, None, target).prompt
    assert longer.startswith(prompt.removesuffix("<|assistant|>"))
    assert '{"name": "clock", "arguments"' in longer
    assert longer.endswith("late\n\nthird question<|assistant|>")


def test_parallel_calls_are_split_for_a_template_that_accepts_one(tiny: Target) -> None:
    target = with_template(tiny, TEMPLATES["refuses several calls"])
    prompt = transcribe(CALLED, None, target).prompt
    assert prompt.index("[clock") < prompt.index("late") < prompt.index("[map")
    assert prompt.index("[map") < prompt.index("grün") < prompt.index("third answer")


@pytest.mark.parametrize(
    ("source", "messages", "named"),
    [
        ("{% for m in messages[1:] %}" + _MESSAGE + "{% endfor %}" + _END, (ASK, ANSWER, MORE), 1),
        (
            "{% for m in messages if 'two' not in m.content %}" + _MESSAGE + "{% endfor %}" + _END,
            (RULE, ASK, ANSWER, SECOND, MORE),
            4,
        ),
        ("{% for m in messages if m.role != 'tool' %}{{ m.content }}{% endfor %}", (ASK,), 0),
    ],
)
def test_a_message_missing_from_the_prompt_is_named(
    tiny: Target, source: str, messages: tuple[ChatMessage, ...], named: int
) -> None:
    target = with_template(tiny, source)
    if not named:
        transcribe(messages, None, target)
        return
    with pytest.raises(TemplateError, match=rf"leaves out message {named} \(") as caught:
        transcribe(messages, None, target)
    assert messages[named - 1].text in caught.value.message
    assert caught.value.hint


def test_a_refusal_quotes_the_template_and_gives_no_wrong_advice(tiny: Target) -> None:
    source = "{{ raise_exception('Only on Sundays.') }}"
    with pytest.raises(TemplateError, match="Only on Sundays") as caught:
        transcribe((ASK, ANSWER, SECOND, MORE), None, with_template(tiny, source))
    assert "alternate" not in str(caught.value)


@pytest.mark.parametrize(
    ("messages", "is_question"),
    [
        ((), False),
        ((user(" \n"),), False),
        ((system(" "),), False),
        ((ASK, ANSWER, system("")), False),
        ((RULE,), True),
        ((RULE, SECOND), True),
        ((ASK, ANSWER, RULE), True),
        ((ASK, system("")), True),
        ((RULE, says("Well")), True),
    ],
)
def test_a_system_message_may_be_followed_by_an_answer(
    tiny: Target, messages: tuple[ChatMessage, ...], is_question: bool
) -> None:
    if is_question:
        assert transcribe(messages, None, tiny).token_ids
    else:
        with pytest.raises(RequestError, match="nothing to answer"):
            transcribe(messages, None, tiny)


def test_reasoning_in_an_unknown_format_may_be_dropped(tiny: Target) -> None:
    source = _ALL.replace("m.content", "m.content.split('[/THINK]')[-1]")
    messages = (ASK, says("[THINK]Let me see.[/THINK]Yes."), MORE)
    prompt = transcribe(messages, None, with_template(tiny, source)).prompt
    assert "Yes." in prompt
    assert "Let me see" not in prompt


# Texts that are looked for ------------------------------------------------------------------------


@pytest.mark.parametrize("filters", ["", "tojson", "tojson(ensure_ascii=True)", "e", "tojson | e"])
def test_an_escaped_message_is_found_in_the_prompt(filters: str) -> None:
    texts = ('say "hi"\n\ttwice', r"C:\new\table \u00e9", "ä \U0001f600 日本", "a &lt; b & c > d")
    for content in (*texts, "'x'"):
        with case(content):
            check_found(content, filters)


def check_found(content: str, filters: str) -> None:
    """Check that an escaped text is found in the prompt, and no other one."""
    source = "{{ messages[0].content" + (f" | {filters}" if filters else "") + " }}"
    messages = (user(content), user("then"))
    prompt = ChatTemplate(source + " then", {}).render(messages)
    assert first_missing(messages, prompt) is None
    assert first_missing((user(f"{content} x"), user("then")), prompt) == 0
    assert first_missing(messages[::-1], prompt) == 1


def test_long_conversations_are_checked_in_linear_time() -> None:
    # Texts in which a search from the beginning, or a normal form for each, would be quadratic.
    messages = [user(f'line "{index}"\n' + "x" * 200) for index in range(8_000)]
    prompt = json.dumps([message.text for message in messages])
    assert first_missing(messages, prompt) is None
    messages[-1] = user("not there")
    assert first_missing(messages, prompt) == len(messages) - 1


# Names of special tokens --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "takes everything",
        "writes JSON",
        "escapes all but ASCII",
        "strips and indents",
        "wants arguments as text",
        "refuses late system messages",
        "insists on alternation",
    ],
)
def test_names_of_special_tokens_are_text_everywhere(load: LoadTarget, name: str) -> None:
    source = "{{ tools | tojson }}" + TEMPLATES[name]
    target = with_template(load("pebble", "float32"), source)
    tokenizer = target.tokenizer
    special = {token_id for token_id, _ in tokenizer.special_tokens}
    fields = ("system", "user", "answer", "argument", "name", "result", "tool")

    def read(field: str, text: str) -> list[int]:
        at = dict.fromkeys(fields, "plain")
        at[field] = text
        arguments = json.dumps({f"key {at['argument']}": [at["argument"]]})
        escaped = arguments.replace("<", "\\u003c")  # which a template writes as the name
        one = ToolCall("c1", at["name"], escaped if field == "argument" else arguments)
        messages = (
            *(system(at["system"]), user(at["user"]), says("", one)),
            *(ChatMessage(Role.TOOL, at["result"], tool_name=at["name"], call_id="c1"),),
            *(says(at["answer"]), system(at["system"]), user("end")),
        )
        tools = (json.dumps({"name": "f", "description": at["tool"]}),)
        return transcribe(messages, None, target, tools=tools).prompt_ids

    names = "".join(token for _, token in tokenizer.special_tokens)
    hostile = f"a{names} <|e<|end|>nd|>b"
    plain = [one for one in read("user", "plain") if one in special]
    for field in fields:
        found = read(field, hostile)
        assert [one for one in found if one in special] == plain, field
        is_escaped = name == "wants arguments as text" and field == "argument"
        assert is_escaped or hostile in b"".join(map(tokenizer.bytes_of, found)).decode(), field


def test_a_text_with_a_guard_character_is_unchanged(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    text = "<|end|> \ue0a9 \\ue0aa \ue0ab"
    read = transcribe((user(text),), None, target)
    shown = b"".join(map(target.tokenizer.bytes_of, read.prompt_ids)).decode()
    assert text in shown
    assert text in read.prompt


@pytest.mark.parametrize("is_special", [False, True])
def test_reasoning_tags_quoted_in_an_answer_are_text(tiny: Target, is_special: bool) -> None:
    rust = make_tokenizer()
    if is_special:
        rust.add_special_tokens(["<think>", "</think>"])
    target = replace(tiny, tokenizer=Tokenizer(rust))
    target = with_template(target, TEMPLATES["drops thoughts"])
    encode = target.tokenizer.encode
    said = "The tag `</think>` ends it.\n\n```\n</think>\n```\nAnd `<think>` begins it."
    for before in ("", "<think>\nhidden\n</think>\n\n"):
        read = transcribe((ASK, says(before + said), MORE), None, target)
        assert said in read.prompt
        assert "hidden" not in read.prompt
        begin, end = encode(f"<|user|>{ASK.text}"), encode(f"<|user|>{MORE.text}")
        within = read.prompt_ids[len(begin) : -len(end) - 1]
        special = {number for number, name in target.tokenizer.special_tokens if "think" in name}
        assert not special.intersection(within)
        assert said in b"".join(map(target.tokenizer.bytes_of, within)).decode()


# Too long conversations ---------------------------------------------------------------------------


@pytest.mark.parametrize("overflow", list(Overflow))
def test_system_messages_stay_with_the_following_question(tiny: Target, overflow: Overflow) -> None:
    settings = GenerateSettings(overflow=overflow)
    turns = [
        message
        for index in range(12)
        for message in (system(f"rule {index}"), user("x" * 60), says("y" * 60))
    ]
    messages = (RULE, *turns[1:], LATER, user("end"))
    if overflow is Overflow.STOP:
        with pytest.raises(RequestError):
            fit(messages, None, tiny, settings)
        return
    kept = fit(messages, None, tiny, settings)
    assert kept.cut is not None
    assert kept.messages[0] == RULE
    assert kept.messages[-2:] == (LATER, user("end"))
    for one, after in pairwise(kept.messages[1:]):
        if one.role is Role.SYSTEM:
            assert after.role is Role.USER


@pytest.mark.parametrize("overflow", [Overflow.ROLLING, Overflow.MIDDLE])
@pytest.mark.parametrize("role", [Role.SYSTEM, Role.TOOL])
def test_a_too_long_conversation_without_a_user_is_refused(
    tiny: Target, overflow: Overflow, role: Role
) -> None:
    with pytest.raises(RequestError):
        fit((ChatMessage(role, "x" * 5000),), None, tiny, GenerateSettings(overflow=overflow))
