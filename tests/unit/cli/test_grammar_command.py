"""Grammars on the command line, and what they bring."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.bench.grammar_gain import grammar_gain_text, measure_grammar_gain
from medusa_core.chats.trace_file import read_trace
from medusa_core.messages import GenerateSettings
from medusa_core.system.prompts import BenchPrompt
from medusa_core.system.resources import demo_heads_dir, demo_model_dir
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.grammars import PERSON, PERSON_GRAMMAR, check_person

MODEL = ("--model", str(demo_model_dir()), "--heads", str(demo_heads_dir()))
ASK = ("generate", "-p", "Who lives here?", *MODEL, "--tree-rows", "16")


def test_an_answer_matches_a_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema, trace = tmp_path / "schema.json", tmp_path / "trace.json"
    schema.write_text(json.dumps(PERSON))
    assert main([*ASK, "--json-schema", str(schema), "--json", "--trace", str(trace)]) == 0
    text = json.loads(capsys.readouterr().out)["text"]
    check_person(text)
    assert read_trace(trace).done.text == text


def test_an_answer_matches_a_grammar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grammar = tmp_path / "yes.lark"
    grammar.write_text('start: "yes" | "no"')
    assert main([*ASK, "--grammar", str(grammar), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] in ("yes", "no")


@pytest.mark.parametrize(("flag", "text"), [("--grammar", "start: ("), ("--json-schema", "{")])
def test_what_is_no_grammar_is_refused_with_a_hint(
    flag: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    assert main([*ASK, flag, str(file)]) != 0
    assert "error: The" in capsys.readouterr().err
    assert main([*ASK, flag, str(tmp_path / "missing")]) != 0
    assert "can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("drafter", ["composite", "medusa"])
def test_masked_guesses_bring_more_and_change_nothing(drafter: str, load: LoadTarget) -> None:
    prompts = [
        BenchPrompt("1", "json", ("Who lives here?",)),
        BenchPrompt("2", "json", ("Tell me of a cat.",)),
    ]
    settings = GenerateSettings(drafter=drafter, rule="greedy", tree_rows=16, max_new_tokens=80)
    gain = measure_grammar_gain(
        load("pebble", "float64"), prompts, settings, PERSON_GRAMMAR, lambda *_: None
    )
    assert gain.num_differing == 0
    assert gain.masked_tau > gain.unmasked_tau
    assert f"{gain.masked_tau:.2f}" in grammar_gain_text(gain)
