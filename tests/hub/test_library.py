"""What is installed: listed with what it lacks, verified to the byte, removed to the byte."""

import builtins
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from huggingface_hub import scan_cache_dir
from safetensors.torch import save_file

from medusa_core.errors import (
    Cancelled,
    CheckpointError,
    DiskFullError,
    ModelError,
    RequestError,
)
from medusa_core.hub.library import find_installed, list_installed, pairings, repo_folder
from medusa_core.hub.library_folder import Kind, check_folder, look_into
from medusa_core.hub.library_import import FolderList, import_copy
from medusa_core.hub.library_remove import Removal, plan_removal, remove
from medusa_core.hub.library_verify import State, repair, verify
from tests.core.tiny import TinySpec, random_heads, random_weights, write_heads, write_tiny
from tests.hub.installed import OTHER_SHA, SHA, add_revision, disk_bytes, read_files, tree_of

SPEC = TinySpec()
MODEL, HEADS = "org/tiny", "org/tiny-heads"


@pytest.fixture(scope="module")
def model_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return read_files(write_tiny(tmp_path_factory.mktemp("model"), SPEC))


@pytest.fixture(scope="module")
def heads_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = write_heads(tmp_path_factory.mktemp("heads"), random_heads(SPEC))
    config = json.dumps({"base_model_name_or_path": MODEL}).encode()
    return {**read_files(folder), "config.json": config}


@pytest.fixture
def cache(tmp_path: Path, model_files: dict[str, bytes], heads_files: dict[str, bytes]) -> Path:
    folder = tmp_path / "cache"
    add_revision(folder, MODEL, model_files)
    add_revision(folder, HEADS, heads_files)
    return folder


def snapshot_of(cache: Path, repo: str = MODEL, sha: str = SHA) -> Path:
    return repo_folder(cache, repo) / "snapshots" / sha


def flip_a_byte(path: Path, place: int = -1) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


# Listing.


def test_models_and_heads_of_the_cache_are_listed_and_paired(cache: Path) -> None:
    model, heads = list_installed(cache)
    assert (model.name, model.revision, model.refs) == (MODEL, SHA, ("main",))
    assert (model.contents.kind, heads.contents.kind) == (Kind.TARGET, Kind.HEADS)
    assert model.is_complete
    assert heads.is_complete
    assert model.nbytes == sum(path.stat().st_size for path in model.path.iterdir())
    (pairing,) = pairings([model, heads])
    assert [match.reason for match in pairing.matches] == [f"made for {MODEL}"]


def test_sizes_agree_with_huggingface_hub(cache: Path) -> None:
    known = {repo.repo_id: repo.size_on_disk for repo in scan_cache_dir(cache).repos}
    assert {one.name: one.nbytes for one in list_installed(cache)} == known


def test_kinds_are_told_apart(tmp_path: Path) -> None:
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
        "merged": (Kind.MERGED, "safetensors", True),
        "beside": (Kind.MERGED, "safetensors", True),
        "pickled": (Kind.HEADS, "pickle", False),
        "shards": (Kind.TARGET, "pickle", False),
        "other": (Kind.UNKNOWN, "safetensors", False),
        "gguf": (Kind.UNKNOWN, "gguf", False),
    }


