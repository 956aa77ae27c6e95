"""Batches that run under a placement policy."""

import json
from pathlib import Path
from typing import Any

from medusa_core.messages import Policy, Shares
from medusa_core.system.files import record_json
from tests.support.engine.batch_files import rows_of
from tests.support.models.targets import Folders

ON_DISK = Shares(0.0, 0.0, 1.0)


def batch(folders: Folders, prompts: Path, out: Path, *more: str) -> list[str]:
    """Return a batch of a model that gains by offloading, as it has more layers than buffers."""
    model, _ = folders["streamed"]
    how = ["--model", str(model), "--heads", "none", "--threads", "1"]
    files = ["--prompts", str(prompts), "--out", str(out)]
    dtype = [] if "--dtype" in more else ["--dtype", "float64"]
    return ["batch", *files, *how, *dtype, "--max-new-tokens", "24", *more]


def texts(path: Path) -> dict[Any, str]:
    return {name: row["text"] for name, row in rows_of(path).items()}


def policy_file(path: Path, policy: Policy) -> str:
    path.write_text(json.dumps(record_json.as_json(policy)), encoding="utf-8")
    return str(path)
