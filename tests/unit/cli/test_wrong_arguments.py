"""A mistake in an argument is told before a model is loaded: here there is none to load."""

from pathlib import Path

import pytest

from medusa_core.__main__ import main

MODEL = ("--model", "/no/such/model")
OF_SETTINGS = [
    ("--rule", "gready", "gready"),
    ("--growth", "bush", "bush"),
    ("--tree-rows", "9999", "9999 rows"),
    ("--temperature", "-1", "temperature of -1"),
    ("--top-p", "7", "top-p is 7"),
    ("--logit-bias", "x", "--logit-bias x"),
]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Commands that load a model, and what else they need."""
    monkeypatch.chdir(tmp_path)
    Path("bad.lark").write_text("(", encoding="utf-8")
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"id": "a", "prompt": "Hi.", "category": "x"}\n', encoding="utf-8")
    return {
        "generate": ["generate", *MODEL, "--prompt", "Hi."],
        "batch": ["batch", *MODEL, "--prompts", str(prompts), "--out", str(tmp_path / "out")],
        "bench": ["bench", *MODEL, "--prompts", str(prompts)],
        "eval": ["eval", "heads", *MODEL, "--prompts", str(prompts)],
        "train": ["train", "heads", *MODEL, "--out", str(tmp_path / "heads")],
        "run": ["run", *MODEL, "--data-dir", str(tmp_path), "Hi."],
    }


WRONG = (
    *((command, *one) for command in ("generate", "batch", "bench") for one in OF_SETTINGS),
    *((command, "--drafter", "sufix", "'sufix'") for command in ("generate", "batch")),
    ("generate", "--trace", "/no/such/trace", "/no/such/trace can't be written"),
    ("generate", "--grammar", "/no/such/grammar", "/no/such/grammar can't be read"),
    ("generate", "--grammar", "bad.lark", "expecting rule"),
    ("generate", "--json-schema", "bad.lark", "JSON"),
    ("bench", "--modes", "none,sufix", "'sufix'"),
    ("bench", "--drafters", "sufix", "'sufix'"),
    ("bench", "--peers", "vlm", "'vlm'"),
    ("eval", "--json", "/no/such/figures", "/no/such/figures can't be written"),
    ("train", "--json", "/no/such/plan", "/no/such/plan can't be written"),
    ("run", "--set drafter", "sufix", "'sufix'"),
    ("run", "--set rule", "gready", "'gready'"),
    ("run", "--set warp", "9", "no setting warp"),
    ("run", "--set temperature", "warm", "temperature can't be 'warm'"),
)


def test_wrong_arguments_are_reported_before_a_model_is_loaded(
    commands: dict[str, list[str]],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    failures = []
    for command, name, value, told in WRONG:
        status = main([*commands[command], *name.split(), value])
        said = capsys.readouterr().err
        lines = said.splitlines()
        if status != 1 or told not in said or lines[0][:7] != "error: " or len(lines) != 2:
            failures.append(f"{command} {name} {value}: {status}, {said}")
    assert failures == []


def test_a_remote_model_may_have_other_drafters(
    commands: dict[str, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    there = ["--endpoint", "http://127.0.0.1:9", "--drafter", "theirs"]
    assert main([*commands["generate"], *there]) == 1
    assert "theirs" not in capsys.readouterr().err
