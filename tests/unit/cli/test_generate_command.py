"""`medusa generate`."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.cli.generate import _Printer
from medusa_core.messages import (
    TARGET,
    GenerateSettings,
    LoadOptions,
    StepDone,
    StepTimes,
    TokenSource,
)
from medusa_core.system.user_folders import places

KEYS = {
    "text",
    "token_ids",
    "num_tokens",
    "num_steps",
    "accept_lengths",
    "mean_acceptance_length",
    "time_to_first_token_s",
    "prefill_s",
    "decode_s",
    "tokens_per_s",
    "stop_reason",
    "drafter",
    "rule",
    "model",
    "seed",
    "num_drafted",
    "num_draft_accepted",
}

Folders = dict[str, tuple[Path, Path]]


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """Folder of a model without heads."""
    from tests.support.models.tiny import write_tiny  # imports torch

    return str(write_tiny(tmp_path))


class Terminal(StringIO):
    """Stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def step(pieces: tuple[bytes, ...], heads: tuple[int, ...], num_visible: int) -> StepDone:
    sources = tuple(TokenSource("medusa", head) if head else TARGET for head in heads)
    ids = tuple(range(len(pieces)))
    return StepDone(
        "s", "r", 1, ids, pieces, sources, num_visible, 1, (TARGET,), StepTimes(0, 0, 0, 0), 0, 1
    )


def run_json(folders: Folders, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    model, heads = folders["grouped"]
    arguments = ["--model", str(model), "--heads", str(heads), "--dtype", "float64", "--json"]
    code = main(["generate", "--prompt", "hello", "--max-new-tokens", "20", *arguments, *more])
    assert code == 0
    result: dict[str, object] = json.loads(capsys.readouterr().out)
    return result


def test_json_output_has_every_documented_key(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run_json(folders, capsys)
    assert set(result) == KEYS
    assert result["num_tokens"] == len(result["token_ids"])  # type: ignore[arg-type]
    # Prefill gives one token; the steps give the others.
    assert sum(result["accept_lengths"]) == result["num_tokens"] - 1  # type: ignore[arg-type,operator]


def test_the_drafter_changes_the_steps_but_not_the_text(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    for rule in ("greedy", "sample"):
        plain = run_json(folders, capsys, "--drafter", "none", "--rule", rule)
        drafted = run_json(folders, capsys, "--drafter", "medusa", "--rule", rule)
        assert drafted["token_ids"] == plain["token_ids"]
        assert drafted["drafter"] == "medusa"


def test_temperature_0_gives_the_greedy_text(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = run_json(folders, capsys)
    for rule, temperature in (("sample", "5e-324"), ("typical", "0")):
        options = ("--rule", rule, "--temperature", temperature, "--seed", "5")
        cold = run_json(folders, capsys, *options)
        assert cold["token_ids"] == greedy["token_ids"], options
        assert cold["rule"] == greedy["rule"] == "greedy", options


def test_abbreviated_options_are_refused(
    folders: Folders, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["generate", "--prompt", "hello", "--tempera", "0.7"])
    assert "--tempera" in capsys.readouterr().err
    assert run_json(folders, capsys, "--temp", "0.7")["rule"] == "sample"


@pytest.mark.skipif(sys.platform != "linux", reason="folders are named otherwise")
def test_earlier_answers_draft_unless_excluded(
    folders: Folders,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from medusa_core.loading.load import load_target  # imports torch
    from tests.support.engine.laws import decode, user_says

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    first = run_json(folders, capsys, "--drafter", "suffix")
    assert not places().learned.exists(), "a command line has no conversation to delete"
    target = load_target(folders["grouped"][0], options=LoadOptions(datastore_dir=places().learned))
    assert target.learned is not None
    run = decode(target, GenerateSettings(drafter="none", max_new_tokens=20), user_says("hello"))
    target.learned.learn("a conversation", run.prompt_ids, run.token_ids)
    target.learned.close()
    second = run_json(folders, capsys, "--drafter", "suffix")
    assert second["token_ids"] == first["token_ids"]
    assert second["num_steps"] < first["num_steps"]  # type: ignore[operator]
    third = run_json(folders, capsys, "--drafter", "suffix", "--no-learned")
    assert third["num_steps"] == first["num_steps"]


def test_by_default_all_sources_of_the_model_draft(
    folders: Folders, bare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_json(folders, capsys)["drafter"] == "composite"
    model, _ = folders["grouped"]
    for folder, drafter in ((str(model), "composite"), (bare, "suffix")):
        assert main(["generate", "--prompt", "hi", "--json", "--model", folder]) == 0
        assert json.loads(capsys.readouterr().out)["drafter"] == drafter


def test_a_drafter_without_its_table_says_what_to_do(
    bare: str, capsys: pytest.CaptureFixture[str]
) -> None:
    requested = ["generate", "--prompt", "hi", "--model", bare]
    assert main([*requested, "--drafter", "phrases"]) == 1
    assert "train phrases" in capsys.readouterr().err
    assert main([*requested, "--drafter", "medusa"]) == 1
    assert "Load Medusa heads" in capsys.readouterr().err


@pytest.mark.expects_errors
def test_errors_are_two_sentences_and_no_traceback(
    folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--prompt", "hi", "--model", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert "config.json is missing" in err
    assert "Traceback" not in err
    model, _ = folders["grouped"]
    assert main(["generate", "--prompt", " ", "--model", str(model)]) == 1
    assert "Write a message first" in capsys.readouterr().err


def test_a_terminal_shows_accepted_tokens_by_head_and_withholds_incomplete_characters() -> None:
    terminal = Terminal()
    printer = _Printer(terminal)
    printer.print_step(step((b"The", b" fox"), (0, 1), num_visible=5))
    assert terminal.getvalue() == "The\x1b[4;36m f\x1b[0m"
    printer.print_step(step((b" ran",), (2,), num_visible=11))
    assert terminal.getvalue().endswith("\x1b[4;36mox\x1b[0m\x1b[4;33m ran\x1b[0m")


def test_control_sequences_of_an_answer_are_not_executed() -> None:
    terminal = Terminal()
    _Printer(terminal).print_step(step((b"\x1b]0;title\x07", b"\x1b[2J"), (0, 1), num_visible=14))
    assert "\x1b]" not in terminal.getvalue()
    assert "\x1b[2J" not in terminal.getvalue()
    assert "\x07" not in terminal.getvalue()
    assert "title" in terminal.getvalue()


def test_a_pipe_gets_plain_text() -> None:
    pipe = StringIO()
    _Printer(pipe).print_step(step((b"The", b" fox"), (0, 1), num_visible=7))
    assert pipe.getvalue() == "The fox"


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        ("generate --promt hi", "no option --promt", "Did you mean --prompt?"),
        ("generate -p hi --temprature=1", "no option --temprature", "Did you mean --temperature?"),
        ("train heads --minuts 4 --out x", "no option --minuts", "Did you mean --minutes?"),
        ("generate", "required: -p/--prompt", "See"),
        ("generate -p hi --tree-rows many", "--tree-rows: invalid int value", "--help"),
        ("generate -p hi there", "unrecognized arguments: there", "--help"),
    ],
)
def test_a_wrong_option_is_reported_first_with_a_suggestion(
    words: str, problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    reported = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    assert len(reported) == 2
    assert problem in reported[0]
    assert hint in reported[1]
