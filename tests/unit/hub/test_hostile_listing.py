"""A Hub, or whoever speaks for it, can't change a file outside of the cache."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from medusa_core.errors import AnswerError, MedusaError, NotFoundError, RequestError
from medusa_core.hub.boundary import Boundary, is_repo, is_safe_path
from medusa_core.hub.cache_folder import RepoCache, find_snapshot
from medusa_core.hub.job import Pair
from medusa_core.hub.listing import list_repo
from medusa_core.hub.pair_download import forget_pair
from medusa_core.hub.settings import HubSettings
from tests.support.hub.pairs import fetch, run
from tests.support.hub.scripted import SHA, ScriptedHub, sibling

REPO = "o/model"
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
    """All that lies outside of the cache, links unfollowed."""
    return {
        str(path.relative_to(tmp_path)): path.read_bytes() if path.is_file() else None
        for path in sorted(tmp_path.rglob("*"))
        if "cache" not in path.relative_to(tmp_path).parts
    }


def refused(
    hub: ScriptedHub,
    settings: HubSettings,
    tmp_path: Path,
    spoil: Callable[[dict[str, Any]], None],
    converts: bool = False,
    error: type[MedusaError] = AnswerError,
) -> MedusaError:
    """A download of a spoiled listing is refused, and nothing is written anywhere."""
    listing = hub.publish(REPO, FILES)
    spoil(listing)
    hub.list(REPO, listing)
    before = outside(tmp_path)
    with pytest.raises(error) as caught:
        fetch(settings, Pair(REPO, converts=converts))
    assert outside(tmp_path) == before
    assert not list(settings.cache_dir.rglob("*"))
    assert len(caught.value.message) <= 500
    assert caught.value.hint
    return caught.value


PLACES = ["{mine}/notes", "../../../../mine/notes", "../../../mine/notes", "~/notes", ".", "..", ""]
IDS = [
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
    *(None, 5, True, ["a" * 40], {"a": "a" * 40}),
]


@pytest.mark.parametrize("value", IDS, ids=lambda value: repr(value)[:30])
@pytest.mark.parametrize("key", ["blobId", "sha256", "sha"])
def test_an_id_that_is_no_hash_is_refused(
    key: str,
    value: object,
    scripted: ScriptedHub,
    scripted_settings: HubSettings,
    tmp_path: Path,
    precious: Path,
) -> None:
    reported = value.format(mine=precious) if isinstance(value, str) else value

    def spoil(listing: dict[str, Any]) -> None:
        small, large = listing["siblings"]
        {"blobId": small, "sha256": large["lfs"], "sha": listing}[key][key] = reported

    refused(scripted, scripted_settings, tmp_path, spoil)


NAMES = [
    *PLACES[:-4],
    "/model.safetensors",
    "../model.safetensors",
    "a/../../../../../mine/config.json",
    "x\n/../../../../mine/model.safetensors",
    "model.safetensors\n",
    "model\0.safetensors",
    "a//model.safetensors",
    "./model.safetensors",
    "model.safetensors/",
    "..\\..\\model.safetensors",
    "\ud800.safetensors",
    "\u202emodel.safetensors",
    "x" * 300 + ".safetensors",
    "é" * 130 + ".safetensors",
    "/".join(["x" * 200] * 8) + ".safetensors",
    *(None, 7, ["model.safetensors"]),
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:40])
def test_a_name_that_leads_elsewhere_is_refused(
    name: object,
    scripted: ScriptedHub,
    scripted_settings: HubSettings,
    tmp_path: Path,
    precious: Path,
) -> None:
    reported = name.format(mine=precious) if isinstance(name, str) else name

    def spoil(listing: dict[str, Any]) -> None:
        listing["siblings"][1]["rfilename"] = reported

    refused(scripted, scripted_settings, tmp_path, spoil)


@pytest.mark.parametrize("name", ["{mine}/weights.pt", "../../../../mine/weights.pt"])
def test_a_pickle_elsewhere_is_not_overwritten_though_conversion_is_agreed_to(
    name: str,
    scripted: ScriptedHub,
    scripted_settings: HubSettings,
    tmp_path: Path,
    precious: Path,
) -> None:
    def spoil(listing: dict[str, Any]) -> None:
        listing["siblings"] = [sibling(name.format(mine=precious), b"pickle")]

    refused(scripted, scripted_settings, tmp_path, spoil, converts=True)


@pytest.mark.parametrize("size", [-1, 1.5, True, None, "7", 1 << 60, 10**300])
def test_a_size_that_is_none_is_refused(
    size: object, scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path
) -> None:
    def spoil(listing: dict[str, Any]) -> None:
        listing["siblings"][1]["size"] = size

    refused(scripted, scripted_settings, tmp_path, spoil)


def test_a_listing_that_contradicts_itself_is_refused(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path
) -> None:
    def twice(listing: dict[str, Any]) -> None:
        listing["siblings"].append(sibling("config.json", b"other"))

    def two_sizes(listing: dict[str, Any]) -> None:
        other = {**listing["siblings"][1], "rfilename": "model-2.safetensors", "size": 1}
        listing["siblings"].append(other)

    assert "twice" in str(refused(scripted, scripted_settings, tmp_path, twice))
    assert "two sizes" in str(refused(scripted, scripted_settings, tmp_path, two_sizes))


@pytest.mark.parametrize(
    "repo", ["../../mine", "o/../x", "/etc", "o//x", "o/x\n", "", "o", "a/b/c", "o/" + "x" * 200]
)
def test_no_path_becomes_a_repository(
    repo: str, scripted: ScriptedHub, scripted_settings: HubSettings, precious: Path
) -> None:
    with pytest.raises(NotFoundError) as caught:
        list_repo(scripted_settings, repo)
    assert len(caught.value.message) < 200
    assert find_snapshot(scripted_settings.cache_dir, repo) is None
    run(forget_pair(scripted_settings, Pair(repo)))
    if repo != "o":
        assert scripted.requested == []


@pytest.mark.parametrize("revision", ["../main", "/main", "a\nb", "", "x" * 2000, "../../../mine"])
def test_no_path_becomes_a_revision(
    revision: str, scripted: ScriptedHub, scripted_settings: HubSettings
) -> None:
    with pytest.raises(NotFoundError, match="no name of a revision"):
        fetch(scripted_settings, Pair(REPO, revision=revision))
    assert find_snapshot(scripted_settings.cache_dir, REPO, revision) is None
    assert scripted.requested == []


def test_a_revisions_file_that_names_a_path_is_none(tmp_path: Path, precious: Path) -> None:
    folder = tmp_path / "cache" / "models--o--model"
    (folder / "snapshots").mkdir(parents=True)
    (folder / "refs").mkdir()
    for text in ("../../../mine", str(precious), "", "\xff\xfe", "a" * 100_000):
        (folder / "refs" / "main").write_text(text, encoding="latin-1")
        assert find_snapshot(tmp_path / "cache", REPO) is None


LINKED = [
    "models--o--model",
    "models--o--model/blobs",
    "models--o--model/snapshots",
    f"models--o--model/snapshots/{SHA}",
    "models--o--model/trees",
    "models--o--model/refs",
    ".locks",
    ".locks/models--o--model",
]


@pytest.mark.parametrize("place", LINKED)
def test_a_folder_of_the_cache_that_is_a_link_elsewhere_is_not_written_through(
    place: str,
    scripted: ScriptedHub,
    scripted_settings: HubSettings,
    tmp_path: Path,
    precious: Path,
) -> None:
    scripted.publish(REPO, FILES)
    linked = scripted_settings.cache_dir / place
    linked.parent.mkdir(parents=True)
    linked.symlink_to(precious)
    before = outside(tmp_path)
    with pytest.raises(RequestError, match="leads out of the cache"):
        fetch(scripted_settings, Pair(REPO))
    assert outside(tmp_path) == before


def test_links_in_a_circle_are_said(scripted: ScriptedHub, scripted_settings: HubSettings) -> None:
    scripted.publish(REPO, FILES)
    linked = scripted_settings.cache_dir / "models--o--model"
    linked.parent.mkdir(parents=True)
    linked.symlink_to(linked)
    with pytest.raises(MedusaError):
        fetch(scripted_settings, Pair(REPO))


@pytest.mark.parametrize("kind", ["part", "blob", "name", "tree", "ref", "second name of part"])
def test_a_file_of_the_cache_that_is_a_link_elsewhere_gives_way(
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


def test_a_blob_is_not_taken_from_elsewhere_though_its_bytes_are_right(
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
def test_a_part_that_is_no_file_keeps_nobody_waiting(
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


def test_a_cache_that_is_itself_a_link_is_fine(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path
) -> None:
    scripted.publish(REPO, FILES)
    (tmp_path / "disk").mkdir()
    scripted_settings.cache_dir.symlink_to(tmp_path / "disk")
    (folder,) = fetch(scripted_settings, Pair(REPO))
    assert (folder / "config.json").read_bytes() == b"{}"


def test_conversion_stays_in_the_folder_of_its_commit(
    scripted: ScriptedHub, scripted_settings: HubSettings, tmp_path: Path, precious: Path
) -> None:
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


def test_every_hand_of_the_boundary_stops_at_it(tmp_path: Path, precious: Path) -> None:
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


def test_names_that_people_use_are_safe() -> None:
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
