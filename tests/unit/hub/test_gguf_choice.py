"""`pull owner/repo:QUANT`: which file that is, and which one is best here."""

from __future__ import annotations

import shutil
from pathlib import Path

import gguf
import numpy as np
import pytest

from medusa_core.__main__ import main
from medusa_core.bench.gguf_export import finish
from medusa_core.errors import ModelError, RequestError
from medusa_core.hub.gguf_choice import best_file, described, named_file, with_quant
from medusa_core.hub.library.find import installed, loadable_models
from medusa_core.hub.listing import list_repo
from medusa_core.hub.settings import HubSettings
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.messages import Fit
from tests.support.hub.fixtures import LoopbackHub
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import TinySpec, write_tiny

REPO = "org/tiny-GGUF"
SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=1, seed=3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gguf")
    folder = write_tiny(root / "tiny", SPEC)
    made = root / "made"
    made.mkdir()
    for name, kind in (("tiny-F16", "f16"), ("tiny-Q8_0", "q8_0"), ("tiny-Q4_0", "q4_0")):
        write_as_gguf(folder, made / f"{name}.gguf", kind)
    return made


@pytest.fixture
def repo(hub: LoopbackHub, files: Path) -> Path:
    return Path(shutil.copytree(files, hub.root / REPO))


@pytest.fixture
def terminal(
    hub: LoopbackHub, repo: Path, settings: HubSettings, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The Hub and the cache as the environment names them; returns the cache."""
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(settings.cache_dir))
    return settings.cache_dir


def test_a_quantization_is_found_in_any_case_and_only_as_a_whole_part() -> None:
    paths = ["a-Q4_K_M.gguf", "a-Q4_K_S.gguf", "a.Q4_0.gguf", "a-IQ4_0.gguf", "q8_0/a-Q8_0.gguf"]
    assert with_quant(paths, "q4_k_m") == ["a-Q4_K_M.gguf"]
    assert with_quant(paths, "Q4_0") == ["a.Q4_0.gguf"]
    assert with_quant(paths, "Q4_K") == []


def test_a_named_quantization_is_one_file_or_reported_missing(
    repo: Path, settings: HubSettings
) -> None:
    listing = list_repo(settings, REPO)
    assert named_file(listing, "q4_0").path == "tiny-Q4_0.gguf"
    with pytest.raises(RequestError) as missing:
        named_file(listing, "Q6_K")
    assert "tiny-Q8_0.gguf" in missing.value.hint
    shutil.copy(repo / "tiny-Q4_0.gguf", repo / "other-Q4_0.gguf")
    with pytest.raises(RequestError, match="several"):
        named_file(list_repo(settings, REPO), "Q4_0")


def test_the_best_file_is_the_largest_of_few_bits_that_fits(
    repo: Path, settings: HubSettings
) -> None:
    choice = best_file(settings, list_repo(settings, REPO), cuda_budget(8.0))
    assert (choice.path, choice.fit) == ("tiny-Q8_0.gguf", Fit.FITS)
    assert "of 3 files the best that fits this computer" in described(choice)
    for name in ("tiny-Q8_0.gguf", "tiny-Q4_0.gguf"):
        (repo / name).unlink()
    assert best_file(settings, list_repo(settings, REPO), cuda_budget(8.0)).path == (
        "tiny-F16.gguf"
    )


def test_if_nothing_fits_the_smallest_is_chosen_and_reported(
    repo: Path, settings: HubSettings
) -> None:
    choice = best_file(settings, list_repo(settings, REPO), cuda_budget(0.05))
    assert (choice.path, choice.fit) == ("tiny-Q4_0.gguf", Fit.NO)
    assert "none of 3 files fits this computer" in described(choice)


def test_files_that_cant_be_loaded_are_skipped(repo: Path, settings: HubSettings) -> None:
    (repo / "tiny-Q8_0.gguf").write_bytes(b"GGUF, but no more than that" * 10_000)
    listing = list_repo(settings, REPO)
    assert best_file(settings, listing, cuda_budget(8.0)).path == "tiny-Q4_0.gguf"
    (repo / "tiny-Q4_0.gguf").write_bytes(b"nothing")
    (repo / "tiny-F16.gguf").unlink()
    with pytest.raises(ModelError, match="can be loaded here"):
        best_file(settings, list_repo(settings, REPO), cuda_budget(8.0))


def test_companion_files_are_skipped_and_reported_if_there_is_nothing_else(
    repo: Path, settings: HubSettings
) -> None:
    for name in ("tiny-F16.gguf", "tiny-Q8_0.gguf"):
        (repo / name).unlink()
    for name in ("tiny-assistant-Q8_0.gguf", "tiny-it-assistant-F16.gguf"):
        writer = gguf.GGUFWriter(repo / name, "gemma4-assistant")
        writer.add_tensor("token_embd.weight", np.zeros((4096, 64), np.float32))
        finish(writer)
    listing = list_repo(settings, REPO)
    assert best_file(settings, listing, cuda_budget(8.0)).path == "tiny-Q4_0.gguf"
    (repo / "tiny-Q4_0.gguf").unlink()
    with pytest.raises(ModelError, match="assistant, a drafter"):
        best_file(settings, list_repo(settings, REPO), cuda_budget(8.0))


def test_pull_prints_its_choice_and_run_finds_it_by_the_same_name(
    terminal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pull", f"{REPO}:Q4_0"]) == 0
    assert capsys.readouterr().out.startswith("tiny-Q4_0.gguf (0.00 GB)\n")
    assert installed(f"{REPO}:q4_0").name == "tiny-Q4_0.gguf"
    assert installed(REPO).name == "tiny-Q4_0.gguf"  # the only one that is here
    assert installed(f"{REPO}/tiny-Q4_0") == loadable_models()[f"{REPO}/tiny-Q4_0"]
    assert installed(f"{REPO}/tiny-q4_0.gguf") == installed(f"{REPO}/tiny-Q4_0")
    with pytest.raises(RequestError, match="on this computer") as missing:
        installed("models/tiny-Q6_K.gguf")
    assert "pull" not in missing.value.hint  # it is a path
    with pytest.raises(RequestError) as missing:
        installed(f"{REPO}:Q8_0")
    assert missing.value.hint == f"Fetch it with: medusa pull {REPO}:Q8_0"

    assert main(["pull", REPO]) == 0
    assert "tiny-Q8_0.gguf (0.00 GB): of 3 files the best" in capsys.readouterr().out
    with pytest.raises(RequestError) as several:
        installed(REPO)
    assert "Q4_0" in several.value.hint


def test_a_file_is_verified_and_removed_by_the_name_of_its_pull(
    terminal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for quant in ("Q4_0", "Q8_0"):
        assert main(["pull", f"{REPO}:{quant}"]) == 0
    assert main(["verify", f"{REPO}:q4_0"]) == 0
    assert "tiny-Q4_0.gguf" in capsys.readouterr().out
    assert main(["rm", f"{REPO}:Q4_0", "--yes"]) == 0
    assert installed(REPO).name == "tiny-Q8_0.gguf"
    assert main(["rm", f"{REPO}/tiny-Q8_0", "--yes"]) == 0
    assert REPO not in "".join(loadable_models())
    assert main(["rm", f"{REPO}:Q8_0", "--yes"]) == 1
    assert main(["list"]) == 0
    assert "llama-pebble  comes with the program" in capsys.readouterr().out


def test_pull_says_that_offline_mode_is_on(
    terminal: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["pull", f"{REPO}:Q4_0"]) == 1
    assert "ffline" in capsys.readouterr().err
