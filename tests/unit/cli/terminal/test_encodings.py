"""Outputs that aren't UTF-8: pipes on Windows, terminals of a POSIX locale."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.system.resources import demo_model_dir


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("command", ["show", "plan"])
def test_a_name_that_the_output_cannot_encode_is_printed_with_question_marks(
    encoding: str, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = tmp_path / "模型 ü"
    model.symlink_to(demo_model_dir())
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", out)
    assert main([command, str(model)]) == 0
    written = out.buffer.getvalue().decode(encoding)
    assert "?? " in written
