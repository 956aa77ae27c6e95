"""Runs of the training of heads, and what they leave."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from medusa_core.loading.target import Target
from medusa_core.training.heads_command import joint_of, load_for_training, trainee_of
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.heads_run import HeadsRun, RunParts
from medusa_core.training.prompts import read_training_prompts
from medusa_core.training.run_folder import RunFolder


def prompts_file(folder: Path, number: int = 24) -> Path:
    path = folder / "asked.jsonl"
    rows = [{"prompt": f"number {n} of them"} for n in range(number)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def config_for(model: Path, folder: Path, kind: str, **more: Any) -> HeadsConfig:
    defaults: dict[str, Any] = {
        "answers": 16,
        "max_new_tokens": 16,
        "steps": 30,
        "batch": 64,
        "num_heads": 2,
        "context": 128,
        "device": "cpu",
    }
    data = (str(prompts_file(folder)),)
    return HeadsConfig(model=str(model), kind=kind, data=data, **{**defaults, **more})


def run(
    out: Path,
    config: HeadsConfig,
    stop: Callable[[], bool] | None = None,
    load: Callable[[HeadsConfig], Target] = load_for_training,
) -> bool:
    folder = RunFolder(out)
    if not folder.exists:
        folder.begin(config)
    parts = RunParts(
        load=lambda: load(config),
        trainee=lambda target, answers: trainee_of(config, target, answers),
        prompts=lambda *_: read_training_prompts([Path(name) for name in config.data]),
        evaluate=lambda _: None,
        stop=stop or (lambda: False),
        joint=joint_of(config),
    )
    return HeadsRun(folder, parts).run()


def after(number: int) -> Callable[[], bool]:
    """Return a function that requests a stop at the given call."""
    prompts = 0

    def stop() -> bool:
        nonlocal prompts
        prompts += 1
        return prompts > number

    return stop


def tensors_in(out: Path) -> dict[str, torch.Tensor]:
    return {
        name: tensor
        for path in sorted(out.glob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }


def command(out: Path, model: Path, data: Path, *more: str) -> list[str]:
    names = ("--out", str(out), "--model", str(model), "--data", str(data), "--device", "cpu")
    return [sys.executable, "-m", "medusa_core", "train", "heads", *names, *more]
