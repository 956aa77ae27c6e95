"""Every published format of Medusa heads: the same weights in each give the same drafts."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.__main__ import main
from medusa_core.errors import HeadsError, RequestError
from medusa_core.heads.format import format_registry
from medusa_core.heads.kind import read_shape
from medusa_core.heads.reader import read_head_set
from medusa_core.heads.weights import HeadWeights
from medusa_core.heads.writer import write_heads
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, HeadsShape, LoadOptions
from medusa_core.system.resources import demo_heads_dir
from tests.support.engine.laws import check_same_tokens, decode, plainly, user_says
from tests.support.models.medusa_files import REDUCED, Tensors, reduced, save, vllm_names
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import random_heads, random_rooted_heads, write_tiny
from tests.support.models.tiny import write_heads as write_tiny_heads

HIDDEN = torch.randn(GROUPED.hidden_size, dtype=torch.float64)


Put = Callable[[Path, Path, Tensors], tuple[Path, Path | None]]
"""Writes heads beside, or into, a copy of a target; returns the model's and the heads' folder."""


def put_classic(name: str, prefix: str = "", **config: object) -> Put:
    def put(model: Path, heads: Path, tensors: Tensors) -> tuple[Path, Path | None]:
        renamed = {prefix + key: value for key, value in tensors.items()}
        return model, save(heads, name, renamed, {"medusa_num_heads": 2, **config})

    return put


def put_vllm(prefix: str) -> Put:
    def put(model: Path, heads: Path, tensors: Tensors) -> tuple[Path, Path | None]:
        config: dict[str, object] = {"model_type": "medusa", "num_heads": 3}
        return model, save(heads, "model.safetensors", vllm_names(tensors, prefix), config)

    return put


def put_merged(is_sharded: bool) -> Put:
    def put(model: Path, heads: Path, tensors: Tensors) -> tuple[Path, Path | None]:
        merged = {f"medusa_head.{key}": value for key, value in tensors.items()}
        path = model / "model.safetensors"
        if not is_sharded:
            save_file(load_file(path) | merged, path)
            return model, None
        shards = {"a.safetensors": load_file(path), "b.safetensors": merged}
        path.unlink()
        for shard, part in shards.items():
            save_file(part, model / shard)
        weight_map = {key: shard for shard, part in shards.items() for key in part}
        (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
        return model, None

    return put


FORMATS: dict[str, Put] = {
    "v0.1": put_classic("medusa_lm_head.safetensors"),
    "TensorRT-LLM": put_classic("medusa_lm_head.safetensors", "medusa_heads."),
    "vLLM": put_vllm(""),
    "vLLM with a prefix": put_vllm("medusa_heads."),
    "v1.0 merged": put_merged(is_sharded=False),
    "v1.0 merged, sharded": put_merged(is_sharded=True),
}
SHARED_FORMATS: dict[str, Put] = {
    "v2, TGI": put_classic("medusa_lm_head.safetensors", version="2"),
    "TensorRT-LLM": put_classic("medusa_lm_head.safetensors", "medusa_heads."),
    "v1.0 merged": put_merged(is_sharded=False),
}


def loaded(put: Put, root: Path, tensors: Tensors) -> Target:
    """A target with heads in a format."""
    model, heads = put(write_tiny(root / "model", GROUPED), root / "heads", tensors)
    return load_target(model, heads, LoadOptions("float64"))


def drafts(target: Target) -> list[list[int]]:
    assert target.heads is not None
    return target.heads.ranked(HIDDEN, 0, (7, 5, 3)).token_ids


@pytest.mark.parametrize("num_layers", [0, 1, 2])
@pytest.mark.parametrize("has_bias", [True, False], ids=["bias", "no bias"])
def test_every_format_of_heads_gives_the_same_drafts(
    num_layers: int, has_bias: bool, tmp_path: Path
) -> None:
    tensors = random_heads(GROUPED, 3, num_layers)
    if not has_bias:
        tensors = {key: value for key, value in tensors.items() if not key.endswith("bias")}
    found = {}
    for index, (name, put) in enumerate(FORMATS.items()):
        (tmp_path / str(index)).mkdir()
        found[name] = drafts(loaded(put, tmp_path / str(index), tensors))
    assert all(ranked == found["v0.1"] for ranked in found.values()), found


def test_every_format_with_a_shared_projection_gives_the_same_drafts(tmp_path: Path) -> None:
    tensors = random_heads(GROUPED, 3, 1, is_shared=True)
    found = {}
    for index, (name, put) in enumerate(SHARED_FORMATS.items()):
        (tmp_path / str(index)).mkdir()
        found[name] = drafts(loaded(put, tmp_path / str(index), tensors))
    assert all(ranked == found["v2, TGI"] for ranked in found.values()), found


@pytest.mark.parametrize("name", FORMATS)
def test_the_law_holds_with_heads_of_every_format(name: str, tmp_path: Path) -> None:
    target = loaded(FORMATS[name], tmp_path, random_heads(GROUPED))
    settings = GenerateSettings(drafter="medusa", max_new_tokens=24, tree_rows=12)
    plain = decode(target, plainly(settings), user_says("any format"))
    check_same_tokens(plain, decode(target, settings, user_says("any format")))


# A reduced vocabulary -----------------------------------------------------------------------------


def test_a_token_map_names_the_tokens_of_a_reduced_vocabulary(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    tensors = reduced(REDUCED) | {"token_map": REDUCED}
    heads = save(tmp_path / "heads", "model.safetensors", tensors, {})
    target = load_target(model, heads, LoadOptions("float64"))
    assert target.heads is not None
    whole = loaded(FORMATS["v0.1"], tmp_path, random_heads(GROUPED)).heads
    assert whole is not None
    scores = whole.logits(HIDDEN, 0, 3)
    among = torch.full_like(scores, -torch.inf)
    among[:, REDUCED] = scores[:, REDUCED]
    expected = among.argsort(dim=-1, descending=True)[:, :7].tolist()
    assert target.heads.ranked(HIDDEN, 0, (7, 7, 7)).token_ids == expected
    settings = GenerateSettings(drafter="medusa", max_new_tokens=24, tree_rows=40)
    plain = decode(target, plainly(settings), user_says("reduced"))
    check_same_tokens(plain, decode(target, settings, user_says("reduced")))


def test_a_tree_never_requests_more_ranks_than_the_vocabulary_has(tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    few = REDUCED[:3]
    tensors = reduced(few) | {"token_map": few}
    heads = save(tmp_path / "heads", "model.safetensors", tensors, {})
    target = load_target(model, heads, LoadOptions("float64"))
    run = decode(
        target, GenerateSettings(drafter="medusa", max_new_tokens=8, tree_rows=64), user_says("few")
    )
    assert max(step.num_rows for step in run.steps[1:]) > 3


@pytest.mark.parametrize(
    ("token_map", "reported"),
    [
        (REDUCED[:99], "99"),
        (torch.cat([REDUCED[:99], REDUCED[:1]]), "twice"),
        (torch.cat([REDUCED[:99], torch.tensor([-1])]), "twice, or none"),
        (torch.cat([REDUCED[:99], torch.tensor([5000])]), r"5001.*320"),
    ],
    ids=["short", "double", "negative", "beyond the model"],
)
def test_a_wrong_token_map_is_refused(token_map: Tensor, reported: str, tmp_path: Path) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    tensors = reduced(REDUCED) | {"token_map": token_map}
    heads = save(tmp_path / "heads", "model.safetensors", tensors, {})
    with pytest.raises(HeadsError, match=reported):
        load_target(model, heads, LoadOptions("float64"))


@pytest.mark.parametrize("num_rows", [GROUPED.vocab_size - 1, GROUPED.vocab_size + 64])
def test_a_padded_vocabulary_makes_no_difference(num_rows: int, tmp_path: Path) -> None:
    tensors = random_heads(GROUPED)
    for head in range(3):
        projection = torch.full((num_rows, GROUPED.hidden_size), 9.0).bfloat16()
        own = tensors[f"{head}.1.weight"][:num_rows]
        projection[: len(own)] = own
        tensors[f"{head}.1.weight"] = projection
    target = loaded(FORMATS["v0.1"], tmp_path, tensors)
    assert max(token for row in drafts(target) for token in row) < GROUPED.vocab_size


# Unmatched keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("v0.1", "0.0.linear.scale"),
        ("v0.1", "0.7.linear.weight"),
        ("vLLM", "blocks.0.gates.0.weight"),
        ("vLLM", "1.0.linear.weight"),
    ],
)
def test_every_unmatched_tensor_is_listed(name: str, extra: str, tmp_path: Path) -> None:
    model, heads = FORMATS[name](
        write_tiny(tmp_path / "model", GROUPED), tmp_path / "heads", random_heads(GROUPED)
    )
    assert heads is not None
    path = next(heads.glob("*.safetensors"))
    more = {f"{extra}{index}": torch.zeros(1) for index in range(12)}
    save_file(load_file(path) | more | {extra: torch.zeros(32, 32)}, path)
    with pytest.raises(HeadsError) as caught:
        load_target(model, heads, LoadOptions("float64"))
    assert all(key in caught.value.message for key in more)


def test_an_unmatched_tensor_among_merged_heads_is_listed(tmp_path: Path) -> None:
    tensors = random_heads(GROUPED) | {"0.0.linear.scale": torch.zeros(1)}
    with pytest.raises(HeadsError, match=r"medusa_head\.0\.0\.linear\.scale"):
        loaded(FORMATS["v1.0 merged"], tmp_path, tensors)


# Writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("spec", format_registry().specs, ids=lambda spec: spec.name)
def test_written_heads_are_read_back_bit_for_bit(
    spec: object, is_shared: bool, tmp_path: Path
) -> None:
    from medusa_core.heads.format import HeadsFormat

    assert isinstance(spec, HeadsFormat)
    tensors = random_heads(GROUPED, 4, 2, is_shared)
    source = save(tmp_path / "source", "medusa_lm_head.safetensors", tensors, {})
    heads, _ = read_head_set(source, None)
    if spec.write is None or is_shared != (spec.name in ("v2", "rooted")):
        with pytest.raises(HeadsError):
            write_heads(heads, spec.name, tmp_path / "out", "base")
        return
    first = write_heads(heads, spec.name, tmp_path / "one", "base")
    again, found = read_head_set(first.parent, None)
    assert found.name == spec.name
    for a, b in zip(heads.heads, again.heads, strict=True):
        for (w, bias), (w2, bias2) in zip(a.layers, b.layers, strict=True):
            assert w.equal(w2)
            assert bias is not None
            assert bias2 is not None
            assert bias.equal(bias2)
        assert (a.projection is None) == (b.projection is None)
        assert a.projection is None or b.projection is None or a.projection.equal(b.projection)
    second = write_heads(again, spec.name, tmp_path / "two", "base")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(p.name for p in first.parent.iterdir()) == ["config.json", first.name]


@pytest.mark.parametrize("has_one_projection", [False, True], ids=["target's", "one"])
def test_rooted_heads_are_read_back_bit_for_bit(has_one_projection: bool, tmp_path: Path) -> None:
    heads = random_rooted_heads(GROUPED, 4, 2, has_one_projection)
    first = write_heads(heads, "rooted", tmp_path / "one", "base")
    again, found = read_head_set(first.parent, None)
    assert found.name == "rooted"
    assert again.reads_root
    assert again.hidden_size == GROUPED.hidden_size
    assert (again.projection is not None) == (again.token_map is not None) == has_one_projection
    second = write_heads(again, "rooted", tmp_path / "two", "base")
    assert first.read_bytes() == second.read_bytes()
    shape = read_shape(first.parent)
    assert shape == HeadsShape(
        4,
        2,
        160 if has_one_projection else 0,
        GROUPED.hidden_size,
        is_reduced=has_one_projection,
        reads_root=True,
        has_one_projection=has_one_projection,
    )
    for name in ("v0.1", "v2", "vllm"):
        with pytest.raises(HeadsError, match="read the root's vector"):
            write_heads(heads, name, tmp_path / name, "base")


def test_the_command_shows_all_that_rooted_heads_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = random_rooted_heads(GROUPED, 3, 2)
    write_heads(heads, "rooted", tmp_path, "base")
    assert main(["heads", "show", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    held = [t for head in heads.heads for pair in head.layers for t in pair if t is not None]
    assert heads.projection is not None
    num_bytes = sum(tensor.nbytes for tensor in (*held, heads.projection))
    for reported in ("state and root", "160 tokens, one for all, mapped", f"{num_bytes:,}"):
        assert reported in shown


@pytest.mark.parametrize("width", [48, 96, 31])
def test_first_layers_of_a_wrong_width_are_refused(width: int, tmp_path: Path) -> None:
    heads = random_rooted_heads(GROUPED, 2, 1)
    narrow = tuple(
        HeadWeights(((head.layers[0][0][:, :1].expand(-1, width), head.layers[0][1]),), None)
        for head in heads.heads
    )
    write_heads(replace(heads, heads=narrow), "rooted", tmp_path, "base")
    with pytest.raises(HeadsError, match="not all 32 wide"):
        read_head_set(tmp_path, None)


def test_an_ignored_shared_projection_beside_own_ones_is_refused(tmp_path: Path) -> None:
    tensors = vllm_names(random_heads(GROUPED)) | {"lm_head.weight": torch.zeros(320, 32)}
    heads = save(tmp_path, "model.safetensors", tensors, {})
    for read in (read_shape, lambda folder: read_head_set(folder, None)):
        with pytest.raises(HeadsError, match=r"lm_head\.weight"):
            read(heads)


def test_a_shared_projection_drafts_like_a_copy_per_head(tmp_path: Path) -> None:
    tensors = random_heads(GROUPED, 3, 1, is_shared=True)
    bare, _ = read_head_set(
        save(tmp_path / "bare", "medusa_lm_head.safetensors", tensors, {}), None
    )
    matrix = torch.randn(GROUPED.vocab_size, GROUPED.hidden_size).bfloat16()
    model = write_tiny(tmp_path / "model", GROUPED)
    found = []
    for name in ("v0.1", "vllm"):
        write_heads(replace(bare, projection=matrix), name, tmp_path / name, "base")
        target = load_target(model, tmp_path / name, LoadOptions("float64"))
        assert target.heads is not None
        found.append((drafts(target), target.heads.nbytes))
    (each, each_bytes), (one, one_bytes) = found
    assert one == each
    assert each_bytes - one_bytes == 2 * matrix.numel() * 8


def test_the_command_converts_heads_for_other_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_tiny(tmp_path / "model", GROUPED)
    source = write_tiny_heads(
        tmp_path / "heads", random_heads(GROUPED, is_shared=True), [[0.5, 0.1]] * 3
    )
    expected = drafts(load_target(model, source, LoadOptions("float64")))
    for name in ("v0.1", "v2", "vllm"):
        out = tmp_path / name
        given = [] if name == "v2" else ["--model", str(model)]
        assert main(["heads", "convert", str(source), str(out), "--to", name, *given]) == 0
        assert drafts(load_target(model, out, LoadOptions("float64"))) == expected
        assert (out / "medusa_trees.json").exists()
        capsys.readouterr()
        assert main(["heads", "show", str(out)]) == 0
        assert name in capsys.readouterr().out


def test_a_conversion_that_isnt_possible_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    heads = str(write_tiny_heads(tmp_path / "heads", random_heads(GROUPED, is_shared=True)))
    assert main(["heads", "convert", heads, str(out), "--to", "vllm"]) == 1
    assert "--model" in capsys.readouterr().err
    assert main(["heads", "convert", heads, str(out), "--to", "gguf"]) == 1
    assert "vllm" in capsys.readouterr().err
    assert main(["heads", "convert", str(demo_heads_dir()), str(out), "--to", "v2"]) == 1
    assert "read the root's vector" in capsys.readouterr().err
    assert not out.exists()


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    tensors = random_heads(GROUPED, is_shared=True)
    heads, _ = read_head_set(write_tiny_heads(tmp_path / "heads", tensors), None)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(HeadsError, match="can't be written"):
        write_heads(heads, "v2", tmp_path / "file", "base")
    with pytest.raises(RequestError):
        write_heads(heads, "v9", tmp_path / "out", "base")
