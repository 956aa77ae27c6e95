"""Grammars on the command line."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.chats.trace_file import read_trace
from medusa_core.system.resources import demo_heads_dir, demo_model_dir
from tests.support.engine.grammars import PERSON, check_person

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
def test_an_invalid_grammar_is_refused_with_a_hint(
    flag: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    assert main([*ASK, flag, str(file)]) != 0
    assert "error: The" in capsys.readouterr().err
    assert main([*ASK, flag, str(tmp_path / "missing")]) != 0
    assert "can't be read" in capsys.readouterr().err
