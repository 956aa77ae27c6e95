"""A damaged checkpoint is refused with a message: no crash, no other error, no endless memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from tests.support.models.tiny import (
    ACCURACIES,
    TinySpec,
    random_heads,
    random_rooted_heads,
    write_heads,
    write_rooted_heads,
    write_tiny,
)

ROOT = Path(__file__).parents[3]


def checkpoint(folder: Path, is_rooted: bool) -> Path:
    """A sharded target with all files that a published one has, and its heads."""
    spec = TinySpec(model_type="qwen3", seed=9)
    model = write_tiny(folder / "model", spec)
    tensors = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    weight_map = {}
    for index, name in enumerate(sorted(tensors)):
        weight_map[name] = f"model-{index % 2}.safetensors"
    for shard in set(weight_map.values()):
        save_file({n: t for n, t in tensors.items() if weight_map[n] == shard}, model / shard)
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (model / "generation_config.json").write_text('{"eos_token_id": [1, 4]}')
    heads = write_heads(folder / "heads", random_heads(spec), ACCURACIES)
    if is_rooted:
        (heads / "medusa_lm_head.safetensors").unlink()
        write_rooted_heads(heads, random_rooted_heads(spec))
    return folder


def check(folder: Path, first: int, last: int) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.support.models.mutations",
        str(folder),
        str(first),
        str(last),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    reported = json.loads(done.stdout.splitlines()[-1])
    assert not reported["wrong"], "\n".join(reported["wrong"])
    assert sum(reported["outcomes"].values()) == last - first
    refused = {kind: count for kind, count in reported["outcomes"].items() if kind != "works"}
    assert sum(refused.values()) > (last - first) / 3
    assert len(refused) >= 3, reported["outcomes"]


def test_damaged_checkpoints_are_refused_or_load(tmp_path: Path) -> None:
    check(checkpoint(tmp_path / "whole", is_rooted=False), 0, 24)


def test_damaged_rooted_heads_are_refused_or_load(tmp_path: Path) -> None:
    check(checkpoint(tmp_path / "whole", is_rooted=True), 1000, 1030)


@pytest.mark.slow
@pytest.mark.parametrize(("is_rooted", "first", "last"), [(False, 24, 1000), (True, 1030, 1400)])
def test_more_damaged_checkpoints_are_refused_or_load(
    is_rooted: bool, first: int, last: int, tmp_path: Path
) -> None:
    check(checkpoint(tmp_path / "whole", is_rooted=is_rooted), first, last)
