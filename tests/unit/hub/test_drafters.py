"""Drafters on the Hub: which kind they are, for whom they are published, and how they come."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.errors import CheckpointError, HeadsError, UnusableRepoError
from medusa_core.heads.kind import read_shape
from medusa_core.hub.drafters import DRAFTER_KINDS, drafter_kind, find_drafters
from medusa_core.hub.job import Pair
from medusa_core.hub.job_store import JobStore
from medusa_core.hub.library.catalog import published_drafters, read_catalog
from medusa_core.hub.library.find import installed
from medusa_core.hub.library.library import Library, PairOffer
from medusa_core.hub.library.library_folder import ContentsKind, look_into
from medusa_core.hub.remote import look_at_heads
from medusa_core.hub.settings import HubSettings
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.hub.pairs import fetch, run
from tests.support.models.eagle_files import EagleSpec, write_eagle
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.gguf_heads_files import write_eagle_gguf
from tests.support.models.targets import GROUPED
from tests.support.models.tiny import TinySpec, write_tiny

MODEL = "org/Tiny-3.1-8B-Instruct"
EAGLE = EagleSpec("eagle3")


@pytest.fixture
def published(hub: LoopbackHub) -> LoopbackHub:
    """Publish a model, drafters whose cards or names refer to it, and others."""
    write_tiny(hub.root / MODEL, GROUPED)
    for repo, card in {
        "a/Tiny-3.1-8B-Instruct-speculator.eagle3": f"base_model: {MODEL}",
        "b/EAGLE3-tiny3.1-Instruct-8B": "",
        "c/other-name": f"base_model: {MODEL}\ntag: speculative-decoding\ntag: dflash\n"
        "tag: license:mit",
        "d/Tiny-3.1-70B-Instruct-eagle3": "",
        "e/Tiny-VL-3.1-8B-eagle3": "",
        "f/Tiny-3.1-8B-Instruct-eagle3": "base_model: org/another",
        "g/Tiny-3.1-8B-Instruct-GGUF": f"base_model: quantized:{MODEL}",
    }.items():
        write_eagle(hub.root / repo, EAGLE)
        (hub.root / repo / "README.md").write_text(card, encoding="utf-8")
    return hub


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("RedHatAI/Qwen3-8B-speculator.eagle3", "eagle"),
        ("yuhuili/EAGLE-Vicuna-7B-v1.3", "eagle"),
        ("Tengyunw/qwen3_8b_eagle3", "eagle"),
        ("RedHatAI/Qwen3-8B-speculator.dflash", "dflash"),
        ("somebody/Qwen3-8B-P-EAGLE", "eagle"),
        ("somebody/peagle-qwen3-8b", "eagle"),
        ("z-lab/Qwen3-8B-DFlash-b16", "dflash"),
        ("deepseek-ai/dspark_qwen3_8b_block7", "dspark"),
        ("JetSpec/jetspec-qwen3-8b", "jetspec"),
        ("google/gemma-4-E2B-it-assistant", "gemma4-assistant"),
        ("ankner/hydra-vicuna-7b-v1.3", "hydra"),
        ("mtp-Qwen3.5-9B-Q8_0.gguf", "mtp"),
        ("unsloth/Qwen3.6-27B-MTP-GGUF", ""),
        ("OpenAssistant/oasst-sft-4", ""),
        ("eagleorg/Qwen3-8B", ""),
    ],
)
def test_a_repository_name_gives_the_kind_of_drafter(name: str, kind: str) -> None:
    assert drafter_kind(name) == kind


def test_the_catalog_names_drafters_for_its_models() -> None:
    offers = {entry.title: published_drafters((*entry.bases,)) for entry in read_catalog()}
    kinds = {title: {one.kind for one in drafters} for title, drafters in offers.items()}
    assert kinds["Qwen3 8B"] == {"eagle", "dflash", "dspark", "jetspec"}
    assert kinds["Qwen3.5 9B"] == {"dflash", "mtp"}
    assert kinds["Gemma 4 12B Instruct"] == {"gemma4-assistant", "dflash", "dspark"}
    assert kinds["LFM2.5 1.2B Instruct"] == {"dspark"}
    assert not kinds["Ministral 3 8B Instruct"]
    for one in (one for drafters in offers.values() for one in drafters):
        assert one.kind in DRAFTER_KINDS
        assert not one.repo or drafter_kind(one.repo) == one.kind
    untried = [one for one in offers["Qwen3 4B"] if one.is_unverified]
    assert {one.kind for one in untried} == {"dflash", "dspark"}
    for drafters in offers.values():  # those that were tried are offered first
        flags = [one.is_unverified for one in drafters]
        assert flags == sorted(flags)
    for entry in read_catalog():  # a pair's heads are among them
        repos = [one.repo for one in offers[entry.title]]
        assert not entry.pair.heads or entry.pair.heads in repos


def test_drafters_are_found_by_model_cards_and_by_names(
    published: LoopbackHub, settings: HubSettings
) -> None:
    offers = find_drafters(settings, (MODEL,))
    assert [one.licence for one in offers] == ["", "", "mit"]
    found = {one.repo: (one.kind, one.made_for) for one in offers}
    assert found == {
        "a/Tiny-3.1-8B-Instruct-speculator.eagle3": ("eagle", MODEL),
        "b/EAGLE3-tiny3.1-Instruct-8B": ("eagle", ""),
        "c/other-name": ("dflash", MODEL),
    }


def test_a_drafter_is_planned_and_fetched_with_its_model(
    published: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    (offer,) = [o for o in run(library.search("Tiny-3.1-8B-Instruct")) if o.pair.model == MODEL]
    offer = run(library.find_drafters(offer))
    first, second, _ = offer.drafters
    chosen = run(library.look_at(offer.with_drafter(first)))
    assert chosen.drafter == first
    assert chosen.config is not None
    assert chosen.heads == read_shape(published.root / first.repo)
    alone = run(library.look_at(chosen.with_drafter(None)))
    assert (alone.drafter, alone.heads.num_heads) == (None, 0)
    assert chosen.download_bytes - alone.download_bytes > 1000
    assert not chosen.misfit
    folders = fetch(settings, chosen.pair)
    assert [look_into(folder).kind for folder in folders] == [
        ContentsKind.TARGET,
        ContentsKind.HEADS,
    ]
    wide = run(library.look_at(PairOffer("", Pair(MODEL)).with_drafter(second)))
    assert wide.misfit == ""


def test_a_drafters_repository_is_no_model_and_names_its_target(
    published: LoopbackHub, settings: HubSettings, tmp_path: Path
) -> None:
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    (offer,) = run(library.search("speculator"))
    known = run(library.look_at(offer))
    assert known.is_heads
    assert known.bases == (MODEL,)
    assert known.config is None
    assert known.download_bytes > 0


def test_a_drafter_file_beside_a_model_is_downloaded_with_it(
    hub: LoopbackHub, settings: HubSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = "org/tiny-GGUF"
    folder = write_tiny(tmp_path / "tiny", TinySpec())
    (hub.root / repo).mkdir(parents=True)
    write_as_gguf(folder, hub.root / repo / "tiny-Q8_0.gguf", "q8_0")
    write_eagle_gguf(hub.root / repo / "tiny-EAGLE3-Q8_0.gguf", EAGLE, "q8_0")
    library = Library(tmp_path / "jobs.db", tmp_path / "folders.json", settings)
    offer = run(library.look_at(PairOffer("", Pair(repo))))
    (drafter,) = offer.drafters
    assert (drafter.repo, drafter.kind, drafter.file) == (repo, "eagle", "tiny-EAGLE3-Q8_0.gguf")
    chosen = run(library.look_at(offer.with_drafter(drafter)))
    assert chosen.heads.kind == "eagle-3"
    assert chosen.download_bytes == offer.download_bytes + drafter.nbytes
    store = JobStore(tmp_path / "store.db")
    store.add(chosen.pair)
    store.close()
    (job,) = JobStore(tmp_path / "store.db").all()
    assert job.pair == chosen.pair
    model, heads = fetch(settings, job.pair)
    assert model == heads
    assert sorted(path.name for path in model.iterdir()) == [
        "tiny-EAGLE3-Q8_0.gguf",
        "tiny-Q8_0.gguf",
    ]
    monkeypatch.setenv("HF_HUB_CACHE", str(settings.cache_dir))
    assert installed(f"{repo}:Q8_0") == model / "tiny-Q8_0.gguf"
    assert installed(f"{repo}:eagle3") == model / drafter.file


def test_a_repository_of_gguf_heads_is_inspected_and_downloaded(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    for kind in ("q8_0", "f16"):
        write_eagle_gguf(hub.root / "org/eagle-GGUF" / f"x-eagle3-{kind}.gguf", EAGLE, kind)
    found = look_at_heads(settings, "org/eagle-GGUF")
    assert found.listing.file == "x-eagle3-q8_0.gguf"
    assert found.shape.kind == "eagle-3"
    write_tiny(hub.root / MODEL, GROUPED)
    _, heads = fetch(settings, Pair(MODEL, "org/eagle-GGUF"))
    assert [path.name for path in heads.iterdir()] == ["x-eagle3-q8_0.gguf"]
    with pytest.raises(UnusableRepoError, match="go with a model"):
        fetch(settings, Pair("org/eagle-GGUF"))


def test_hostile_cards_and_headers_are_refused_with_a_message(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    folder = hub.root / "org" / "Tiny-eagle3"
    write_eagle(folder, EAGLE)
    tags = "\n".join([*(f"tag: {'x' * 900}" for _ in range(900)), "base_model: ../../etc"])
    (folder / "README.md").write_text(tags, encoding="utf-8")
    assert find_drafters(settings, ("org/Tiny",)) == ()
    (folder / "config.json").write_text(json.dumps({"hidden_size": 10**30}), encoding="utf-8")
    with pytest.raises(HeadsError):
        look_at_heads(settings, "org/Tiny-eagle3")
    random_file(hub.root / "org/bad-eagle3" / "x-eagle3.gguf", 4000)
    with pytest.raises(CheckpointError):
        look_at_heads(settings, "org/bad-eagle3")


@pytest.mark.expects_errors
def test_the_command_line_lists_drafters_and_downloads_one_with_a_model(
    published: LoopbackHub,
    settings: HubSettings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", settings.endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(settings.cache_dir))
    assert main(["show", MODEL, "--drafters"]) == 0
    shown = capsys.readouterr().out
    assert "a/Tiny-3.1-8B-Instruct-speculator.eagle3" in shown
    assert "made for org/Tiny-3.1-8B-Instruct" in shown
    assert DRAFTER_KINDS["eagle"].text in shown
    for kind in ("Q8_0", "F16"):
        file = published.root / "h/Tiny-eagle3-GGUF" / f"x-eagle3-{kind}.gguf"
        write_eagle_gguf(file, EAGLE, kind.lower(), base_model=MODEL)
    assert main(["pull", MODEL, "--heads", "h/Tiny-eagle3-GGUF:f16"]) == 0
    assert "x-eagle3-F16.gguf" in capsys.readouterr().out
    assert main(["show", MODEL, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["drafters_here"] == ["h/Tiny-eagle3-GGUF/x-eagle3-F16"]
    assert facts["drafters_published"] == []
    heads = published.root / "a/Tiny-3.1-8B-Instruct-speculator.eagle3"
    for command in ("show", "plan"):
        assert main([command, str(heads)]) == 1
        assert "no model" in capsys.readouterr().err
    assert main(["show", "org/none", "--drafters"]) == 0
    assert "knows no drafter" in capsys.readouterr().out
