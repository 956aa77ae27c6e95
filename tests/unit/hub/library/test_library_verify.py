"""Verifying what is installed, to the byte, and repairing it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from medusa_core.errors import Cancelled
from medusa_core.hub.library.installed import (
    find_installed,
    list_installed,
    repo_folder,
)
from medusa_core.hub.library.library_verify import (
    FileState,
    repair,
    verify,
)
from tests.support.hub.installed import (
    HEADS,
    MODEL,
    SHA,
    SPEC,
    add_revision,
    disk_bytes,
    flip_a_byte,
    snapshot_of,
    truncate,
)
from tests.support.models.tiny import write_tiny


def test_a_complete_model_verifies_and_progress_counts_every_byte(cache: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = verify(snapshot_of(cache), lambda done, total: seen.append((done, total)))
    assert report.is_whole
    assert {file.state for file in report.files} == {FileState.WHOLE}
    assert seen[-1][0] == seen[-1][1] == sum(file.nbytes for file in report.files)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
@pytest.mark.parametrize("has_tree", [True, False])
@pytest.mark.parametrize("place", [0, -1])
def test_one_flipped_bit_is_detected(
    tmp_path: Path, model_files: dict[str, bytes], name: str, has_tree: bool, place: int
) -> None:
    snapshot = add_revision(tmp_path, MODEL, model_files, has_tree=has_tree)
    assert verify(snapshot).is_whole
    flip_a_byte((snapshot / name).resolve(), place)
    report = verify(snapshot)
    assert report.names(FileState.DAMAGED) == (name,)
    assert len(report.names(FileState.WHOLE)) == len(model_files) - 1
    assert not report.is_whole


def test_copies_without_links_are_checked_by_the_commits_listing(
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
    assert set(report.names(FileState.UNCHECKED)) == {path.name for path in folder.iterdir()}
    os.truncate(folder / "model.safetensors", 100)
    report = verify(folder)
    assert report.to_fetch == ("model.safetensors",)
    # What isn't in the cache is never removed.
    assert repair(report).left == ("model.safetensors",)
    assert (folder / "model.safetensors").exists()


def test_a_size_that_differs_is_damage(cache: Path) -> None:
    truncate(snapshot_of(cache))
    (found,) = (
        file for file in verify(snapshot_of(cache)).files if file.state is FileState.DAMAGED
    )
    assert "bytes instead of" in found.reason


def test_with_a_damaged_listing_blob_names_are_used_as_hashes(cache: Path) -> None:
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
    assert set(report.names(FileState.DAMAGED)) == {"extra.bin", "twice.bin", "cross.bin"}
    assert set(repair(report).left) == {"extra.bin", "twice.bin", "cross.bin"}
    assert precious.exists()
    assert away.exists()
    assert others.exists()
