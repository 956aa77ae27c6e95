"""Repositories of GGUF files: one is looked at, fetched and listed; others' files are shown."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import CheckpointError, UnusableRepoError
from medusa_core.hub.job import Pair
from medusa_core.hub.job_store import JobStore
from medusa_core.hub.library.installed import list_installed
from medusa_core.hub.library.library import Library
from medusa_core.hub.library.library_folder import ContentsKind
from medusa_core.hub.library.other_programs import models_of_others
from medusa_core.hub.listing import list_repo
from medusa_core.hub.remote import look_at_model
from medusa_core.hub.settings import HubSettings
from medusa_core.models.model_files import ModelFiles
from tests.support.hub.fixtures import LoopbackHub
from tests.support.hub.pairs import fetch, run, sent
from tests.support.models.gguf_files import write_as_gguf, write_split
from tests.support.models.tiny import TinySpec, write_tiny

REPO = "org/tiny-GGUF"
SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=1, seed=3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("gguf")
    folder = write_tiny(root / "tiny", SPEC)
    kinds = {"tiny-Q8_0.gguf": "q8_0", "tiny-Q4_0.gguf": "q4_0"}
    return {name: write_as_gguf(folder, root / name, kind) for name, kind in kinds.items()}


@pytest.fixture
def repo(hub: LoopbackHub, files: dict[str, Path]) -> Path:
    folder = hub.root / REPO
    folder.mkdir(parents=True)
    for name, path in files.items():
        (folder / name).write_bytes(path.read_bytes())
    (folder / "README.md").write_text("tiny")
    write_split(files["tiny-Q8_0.gguf"], folder)
    return folder


def test_a_gguf_file_is_inspected_by_its_header(
    repo: Path, settings: HubSettings, files: dict[str, Path], hub: LoopbackHub
) -> None:
    default = look_at_model(settings, REPO)
    assert default.listing.file == "tiny-Q4_0.gguf"
    assert default.config == ModelFiles.open(files["tiny-Q4_0.gguf"]).config
    other = look_at_model(settings, REPO, file="tiny-Q8_0.gguf")
    assert other.config.quantization == "q8_0"
    assert other.listing.needed_bytes == files["tiny-Q8_0.gguf"].stat().st_size
    names = [file.path for file in default.listing.ggufs]
    assert names == ["tiny-Q4_0.gguf", "tiny-Q8_0-00001-of-00002.gguf", "tiny-Q8_0.gguf"]


def test_one_file_is_downloaded_and_another_is_added(
    repo: Path, settings: HubSettings, hub: LoopbackHub
) -> None:
    (folder,) = fetch(settings, Pair(REPO, file="tiny-Q4_0.gguf"))
    assert [path.name for path in folder.iterdir()] == ["tiny-Q4_0.gguf"]
    first = sent(hub)
    fetch(settings, Pair(REPO, file="tiny-Q8_0-00001-of-00002.gguf"))
    found = {one.name: one for one in list_installed(settings.cache_dir)}
    assert set(found) == {f"{REPO}/tiny-Q4_0", f"{REPO}/tiny-Q8_0-00001-of-00002"}
    for one in found.values():
        assert (one.contents.kind, one.is_complete, one.is_cached) == (
            ContentsKind.TARGET,
            True,
            True,
        )
    split = found[f"{REPO}/tiny-Q8_0-00001-of-00002"]
    parts = sum(path.stat().st_size for path in repo.glob("*-of-00002.gguf"))
    assert split.nbytes == parts == sent(hub) - first
    tree = json.loads(next(settings.cache_dir.glob("*/trees/*.json")).read_text(encoding="utf-8"))
    assert len(tree["files"]) == 3


def test_one_file_is_verified_and_deleted_alone(
    repo: Path, settings: HubSettings, hub: LoopbackHub, tmp_path: Path
) -> None:
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    for file in ("tiny-Q4_0.gguf", "tiny-Q8_0-00001-of-00002.gguf"):
        fetch(settings, Pair(REPO, file=file))
    small, split = run(library.installed())
    blob = small.path.resolve()
    blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    assert run(library.verify(split)) == ()
    (wrong,) = run(library.verify(small))
    assert "tiny-Q4_0.gguf" in wrong
    (left,) = run(library.installed())
    assert left.name == split.name
    fetch(settings, Pair(REPO, file="tiny-Q4_0.gguf"))
    freed = run(library.remove(split))
    assert freed == split.nbytes
    (left,) = run(library.installed())
    assert left.name == small.name
    assert left.path.exists()
    run(library.remove(left))
    assert run(library.installed()) == ()


def test_a_missing_file_is_reported(repo: Path, settings: HubSettings) -> None:
    with pytest.raises(UnusableRepoError, match="tiny-Q2_K"):
        fetch(settings, Pair(REPO, file="tiny-Q2_K.gguf"))
    (repo / "tiny-Q8_0-00002-of-00002.gguf").unlink()
    with pytest.raises(UnusableRepoError, match="not all of it"):
        fetch(settings, Pair(REPO, file="tiny-Q8_0-00001-of-00002.gguf"))


def test_a_single_file_needs_no_choice(
    hub: LoopbackHub, settings: HubSettings, files: dict[str, Path]
) -> None:
    folder = hub.root / REPO
    folder.mkdir(parents=True)
    (folder / "only.gguf").write_bytes(files["tiny-Q4_0.gguf"].read_bytes())
    (place,) = fetch(settings, Pair(REPO))
    assert [path.name for path in place.iterdir()] == ["only.gguf"]
    assert list_repo(settings, REPO).only_gguf == "only.gguf"


def test_the_library_lists_all_files_of_a_repository(
    repo: Path, settings: HubSettings, tmp_path: Path
) -> None:
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    (offer,) = (one for one in run(library.search("tiny")) if one.pair.model == REPO)
    known = run(library.look_at(offer))
    assert known.variants[0].file == "tiny-Q4_0.gguf"
    assert (known.pair.file, known.config is not None) == ("tiny-Q4_0.gguf", True)
    wanted = replace(known, pair=replace(known.pair, file="tiny-Q8_0.gguf"))
    other = run(library.look_at(wanted))
    assert other.download_bytes > known.download_bytes


def test_a_download_remembers_its_file(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.db")
    store.add(Pair(REPO, file="tiny-Q4_0.gguf"))
    store.close()
    again = JobStore(tmp_path / "jobs.db")
    assert [job.pair.file for job in again.all()] == ["tiny-Q4_0.gguf"]
    again.close()


def test_a_file_is_imported_and_removed_from_the_list(
    files: dict[str, Path], settings: HubSettings, tmp_path: Path
) -> None:
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    path = files["tiny-Q4_0.gguf"]
    library.add_folder(str(path))
    (item,) = (one for one in run(library.installed()) if one.path == path)
    assert item.is_complete
    assert item.config is not None
    assert item.nbytes == path.stat().st_size
    run(library.remove(item))
    assert path.exists()
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF")
    with pytest.raises(CheckpointError):
        library.add_folder(str(bad))


def test_files_of_other_programs_are_listed(files: dict[str, Path], tmp_path: Path) -> None:
    data = files["tiny-Q4_0.gguf"].read_bytes()
    studio = tmp_path / ".lmstudio" / "models" / "someone" / "tiny" / "tiny-Q4_0.gguf"
    sees = studio.with_name("mmproj-tiny.gguf")
    cpp = tmp_path / ".cache" / "llama.cpp" / "tiny.gguf"
    blobs = tmp_path / ".ollama" / "models" / "blobs"
    for path in (studio, sees, cpp, blobs / "sha256-abc123"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    manifests = tmp_path / ".ollama" / "models" / "manifests" / "registry" / "library" / "tiny"
    manifests.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abc123"}
    (manifests / "latest").write_text(json.dumps({"layers": [{"mediaType": "other"}, layer]}))
    (manifests / "damaged").write_text("{")
    outside = {"mediaType": layer["mediaType"], "digest": "sha256:../../../x"}
    (manifests / "hostile").write_text(json.dumps({"layers": [outside]}))
    found = models_of_others({}, tmp_path)
    assert [(one.owner, one.name) for one in found] == [
        ("LM Studio", "tiny-Q4_0"),
        ("llama.cpp", "tiny"),
        ("Ollama", "tiny:latest"),
    ]
    listed = list_installed(tmp_path / "none", (), found)
    assert {one.owner for one in listed} == {"LM Studio", "llama.cpp", "Ollama"}
    assert all(one.is_complete for one in listed)
    elsewhere = {"LLAMA_CACHE": "/nowhere", "OLLAMA_MODELS": "/nowhere"}
    assert models_of_others(elsewhere, Path("/nowhere")) == ()
