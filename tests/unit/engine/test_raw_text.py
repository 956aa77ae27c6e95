"""A model without a chat template, and one whose template isn't used: texts are gone on with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.engine.transcript import transcribe
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from medusa_core.models.text.raw_text import RawText
from tests.support.engine.laws import decode
from tests.support.models.targets import Folders
from tests.support.models.tiny import write_tiny

USER, ANSWER = Role.USER, Role.ASSISTANT
GREEDY = GenerateSettings(drafter="none", max_new_tokens=12)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model without a chat template."""
    folder = write_tiny(tmp_path_factory.mktemp("base"))
    (folder / "chat_template.jinja").unlink()
    return folder


@pytest.fixture(scope="module")
def target(base: Path) -> Target:
    return load_target(base, options=LoadOptions("float64"))


def test_a_base_models_prompt_has_no_template(target: Target) -> None:
    assert target.template.continues_text
    requested = transcribe([ChatMessage(USER, "Once upon a ")], None, target)
    assert requested.token_ids == target.tokenizer.encode_prompt("Once upon a ")


def test_a_base_model_gets_turns_concatenated_and_answers_unchanged(target: Target) -> None:
    first = ChatMessage(USER, "Once ")
    run = decode(target, GREEDY, (first,))
    answer = ChatMessage(ANSWER, run.done.text, run.done.token_ids)
    then = [first, answer, ChatMessage(USER, " And then")]
    encode = target.tokenizer.encode
    written = [one for one in answer.token_ids if one not in target.eos_token_ids]
    wanted = [*encode("Once "), *written, *encode(" And then")]
    assert transcribe(then, None, target).token_ids == wanted


def test_continuing_an_answer_equals_one_uninterrupted_answer(target: Target) -> None:
    first = ChatMessage(USER, "Once upon")
    whole = decode(target, GREEDY, (first,)).token_ids
    started = decode(target, replace(GREEDY, max_new_tokens=5), (first,))
    answer = ChatMessage(ANSWER, started.done.text, started.done.token_ids)
    assert decode(target, GREEDY, (first, answer)).token_ids[: len(whole)] == whole


def test_a_continued_sentencepiece_text_gets_no_extra_space(target: Target) -> None:
    calls: list[str] = []

    class Watched(type(target.tokenizer)):  # type: ignore[misc]
        def encode_within(self, text: str) -> list[int]:
            calls.append(text)
            return super().encode_within(text)  # type: ignore[no-any-return]

    tokenizer = object.__new__(Watched)
    tokenizer.__dict__.update(target.tokenizer.__dict__)
    ids = tuple(target.tokenizer.encode("was"))
    turns = [ChatMessage(USER, "it "), ChatMessage(ANSWER, "was", ids), ChatMessage(USER, " so")]
    transcribe(turns, None, replace(target, tokenizer=tokenizer))
    assert calls == [" so"]


def test_raw_mode_passes_any_models_prompt_unchanged(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    model, _ = folders["grouped"]
    requested = ["generate", "--model", str(model), "--prompt", "The fox", "--drafter", "none"]
    requested += ["--json", "--max-new-tokens", "12"]
    assert main([*requested, "--raw"]) == 0
    raw = json.loads(capsys.readouterr().out)["token_ids"]
    plain = load_target(model)
    run = decode(replace(plain, template=RawText()), GREEDY, (ChatMessage(USER, "The fox"),))
    assert raw == list(run.done.token_ids)
    assert main(requested) == 0
    assert json.loads(capsys.readouterr().out)["token_ids"] != raw
