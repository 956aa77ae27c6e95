"""Removing what is installed frees what it says, to the byte, and nothing else."""

import os
from pathlib import Path

import pytest
from huggingface_hub import scan_cache_dir

from medusa_core.errors import RequestError
from medusa_core.hub.library.installed import (
    list_installed,
    repo_folder,
)
from medusa_core.hub.library.library_remove import (
    Removal,
    plan_removal,
    remove,
)
from medusa_core.hub.library.library_verify import verify
from tests.support.hub.installed import (
    HEADS,
    MODEL,
    OTHER_SHA,
    SHA,
    add_revision,
    disk_bytes,
    snapshot_of,
    tree_of,
)


def test_removing_a_repository_frees_the_announced_bytes(cache: Path) -> None:
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


def test_removing_a_revision_keeps_blobs_that_others_share(
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


def test_a_removed_revision_keeps_link_targets_outside(
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


def test_a_blob_linked_from_elsewhere_frees_nothing(cache: Path, tmp_path: Path) -> None:
    blob = (snapshot_of(cache) / "model.safetensors").resolve()
    size = blob.stat().st_size
    repo = repo_folder(cache, MODEL)
    (tmp_path / "same").hardlink_to(blob)
    assert plan_removal(cache, repo).freed_bytes == disk_bytes(repo) - size


def test_blobs_in_the_shared_store_are_removed_with_their_last_user(
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


@pytest.mark.parametrize("kind", ["folder", "nothing", "itself", "pipe"])
def test_a_link_in_refs_without_a_commit_keeps_no_revision(
    kind: str, cache: Path, tmp_path: Path, model_files: dict[str, bytes]
) -> None:
    kept = add_revision(cache, MODEL, {**model_files, "only": b"x"}, OTHER_SHA, "v2")
    odd = repo_folder(cache, MODEL) / "refs" / "pr"
    if kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to({"folder": tmp_path, "nothing": tmp_path / "none", "itself": odd}[kind])
    assert {one.refs for one in list_installed(cache) if one.name == MODEL} == {("main",), ("v2",)}
    remove(cache, plan_removal(cache, repo_folder(cache, MODEL), SHA))
    assert verify(kept).is_whole
    assert {path.name for path in (repo_folder(cache, MODEL) / "refs").iterdir()} == {"v2", "pr"}
    assert tmp_path.is_dir()
