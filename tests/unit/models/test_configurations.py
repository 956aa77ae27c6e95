"""Configurations that no model has are refused at once, in few words."""

import json
from pathlib import Path
from typing import Any

import pytest

from medusa_core.cli.plan import (
    shape_config,
    shape_names,
)
from medusa_core.errors import CheckpointError, MedusaError, ModelError
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.plan import plan_memory
from medusa_core.messages import HeadsShape, WeightFormats
from medusa_core.models.blocks import sizes as sizes_module
from medusa_core.models.blocks.spec import BlockSpec, BlockTensors, tensors_at
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.checkpoints.header import check_header
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.runtime.backends.rope import inverse_frequencies
from medusa_core.system.files import json_file
from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import shapes_dir
from tests.support.models.tiny import TinySpec, write_tiny

RAW = read_json(shapes_dir() / "vicuna-7b.json")


def deep(levels: int) -> list[Any]:
    """Lists within lists."""
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 1 << 24),
        ("num_hidden_layers", (1 << 10) + 1),
        ("hidden_size", 1 << 24),
        ("intermediate_size", 1 << 24),
        ("vocab_size", 4_000_000),
        ("num_attention_heads", 1 << 20),
        ("num_key_value_heads", 1 << 20),
        ("head_dim", 1 << 20),
        ("max_position_embeddings", 1 << 40),
        ("num_hidden_layers", 10**4000),
    ],
)
def test_absurd_sizes_are_refused_by_name(key: str, value: int) -> None:
    with pytest.raises(ModelError, match=key) as caught:
        parse_config(RAW | {key: value}, {})
    assert caught.value.hint


def test_the_largest_published_sizes_pass() -> None:
    sizes = {
        "num_hidden_layers": 126,
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "vocab_size": 262_208,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,
        "max_position_embeddings": 10_485_760,
    }
    assert parse_config(RAW | sizes, {}).num_layers == 126
    for name in shape_names():
        shape_config(name)


@pytest.mark.parametrize("value", ["x" * 100_000, deep(900), list(range(100_000)), {"a": deep(9)}])
@pytest.mark.parametrize(
    "key",
    [
        *("num_hidden_layers", "rms_norm_eps", "model_type", "hidden_act", "eos_token_id"),
        *("rope_scaling", "quantization_config"),
    ],
)
def test_messages_stay_short_whatever_a_configuration_contains(key: str, value: Any) -> None:
    if key == "rope_scaling" and isinstance(value, dict):
        value = {"rope_type": value}
    with pytest.raises(ModelError) as caught:
        parse_config(RAW | {key: value}, {})
    assert 0 < len(caught.value.message) <= 500
    assert len(caught.value.hint) <= 500


@pytest.mark.parametrize("text", ["x" * 100_000, "\ud800" * 400, "\ud800" * 9999])
def test_error_texts_are_truncated_where_errors_are_raised(text: str) -> None:
    error = MedusaError(text + " end.", text)
    for shown in (error.message, error.hint):
        assert len(shown) <= 500
        shown.encode()  # raises on what isn't a character
    assert error.message.endswith("end.")
    assert str(error) == f"{error.message} {error.hint}"


def test_short_error_texts_are_unchanged() -> None:
    error = MedusaError("é" * 500, "why?")
    assert (error.message, error.hint) == ("é" * 500, "why?")


def test_a_plan_inspects_one_block_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def counted(spec: BlockSpec, index: int) -> BlockTensors:
        looked_at.append(index)
        return tensors_at(spec, index)

    monkeypatch.setattr(sizes_module, "tensors_at", counted)
    budget = cuda_budget(8)
    formats = resolve_formats(WeightFormats("nf4"), "", budget.hardware)
    vicuna = shape_config("vicuna-7b")
    config = vicuna.with_blocks(vicuna.blocks[:1] * 1023)
    plan_memory(config, HeadsShape(), formats, budget, 4096)
    assert looked_at == [0], "once, though the search for the longest context plans many times"


