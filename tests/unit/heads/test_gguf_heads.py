"""Heads in GGUF files are those of the published layout, tensor by tensor and draft by draft."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from medusa_core.errors import CheckpointError, HeadsError
from medusa_core.heads.block_parts import drafter_parts
from medusa_core.heads.eagle_parts import eagle_parts
from medusa_core.heads.head_files import open_head_files
from medusa_core.heads.kind import read_shape
from medusa_core.hub.library.find import installed
from medusa_core.hub.library.installed import list_installed
from medusa_core.hub.library.library_folder import ContentsKind, check_folder, look_into
from medusa_core.hub.library.pairing import HeadsFit, TargetFacts, match
from medusa_core.loading.load import load_target
from medusa_core.messages import GenerateSettings, LoadOptions
from medusa_core.models.model_files import ModelFiles
from tests.support.engine.laws import decode, user_says
from tests.support.models.block_files import (
    DFLASH,
    DFLASH2,
    DSPARK,
    JETSPEC,
    REDUCED,
    SCORED,
    write_block,
)
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.gguf_converter import convert
from tests.support.models.gguf_heads_files import (
    write_block_gguf,
    write_eagle_gguf,
    write_mtp_gguf,
)
from tests.support.models.mtp_peers import drafts_of, write_mtp_peer
from tests.support.models.qwen3_5_files import dense
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import write_tiny

# Of "speculators" alone a missing `norm_before_residual` means true; a file always says it.
EAGLES = {
    "usual": EagleSpec("eagle3"),
    "residual normed, states normed": EagleSpec(
        "eagle3", more={"norm_before_residual": True, "norm_before_fc": True}, seed=7
    ),
}


BLOCKS = {
    "DFlash": DFLASH,
    "DFlash with windows, biases and scaled scores": replace(
        DFLASH, windows=(4, None), has_bias=True, own=SCORED
    ),
    "DFlash with windows everywhere": replace(
        DFLASH, own={"use_swa": True, "swa_window_size": 5}, windows=(5, 5)
    ),
    "DSpark": DSPARK,
    "DSpark of some tokens": REDUCED,
    "JetSpec": JETSPEC,
    "DFlash2": DFLASH2,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("gguf-heads") / "target", GROUPED)


@pytest.mark.parametrize("name", EAGLES)
def test_an_eagle_head_is_equal_from_safetensors_and_gguf(name: str, tmp_path: Path) -> None:
    folder = write_eagle(tmp_path / "heads", EAGLES[name])
    file = write_eagle_gguf(tmp_path / "x.gguf", EAGLES[name])
    assert read_shape(file) == read_shape(folder)
    published, stored = (open_head_files(path) for path in (folder, file))
    wanted, found = (eagle_parts(one.settings, one.shapes) for one in (published, stored))
    assert replace(found, names={}) == replace(wanted, names={})
    assert wanted.names.keys() - found.names.keys() == {"is_drafted"}  # nothing needs it
    for part, theirs in found.names.items():
        ours = wanted.names[part]
        if part == "drafted_tokens":
            assert torch.equal(
                stored.checkpoint.integers(theirs), published.checkpoint.integers(ours)
            )
            continue
        numbers = stored.checkpoint.floats(theirs, None)
        assert torch.equal(numbers, published.checkpoint.floats(ours, torch.float32))
    assert stored.settings["base_model_name_or_path"] == "them/target"


def test_a_block_quantized_head_is_dequantized_exactly(model: Path, tmp_path: Path) -> None:
    spec = EAGLES["usual"]
    file = write_eagle_gguf(tmp_path / "x.gguf", spec, "q8_0")
    exact = open_head_files(write_eagle_gguf(tmp_path / "y.gguf", spec)).checkpoint
    stored = open_head_files(file).checkpoint
    name = "model.layers.0.self_attn.k_proj.weight"
    assert stored.dtype(name) == "q8_0"
    assert torch.allclose(stored.floats(name, None), exact.floats(name, None), atol=0.02)
    target = load_target(model, file, LoadOptions("float32", "cpu"))
    run = decode(target, GenerateSettings("eagle", max_new_tokens=6), user_says("hi"))
    assert run.steps


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_drafter_is_equal_from_safetensors_and_gguf(name: str, tmp_path: Path) -> None:
    folder = write_block(tmp_path / "heads", BLOCKS[name])
    file = write_block_gguf(tmp_path / "x.gguf", BLOCKS[name])
    assert read_shape(file) == read_shape(folder)
    published, stored = (open_head_files(path) for path in (folder, file))
    wanted, found = (drafter_parts(one.settings, one.shapes) for one in (published, stored))
    assert replace(found, names={}) == replace(wanted, names={})
    copies = {"embedding", *(() if BLOCKS[name].columns else ("lm_head",))}
    assert wanted.names.keys() - found.names.keys() <= copies
    for part, theirs in found.names.items():
        ours = wanted.names[part]
        if part == "drafted_tokens":
            pair = stored.checkpoint.integers(theirs), published.checkpoint.integers(ours)
        else:
            pair = (
                stored.checkpoint.floats(theirs, None),
                published.checkpoint.floats(ours, torch.float32),
            )
        assert torch.equal(*pair)


def test_an_mtp_layer_in_its_own_file_drafts_like_one_in_the_models(tmp_path: Path) -> None:
    folder = write_mtp_peer("qwen 3.5", tmp_path / "model", config=dense())
    file = convert(folder, tmp_path / "model.gguf")
    num_layers = ModelFiles.open(folder).config.num_layers
    alone = write_mtp_gguf(tmp_path / "mtp-model.gguf", file, num_layers)
    assert look_into(alone).kind is ContentsKind.HEADS
    options = LoadOptions("float32", "cpu", takes_own_heads=False)
    drafted = [drafts_of(load_target(folder, path, options)) for path in (folder, file, alone)]
    assert drafted[0] == drafted[1] == drafted[2]


def test_the_library_pairs_a_heads_file_with_its_model_or_says_why_not(
    tmp_path: Path,
) -> None:
    file = write_eagle_gguf(tmp_path / "x.gguf", EAGLES["usual"])
    contents = check_folder(file)  # as an import does
    assert (contents.kind, contents.storage) == (ContentsKind.HEADS, "gguf")
    heads = contents.heads
    assert heads is not None
    made_for = match(TargetFacts("me/target-GGUF", 32, 320, 2), heads)
    assert (made_for.fit, made_for.reason) == (HeadsFit.MADE_FOR, "made for them/target")
    reasons = {
        TargetFacts("a", 64, 320, 2): "hidden size 32 ≠ 64",
        TargetFacts("b", 32, 900, 2): "vocabulary size 320 ≠ 900",
        TargetFacts("c", 32, 320, 1): "reads layer 2 of 1",
    }
    assert {target: match(target, heads).reason for target in reasons} == reasons
    (one,) = list_installed(tmp_path / "none", [tmp_path])
    assert one.contents.kind is ContentsKind.HEADS
    assert installed(str(file)) == file
    assert open_head_files(tmp_path).path == file  # as a download leaves it
    write_eagle_gguf(tmp_path / "y.gguf", EAGLES["usual"])
    with pytest.raises(HeadsError, match="No medusa_lm_head"):
        open_head_files(tmp_path)


def test_drafters_with_token_embeddings_are_not_listed_as_models(tmp_path: Path) -> None:
    eagle = write_eagle(tmp_path / "eagle", EAGLES["usual"])
    tensors = load_file(eagle / "model.safetensors")
    vectors = {"embed_tokens.weight": torch.zeros(320, 32)}
    save_file(tensors | vectors, eagle / "model.safetensors")
    for folder in (eagle, write_block(tmp_path / "block", DSPARK)):
        assert look_into(folder).kind is ContentsKind.HEADS


def test_a_heads_file_without_metadata_is_paired_by_its_name(tmp_path: Path) -> None:
    file = write_eagle_gguf(tmp_path / "Tiny-3B-eagle3-Q8_0.gguf", EAGLES["usual"], base_model="")
    heads = look_into(file).heads
    assert heads is not None
    target = TargetFacts("me/x-GGUF/Tiny-3B-Q4_K_M", 32, 320, 2)
    assert match(target, heads).fit is HeadsFit.MADE_FOR
    assert match(replace(target, name="me/Tiny-7B"), heads).fit is HeadsFit.FOREIGN


def test_damaged_heads_are_reported_in_the_library(tmp_path: Path) -> None:
    file = write_eagle_gguf(tmp_path / "x.gguf", EAGLES["usual"], without=("norm",))
    contents = look_into(file)
    assert contents.kind is ContentsKind.HEADS
    assert contents.heads is None
    assert contents.problems == ("The EAGLE head lacks last_norm. Download the heads again.",)
    with pytest.raises(CheckpointError, match="last_norm"):
        check_folder(file)
