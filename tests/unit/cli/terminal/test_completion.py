"""What a shell completes, and that the scripts are ones that shells take."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medusa_core.__main__ import COMMANDS, main
from medusa_core.cli.completion import completed

ROOT = Path(__file__).resolve().parents[4]
MODELS = ("llama-pebble", "org/tiny/tiny-Q4_0", "smol")


def complete(*typed: str) -> list[str]:
    return completed(COMMANDS, typed, lambda: MODELS)


def test_commands_options_choices_and_models_are_completed() -> None:
    assert complete("") == list(COMMANDS)
    assert complete("se") == ["settings", "serve", "serve-layers"]
    assert complete("run", "") == list(MODELS)
    assert complete("run", "org/") == ["org/tiny/tiny-Q4_0"]
    assert complete("show", "l") == ["llama-pebble"]
    assert complete("generate", "--model", "s") == ["smol"]
    assert complete("generate", "--dty") == ["--dtype"]
    assert "q4_0" in complete("generate", "--quant", "q4")
    assert complete("history", "") == ["export", "import", "check"]
    assert "--id" in complete("history", "export", "--")
    assert complete("train", "he") == ["heads"]
    assert complete("completion", "z") == ["zsh"]


def test_completion_of_files_texts_and_numbers_is_left_to_the_shell() -> None:
    assert complete("generate", "--context", "") == []
    assert complete("import", "") == []
    assert complete("nothing", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_printed_completion_script_parses(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["completion", shell]) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out, encoding="utf-8")
    assert "medusa completion words --" in script.read_text(encoding="utf-8")
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n", script], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", "bash"]) == 0
    program = tmp_path / "medusa"
    program.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m medusa_core "$@"\n')
    program.chmod(0o755)
    script = capsys.readouterr().out + (
        'COMP_WORDS=(medusa run ll); COMP_CWORD=2; COMP_LINE="medusa run ll"; COMP_POINT=13\n'
        '_medusa; printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["llama-pebble"]
