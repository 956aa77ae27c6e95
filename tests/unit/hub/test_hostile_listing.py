"""A Hub, or whoever speaks for it, can't change a file outside of the cache."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.errors import AnswerError, MedusaError, NotFoundError, RequestError
from medusa_core.hub.boundary import Boundary, is_repo, is_safe_path
from medusa_core.hub.cache_folder import RepoCache, find_snapshot
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import list_repo, read_listing
from medusa_core.hub.pair_download import forget_pair
from medusa_core.hub.settings import HubSettings
from tests.support.hub.pairs import fetch, run
from tests.support.hub.scripted import SHA, Answer, ScriptedHub, listing_of, sibling
from tests.support.spoiled_json import spoil, spoiled

REPO = "o/model"
LISTING = f"/api/models/{REPO}/revision/main"
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 100}
PRECIOUS = b"what the user wrote"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of the user's, beside the cache."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("notes", "notes.part", "weights.pt", "config.json"):
        (folder / name).write_bytes(PRECIOUS)
    return folder


def outside(tmp_path: Path) -> dict[str, bytes | None]:
    """Return all files outside of the cache, without following links."""
    return {
        str(path.relative_to(tmp_path)): path.read_bytes() if path.is_file() else None
        for path in sorted(tmp_path.rglob("*"))
        if "cache" not in path.relative_to(tmp_path).parts
    }


PLACES = ("{mine}/notes", "../../../../mine/notes", "../../../mine/notes", "~/notes", ".", "..", "")
ODD = (None, 7, True, ["a" * 40], {"a": "a" * 40})
IDS = (
    *PLACES,
    *(
        "a" * 39,
        "a" * 41,
        "A" * 40,
        "g" * 40,
        "a" * 40 + "\n",
        "١" * 40,
        "a" * 63 + "/",
        "x" * 9999,
    ),
    *ODD,
)
NAMES = (
    *(*PLACES[:3], "/model.safetensors", "../model.safetensors", "model.safetensors/"),
    *("a/../../../../../mine/config.json", "x\n/../../../../mine/model.safetensors"),
    *("model.safetensors\n", "model\0.safetensors", "a//model.safetensors", "./model.safetensors"),
    *("..\\..\\model.safetensors", "\ud800.safetensors", "\u202emodel.safetensors"),
    *("x" * 300 + ".safetensors", "é" * 130 + ".safetensors", None, 7, ["model.safetensors"]),
    "/".join(["x" * 200] * 8) + ".safetensors",
)
SIBLINGS = ("siblings", 1)  # of which the second is the large file
SPOILED: dict[tuple[str | int, ...], tuple[object, ...]] = {
    ("siblings", 0, "blobId"): IDS,
    (*SIBLINGS, "lfs", "sha256"): IDS,
    (*SIBLINGS, "lfs"): (7, "x", [], {}, {"oid": "a" * 64}, False),
    ("sha",): IDS,
    (*SIBLINGS, "size"): (-1, 1.5, True, None, "7", 1 << 60, 10**300),
    (*SIBLINGS, "rfilename"): NAMES,
    SIBLINGS: (None, [], sibling("config.json", b"other"), sibling("{mine}/weights.pt", b"pickle")),
    ("siblings",): (None, {"rfilename": "x"}, "model.safetensors", [None], [[]]),
}


def test_a_download_with_a_hostile_listing_is_refused_and_writes_nothing(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path, precious: Path
) -> None:
    listing = scripted.publish(REPO, FILES)
    before = outside(tmp_path)
    for path, values in SPOILED.items():
        texts = [json.dumps(spoil(listing, path, value)) for value in values]
        texts = [text.replace("{mine}", str(precious)) for text in texts]
        for text in texts:
            with pytest.raises(AnswerError) as caught:
                read_listing(REPO, "main", json.loads(text))
            assert len(caught.value.message) <= 500
            assert caught.value.hint
        for text in (texts[0], texts[-1]):
            scripted.answers[LISTING] = Answer(text.encode())
            with pytest.raises(AnswerError):
                fetch(scripted_settings, Pair(REPO, converts=True))
            assert outside(tmp_path) == before, path
            assert not list(scripted_settings.cache_dir.rglob("*")), path


def test_a_listing_is_refused_or_its_ids_and_names_are_safe() -> None:
    for listing in spoiled(listing_of(FILES)):
        check_listing(listing)


def check_listing(listing: object) -> None:
    try:
        files = read_listing(REPO, "main", listing).files
    except AnswerError as error:
        refusal = error.message
        assert refusal.isprintable()
        return
    folder = Path("/cache/snapshot")
    for file in files:
        assert re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", file.blob_id, re.ASCII)
        assert os.path.normpath(folder / file.path) == str(folder / file.path)
        assert (folder / file.path).is_relative_to(folder)
        assert not {"..", "", "~"} & set(file.path.split("/"))
        assert type(file.size) is int
        assert 0 <= file.size < 1 << 60
    assert len({file.path for file in files}) == len(files)


def test_a_file_listed_with_two_sizes_is_refused() -> None:
    listing = listing_of(FILES)
    other = {**listing["siblings"][1], "rfilename": "model-2.safetensors", "size": 1}
    listing["siblings"].append(other)
    with pytest.raises(AnswerError, match="two sizes"):
        read_listing(REPO, "main", listing)


def test_a_path_is_no_valid_repository_or_revision(
    scripted: ScriptedHub, scripted_settings: HubSettings, precious: Path
) -> None:
    for repo in ("../../mine", "o/../x", "/etc", "o//x", "o/x\n", "", "a/b/c", "o/" + "x" * 200):
        with pytest.raises(NotFoundError) as caught:
            list_repo(scripted_settings, repo)
        assert len(caught.value.message) < 200
        assert find_snapshot(scripted_settings.cache_dir, repo) is None
        run(forget_pair(scripted_settings, Pair(repo)))
    for revision in ("../main", "/main", "a\nb", "", "x" * 2000, "../../../mine"):
        with pytest.raises(NotFoundError, match="no name of a revision"):
            fetch(scripted_settings, Pair(REPO, revision=revision))
        assert find_snapshot(scripted_settings.cache_dir, REPO, revision) is None
    assert scripted.requested == []


def test_a_ref_that_names_a_path_is_ignored(tmp_path: Path, precious: Path) -> None:
    folder = tmp_path / "cache" / "models--o--model"
    (folder / "snapshots").mkdir(parents=True)
    (folder / "refs").mkdir()
    for text in ("../../../mine", str(precious), "", "\xff\xfe", "a" * 100_000):
        (folder / "refs" / "main").write_text(text, encoding="latin-1")
        assert find_snapshot(tmp_path / "cache", REPO) is None


LINKED = (
    *("", "/blobs", "/snapshots", f"/snapshots/{SHA}", "/trees", "/refs"),
    *("/../.locks", "/../.locks/models--o--model"),
)


def test_a_linked_folder_in_the_cache_is_not_written_through(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path, precious: Path
) -> None:
    scripted.publish(REPO, FILES)
    before = outside(tmp_path)
    for number, place in enumerate(LINKED):
        settings = replace(scripted_settings, cache_dir=tmp_path / f"{number}" / "cache")
        linked = Path(os.path.normpath(f"{settings.cache_dir}/models--o--model{place}"))
        linked.parent.mkdir(parents=True)
        linked.symlink_to(precious)
        with pytest.raises(RequestError, match="leads out of the cache"):
            fetch(settings, Pair(REPO))
        linked.unlink()
        shutil.rmtree(settings.cache_dir.parent)
        assert outside(tmp_path) == before, place
    settings = scripted_settings
    linked = settings.cache_dir / "models--o--model"
    linked.parent.mkdir(parents=True)
    linked.symlink_to(linked)  # in a circle
    with pytest.raises(MedusaError):
        fetch(settings, Pair(REPO))


@pytest.mark.parametrize("kind", ["part", "blob", "name", "tree", "ref", "second name of part"])
def test_a_linked_file_in_the_cache_is_replaced(
    kind: str,
    scripted: ScriptedHub,
    scripted_settings: HubSettings,
    tmp_path: Path,
    precious: Path,
) -> None:
    scripted.publish(REPO, FILES)
    cache = RepoCache(scripted_settings.cache_dir, REPO)
    weights = list_repo(scripted_settings, REPO).files[1]
    place = {
        "part": cache.part(weights),
        "blob": cache.blob(weights),
        "name": cache.snapshot(SHA) / weights.path,
        "tree": cache.folder / "trees" / f"{SHA}.json.part",
        "ref": cache.folder / "refs" / "main",
        "second name of part": cache.part(weights),
    }[kind]
    place.parent.mkdir(parents=True)
    if kind.startswith("second"):
        place.hardlink_to(precious / "notes")
    else:
        place.symlink_to(precious / "notes")
    before = outside(tmp_path)
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert outside(tmp_path) == before
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert (cache.folder / "refs" / "main").read_text() == SHA
    assert not place.is_symlink() or kind == "name"


def test_a_blob_outside_of_the_cache_is_not_used_even_if_its_bytes_match(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path, precious: Path
) -> None:
    scripted.publish(REPO, FILES)
    cache = RepoCache(scripted_settings.cache_dir, REPO)
    blob = cache.blob(list_repo(scripted_settings, REPO).files[1])
    cache.prepare()
    (precious / "weights.pt").write_bytes(FILES["model.safetensors"])
    blob.symlink_to(precious / "weights.pt")
    before = outside(tmp_path)
    fetch(scripted_settings, Pair(REPO))
    assert outside(tmp_path) == before
    assert blob.read_bytes() == FILES["model.safetensors"]
    assert not blob.is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes by name")
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_a_partial_file_that_is_no_file_blocks_nobody(
    kind: str, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    scripted.publish(REPO, FILES)
    cache = RepoCache(scripted_settings.cache_dir, REPO)
    part = cache.part(list_repo(scripted_settings, REPO).files[1])
    cache.prepare()
    if kind == "folder":
        part.mkdir()
        with pytest.raises(MedusaError, match="can't be written"):
            fetch(scripted_settings, Pair(REPO))
        return
    os.mkfifo(part)
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]


def test_a_cache_that_is_itself_a_link_is_accepted(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path
) -> None:
    scripted.publish(REPO, FILES)
    (tmp_path / "disk").mkdir()
    scripted_settings.cache_dir.symlink_to(tmp_path / "disk")
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert (folder / "config.json").read_bytes() == b"{}"


@pytest.mark.usefixtures("converts_here")
def test_conversion_writes_only_into_the_folder_of_its_commit(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path, precious: Path
) -> None:
    import torch

    torch.save({"w": torch.ones(3)}, tmp_path / "x.bin")
    files = {"pytorch_model.bin": (tmp_path / "x.bin").read_bytes()}
    scripted.publish(REPO, files)
    place = scripted_settings.cache_dir / "models--o--model" / "snapshots" / SHA
    place.mkdir(parents=True)
    (place / "model.safetensors.index.json").symlink_to(precious / "nothing")
    before = outside(tmp_path)
    (folder,) = fetch(scripted_settings, Pair(REPO, converts=True))
    assert (folder / "model.safetensors").is_file()
    assert outside(tmp_path) == before


def test_every_function_of_the_boundary_refuses_unsafe_paths(
    tmp_path: Path, precious: Path
) -> None:
    boundary = Boundary(tmp_path / "cache")
    inside, away = tmp_path / "cache" / "a", precious / "notes"
    boundary.make_folder(tmp_path / "cache")
    inside.write_bytes(b"a")
    (tmp_path / "cache" / "link").symlink_to(precious)
    before = outside(tmp_path)
    for place in (away, tmp_path / "cache" / "link" / "notes", tmp_path / "cache" / ".." / "notes"):
        for act in (
            lambda: boundary.make_folder(place / "new"),  # noqa: B023 - called at once
            lambda: boundary.write_text(place, "x"),  # noqa: B023
            lambda: boundary.link(inside, place),  # noqa: B023
            lambda: boundary.link(place, inside),  # noqa: B023
            lambda: boundary.move(inside, place),  # noqa: B023
            lambda: boundary.move(place, inside),  # noqa: B023
            lambda: boundary.remove(place),  # noqa: B023
            lambda: boundary.remove_tree(place),  # noqa: B023
            lambda: boundary.open_regular(place),  # noqa: B023
        ):
            with pytest.raises(RequestError):
                act()
    assert outside(tmp_path) == before
    assert inside.read_bytes() == b"a"


def test_common_names_are_safe() -> None:
    for name in (
        "config.json",
        "a/b/c.bin",
        "模型 卡片.md",
        "naïve–x (1).png",
        ".gitattributes",
        "…",
    ):
        assert is_safe_path(name), name
    for repo in ("gpt2", "lmsys/vicuna-7b-v1.3", "TheBloke/Llama_2.x-7B", "a/b", "_a/b"):
        assert is_repo(repo), repo
