"""What is installed is listed, with what it lacks."""

import builtins
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from huggingface_hub import scan_cache_dir
from safetensors.torch import save_file

from medusa_core.errors import RequestError
from medusa_core.hub.library.installed import (
    find_installed,
    list_installed,
    pairings,
    repo_folder,
)
from medusa_core.hub.library.library_folder import (
    ContentsKind,
    look_into,
)
from medusa_core.hub.library.library_remove import (
    plan_removal,
    remove,
)
from medusa_core.hub.library.library_verify import verify
from tests.support.hub.installed import (
    MODEL,
    OTHER_SHA,
    SHA,
    SPEC,
    add_revision,
    snapshot_of,
    truncate,
)
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import random_heads, random_weights, write_heads, write_tiny


def test_models_and_heads_of_the_cache_are_listed_and_paired(cache: Path) -> None:
    model, heads = list_installed(cache)
    assert (model.name, model.revision, model.refs) == (MODEL, SHA, ("main",))
    assert (model.contents.kind, heads.contents.kind) == (ContentsKind.TARGET, ContentsKind.HEADS)
    assert model.is_complete
    assert heads.is_complete
    assert model.nbytes == sum(path.stat().st_size for path in model.path.iterdir())
    (pairing,) = pairings([model, heads])
    assert [match.reason for match in pairing.matches] == [f"made for {MODEL}"]


def test_sizes_agree_with_huggingface_hub(cache: Path) -> None:
    known = {repo.repo_id: repo.size_on_disk for repo in scan_cache_dir(cache).repos}
    assert {one.name: one.nbytes for one in list_installed(cache)} == known


def test_files_are_named_by_their_metadata_and_distinguished_by_their_types(
    tmp_path: Path,
) -> None:
    folder = write_tiny(tmp_path / "tiny", SPEC)
    q8, q4 = (
        write_as_gguf(folder, tmp_path / f"x-{kind}.gguf", kind, name="Tiny Chat")
        for kind in ("q8_0", "f16")
    )
    (alone,) = list_installed(tmp_path / "none", [q8])
    assert (alone.name, alone.title) == ("x-q8_0.gguf", "Tiny Chat")
    both = list_installed(tmp_path / "none", [q8, q4])
    assert [one.title for one in both] == ["Tiny Chat F16", "Tiny Chat Q8_0"]
    assert find_installed([alone], "tiny chat") == find_installed([alone], "x-q8_0.gguf") == alone
    assert find_installed(both, "Tiny Chat Q8_0").path == q8
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / "y-q8_0.gguf"
    copy.write_bytes(q8.read_bytes())
    same = list_installed(tmp_path / "none", [q8, copy])
    assert [one.title for one in same] == ["x-q8_0.gguf", "y-q8_0.gguf"]


def test_models_heads_and_adapters_are_distinguished(tmp_path: Path) -> None:
    heads, weights = random_heads(SPEC), random_weights(SPEC)
    merged = write_tiny(tmp_path / "merged", SPEC)
    save_file(
        {**weights, **{f"medusa_head.{name}": tensor for name, tensor in heads.items()}},
        merged / "model.safetensors",
    )
    beside = write_tiny(tmp_path / "beside", SPEC)
    write_heads(beside, heads)
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    torch.save(heads, pickled / "medusa_lm_head.pt")
    shards = write_tiny(tmp_path / "shards", SPEC)
    (shards / "model.safetensors").rename(shards / "pytorch_model-00001-of-00001.bin")
    other = tmp_path / "other"
    other.mkdir()
    save_file({"x": torch.ones(1)}, other / "model.safetensors")
    gguf = tmp_path / "gguf"
    gguf.mkdir()
    (gguf / "x.gguf").write_bytes(b"GGUF")
    found = {
        one.name: (one.contents.kind, one.contents.storage, one.is_complete)
        for one in list_installed(tmp_path / "none", [tmp_path])
    }
    assert found == {
        "merged": (ContentsKind.MERGED, "safetensors", True),
        "beside": (ContentsKind.MERGED, "safetensors", True),
        "pickled": (ContentsKind.HEADS, "pickle", False),
        "shards": (ContentsKind.TARGET, "pickle", False),
        "other": (ContentsKind.UNKNOWN, "safetensors", False),
        "x.gguf": (ContentsKind.TARGET, "gguf", False),
    }


