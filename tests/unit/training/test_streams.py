"""Streams in training are the engine's, and what can't be trained is refused in words."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from medusa_core.__main__ import main
from medusa_core.errors import TrainingError
from medusa_core.heads.streams import StreamHeads
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.training.documents import EncodedDocument
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.streams import TappedText
from medusa_core.training.streams_trainee import StreamsTrainee
from medusa_core.training.trainee import collected
from tests.support.models.streams_files import STREAMS
from tests.support.models.tiny import TinySpec, write_tiny

CPU = LoadOptions("float32", "cpu")
TEXT = [5, 40, 60, 61, 200, 7, 7, 33, 90, 12, 300]
SPECS = {
    "llama": STREAMS,
    "biases": replace(STREAMS, model_type="qwen2"),
    "norms of heads": replace(STREAMS, model_type="qwen3"),
    "keys of their own": replace(STREAMS, num_kv_heads=4),
}


def config_for(**more: Any) -> HeadsConfig:
    defaults: dict[str, Any] = {"kind": "streams", "num_heads": 3, "lora_rank": 4, "context": 128}
    return HeadsConfig(**{**defaults, **more})


def stirred(trainee: StreamsTrainee) -> None:
    """Fill all trainable weights with random numbers, so that exchanged ones are noticed."""
    generator = torch.Generator().manual_seed(9)
    for parameter in trainee.module.parameters():
        noise = 0.2 * torch.randn(parameter.shape, generator=generator)
        parameter.data = noise.bfloat16().float()


@pytest.mark.parametrize("name", SPECS)
def test_trained_streams_equal_those_that_the_engine_runs(name: str, tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", SPECS[name])
    target = load_target(model, options=CPU)
    trainee = StreamsTrainee(target, config_for())
    stirred(trainee)
    size = target.config.hidden_size
    with torch.inference_mode():
        deep = target.runner.extend(TEXT, target.runner.new_cache(64))[:, size:].clone()
    places = torch.tensor([3, 8])
    texts = [TappedText(deep, places), TappedText(deep[:7], torch.tensor([6]))]
    with torch.no_grad():
        states = trainee.module.states(texts)
    (tmp_path / "streams").mkdir()
    trainee.write(tmp_path / "streams", "model")
    heads = load_target(model, tmp_path / "streams", CPU).heads
    assert isinstance(heads, StreamHeads)
    heads.reserve(64)
    for row, place in enumerate((3, 8, 6)):
        kv = heads.new_cache(64)
        with torch.inference_mode():
            heads.store_keys_values(deep[: place + 1], 0, kv)
            ours = heads.states(deep[place, :size], place, kv, 3)
        torch.testing.assert_close(ours, states[row], rtol=1e-3, atol=1e-3)


def test_training_positions_and_their_targets_are_within_the_answer(tmp_path: Path) -> None:
    target = load_target(write_tiny(tmp_path / "model", STREAMS), options=CPU)
    trainee = StreamsTrainee(target, config_for(num_heads=2))
    kinds = np.array([1, 1, 1, 2, 2, 2, 2, 1, 1, 2, 1], dtype=np.uint8)
    document = EncodedDocument(np.array(TEXT, dtype=np.uint32), kinds)
    shard = collected(trainee, target, [document, document])
    some = trainee._batch(shard, torch.tensor([1]))
    assert some.texts[0].places.tolist() == [2, 3, 4, 5, 8]
    assert some.roots.tolist() == [61, 200, 7, 7, 12]
    assert some.later.tolist() == [[200, 7], [7, 7], [7, -1], [-1, -1], [-1, -1]]


def test_training_streams_leaves_the_target_unchanged(tmp_path: Path) -> None:
    target = load_target(write_tiny(tmp_path / "model", STREAMS), options=CPU)
    trainee = StreamsTrainee(target, config_for())
    kinds = np.array([1] * 3 + [2] * 8, dtype=np.uint8)
    shard = collected(
        trainee, target, [EncodedDocument(np.array(TEXT, dtype=np.uint32), kinds)] * 2
    )
    stirred(trainee)
    trainee.loss(shard, torch.tensor([0, 1])).backward()  # type: ignore[no-untyped-call]
    learned = dict(trainee.module.named_parameters())
    assert all(parameter.grad is not None for parameter in learned.values())
    assert all(bool(parameter.grad.any()) for parameter in learned.values())  # type: ignore[union-attr]
    assert {name.split(".")[0] for name in learned} == {"vectors", "adapters"}
    sizes = trainee.module.sizes
    assert sum(p.numel() for p in learned.values()) == sum(
        int(np.prod(shape)) for shape in sizes.tensors.values()
    )


OTHERS: dict[str, tuple[TinySpec, dict[str, Any]]] = {
    "more layers than there are": (STREAMS, {"stream_layers": 4}),
    "layers of another make": (replace(STREAMS, model_type="gemma2"), {}),
}


def test_more_stream_layers_than_there_are_are_refused(tmp_path: Path) -> None:
    target = load_target(write_tiny(tmp_path / "model", STREAMS), options=CPU)
    with pytest.raises(TrainingError, match="4 layers of 3") as caught:
        StreamsTrainee(target, config_for(stream_layers=4))
    assert "--stream-layers" in caught.value.hint


@pytest.mark.parametrize(
    "more", [{"vocabulary": 40}, {"stream_layers": 0}, {"lora_rank": 0}, {"lora_rank": 10**6}]
)
def test_a_senseless_configuration_is_refused(more: dict[str, int]) -> None:
    with pytest.raises(TrainingError) as caught:
        config_for(**more)
    assert caught.value.hint


@pytest.mark.slow
def test_streams_are_trained_and_evaluated_by_commands(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", STREAMS)
    prompts = tmp_path / "prompts.jsonl"
    rows = [{"id": str(n), "category": "a", "turns": [f"say {n}"]} for n in range(4)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    out, reported = tmp_path / "out", tmp_path / "eval.json"
    names = ["--model", str(model), "--device", "cpu"]
    numbers = ["--answers", "6", "--max-new-tokens", "16", "--steps", "4", "--streams", "2"]
    numbers += ["--stream-layers", "1", "--lora-rank", "4", "--data", str(prompts)]
    assert main(["train", "streams", "--out", str(out), *names, *numbers]) == 0
    settings = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert (settings["num_streams"], settings["num_stream_layers"]) == (2, 1)
    assert load_file(out / "streams.safetensors")["stream_embeddings"].shape == (2, 64)
    requested = ["--prompts", str(prompts), "--json", str(reported), "--max-new-tokens", "8"]
    assert main(["eval", "heads", *names, "--heads", str(out), *requested]) == 0
    found = json.loads(reported.read_text(encoding="utf-8"))
    assert len(found["heads"]) == 2
    assert set(found["tau"]) == {"4", "8", "16", "64"}
