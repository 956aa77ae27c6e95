"""Speculative streams: they draft by the paper's equations, and leave the target as it is."""

import json
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core.engine.session import Session
from medusa_core.errors import CheckpointError, HeadsError
from medusa_core.heads.kind import read_shape, shape_of_tensors
from medusa_core.heads.streams import StreamHeads
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import Runner
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.streams_source import (
    StreamsMemory,
    StreamsSource,
)
from tests.support.engine.heard_text import TEXT, candidates_behind, hear
from tests.support.engine.laws import decode, user_says
from tests.support.models.streams_files import (
    STREAMS,
    Slowly,
    StreamsSpec,
    random_streams,
    settings_of,
    write_streams,
)
from tests.support.models.tiny import TinySpec, write_tiny

SPECS = {
    "two layers of three": StreamsSpec(),
    "the last layer alone": StreamsSpec(num_layers=1, num_streams=1),
    "all layers": StreamsSpec(replace(STREAMS, num_kv_heads=4, is_tied=True), 2, 3),
    "biases": StreamsSpec(replace(STREAMS, model_type="qwen2")),
    "norms of heads": StreamsSpec(replace(STREAMS, model_type="qwen3")),
}


def loaded(folder: Path, spec: StreamsSpec, dtype: str = "float64", **more: Any) -> Target:
    model = folder / "target"
    if not model.exists():
        write_tiny(model, spec.model)
    return load_target(
        model, write_streams(folder / "streams", spec), LoadOptions(dtype, "cpu", **more)
    )


def heard(target: Target, pieces: list[int], runner: Runner | None = None) -> StreamsSource:
    """Return a source after prefill of the text."""
    assert isinstance(target.heads, StreamHeads)
    source = StreamsSource(target.heads, RowBudget(64))
    hear(target, source, TEXT, pieces, runner)
    return source


def candidates_after(source: StreamsSource, level: int) -> dict[int, float]:
    return candidates_behind(source, (0,) * level)


@pytest.mark.parametrize("pieces", [[10], [4, 1, 3, 2]])
@pytest.mark.parametrize("name", SPECS)
def test_drafts_equal_the_equations(name: str, pieces: list[int], tmp_path: Path) -> None:
    spec = SPECS[name]
    target = loaded(tmp_path, spec)
    source = heard(target, pieces)
    source.start(TEXT[-1], 24)
    expected = Slowly(spec).scores(TEXT[:-1])
    assert len(expected) == spec.num_streams
    for level, scores in enumerate(expected):
        found = candidates_after(source, level)
        best = torch.softmax(scores, 0).topk(len(found))
        assert list(found) == best.indices.tolist()
        assert list(found.values()) == pytest.approx(best.values.tolist(), rel=1e-5, abs=1e-7)
    assert source.candidates(Paths(1, spec.num_streams, array("i", [0] * 9))) is None


@pytest.mark.parametrize("runner", [ResidentRunner, StaticRunner])
def test_every_runner_returns_the_states_that_streams_need(
    runner: type[ResidentRunner], tmp_path: Path
) -> None:
    target = loaded(tmp_path, StreamsSpec(), "float32")
    other = runner(target.shared_weights.decoder, target.precision)
    other.tap(target.runner.taps)
    sources = [heard(target, [4, 1, 3, 2], one) for one in (target.runner, other)]
    for source in sources:
        source.start(TEXT[-1], 24)
    for level in range(3):
        ours, theirs = (candidates_after(source, level) for source in sources)
        assert list(ours.values()) == pytest.approx(list(theirs.values()), rel=1e-3)


def test_the_early_exit_of_older_files_is_ignored(tmp_path: Path) -> None:
    spec = StreamsSpec()
    hidden = spec.model.hidden_size
    write_streams(tmp_path / "streams", spec)
    tensors = load_file(tmp_path / "streams" / "streams.safetensors")
    tensors["early_exit.lora_A"] = torch.zeros(spec.rank, hidden, dtype=torch.bfloat16)
    tensors["early_exit.lora_B"] = torch.zeros(hidden, spec.rank, dtype=torch.bfloat16)
    save_file(tensors, tmp_path / "streams" / "streams.safetensors")
    write_tiny(tmp_path / "model", spec.model)
    assert load_target(tmp_path / "model", tmp_path / "streams").heads is not None


def test_streams_leave_no_kv_rows_behind(tmp_path: Path) -> None:
    target = loaded(tmp_path, StreamsSpec())
    source = heard(target, [10])
    source.start(TEXT[-1], 24)
    memory = source._memory.get()
    assert memory is not None
    before = memory.kv.committed()
    source.start(TEXT[-1], 24)
    assert memory.kv.length == len(TEXT) - 1
    assert torch.equal(memory.kv.committed(), before)


def test_few_rows_use_few_streams(tmp_path: Path) -> None:
    source = heard(loaded(tmp_path, StreamsSpec()), [10])
    source.start(TEXT[-1], 64)
    first = candidates_after(source, 0)
    source.start(TEXT[-1], 2)
    assert candidates_after(source, 0) == pytest.approx(first)
    assert source.candidates(Paths(1, 1, array("i", [0]))) is None


