"""Pickles become safetensors, bit by bit the same, whatever happens on the way."""

import json
import os
import shutil
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.errors import CheckpointError, ConversionError, DiskFullError
from medusa_core.hub.convert.convert import (
    ConversionLimits,
    convert,
)
from medusa_core.hub.convert.convert_source import find_source
from medusa_core.models.model_files import ModelFiles
from tests.support.hub.pickled import (
    LIMITS,
    assert_same,
    head_tensors,
    leftovers,
    run,
    shards,
)

pytestmark = pytest.mark.usefixtures("converts_here")

# What is written is what was read.


def test_heads_are_converted_bit_for_bit_once_and_load(tmp_path: Path) -> None:
    heads = head_tensors()
    torch.save(heads, tmp_path / "medusa_lm_head.pt")
    config = {"base_model_name_or_path": "lmsys/vicuna-7b-v1.3", "medusa_num_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    left = {name: f".conversion-{name}-abc.partial" for name in ("999999999", str(os.getpid()))}
    for folder in left.values():  # by a conversion that died, and by one that goes on
        (tmp_path / folder / "out").mkdir(parents=True)
    done = run(tmp_path)
    living = tmp_path / left[str(os.getpid())]
    assert living.exists()
    shutil.rmtree(living)
    assert [path.name for path in done.files] == ["medusa_lm_head.safetensors"]
    assert_same(load_file(done.files[0]), heads)
    assert json.loads((tmp_path / "config.json").read_text()) == config
    names = {"medusa_lm_head.pt", "medusa_lm_head.safetensors", "config.json"}
    assert leftovers(tmp_path) == names
    before = done.files[0].stat().st_mtime_ns
    with pytest.raises(ConversionError, match="exists already"):
        run(tmp_path)
    assert done.files[0].stat().st_mtime_ns == before


def test_heads_in_another_folder_get_a_configuration_that_names_their_model(tmp_path: Path) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    parameters = {name: torch.nn.Parameter(t) for name, t in head_tensors().items()}
    torch.save(OrderedDict(parameters), source / "medusa_lm_head.pt")
    (source / "config.json").write_text('{"base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}')
    run(source / "medusa_lm_head.pt", output)
    config = json.loads((output / "config.json").read_text())
    assert config["base_model_name_or_path"] == "lmsys/vicuna-7b-v1.3"
    assert config["medusa_num_heads"] == 3
    assert leftovers(source) == {"medusa_lm_head.pt", "config.json"}


def test_shards_are_converted_one_by_one_with_their_index(tmp_path: Path) -> None:
    wanted = shards(tmp_path / "in")
    (tmp_path / "in" / "config.json").write_text("{}")
    (tmp_path / "in" / "tokenizer.json").write_text("{}")
    seen: list[tuple[int, int]] = []
    source = find_source(tmp_path / "in", tmp_path / "out")
    done = convert(
        source,
        is_consented=True,
        limits=LIMITS,
        on_progress=lambda written, total: seen.append((written, total)),
    )
    assert [path.name for path in done.files] == [
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    ]
    assert leftovers(tmp_path / "out") == {path.name for path in done.files} | {
        "config.json",
        "tokenizer.json",
    }
    found: dict[str, Tensor] = {}
    for path in done.files[:2]:
        found |= load_file(path)
    assert_same(found, wanted)
    checkpoint = ModelFiles.open(tmp_path / "out").checkpoint()
    assert checkpoint.names == wanted.keys()
    index = json.loads(done.files[2].read_text())
    total = sum(tensor.nbytes for tensor in wanted.values())
    assert index["metadata"]["total_size"] == total == seen[-1][0] == seen[-1][1]
    assert [written for written, _ in seen] == sorted(written for written, _ in seen)


# What can happen on the way.


def test_nothing_is_converted_without_consent(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    with pytest.raises(ConversionError, match="can run code"):
        convert(find_source(tmp_path), is_consented=False, limits=LIMITS)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


def test_a_full_disk_is_detected_before_anything_is_written(tmp_path: Path) -> None:
    torch.save(head_tensors(), tmp_path / "medusa_lm_head.pt")
    limits = ConversionLimits(floor_bytes=1 << 60)
    with pytest.raises(DiskFullError):
        convert(find_source(tmp_path), is_consented=True, limits=limits)
    assert leftovers(tmp_path) == {"medusa_lm_head.pt"}


def test_shards_that_are_missing_or_elsewhere_are_named(tmp_path: Path) -> None:
    shards(tmp_path)
    (tmp_path / "pytorch_model-00002-of-00002.bin").unlink()
    with pytest.raises(CheckpointError, match="1 of 2"):
        find_source(tmp_path)
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text('{"weight_map": {"a": "../../x.bin"}}')
    with pytest.raises(CheckpointError, match="outside"):
        find_source(tmp_path)


def test_an_index_that_names_more_than_its_shards_contain_is_refused(tmp_path: Path) -> None:
    shards(tmp_path)
    index = tmp_path / "pytorch_model.bin.index.json"
    raw = json.loads(index.read_text())
    raw["weight_map"]["absent"] = "pytorch_model-00001-of-00002.bin"
    index.write_text(json.dumps(raw))
    before = leftovers(tmp_path)
    with pytest.raises(ConversionError, match="absent"):
        run(tmp_path)
    assert leftovers(tmp_path) == before


def test_a_folder_without_pickles_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match="No pickled") as caught:
        find_source(tmp_path)
    assert "medusa_lm_head.pt" in caught.value.hint
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ConversionError, match="already"):
        find_source(tmp_path)