def test_every_equal_layer_adds_the_same_to_a_plan() -> None:
    budget = cuda_budget(8)
    formats = resolve_formats(WeightFormats("nf4"), "", budget.hardware)
    config = shape_config("qwen3-8b")
    sizes = [
        plan_memory(
            config.with_blocks(config.blocks[:count]), HeadsShape(), formats, budget, 4096
        ).weights_bytes
        for count in (1, 2, 3)
    ]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] > 0


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "model", TinySpec(has_bias=True, num_layers=2))


def set_config(model: Path, **changes: Any) -> ModelConfig:
    raw = read_json(model / "config.json")
    (model / "config.json").write_text(json.dumps(raw | changes), encoding="utf-8")
    return ModelFiles.open(model).config


def test_a_model_with_fewer_layers_than_it_says_is_refused_from_its_header(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = ModelFiles.open(model).checkpoint()
    check_header(checkpoint, ModelFiles.open(model).config)
    config = set_config(model, num_hidden_layers=1000)
    monkeypatch.setattr(Checkpoint, "raw", lambda *_: pytest.fail("a tensor was read"))
    with pytest.raises(CheckpointError, match=r"layers\.2\."):
        check_header(checkpoint, config)


@pytest.mark.parametrize(
    "changes",
    [{"vocab_size": 1 << 20}, {"hidden_size": 1 << 12}, {"intermediate_size": 100}],
    ids=str,
)
def test_a_model_of_other_sizes_than_it_says_is_refused_from_its_header(
    changes: dict[str, int], model: Path
) -> None:
    config = set_config(model, **changes)
    with pytest.raises(CheckpointError, match="has shape"):
        check_header(ModelFiles.open(model).checkpoint(), config)


def test_a_biased_model_without_a_bias_is_refused_from_its_header(tmp_path: Path) -> None:
    bare = write_tiny(tmp_path / "bare", TinySpec())
    config = set_config(bare, attention_bias=True)
    with pytest.raises(CheckpointError, match="bias"):
        check_header(ModelFiles.open(bare).checkpoint(), config)


@pytest.mark.parametrize(
    "content", ["9" * 5000, '{"a": ' + "9" * 5000 + "}", "[" * 5000, '{"a":' * 5000, "", "\ufeff{}"]
)
def test_json_that_python_cannot_parse_is_a_checkpoint_error(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CheckpointError, match="can't be read"):
        read_json(path)


def test_json_larger_than_any_configuration_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(json_file._MAX_BYTES + 1)
    with pytest.raises(CheckpointError, match="bytes"):
        read_json(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "rope_theta": 1},
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "rope_theta": 0.5},
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_slow": 1e-9}},
        {
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 1,
            }
        },
        {
            "rope_scaling": {
                "rope_type": "longrope",
                "short_factor": [1.0] * 64,
                "long_factor": [2.0] * 64,
                "original_max_position_embeddings": 1,
            }
        },
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 1.0}},
    ],
    ids=["theta of 1", "theta below", "no turns", "yarn from 1", "longrope from 1", "one band"],
)
def test_senseless_rope_scaling_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match="make no sense"):
        parse_config(RAW | changes, {})


def test_the_smallest_sensible_numbers_are_accepted() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2}
    config = parse_config(RAW | {"rope_scaling": scaling, "rope_theta": 1.001}, {})
    frequencies = inverse_frequencies(config.rope, config.head_dim, config.context_tokens)
    assert frequencies.isfinite().all()


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_pytorch_tanh"])
def test_gated_mlps_use_the_configured_activation(name: str) -> None:
    assert parse_config(RAW | {"hidden_act": name}, {}).activation.kind.value == name
    with pytest.raises(ModelError, match="relu2"):
        parse_config(RAW | {"hidden_act": "relu2"}, {})  # of MLPs without a gate
