"""Hostile heads of every kind are refused in words, soon and without much memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from medusa_core.heads.format import format_registry
from medusa_core.heads.kind import kind_registry
from tests.core.hostile_heads import WRITERS

ROOT = Path(__file__).parents[2]
_KINDS = {name.split()[0] for name in WRITERS}
_FORMATS = {name.removeprefix("medusa ") for name in WRITERS if name.startswith("medusa ")}


def check(folder: Path, kind: str, first: int, last: int) -> None:
    command = [sys.executable, "-m", "tests.core.hostile_heads", str(folder), kind]
    command += [str(first), str(last)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert not told["wrong"], "\n".join(told["wrong"])
    assert sum(told["outcomes"].values()) == last - first
    refused = last - first - told["outcomes"].get("works", 0)
    assert refused > (last - first) / 3, told["outcomes"]


def test_every_kind_and_format_of_heads_is_tried() -> None:
    assert {spec.name for spec in kind_registry().specs} == _KINDS
    assert {spec.name for spec in format_registry().specs} == _FORMATS


@pytest.mark.parametrize("kind", WRITERS)
def test_hostile_heads_are_refused_or_change_no_text(kind: str, tmp_path: Path) -> None:
    check(tmp_path, kind, 0, 30)


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITERS)
def test_more_hostile_heads_are_refused_or_change_no_text(kind: str, tmp_path: Path) -> None:
    check(tmp_path, kind, 30, 500)
