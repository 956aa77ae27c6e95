"""Chat templates that want all of the computer: each ends as a TemplateError, and chats go on."""

import gc
import os
from pathlib import Path

import psutil
import pytest

from medusa_core.errors import TemplateError
from medusa_core.messages import ChatMessage, Role
from medusa_core.models.text.rendering import (
    MAX_PROMPT_CHARS,
    MAX_SOURCE_CHARS,
    Rendering,
)
from medusa_core.models.text.template import (
    ChatTemplate,
    open_template,
)
from medusa_core.models.text.template_process import TemplateProcess, TimeBudget
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.models.text.written_template import template_in
from medusa_core.system.resources import (
    demo_model_dir,
    resources_dir,
)
from medusa_core.system.sandbox.process import Sandbox
from medusa_core.system.sandbox.worker import WORKER_BYTES
from tests.support.models.tiny import make_tokenizer, write_text_files

TURNS = tuple(
    {"role": role, "content": content}
    for role, content in (("user", "u"), ("assistant", "a"), ("user", "v"))
)
SHORT_S = 0.4  # instead of two seconds, for which nobody needs to wait here
ALIVE = "{% if messages | length == 1 %}alive{% else %}"  # a conversation of one turn is harmless

HOSTILE = {
    # Time.
    "loops within loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
    "{% endfor %}",
    "a power of powers": "{{ (messages | length) ** (9 ** 9) }}",
    "a long power's digits": "{% set n = (messages | length) ** 9999999 %}{{ n }}",
    "powers in a loop": "{% set n = namespace(x=7) %}{% for i in range(99999) %}"
    "{% set n.x = n.x * n.x %}{% endfor %}",
    "a sum in loops": "{% set n = namespace(x=0) %}{% for a in range(99999) %}"
    "{% for b in range(9999) %}{% set n.x = n.x + 1 %}{% endfor %}{% endfor %}{{ n.x }}",
    "sorting in loops": "{% for a in range(99999) %}{{ range(99999) | list | sort | first }}"
    "{% endfor %}",
    # Of no constants, which would be computed when it is compiled.
    "a filter that searches for addresses": "{% set n = messages | length %}"
    "{{ ('http://' ~ 'a.' * (n * 70000)) | urlize }}"
    "{% for a in range(99999) %}{{ ('(' * (n * 3333)) | urlize }}{% endfor %}",
    "macros that call each other twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}"
    "{% endif %}{% endmacro %}{{ f(60) }}",
    # Memory.
    "a wide format": "{{ '%1000000000d' % 1 }}",
    "a wide format by its method": "{{ '{:1000000000}'.format(1) }}",
    "a wide format by its filter": "{{ '%1000000000d' | format(1) }}",
    "a long list": "{{ ([1] * 10 ** 9) | length }}",
    "a list for ever": "{{ ([1] * 10 ** 19) | length }}",
    "a long text": "{{ 'a' * 10 ** 10 }}",
    "a centred text": "{{ 'a' | center(10 ** 10) }}",
    "a justified text": "{{ 'a'.ljust(10 ** 10) }}",
    "zeros": "{{ '1'.zfill(10 ** 10) }}",
    "an indented text": "{{ 'a\nb' | indent(10 ** 10) }}",
    "indented JSON": "{{ messages | tojson(indent=10 ** 10) }}",
    "JSON far apart": "{% set far = 'a' * (messages | length) * 10 ** 9 %}"
    "{{ messages | tojson(separators=(far, ':')) }}",
    "an answer marked for training": "{% generation %}{{ 'a' * 10 ** 10 }}{% endgeneration %}",
    "a batch filled up": "{{ messages | batch(10 ** 10, 'x') | list }}",
    "slices": "{{ messages | slice(10 ** 10) | list }}",
    "tabs": "{{ '\t'.expandtabs(10 ** 10) }}",
    "a replacement": "{{ ('a' * 9999).replace('', 'b' * 999999) }}",
    "a join": "{{ range(99999) | join('b' * 999999) }}",
    "doubling in a namespace": "{% set n = namespace(x='a') %}{% for i in range(99) %}"
    "{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x | length }}",
    "lists that double": "{% set n = namespace(x=[1]) %}{% for i in range(99) %}"
    "{% set n.x = n.x + n.x %}{% endfor %}",
    "macros that double": "{% macro f(n) %}{% if n %}{% set x = f(n - 1) %}{{ x ~ x }}{% else %}aa"
    "{% endif %}{% endmacro %}{{ f(60) | length }}",
    # Output.
    "a text without end": "{% for a in range(99999) %}{% for b in range(99999) %}"
    + "x" * 1000
    + "{% endfor %}{% endfor %}",
    "one long piece": f"{{{{ 'x' * {MAX_PROMPT_CHARS + 1} }}}}",
    # Depth.
    "a macro that calls itself": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "a loop that calls itself": "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
    "a list within itself": "{% set n = namespace(x=[]) %}{% for i in range(99999) %}"
    "{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
    "a caller that calls": "{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
    # What isn't there.
    "lorem ipsum": "{{ lipsum(n=10 ** 9) }}",
    "an include": "{% include 'x' %}",
    "an import": "{% import 'x' as y %}",
    "a parent": "{% extends 'x' %}",
}
UNREADABLE = {
    "brackets within brackets": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "lists within lists": "{{ " + "[" * 5000 + "]" * 5000 + " }}",
    "answers within answers": "{% generation %}" * 2000 + "{% endgeneration %}" * 2000,
    "loops within loops": "{% for a in [1] %}" * 500 + "{% endfor %}" * 500,
    "conditions within conditions": "{% if 1 %}" * 2000 + "{% endif %}" * 2000,
    "a sum of thousands": "{{ 1" + " + 1" * 20_000 + " }}",
    "not not not": "{{ " + "not " * 20_000 + "1 }}",
    "a constant power": "{{ 7 ** (9 ** 9) }}",
    "a constant text": "{{ 'a' * 10 ** 10 }}",
    "many small tags": "{{ a }}" * (MAX_SOURCE_CHARS // 7),
    "too long": "x" * (MAX_SOURCE_CHARS + 1),
    "half a character": "\ud800{{ '\ud800' }}{% if %}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_is_a_template_error_and_the_next_turn_is_rendered(name: str) -> None:
    rendering = TemplateProcess(ALIVE + HOSTILE[name] + "{% endif %}", {}, SHORT_S)
    with pytest.raises(TemplateError) as caught:
        rendering.render(TURNS, True)
    assert caught.value.hint
    assert caught.value.message.endswith(".")
    assert rendering.render(TURNS[:1], True) == "alive"


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_template_that_can_not_be_read_is_a_template_error(name: str) -> None:
    with pytest.raises(TemplateError) as caught:
        TemplateProcess(UNREADABLE[name], {}, SHORT_S).render(TURNS, True)
    assert caught.value.hint


def test_a_200_mb_template_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text_files(tmp_path)
    with (tmp_path / "chat_template.jinja").open("wb") as file:
        file.truncate(200 << 20)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("it was read"))
    (tmp_path / "tokenizer_config.json").unlink(missing_ok=True)
    with pytest.raises(TemplateError, match="characters"):
        open_template(template_in(tmp_path), Tokenizer(make_tokenizer()).knows)


@pytest.mark.parametrize("source", ["{{ messages[0].content }}", "\ud800", "{{ bos_token }}"])
def test_a_lone_surrogate_is_a_template_error(source: str) -> None:
    template = ChatTemplate(source, {"bos_token": "\udfff"})
    with pytest.raises(TemplateError, match=r"half a character|surrogates"):
        template.render([ChatMessage(Role.USER, "\ud83d")])


def test_the_sandbox_renders_the_same_as_this_process() -> None:
    source = (demo_model_dir() / "chat_template.jinja").read_text(encoding="utf-8") + "{# mine #}"
    foreign, ours = TemplateProcess(source, {}), Rendering(source, {})
    texts = (("system", "é\u2028\0"), ("user", '𝄞 \\ud800 "{{ x }}\n'), ("user", "x" * 100_000))
    turns = [{"role": role, "content": content} for role, content in texts]
    for opens_answer in (True, False):
        assert foreign.render(turns, opens_answer) == ours.render(turns, opens_answer)


def test_shipped_templates_start_no_process() -> None:
    before = set(psutil.Process().children())
    files = [*(resources_dir() / "templates").iterdir(), demo_model_dir() / "chat_template.jinja"]
    for file in files:
        template = ChatTemplate(file.read_text(encoding="utf-8"), {"bos_token": "<s>"})
        assert "hello" in template.render([ChatMessage(Role.USER, "hello")])
    assert set(psutil.Process().children()) == before


def test_one_process_renders_all_turns_and_ends_with_its_template() -> None:
    before = set(psutil.Process().children())
    rendering = TemplateProcess("{{ messages | length }}", {})
    (child,) = set(psutil.Process().children()) - before
    for count in range(1, 20):
        assert rendering.render([TURNS[0]] * count, True) == str(count)
    assert set(psutil.Process().children()) - before == {child}
    del rendering
    gc.collect(1)
    assert not child.is_running()


def test_a_process_that_was_killed_is_replaced() -> None:
    rendering = TemplateProcess("{{ messages | length }}", {})
    assert rendering.worker.sandbox is not None
    psutil.Process(rendering.worker.sandbox.pid).kill()
    with pytest.raises(TemplateError, match="broke"):
        rendering.render(TURNS, True)
    assert rendering.render(TURNS, True) == "3"


def test_the_process_may_take_half_a_gigabyte_and_no_more() -> None:
    rendering = TemplateProcess("{{ ('a' * messages[0].content | int) | length }}", {})
    few, many = (str(share * WORKER_BYTES // 4) for share in (1, 5))
    assert rendering.render([{"role": "user", "content": few}], True) == few
    with pytest.raises(TemplateError, match="memory"):
        rendering.render([{"role": "user", "content": many}], True)


def test_the_process_gets_no_secrets_and_no_modules_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jinja2.py").write_text("raise SystemExit", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    rendering = TemplateProcess("fine", {})
    assert rendering.render(TURNS, True) == "fine"
    assert rendering.worker.sandbox is not None
    environment = psutil.Process(rendering.worker.sandbox.pid).environ()
    assert "HF_TOKEN" not in environment
    assert os.environ["HF_TOKEN"] == "secret"


class Clock:
    """Fake clock that the test advances."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_the_time_limit_covers_all_waits_together() -> None:
    clock = Clock()
    patience = TimeBudget(2.0, clock)
    assert patience.begin() == 2.0
    clock.now_s += 1.5
    patience.end()
    assert patience.begin() == 0.5
    clock.now_s += 9.0
    patience.end()
    assert patience.begin() == 0.0
    patience.end()
    clock.now_s += 0.75
    assert patience.begin() == 0.75
    patience.end()
    clock.now_s += 60.0
    assert patience.begin() == 2.0


def test_many_slow_turns_take_no_longer_than_the_time_limit() -> None:
    # Each alone is within the bound; together they aren't.
    slow = "{% for a in range(60000) %}{% for b in range(10) %}{% endfor %}{% endfor %}"
    rendering = TemplateProcess(slow, {}, SHORT_S)

    def render_many() -> None:
        for _ in range(1000):
            rendering.render(TURNS, True)

    with pytest.raises(TemplateError, match="come to an end"):
        render_many()


@pytest.mark.slow
def test_a_busy_process_ends_when_its_parent_is_gone() -> None:
    child = Sandbox("medusa_core.models.text.template_worker")
    try:
        assert child.receive(60) == {"ready": True}
        child.send({"source": HOSTILE["a power of powers"], "special_tokens": {}})
        assert child.receive(60) == {}
        child.send({"messages": TURNS, "opens_answer": True})
        assert child._process.stdin is not None
        child._process.stdin.close()  # as the end of this program would
        assert child.wait(60) == 1
    finally:
        child.close()
