"""Hostile heads of every kind are refused in words, soon and without much memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from medusa_core.heads.format import format_registry
from medusa_core.heads.kind import kind_registry
from tests.support.models.hostile_heads import WRITERS

ROOT = Path(__file__).parents[3]
_KINDS = {name.split()[0] for name in WRITERS}
_FORMATS = {name.removeprefix("medusa ") for name in WRITERS if name.startswith("medusa ")}


# What programs keep beside d2t, which says the same; nothing reads more of it than its length.
# Of DeepSeek's copies of the target's vectors and projection nothing reads more than the shape.
_UNREAD = {"dspark": ("embed_tokens", "lm_head")}


def check(folder: Path, first: int, last: int) -> None:
    command = [sys.executable, "-m", "tests.support.models.hostile_heads", str(folder)]
    command += [str(first), str(last)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    reported = json.loads(done.stdout.splitlines()[-1])
    assert reported.keys() == WRITERS.keys()
    for kind, outcome in reported.items():
        assert not outcome["wrong"], "\n".join([kind, *outcome["wrong"]])
        # Settings that heads don't need may be anything.
        worked = [one for one in outcome["worked"] if "harm_settings" not in one]
        unread = ("t2d", *_UNREAD.get(kind, ()))
        seen = [one for one in worked if not any(name in one for name in unread)]
        assert not seen, "\n".join([kind, *seen])
        assert len(outcome["refused"]) >= 2, outcome


def test_every_kind_and_format_of_heads_is_covered() -> None:
    assert {spec.name for spec in kind_registry().specs} == _KINDS
    assert {spec.name for spec in format_registry().specs} == _FORMATS


def test_hostile_heads_are_refused_or_change_no_text(tmp_path: Path) -> None:
    check(tmp_path, 60, 66)


@pytest.mark.slow
def test_more_hostile_heads_are_refused_or_change_no_text(tmp_path: Path) -> None:
    check(tmp_path, 66, 300)
