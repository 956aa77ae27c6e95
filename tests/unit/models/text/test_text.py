"""Tokens to text and conversations to tokens."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from medusa_core.errors import TemplateError, TokenizerError
from medusa_core.messages import ChatMessage, Role
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.detokenizer import Detokenizer
from medusa_core.models.text.template import (
    ChatTemplate,
    open_template,
)
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.models.text.written_template import template_in
from tests.support.models.tiny import SPECIALS, TEMPLATE, make_tokenizer, write_text_files

RUST = make_tokenizer()
TOKENIZER = Tokenizer(RUST)
TURNS = (ChatMessage(Role.SYSTEM, "s"), ChatMessage(Role.USER, "u"))


def stream(token_ids: list[int]) -> list[bytes]:
    """Pieces of all tokens, and what the end leaves."""
    detokenizer = Detokenizer(TOKENIZER)
    return [*(detokenizer.push(token) for token in token_ids), detokenizer.flush()]


# Text without surrogates, which no UTF-8 holds.
@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_decoding_restores_the_encoded_text(text: str) -> None:
    if any(special in text for special in SPECIALS):
        return
    token_ids = TOKENIZER.encode(text)
    pieces = stream(token_ids)
    assert b"".join(pieces).decode() == text == TOKENIZER.decode(token_ids)
    for piece in pieces:
        piece.decode()  # a piece holds whole characters


@given(token_ids=st.lists(st.integers(0, 330), max_size=40))
def test_pieces_of_any_tokens_are_utf_8_and_add_up_to_the_whole(token_ids: list[int]) -> None:
    pieces = stream(token_ids)
    text = b"".join(pieces).decode()
    raw = b"".join(map(TOKENIZER.bytes_of, token_ids))
    assert text == raw.decode("utf-8", "replace") == TOKENIZER.decode(token_ids)


def test_a_character_belongs_to_the_token_that_completes_it() -> None:
    ids = [next(t for t in range(320) if TOKENIZER.bytes_of(t) == bytes([b])) for b in "é".encode()]
    assert stream(ids) == [b"", "é".encode(), b""]


def test_the_text_of_tokens_is_cached() -> None:
    tokenizer = Tokenizer(RUST)
    answers = [tuple(tokenizer.encode(f"answer {number}")) for number in range(700)]
    for _ in range(2):
        for number, ids in enumerate(answers):
            assert tokenizer.writes(ids, f"answer {number}")
            assert not tokenizer.writes(ids, f"answer {number}.")
    assert len(tokenizer._decoded) <= 256


def test_after_eos_decoding_restarts() -> None:
    started, letter = (
        next(t for t in range(320) if TOKENIZER.bytes_of(t) == one) for one in (b"\xc3", b"a")
    )
    detokenizer = Detokenizer(TOKENIZER)
    assert detokenizer.push(started) == b""
    assert detokenizer.is_open
    assert detokenizer.flush() == "\ufffd".encode()
    assert not detokenizer.is_open
    assert detokenizer.push(letter) == b"a"


def test_bytes_of_tokens_equal_the_librarys() -> None:
    text = "The cats' naïve café – 12 € \t\n 𝄞"
    ids = TOKENIZER.encode(text)
    assert ids == RUST.encode(text, add_special_tokens=False).ids
    assert b"".join(map(TOKENIZER.bytes_of, ids)).decode() == RUST.decode(ids)


def test_special_tokens_are_single_tokens_without_text() -> None:
    ids = TOKENIZER.encode("<|user|>a<|end|>")
    assert ids[0] == SPECIALS.index("<|user|>")
    assert ids[-1] == SPECIALS.index("<|end|>")
    assert TOKENIZER.decode(ids) == "a"
    assert TOKENIZER.bytes_of(10_000) == b""


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"tokenizer\.json") as caught:
        _ = ModelFiles.open(tmp_path).tokenizer
    assert caught.value.hint


def test_a_tokenizer_that_is_not_byte_level_is_refused(tmp_path: Path) -> None:
    raw = json.loads(RUST.to_str()) | {"decoder": {"type": "Metaspace"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(raw))
    with pytest.raises(TokenizerError, match="Metaspace"):
        _ = ModelFiles.open(tmp_path).tokenizer


# Chat templates -----------------------------------------------------------------------------------


def template(source: str) -> ChatTemplate:
    return ChatTemplate(source, {"bos_token": "<s>"})


def test_a_template_gets_the_turns_and_the_special_tokens() -> None:
    source = "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m['content'] }}]{% endfor %}"
    source += "{% if add_generation_prompt %}>{% endif %}"
    assert template(source).render(TURNS) == "<s>[system:s][user:u]>"
    assert template(source).render(TURNS, opens_answer=False) == "<s>[system:s][user:u]"


def test_templates_may_use_loop_controls_tojson_and_strftime_now() -> None:
    source = "{% for m in messages %}{% if loop.last %}{% break %}{% endif %}{{ m | tojson }}"
    source += "{% endfor %}{{ strftime_now('%%') }}"
    assert template(source).render(TURNS) == '{"role": "system", "content": "s"}%'


@pytest.mark.parametrize(
    "source",
    [
        "{% generation %}{% set x = 1 %}{{ messages[0].role }}{% endgeneration %}{{ x }}",
        "{{ messages | tojson(ensure_ascii=True, separators=(',', ':'), sort_keys=True) }}",
        "{{ messages | tojson(indent=2) }}{{ ['ä'] | tojson }}",
        "{% if tools is not none or documents is not none %}x{% endif %}{{ tools }}",
        "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}",
    ],
)
@pytest.mark.parametrize("tools", [(), ('{"name": "f"}',)])
def test_templates_get_the_variables_of_transformers(source: str, tools: tuple[str, ...]) -> None:
    reference = PreTrainedTokenizerFast(tokenizer_object=make_tokenizer(), bos_token="<s>")
    wanted = reference.apply_chat_template(
        [{"role": turn.role.value, "content": turn.text} for turn in TURNS],
        tools=[{"type": "function", "function": json.loads(tool)} for tool in tools] or None,
        chat_template=source,
        tokenize=False,
    )
    assert template(source).render(TURNS, opens_answer=False, tools=tools) == wanted


def test_blocks_leave_no_blank_lines() -> None:
    source = (
        "{% for m in messages %}\n  {% if true %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}"
    )
    assert template(source).render(TURNS) == "s\nu\n"


def test_a_template_may_modify_its_own_list() -> None:
    source = "{% set l = [] %}{% set _ = l.append('a') %}{% set _ = l.append('b') %}{{ l.pop(0) }}"
    assert template(source + "{{ l }}").render(TURNS) == "a['b']"


def test_raise_exception_becomes_an_error_with_its_message() -> None:
    with pytest.raises(TemplateError, match="no system prompts here") as caught:
        template("{{ raise_exception('no system prompts here') }}").render(TURNS)
    assert caught.value.hint


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages.__class__.__base__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{% set m = messages[0] %}{{ m.update({'role': 'user'}) }}",
    ],
)
def test_a_template_can_not_leave_the_sandbox(source: str) -> None:
    with pytest.raises(TemplateError) as caught:
        template(source).render(TURNS)
    assert caught.value.hint


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(TemplateError, match="line 3") as caught:
        template("{{ messages }}\nfine\n{% if %}\n")
    assert caught.value.hint


@pytest.mark.parametrize(
    "source", ["{{ messages[99].content.x }}", "{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ x.y.z }}"]
)
def test_a_template_that_fails_is_a_template_error(source: str) -> None:
    with pytest.raises(TemplateError):
        template(source).render(TURNS)


def test_the_template_file_takes_precedence_over_the_config(tmp_path: Path) -> None:
    write_text_files(tmp_path)
    config = json.dumps({"chat_template": "old", "bos_token": {"content": "<|bos|>"}})
    (tmp_path / "tokenizer_config.json").write_text(config)
    assert (
        open_template(template_in(tmp_path), TOKENIZER.knows)
        .render(TURNS)
        .startswith("<|bos|><|system|>s")
    )
    (tmp_path / "chat_template.jinja").unlink()
    assert open_template(template_in(tmp_path), TOKENIZER.knows).render(TURNS) == "old"


def test_a_model_without_a_template_gets_plain_text(tmp_path: Path) -> None:
    template = open_template(template_in(tmp_path), TOKENIZER.knows)
    assert template.continues_text
    assert template.render(TURNS) == "".join(turn.text for turn in TURNS)


def test_the_tiny_template_delimits_every_turn() -> None:
    turns = (*TURNS, ChatMessage(Role.ASSISTANT, "a"), ChatMessage(Role.USER, "v"))
    rendered = ChatTemplate(TEMPLATE, {}).render(turns)
    assert rendered == "<|bos|><|system|>s<|user|>u<|assistant|>a<|end|><|user|>v<|assistant|>"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("one\ntwo {{ messages[9].content.x }}\n", 2),
        ("{# a #}\n\n{{ raise_exception('no system turn') }}", 3),
        ("a\nb\nc\n{{ 1 // 0 }}", 4),
        ("{% for m in messages %}\n{{ m.content + 3 }}{% endfor %}", 2),
    ],
)
def test_a_template_that_fails_names_its_line(source: str, line: int) -> None:
    with pytest.raises(TemplateError, match=f"in line {line}"):
        template(source).render(TURNS)


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{% for i in range(10**9) %}x{% endfor %}",
    ],
)
def test_a_template_stays_in_its_sandbox(source: str) -> None:
    with pytest.raises(TemplateError):
        template(source).render(TURNS)


def test_of_several_templates_the_default_one_is_used(tmp_path: Path) -> None:
    templates = [
        {"name": "tool_use", "template": "tools"},
        {"name": "default", "template": "chat"},
        {"name": "odd", "template": 3},
    ]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    assert open_template(template_in(tmp_path), TOKENIZER.knows).render(TURNS) == "chat"


CHAT = (
    ChatMessage(Role.USER, "Hi"),
    ChatMessage(Role.ASSISTANT, "Hello."),
    ChatMessage(Role.USER, "Bye"),
)
ABOUT = "A chat between a curious user and an artificial intelligence assistant."
KNOWN = {
    "models--lmsys--vicuna-7b-v1.5/snapshots/12ab": "USER: Hi ASSISTANT: Hello.</s> USER: Bye "
    "ASSISTANT:",
    "Llama-2-7b-chat-hf": "<s>[INST] Hi [/INST] Hello. </s><s>[INST] Bye [/INST]",
    "Mistral-7B-Instruct-v0.1": "<s>[INST] Hi [/INST] Hello.</s>[INST] Bye [/INST]",
    "TinyLlama-1.1B-Chat-v1.0": "<|user|>\nHi</s>\n<|assistant|>\nHello.</s>\n<|user|>\nBye</s>\n"
    "<|assistant|>\n",
    "Yi-6B-Chat": "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n"
    "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n",
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_known_model_without_a_template_gets_its_training_template(
    name: str, tmp_path: Path
) -> None:
    folder = tmp_path / name
    folder.mkdir(parents=True)
    rendered = open_template(template_in(folder), TOKENIZER.knows).render(CHAT)
    assert rendered.endswith(KNOWN[name])
    assert rendered == KNOWN[name] or rendered.startswith(ABOUT)


def test_special_tokens_and_the_configuration_identify_a_model_too(tmp_path: Path) -> None:
    rust = make_tokenizer()
    rust.add_special_tokens(["<|start_header_id|>"])
    rendered = open_template(template_in(tmp_path), Tokenizer(rust).knows).render(CHAT)
    assert rendered.startswith(
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot"
    )
    assert rendered.endswith("<|start_header_id|>assistant<|end_header_id|>\n\n")
    (tmp_path / "config.json").write_text('{"_name_or_path": "lmsys/vicuna-13b-v1.3"}')
    assert open_template(template_in(tmp_path), TOKENIZER.knows).render(CHAT).startswith(ABOUT)


@pytest.mark.parametrize("name", ["qwen" * 1_000_000, [[["vicuna"]]], 7, None], ids=lambda _: "")
def test_an_unknown_name_identifies_no_model(name: object, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"_name_or_path": name}))
    assert open_template(template_in(tmp_path), TOKENIZER.knows).continues_text
    assert ModelFiles.open(tmp_path).is_base


@pytest.mark.parametrize("name", ["vicuna", "Llama-2-7b-chat", "Mistral-7B-Instruct", "Yi-6B-Chat"])
def test_known_templates_render_a_system_turn(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    system = ChatMessage(Role.SYSTEM, "Be kind.")
    rendered = open_template(template_in(tmp_path / name), TOKENIZER.knows).render((system, *CHAT))
    assert rendered.index("Be kind.") < rendered.index("Hi")
    assert ABOUT not in rendered
