"""The library from a terminal."""

import builtins
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from medusa_core.errors import RequestError
from medusa_core.hub.library.installed import repo_folder
from medusa_core.hub.library.library_folder import (
    ContentsKind,
    look_into,
)
from medusa_core.hub.library.library_import import FolderList
from medusa_core.system.resources import demo_model_dir
from tests.support.hub.installed import HEADS, MODEL, SPEC, disk_bytes, flip_a_byte, snapshot_of
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import random_heads, write_tiny


@pytest.fixture
def terminal(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command with another cache and another list of folders than the user's."""
    from medusa_core.cli import library as library_cli

    monkeypatch.setattr(
        library_cli, "folder_list", lambda: FolderList(tmp_path / "data" / "folders.json")
    )
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    return run_command


def run_command(command: str, *arguments: str) -> int:
    import argparse

    from medusa_core.cli import library as library_cli

    parser = argparse.ArgumentParser()
    getattr(library_cli, f"add_{command}_arguments")(parser)
    args = parser.parse_args(arguments)
    code: int = args.run(args)
    return code


def test_list_and_verify_print_their_results(
    terminal: Callable[..., int], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal("list") == 0
    output = capsys.readouterr().out
    assert "heads for org/tiny:" in output
    assert "made for it" in output
    assert terminal("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["installed"]
    assert [one["kind"] for one in listed] == ["target", "heads"]
    assert terminal("verify", MODEL) == 0
    flip_a_byte((snapshot_of(cache) / "model.safetensors").resolve())
    assert terminal("verify", MODEL, "--repair") == 1
    assert "to fetch again: model.safetensors" in capsys.readouterr().out


def test_remove_asks_for_confirmation(
    terminal: Callable[..., int],
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builtins, "input", lambda question: "no")
    assert terminal("rm", MODEL) == 1
    assert repo_folder(cache, MODEL).exists()
    monkeypatch.setattr(builtins, "input", lambda question: "y")
    before = disk_bytes(cache)
    assert terminal("rm", MODEL) == 0
    assert f"freed {before - disk_bytes(cache):,} bytes" in capsys.readouterr().out
    assert not repo_folder(cache, MODEL).exists()
    assert terminal("rm", HEADS, "--revision", "main", "--yes") == 0
    with pytest.raises(RequestError, match="isn't installed"):
        terminal("rm", MODEL, "--yes")


@pytest.mark.usefixtures("converts_here")
def test_import_and_convert_from_a_terminal(
    terminal: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = write_tiny(tmp_path / "mine", SPEC)
    assert terminal("import", str(folder)) == 0
    assert terminal("list") == 0
    assert "mine" in capsys.readouterr().out
    with pytest.raises(RequestError, match="its files stay"):
        terminal("rm", "mine", "--yes")
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    torch.save(random_heads(SPEC), pickled / "medusa_lm_head.pt")

    def no_answer(question: str) -> str:
        raise EOFError

    monkeypatch.setattr(builtins, "input", no_answer)
    assert terminal("convert", str(pickled)) == 1
    assert "only if you trust" in capsys.readouterr().out
    assert terminal("convert", str(pickled), "--output", str(tmp_path / "out"), "--yes") == 0
    assert look_into(tmp_path / "out").kind is ContentsKind.HEADS


def test_list_shows_heads_bundled_with_the_program(
    terminal: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal("list", "--folder", str(demo_model_dir())) == 0
    shown = capsys.readouterr().out
    assert "heads for llama-pebble:\n  made for it      llama-pebble-medusa: comes with" in shown


def test_a_file_is_found_without_its_suffix_and_bundled_models_are_kept(
    terminal: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_as_gguf(demo_model_dir(), tmp_path / "Small.gguf", "q8_0")
    assert terminal("verify", "small", "--folder", str(tmp_path)) == 0
    assert "Small.gguf" in capsys.readouterr().out
    with pytest.raises(RequestError, match="comes with the program"):
        terminal("rm", "llama-pebble")
