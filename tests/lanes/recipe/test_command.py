"""The recipe's folder as a program."""

import subprocess
import sys
from pathlib import Path

import pytest

import recipe
from medusa_core.models.datastore.phrases import read_phrases
from recipe.cli import main
from recipe.recipe import RECIPES
from tests.lanes.recipe.toy_recipe import tiny_recipe, write_rows
from tests.support.models.tiny import write_tiny

FOLDER = Path(recipe.__file__).parent

HELP = f"""
import importlib.util, runpy, sys
sys.path.insert(0, {str(FOLDER)!r})  # as Python does that runs a folder
sys.argv = ["recipe", "train", "--help"]
try:
    runpy.run_path({str(FOLDER / "__main__.py")!r}, run_name="__main__")
except SystemExit as ended:
    print(ended.code)
print([name for name in ("muon", "tokenizer", "checks") if importlib.util.find_spec(name)])
print(sorted({{"torch", "numpy"}} & set(sys.modules)))
"""


def test_the_recipe_runs_from_any_folder_and_shadows_no_modules(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELP], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "--plain-heads" in done.stdout
    assert done.stdout.splitlines()[-3:] == ["0", "[]", "[]"]


def test_a_phrase_table_is_counted_in_answers_to_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "small", tiny_recipe())
    model, data = write_tiny(tmp_path / "model"), write_rows(tmp_path / "data")
    given = ["--data", str(data), "--model", str(model), "--out", str(tmp_path / "out")]
    assert main(["phrases", *given, "--answers", "56"]) == 0
    assert read_phrases(tmp_path / "out", 320) is not None
    assert main(["phrases", *given, "--answers", "20"]) == 1
