"""A model of true size: memory while it loads, first and from the kept copy, and law 4.

Prints how long both took; it needs 22 GB of disk.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from medusa_core.models.config import parse_config
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import shapes_dir
from tests.support.models.checkpoints import write_checkpoint, write_random_heads

ROOT = Path(__file__).parents[3]
DISK_BYTES = 22 * 10**9
# Beyond the quantized model: one dense part, torch, and what quantizing takes.
ROOM_BYTES = 1_500_000_000

CHILD = """
import json, resource, sys, time
from pathlib import Path
from medusa_core.engine.direct import generate
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role, WeightFormats
from medusa_core.loading.load import load_target
model, heads, kept = map(Path, sys.argv[1:4])
started = time.perf_counter()
options = LoadOptions(formats=WeightFormats("q4"), context_tokens=512, quantized_dir=kept)
target = load_target(model, heads, options)
seconds = time.perf_counter() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
done = generate(target, (ChatMessage(Role.USER, "hi"),), GenerateSettings(max_new_tokens=1))
print(json.dumps({
    "seconds": seconds,
    "peak_bytes": peak,
    "num_tokens": len(done.token_ids),
    "planned": [target.plan.weights_bytes, target.plan.heads_bytes, target.plan.kv_bytes],
    "measured": [target.weights_bytes, target.heads.nbytes, target.caches.nbytes],
}))
"""


def load(model: Path, heads: Path, kept: Path) -> dict[str, Any]:
    """Load in a fresh process that finds nothing in the page cache."""
    for folder in (model, heads, kept):
        for path in folder.glob("*.safetensors"):
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    command = [sys.executable, "-c", CHILD, str(model), str(heads), str(kept)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(sys.platform != "linux", reason="empties the page cache by Linux' call")
def test_vicuna_7b_loads_within_its_size_from_both(tmp_path: Path) -> None:
    if shutil.disk_usage(tmp_path).free < DISK_BYTES:
        pytest.skip("needs 22 GB of disk")
    raw = read_json(shapes_dir() / "vicuna-7b.json")
    kept = tmp_path / "kept"
    kept.mkdir()
    model = write_checkpoint(tmp_path / "vicuna-7b", raw)
    heads = write_random_heads(tmp_path / "heads", parse_config(raw, {}), 3, "v0.1")
    os.sync()
    first, second = load(model, heads, kept), load(model, heads, kept)
    print(json.dumps([first, second], indent=1))
    for found in (first, second):
        assert found["num_tokens"] == 1
        assert found["peak_bytes"] <= sum(found["measured"][:2]) + ROOM_BYTES
        for planned, measured in zip(found["planned"], found["measured"], strict=True):
            assert measured <= planned <= measured * 1.05
    print(f"second load over first: {second['seconds'] / first['seconds']:.2f}")
    shutil.rmtree(tmp_path)
