"""`tests/gpu/first_card.sh`, tried without a card, so that it works on the day there is one."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from medusa_core.models.quantized_cache.folder import quantized_key

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tests" / "gpu" / "first_card.sh"
NO_CARD = {"PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
# Not beside torch on the machines that lend cards.
MISSING = ("PySide6", "pytestqt", "bitsandbytes", "platformdirs", "llguidance", "gguf")
WITHOUT_THEM = f"""
import sys
sys.modules.update(dict.fromkeys({(*MISSING, "markdown_it", "fastjsonschema", "keyring")!r}))
import tests.support.engine.fixtures, tests.support.engine.laws
sys.argv = ["first_card.py", "nf4", "--dry-run"]
sys.path.insert(0, "tests/gpu")
import first_card
first_card.main()
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a script for Linux")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments],
        env=os.environ | NO_CARD | environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_without_a_card_it_says_so_and_ends(tmp_path: Path) -> None:
    ran = run(OUT=str(tmp_path))
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "No card: torch finds no CUDA device." in ran.stdout
    assert "No card" in (tmp_path / "first_card_results.txt").read_text()


def test_a_python_without_torch_is_named(tmp_path: Path) -> None:
    ran = run(str(tmp_path / "results"), PYTHON="false")
    assert ran.returncode == 1
    assert "Nothing can be done: false has no torch." in (tmp_path / "results").read_text()


def test_the_engine_is_measured_if_libraries_are_missing(tmp_path: Path) -> None:
    """The home of the tests' processes, too, is found without platformdirs."""
    known = os.environ | {"MEDUSA_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_THEM],
        cwd=ROOT,
        env=known,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert '{"nf4": {"weights_bytes":' in ran.stdout


def test_a_model_without_bitsandbytes_has_its_own_cache_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with_it = quantized_key([tmp_path / "file"], {})

    def version(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", version)
    assert quantized_key([tmp_path / "file"], {}) != with_it


@pytest.mark.slow
def test_a_dry_run_gives_all_figures(tmp_path: Path) -> None:
    results = tmp_path / "results"
    ran = run("--dry-run", str(results))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    text = results.read_text()
    for part in ("card", "checks", "greedy", "copies", "linears", "gguf", "nf4", "fp16"):
        assert f'{{"{part}": ' in text
    assert "FAILED" not in text
    assert "STOPPED" not in text
    assert "10 parts succeeded" in text