def test_the_dtype_of_most_weights_is_known(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "model", SPEC)
    weights = {name: tensor.bfloat16() for name, tensor in random_weights(SPEC).items()}
    norms = {name: tensor.float() for name, tensor in weights.items() if "norm" in name}
    save_file({**weights, **norms}, folder / "model.safetensors")
    (found,) = list_installed(tmp_path / "none", [folder])
    assert found.contents.dtype == "BF16"


DEFECTS: list[tuple[str, Callable[[Path], object]]] = [
    ("model.safetensors is incomplete", truncate),
    ("model.safetensors is missing", lambda snap: (snap / "model.safetensors").resolve().unlink()),
    ("tokenizer.json is missing", lambda snap: (snap / "tokenizer.json").resolve().unlink()),
    ("tokenizer is missing", lambda snap: (snap / "tokenizer.json").unlink()),
    ("config.json is missing", lambda snap: (snap / "config.json").unlink()),
    ("can't be read as JSON", lambda snap: (snap / "config.json").resolve().write_text("{")),
    ("no weights", lambda snap: (snap / "model.safetensors").unlink()),
]


@pytest.mark.parametrize(("what", "spoil"), DEFECTS, ids=[what for what, _ in DEFECTS])
def test_incomplete_models_are_listed_with_what_is_missing(
    cache: Path, what: str, spoil: Callable[[Path], object]
) -> None:
    spoil(snapshot_of(cache))
    one = find_installed(list_installed(cache), MODEL)
    assert not one.is_complete
    assert what in "; ".join(one.contents.problems)


def test_an_index_with_absent_shards_is_incomplete(
    tmp_path: Path, model_files: dict[str, bytes]
) -> None:
    files = {name: data for name, data in model_files.items() if name != "model.safetensors"}
    first, second = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
    files[first] = model_files["model.safetensors"]
    weight_map = {"model.embed_tokens.weight": first, "lm_head.weight": second}
    files["model.safetensors.index.json"] = json.dumps({"weight_map": weight_map}).encode()
    snapshot = add_revision(tmp_path, MODEL, files)
    (one,) = list_installed(tmp_path)
    assert one.contents.kind is ContentsKind.TARGET
    assert "1 of 2 weight files are missing" in one.contents.problems[0]
    assert verify(snapshot).to_fetch == (second,)


def test_an_unfinished_download_is_listed(tmp_path: Path) -> None:
    blobs = repo_folder(tmp_path, MODEL) / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{SHA}.part").write_bytes(b"x" * 10)
    (one,) = list_installed(tmp_path)
    assert (one.nbytes, one.is_complete, one.contents.kind) == (10, False, ContentsKind.UNKNOWN)
    assert "isn't finished" in one.contents.problems[0]
    assert remove(tmp_path, plan_removal(tmp_path, repo_folder(tmp_path, MODEL))) == 10


def test_revisions_are_found_by_branch_and_commit(
    cache: Path, model_files: dict[str, bytes]
) -> None:
    add_revision(cache, MODEL, model_files, OTHER_SHA, "v2")
    installed = list_installed(cache)
    assert find_installed(installed, MODEL.upper()).revision == SHA
    assert find_installed(installed, MODEL, "v2").revision == OTHER_SHA
    assert find_installed(installed, MODEL, OTHER_SHA[:6]).revision == OTHER_SHA
    with pytest.raises(RequestError, match="isn't installed") as caught:
        find_installed(installed, "org/tony")
    assert MODEL in caught.value.hint
    (repo_folder(cache, MODEL) / "refs" / "main").unlink()
    with pytest.raises(RequestError, match="several revisions"):
        find_installed(list_installed(cache), MODEL)


def test_listing_models_loads_no_torch(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refuse(name: str, *args: object) -> object:
        assert name.partition(".")[0] != "torch"
        assert "heads.reader" not in name
        return load(name, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert look_into(snapshot_of(cache)).kind is ContentsKind.TARGET
