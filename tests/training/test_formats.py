"""Bits per byte by weight format: the engine's figure is the trainer's."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.api import demo_model
from medusa_core.training.pebble.bits import bits_by_source, overall_bits
from medusa_core.training.pebble.export import load_exported
from medusa_core.training.pebble.formats import bits_per_byte_by_format

ROW = {
    "messages": [
        {"role": "user", "content": "What is the capital of France?"},
        {"role": "assistant", "content": "The capital of France is Paris."},
        {"role": "user", "content": "Tell me a story."},
        {"role": "assistant", "content": "Once there was a small bear who liked honey."},
    ]
}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "chat.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return tmp_path


def test_the_engine_measures_what_the_trainer_measures(rows: Path) -> None:
    model, _ = demo_model()
    sources = bits_by_source(*load_exported(model), rows)
    expected, num_rows = overall_bits(sources), sum(s.num_rows for s in sources.values())
    assert num_rows == 1
    found = bits_per_byte_by_format(model, rows, ["fp32", "nf4"])
    assert found["fp32"] == pytest.approx(expected, rel=1e-4)
    assert found["nf4"] != found["fp32"]
    assert found["nf4"] == pytest.approx(expected, rel=0.2)


def test_it_is_a_command(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "pebble", "--rows", str(rows), "--formats", "bf16", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"bf16"}
    assert main(["eval", "pebble", "--formats", "bf16"]) == 1
    assert "--rows" in capsys.readouterr().err
