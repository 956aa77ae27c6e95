"""`ps` and `show`: what is loaded, by whom, and what a model is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.system.resources import demo_model_dir
from medusa_core.system.running_models import RunningFile, running_models
from tests.support.terminal.fixtures import PEBBLE

Printed = Callable[..., str]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def run(*words: str) -> str:
        assert main(words) == 0
        return capsys.readouterr().out

    return run


def test_a_reused_process_id_is_ignored(tmp_path: Path) -> None:
    own = RunningFile(tmp_path, "serve")
    own.set_address("http://127.0.0.1:1")
    (found,) = running_models(tmp_path)
    assert (found.pid, found.address, found.model) == (os.getpid(), "http://127.0.0.1:1", "")
    (path,) = tmp_path.iterdir()
    raw = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(raw | {"process_s": raw["process_s"] - 60}), encoding="utf-8")
    assert running_models(tmp_path) == ()
    (tmp_path / "1.json").write_text("{", encoding="utf-8")
    assert running_models(tmp_path) == ()
    own.close()


def test_the_program_runs_without_a_status_file_if_none_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    own = RunningFile(tmp_path / "file" / "below", "run")
    own.set_address("http://127.0.0.1:1")
    own.close()
    assert running_models(tmp_path / "file" / "below") == ()


def test_show_says_what_a_model_is(printed: Printed) -> None:
    text = printed("show", PEBBLE)
    assert "family              llama\n" in text
    assert "context tokens      1,024\n" in text
    facts = json.loads(printed("show", "llama-pebble", "--json"))
    assert facts["path"] == str(demo_model_dir())
    assert facts["has_chat_template"] is True
    assert facts["heads"].endswith("llama-pebble-medusa")
    assert "{%" in printed("show", "llama-pebble", "--template")


def test_a_missing_model_ends_with_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "no-such-model"]) == 1
    assert "medusa list shows what is here" in capsys.readouterr().err
