"""Bits per byte by weight format: the engine's figure is the trainer's."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from medusa_core.api import demo_model
from medusa_core.training.documents import ANSWER
from recipe.bits import bits_by_format
from recipe.cli import main
from recipe.corpus import Document, Segment
from recipe.export import load_exported
from recipe.tokenizer import encode_documents

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


@torch.no_grad()
def by_the_network(model: Path) -> float:
    """Bits per byte of the row by the network that is trained."""
    network, tokenizer = load_exported(model)
    segments = tuple(Segment(m["role"], m["content"]) for m in ROW["messages"])
    (row,) = encode_documents(tokenizer, [Document("chat", segments)])
    ids = torch.from_numpy(row.ids.astype(int))
    hidden = network.hidden_states(ids[None, :-1], [len(ids) - 1])[0]
    is_answer = torch.from_numpy(row.kinds == ANSWER)[1:]
    nats = F.cross_entropy(network.logits(hidden), ids[1:], reduction="none")[is_answer].sum()
    output = sum(len(s.text.encode()) for s in segments if s.role == "assistant")
    return float(nats) / math.log(2) / output


def test_engine_and_trainer_measure_the_same(rows: Path) -> None:
    model, _ = demo_model()
    found = bits_by_format(model, rows, ["fp32", "q4"])
    assert found["fp32"] == pytest.approx(by_the_network(model), rel=1e-4)
    assert found["q4"] != found["fp32"]
    assert found["q4"] == pytest.approx(found["fp32"], rel=0.2)


def test_measuring_formats_is_a_command(rows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--rows", str(rows), "--formats", "bf16", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"bf16"}
    assert main(["eval", "--formats", "bf16"]) == 1
    assert "--rows" in capsys.readouterr().err
