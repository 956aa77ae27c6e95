"""What the window says of heads before they are made is what a run makes."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors import safe_open

from medusa_core.loading.load import load_target
from medusa_core.loading.memory.trained_heads import trained_bytes
from medusa_core.messages import LoadOptions
from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS
from medusa_core.training.heads_command import trainee_of
from medusa_core.training.heads_config import HeadsConfig
from tests.support.models.tiny import TinySpec, write_tiny

_KINDS: Any = TRAINED_KINDS


def weights_in(folder: Path) -> int:
    """Bytes of what was learned, its lists of tokens left out."""
    with safe_open(next(folder.glob("*.safetensors")), "pt") as opened:
        tensors = [opened.get_tensor(name) for name in opened.keys()]  # noqa: SIM118 - no dict
    return sum(tensor.nbytes for tensor in tensors if tensor.dtype is torch.bfloat16)


@pytest.mark.parametrize("kept", [0, 40])
@pytest.mark.parametrize("kind", [kind.name for kind in TRAINED_KINDS.values() if kind.label])
def test_trained_heads_have_the_predicted_size(
    kind: str, kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(_KINDS, kind, TRAINED_KINDS[kind]._replace(vocabulary=kept))
    spec = TinySpec(num_layers=6, seed=4, is_tied=kept > 0)
    target = load_target(write_tiny(tmp_path, spec), None, LoadOptions("float32", "cpu"))
    made = tmp_path / "heads"
    made.mkdir()
    answers: Any = [SimpleNamespace(answer_ids=(5, 6))]
    trainee_of(HeadsConfig(kind=kind, num_heads=3), target, answers).write(made, "tiny")
    assert trained_bytes(kind, target.config, 3) == weights_in(made)