def test_memory_of_streams_equals_that_of_the_targets_cache(tmp_path: Path) -> None:
    target = loaded(tmp_path, StreamsSpec())
    session = Session(target)
    settings = GenerateSettings(drafter="streams", max_new_tokens=12, tree_rows=12)
    decode(target, settings, user_says("one two"), session=session)
    memory = session.memory["streams"]
    assert isinstance(memory, StreamsMemory)
    rows = memory.kv.length
    assert rows > 8
    theirs = session.kv.committed()[1:, :, :, :rows]
    assert torch.allclose(memory.kv.committed(), theirs, rtol=1e-9, atol=1e-9)


def test_sizes_are_known_from_headers_alone(tmp_path: Path) -> None:
    folder = write_streams(tmp_path)
    checkpoint = Checkpoint.open_file(folder / "streams.safetensors")
    shapes = {name: checkpoint.shape(name) for name in checkpoint.names}
    whole = read_shape(folder)
    assert (whole.kind, whole.num_heads, whole.deepest_layer) == ("streams", 3, 3)
    assert shape_of_tensors(shapes, settings_of(StreamsSpec())) == whole
    assert shape_of_tensors(shapes, {}) == replace(whole, made_for_vocab=0)


def test_streams_are_offered_alone_and_in_composite(tmp_path: Path) -> None:
    names = [spec.name for spec in drafters_for(loaded(tmp_path, StreamsSpec()))]
    assert {"streams", "composite"} <= set(names)
    assert "medusa" not in names


Damage = Callable[[dict[str, torch.Tensor], dict[str, Any]], None]


def _set(name: str, tensor: torch.Tensor | None) -> Damage:
    def damage(tensors: dict[str, torch.Tensor], _: dict[str, Any]) -> None:
        if tensor is None:
            del tensors[name]
        else:
            tensors[name] = tensor

    return damage


def _say(name: str, value: object) -> Damage:
    return lambda _, settings: settings.__setitem__(name, value)


HOSTILE: dict[str, Damage] = {
    "no vectors": _set("stream_embeddings", None),
    "vectors of another width": _set("stream_embeddings", torch.zeros(3, 32)),
    "no streams": _set("stream_embeddings", torch.zeros(0, 64)),
    "more streams than a tree is deep": _set("stream_embeddings", torch.zeros(99, 64)),
    "a vector is a number": _set("stream_embeddings", torch.zeros(())),
    "half an adapter": _set("layers.2.down.lora_B", None),
    "an adapter of another rank": _set("layers.1.qkv.lora_A", torch.zeros(5, 64)),
    "an adapter of no rank": _set("layers.1.qkv.lora_A", torch.zeros(0, 64)),
    "keys and values for other heads": _set("layers.1.qkv.lora_B", torch.zeros(192, 4)),
    "a layer that the model hasn't": _set("layers.7.qkv.lora_A", torch.zeros(4, 64)),
    "a layer that nobody has": _set("layers.99999999.qkv.lora_A", torch.zeros(4, 64)),
    "one tensor more": _set("more", torch.zeros(4)),
    "no number": _set("stream_init.lora_A", torch.full((4, 64), float("nan"))),
    "an endless number": _set("stream_init.lora_B", torch.full((64, 4), float("inf"))),
    "whole numbers": _set("stream_embeddings", torch.ones(3, 64, dtype=torch.int32)),
    "another number of layers": _say("num_hidden_layers", 4),
    "endlessly many layers": _say("num_hidden_layers", 10**30),
    "fewer layers than none": _say("num_hidden_layers", -3),
    "layers in words": _say("num_hidden_layers", "three"),
    "no number of layers": _say("num_hidden_layers", None),
    "layers that are true": _say("num_hidden_layers", True),
    "another vocabulary": _say("vocab_size", 32_000),
    "half a token": _say("vocab_size", 0.5),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_streams_are_refused_with_a_message(name: str, tmp_path: Path) -> None:
    tensors, settings = random_streams(StreamsSpec()), settings_of(StreamsSpec())
    HOSTILE[name](tensors, settings)
    folder = write_streams(tmp_path / "streams")
    save_file(tensors, folder / "streams.safetensors")
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        load_target(write_tiny(tmp_path / "target", STREAMS), folder, LoadOptions("float32", "cpu"))
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff"])
def test_a_damaged_configuration_is_refused(text: str, tmp_path: Path) -> None:
    folder = write_streams(tmp_path / "streams")
    (folder / "config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises((HeadsError, CheckpointError)) as caught:
        read_shape(folder)
    assert caught.value.hint


OTHERS = {
    "of more layers": replace(STREAMS, num_layers=4),
    "with other keys": replace(STREAMS, num_kv_heads=1),
    "with another MLP": replace(STREAMS, intermediate_size=128),
}


@pytest.mark.parametrize("name", OTHERS)
def test_streams_for_another_target_are_refused(name: str, tmp_path: Path) -> None:
    folder: Path = write_streams(tmp_path / "streams")
    other: TinySpec = OTHERS[name]
    with pytest.raises(HeadsError, match="for a") as caught:
        load_target(write_tiny(tmp_path / "other", other), folder, LoadOptions("float32", "cpu"))
    assert caught.value.hint
    assert load_file(folder / "streams.safetensors")
