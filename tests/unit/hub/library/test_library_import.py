"""Models that are on the disk already: used where they are, or copied."""

import shutil
from pathlib import Path

import pytest

from medusa_core.errors import CheckpointError, DiskFullError, ModelError, RequestError
from medusa_core.hub.library.installed import list_installed
from medusa_core.hub.library.library_folder import (
    ContentsKind,
    check_folder,
)
from medusa_core.hub.library.library_import import (
    FolderList,
    import_copy,
)
from tests.support.hub.installed import SPEC, read_files, snapshot_of
from tests.support.models.streams_files import write_streams
from tests.support.models.tiny import TinySpec, write_tiny


def test_an_imported_folder_is_used_in_place(tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "tiny", SPEC)
    folders = FolderList(tmp_path / "data" / "folders.json")
    assert folders.read() == ()
    assert folders.add(folder).contents.kind is ContentsKind.TARGET
    folders.add(folder)
    assert FolderList(tmp_path / "data" / "folders.json").read() == (folder,)
    (one,) = list_installed(tmp_path / "cache", folders.read())
    assert (one.path, one.is_cached) == (folder, False)
    folders.drop(folder)
    assert folders.read() == ()
    assert folder.exists()
    with pytest.raises(RequestError):
        folders.drop(folder)


def test_a_damaged_list_of_folders_raises_a_medusa_error(tmp_path: Path) -> None:
    path = tmp_path / "folders.json"
    for text in ("{", "[]", "3", '{"folders": 3}', "{}"):
        path.write_text(text)
        with pytest.raises(ModelError):
            FolderList(path).read()


def test_a_copy_appears_complete_or_not_at_all(
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
    with pytest.raises(CheckpointError, match="neither a folder"):
        check_folder(tmp_path / "none")


def test_streams_are_heads_that_can_be_imported(tmp_path: Path) -> None:
    contents = check_folder(write_streams(tmp_path / "streams"))
    assert contents.kind is ContentsKind.HEADS
    assert contents.heads is not None
    assert contents.heads.shape.kind == "streams"


@pytest.mark.parametrize(
    ("model_type", "why"),
    [("whisper", "one half of a model"), ("bert", "both directions"), ("theirs", "neither")],
)
def test_a_model_that_cannot_run_is_not_imported(model_type: str, why: str, tmp_path: Path) -> None:
    folder = write_tiny(tmp_path / "model", TinySpec(model_type=model_type))
    with pytest.raises(ModelError, match=why) as caught:
        FolderList(tmp_path / "folders.json").add(folder)
    assert caught.value.hint
    assert not (tmp_path / "folders.json").exists()