def truncate(snapshot: Path) -> None:
    path = (snapshot / "model.safetensors").resolve()
    os.truncate(path, path.stat().st_size - 1)


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
def test_what_is_incomplete_is_listed_with_what_it_lacks(
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
    assert one.contents.kind is Kind.TARGET
    assert "1 of 2 weight files are missing" in one.contents.problems[0]
    assert verify(snapshot).to_fetch == (second,)


def test_an_unfinished_download_is_listed(tmp_path: Path) -> None:
    blobs = repo_folder(tmp_path, MODEL) / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{SHA}.part").write_bytes(b"x" * 10)
    (one,) = list_installed(tmp_path)
    assert (one.nbytes, one.is_complete, one.contents.kind) == (10, False, Kind.UNKNOWN)
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


# Verifying.


def test_a_whole_model_verifies_and_progress_counts_every_byte(cache: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = verify(snapshot_of(cache), lambda done, total: seen.append((done, total)))
    assert report.is_whole
    assert {file.state for file in report.files} == {State.WHOLE}
    assert seen[-1][0] == seen[-1][1] == sum(file.nbytes for file in report.files)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("has_tree", [True, False])
@pytest.mark.parametrize("place", [0, -1])
def test_one_flipped_bit_is_found(
    tmp_path: Path, model_files: dict[str, bytes], name: str, has_tree: bool, place: int
) -> None:
    snapshot = add_revision(tmp_path, MODEL, model_files, has_tree=has_tree)
    assert verify(snapshot).is_whole
    flip_a_byte((snapshot / name).resolve(), place)
    report = verify(snapshot)
    assert report.names(State.DAMAGED) == (name,)
    assert len(report.names(State.WHOLE)) == len(model_files) - 1
    assert not report.is_whole


def test_copies_without_links_are_checked_by_the_list_of_the_commit(
    tmp_path: Path, model_files: dict[str, bytes]
) -> None:
    snapshot = add_revision(tmp_path, MODEL, model_files, has_links=False)
    assert verify(snapshot).is_whole
    flip_a_byte(snapshot / "model.safetensors")
    report = verify(snapshot)
    assert report.to_fetch == ("model.safetensors",)
    done = repair(report)
    assert done.freed_bytes == len(model_files["model.safetensors"])
    assert not (snapshot / "model.safetensors").exists()


def test_files_without_a_known_hash_are_named_and_their_headers_checked(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", SPEC)
    report = verify(folder)
    assert set(report.names(State.UNCHECKED)) == {path.name for path in folder.iterdir()}
    os.truncate(folder / "model.safetensors", 100)
    report = verify(folder)
    assert report.to_fetch == ("model.safetensors",)
    # What isn't in the cache is never removed.
    assert repair(report).left == ("model.safetensors",)
    assert (folder / "model.safetensors").exists()


def test_a_size_that_differs_is_damage(cache: Path) -> None:
    truncate(snapshot_of(cache))
    (found,) = (file for file in verify(snapshot_of(cache)).files if file.state is State.DAMAGED)
    assert "bytes instead of" in found.reason


def test_a_damaged_list_leaves_the_names_of_blobs(cache: Path) -> None:
    tree = repo_folder(cache, MODEL) / "trees" / f"{SHA}.json"
    for text in ("{", "[]", '{"files": 3}', '{"files": {"config.json": {"size": "x"}}}'):
        tree.write_text(text)
        assert verify(snapshot_of(cache)).is_whole


def test_a_check_can_be_stopped(cache: Path) -> None:
    with pytest.raises(Cancelled):
        verify(snapshot_of(cache), is_cancelled=lambda: True)


def test_repair_removes_damaged_blobs_and_says_what_to_fetch(
    cache: Path, model_files: dict[str, bytes]
) -> None:
    snapshot = snapshot_of(cache)
    blob = (snapshot / "model.safetensors").resolve()
    flip_a_byte(blob)
    (snapshot / "tokenizer.json").resolve().unlink()
    before = disk_bytes(cache)
    done = repair(verify(snapshot))
    assert set(done.to_fetch) == {"model.safetensors", "tokenizer.json"}
    assert done.freed_bytes == before - disk_bytes(cache) == len(model_files["model.safetensors"])
    assert not blob.exists()
    assert not (snapshot / "model.safetensors").is_symlink()
    assert not find_installed(list_installed(cache), MODEL).is_complete
    # As after the download of what was named.
    shutil.rmtree(snapshot)
    add_revision(cache, MODEL, model_files)
    assert verify(snapshot).is_whole


def test_repair_touches_nothing_outside_of_the_cache(cache: Path, tmp_path: Path) -> None:
    precious = tmp_path / ("d" * 64)
    precious.write_bytes(b"precious")
    away = tmp_path / "blobs" / ("d" * 64)
    away.parent.mkdir()
    away.write_bytes(b"precious")
    snapshot = snapshot_of(cache)
    (snapshot / "extra.bin").symlink_to(away)
    blob = repo_folder(cache, MODEL) / "blobs" / ("e" * 64)
    blob.symlink_to(precious)
    (snapshot / "twice.bin").symlink_to(blob)
    # The list of the commit can't have another repository's file removed either.
    others = (snapshot_of(cache, HEADS) / "medusa_lm_head.safetensors").resolve()
    (snapshot / "cross.bin").symlink_to(others)
    tree = repo_folder(cache, MODEL) / "trees" / f"{SHA}.json"
    listed = json.loads(tree.read_text())
    listed["files"]["cross.bin"] = {"lfs_sha256": "f" * 64}
    tree.write_text(json.dumps(listed))
    report = verify(snapshot)
    assert set(report.names(State.DAMAGED)) == {"extra.bin", "twice.bin", "cross.bin"}
    assert set(repair(report).left) == {"extra.bin", "twice.bin", "cross.bin"}
    assert precious.exists()
    assert away.exists()
    assert others.exists()


# Removing.


def test_removing_a_repository_frees_exactly_what_it_says(cache: Path) -> None:
    repo = repo_folder(cache, MODEL)
    locks = cache / ".locks" / repo.name
    locks.mkdir(parents=True)
    (locks / "x.lock").write_bytes(b"12345")
    (repo / "blobs" / "left.incomplete").write_bytes(b"x" * 1000)
    heads = tree_of(repo_folder(cache, HEADS))
    before = disk_bytes(cache)
    removal = plan_removal(cache, repo)
    assert disk_bytes(cache) == before
    freed = remove(cache, removal)
    assert freed == removal.freed_bytes == before - disk_bytes(cache) > 1005
    assert not repo.exists()
    assert not locks.exists()
    assert tree_of(repo_folder(cache, HEADS)) == heads
    assert [one.name for one in list_installed(cache)] == [HEADS]


def test_removing_a_revision_keeps_what_others_share(
    cache: Path, model_files: dict[str, bytes]
) -> None:
    changed = {**model_files, "config.json": model_files["config.json"] + b"\n", "only": b"x" * 99}
    kept = add_revision(cache, MODEL, changed, OTHER_SHA, "v2")
    repo = repo_folder(cache, MODEL)
    before = disk_bytes(cache)
    removal = plan_removal(cache, repo, SHA)
    assert removal.sharers == (OTHER_SHA,)
    assert removal.kept_bytes == sum(
        len(data) for name, data in model_files.items() if name != "config.json"
    )
    freed = remove(cache, removal)
    assert freed == removal.freed_bytes == before - disk_bytes(cache)
    assert verify(kept).is_whole
    assert {path.name for path in repo.glob("snapshots/*")} == {OTHER_SHA}
    assert {path.name for path in repo.glob("refs/*")} == {"v2"}
    assert {path.name for path in repo.glob("trees/*")} == {f"{OTHER_SHA}.json"}
    found = scan_cache_dir(cache)
    assert not found.warnings
    # The last revision takes the rest along.
    remove(cache, plan_removal(cache, repo, OTHER_SHA))
    assert not repo.exists()


def test_removal_of_a_revision_agrees_with_huggingface_hub(
    cache: Path, model_files: dict[str, bytes]
) -> None:
    add_revision(cache, MODEL, {**model_files, "only": b"x" * 99}, OTHER_SHA, "v2")
    theirs = scan_cache_dir(cache).delete_revisions(OTHER_SHA)
    ours = plan_removal(cache, repo_folder(cache, MODEL), OTHER_SHA)
    blobs = {path.resolve() for path in ours.files if path.parent.name == "blobs"}
    assert blobs == {path.resolve() for path in theirs.blobs}
    assert theirs.expected_freed_size == 99


def test_nothing_outside_of_the_cache_is_removed(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path / "models--org--mine"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (cache / "models--org--link").symlink_to(outside)
    for folder in (outside, cache / "models--org--link", cache, cache / "models--org--none"):
        with pytest.raises(RequestError):
            plan_removal(cache, folder)
    with pytest.raises(RequestError, match="no revision"):
        plan_removal(cache, repo_folder(cache, MODEL), "f" * 40)
    snapshot = snapshot_of(cache)
    (snapshot / "away").symlink_to(outside / "precious")
    (snapshot / "folder").symlink_to(outside)
    crafted = Removal(repo_folder(cache, MODEL), "", (), (outside / "precious",), 0)
    with pytest.raises(RequestError, match="out of the cache"):
        remove(cache, crafted)
    remove(cache, plan_removal(cache, repo_folder(cache, MODEL)))
    assert (outside / "precious").exists()


def test_a_removed_revision_does_not_take_what_its_links_name_elsewhere(
    cache: Path, tmp_path: Path, model_files: dict[str, bytes]
) -> None:
    precious = tmp_path / "blobs" / "precious"
    precious.parent.mkdir()
    precious.write_text("x")
    snapshot = add_revision(cache, MODEL, {"only": b"y"}, OTHER_SHA, "v2")
    (snapshot / "away").symlink_to(precious)
    remove(cache, plan_removal(cache, repo_folder(cache, MODEL), OTHER_SHA))
    assert precious.exists()
    assert verify(snapshot_of(cache)).is_whole


def test_a_blob_with_another_name_elsewhere_frees_nothing(cache: Path, tmp_path: Path) -> None:
    blob = (snapshot_of(cache) / "model.safetensors").resolve()
    size = blob.stat().st_size
    repo = repo_folder(cache, MODEL)
    (tmp_path / "same").hardlink_to(blob)
    assert plan_removal(cache, repo).freed_bytes == disk_bytes(repo) - size


def test_blobs_in_the_shared_store_go_with_their_last_user(
    cache: Path, model_files: dict[str, bytes]
) -> None:
    """huggingface_hub may keep one file for several repositories and link it from their blobs."""
    store = cache / "blobs"
    payload = store / "ab" / ("ab" + "0" * 62)
    payload.parent.mkdir(parents=True)
    (store / ".huggingface-shared-blobs").write_text("1\n")
    payload.write_bytes(b"z" * 5000)
    users = []
    for repo in ("org/first", "org/second"):
        snapshot = add_revision(cache, repo, {"config.json": b"{}", "x.bin": b"z" * 5000})
        blob = (snapshot / "x.bin").resolve()
        blob.unlink()
        blob.symlink_to(os.path.relpath(payload, blob.parent))
        users.append(blob.relative_to(cache).as_posix())
        assert verify(snapshot).is_whole
    payload.with_name(payload.name + ".refs").write_text("\n".join(users) + "\n")
    first = plan_removal(cache, repo_folder(cache, "org/first"))
    assert first.freed_bytes < 5000
    remove(cache, first)
    assert payload.exists()
    assert not repo_folder(cache, "org/first").exists()
    assert verify(snapshot_of(cache, "org/second")).is_whole
    second = plan_removal(cache, repo_folder(cache, "org/second"))
    assert second.freed_bytes >= 5000
    remove(cache, second)
    assert not payload.exists()


# Importing.


def test_a_folder_is_used_where_it_is(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", SPEC)
    folders = FolderList(tmp_path / "data" / "folders.json")
    assert folders.read() == ()
    assert folders.add(folder).contents.kind is Kind.TARGET
    folders.add(folder)
    assert FolderList(tmp_path / "data" / "folders.json").read() == (folder,)
    (one,) = list_installed(tmp_path / "cache", folders.read())
    assert (one.path, one.is_cached) == (folder, False)
    folders.drop(folder)
    assert folders.read() == ()
    assert folder.exists()
    with pytest.raises(RequestError):
        folders.drop(folder)


def test_a_damaged_list_of_folders_gives_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "folders.json"
    for text in ("{", "[]", "3", '{"folders": 3}', "{}"):
        path.write_text(text)
        with pytest.raises(ModelError):
            FolderList(path).read()


def test_a_copy_appears_whole_or_not_at_all(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tiny(tmp_path / "tiny", SPEC)
    models = tmp_path / "models"
    done = import_copy(folder, models, floor_bytes=0)
    assert read_files(done.path) == read_files(folder)
    with pytest.raises(RequestError, match="exists already"):
        import_copy(folder, models, floor_bytes=0)
    with pytest.raises(DiskFullError):
        import_copy(folder, tmp_path / "elsewhere", floor_bytes=1 << 60)
    # A snapshot of the cache is copied with the files that its links name.
    copied = import_copy(snapshot_of(cache), models, floor_bytes=0).path
    assert not any(path.is_symlink() for path in copied.iterdir())
    shutil.rmtree(models)
    copy, count = shutil.copyfile, iter(range(100))

    def fail_late(source: Path, target: Path) -> object:
        if next(count) == 2:
            raise OSError(28, "No space left on device")
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", fail_late)
    with pytest.raises(DiskFullError, match="No space"):
        import_copy(folder, models, floor_bytes=0)
    assert list(models.iterdir()) == []


def test_a_folder_that_cannot_be_loaded_is_not_imported(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", SPEC)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match="tokenizer is missing"):
        FolderList(tmp_path / "folders.json").add(folder)
    with pytest.raises(CheckpointError, match="tokenizer is missing"):
        import_copy(folder, tmp_path / "models")
    assert not (tmp_path / "folders.json").exists()
    with pytest.raises(CheckpointError, match="no folder"):
        check_folder(tmp_path / "none")


def test_looking_at_models_loads_no_torch(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = builtins.__import__

    def refuse(name: str, *args: object) -> object:
        assert name.partition(".")[0] != "torch"
        assert "heads.reader" not in name
        return load(name, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert look_into(snapshot_of(cache)).kind is Kind.TARGET


# From a terminal.


@pytest.fixture
def terminal(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command with another cache and another list of folders than the user's."""
    from medusa_core.hub import library_cli

    monkeypatch.setattr(
        library_cli, "folder_list", lambda: FolderList(tmp_path / "data" / "folders.json")
    )
    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    return run_command


def run_command(*arguments: str) -> int:
    import argparse

    from medusa_core.hub.library_cli import add_library_commands

    parser = argparse.ArgumentParser()
    add_library_commands(parser.add_subparsers(required=True))
    args = parser.parse_args(arguments)
    code: int = args.run(args)
    return code


def test_list_and_verify_print_what_they_find(
    terminal: Callable[..., int], cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert terminal("list") == 0
    said = capsys.readouterr().out
    assert "heads for org/tiny:" in said
    assert "made for it" in said
    assert terminal("list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)["installed"]
    assert [one["kind"] for one in listed] == ["target", "heads"]
    assert terminal("verify", MODEL) == 0
    flip_a_byte((snapshot_of(cache) / "model.safetensors").resolve())
    assert terminal("verify", MODEL, "--repair") == 1
    assert "to fetch again: model.safetensors" in capsys.readouterr().out


def test_remove_asks_first(
    terminal: Callable[..., int],
    cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(builtins, "input", lambda question: "no")
    assert terminal("remove", MODEL) == 1
    assert repo_folder(cache, MODEL).exists()
    monkeypatch.setattr(builtins, "input", lambda question: "y")
    before = disk_bytes(cache)
    assert terminal("remove", MODEL) == 0
    assert f"freed {before - disk_bytes(cache):,} bytes" in capsys.readouterr().out
    assert not repo_folder(cache, MODEL).exists()
    assert terminal("remove", HEADS, "--revision", "main", "--yes") == 0
    with pytest.raises(RequestError, match="isn't installed"):
        terminal("remove", MODEL, "--yes")


def test_import_and_convert_from_a_terminal(
    terminal: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = write_tiny(tmp_path / "mine", SPEC)
    assert terminal("import", str(folder)) == 0
    assert terminal("list") == 0
    assert "mine" in capsys.readouterr().out
    with pytest.raises(RequestError, match="its files stay"):
        terminal("remove", "mine", "--yes")
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    torch.save(random_heads(SPEC), pickled / "medusa_lm_head.pt")

    def no_answer(question: str) -> str:
        raise EOFError

    monkeypatch.setattr(builtins, "input", no_answer)
    assert terminal("convert", str(pickled)) == 1
    assert "only if you trust" in capsys.readouterr().out
    assert terminal("convert", str(pickled), "--output", str(tmp_path / "out"), "--yes") == 0
    assert look_into(tmp_path / "out").kind is Kind.HEADS
