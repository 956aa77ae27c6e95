"""Sizes from headers, searches, the catalog, pairs, and the command line."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.errors import CheckpointError, HeadsError, NotFoundError
from medusa_core.hub.library.catalog import read_catalog
from medusa_core.hub.library.pairing import misfit
from medusa_core.hub.remote import look_at_heads, look_at_model
from medusa_core.hub.search import search
from medusa_core.hub.settings import HubSettings
from medusa_core.loading.memory.budget import cuda_budget
from medusa_core.loading.memory.plan import weights_bytes
from medusa_core.messages import Fit, HeadsShape, WeightFormats
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.speculation.drafters.lineup import drafter_registry
from tests.support.hub.fixtures import LoopbackHub, random_file
from tests.support.models.tiny import TinySpec, random_heads, write_heads, write_tiny

SPEC = TinySpec(hidden_size=128, intermediate_size=192, seed=31)


@pytest.fixture
def published(hub: LoopbackHub) -> LoopbackHub:
    write_tiny(hub.root / "org" / "tiny-chat", SPEC)
    write_heads(hub.root / "org" / "tiny-chat-medusa", random_heads(SPEC, num_heads=4))
    return hub


def test_a_model_is_planned_before_its_weights_are_downloaded(
    published: LoopbackHub, settings: HubSettings
) -> None:
    remote = look_at_model(settings, "org/tiny-chat")
    assert remote.config == ModelFiles.open(published.root / "org" / "tiny-chat").config
    assert remote.listing.needed_bytes > 0
    assert not [e for e in published.log if e["path"].endswith(".safetensors") and e["sent"]]
    formats = resolve_formats(WeightFormats("nf4-dq"), "", cuda_budget(8).hardware)
    assert weights_bytes(remote.config, formats) > 0


def test_sizes_of_heads_come_from_their_headers(
    published: LoopbackHub, settings: HubSettings
) -> None:
    heads = look_at_heads(settings, "org/tiny-chat-medusa").shape
    assert heads == HeadsShape(4, 1, 320, 128)
    (read,) = [e for e in published.log if e["path"].endswith(".safetensors")]
    assert read["range"] == "bytes=0-65535"


def test_a_header_longer_than_one_read_is_read_in_two(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    tensors = {f"0.{i}.linear.{'x' * 40}": np.zeros(1, np.float32) for i in range(900)}
    folder = hub.root / "org" / "many"
    folder.mkdir(parents=True)
    save_file(tensors, folder / "medusa_lm_head.safetensors")
    with pytest.raises(HeadsError):
        look_at_heads(settings, "org/many")
    assert len([e for e in hub.log if e["path"].endswith(".safetensors")]) == 2


def test_a_repository_without_a_model_says_so(hub: LoopbackHub, settings: HubSettings) -> None:
    random_file(hub.root / "org" / "odd" / "model.safetensors", 5000)
    with pytest.raises(NotFoundError, match=r"no config\.json"):
        look_at_model(settings, "org/odd")
    with pytest.raises(CheckpointError):
        look_at_heads(settings, "org/odd")
    (hub.root / "org" / "odd" / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(CheckpointError, match="no JSON object"):
        look_at_model(settings, "org/odd")


def test_a_search_finds_by_name(published: LoopbackHub, settings: HubSettings) -> None:
    found = search(settings, "medusa")
    assert [one.repo for one in found] == ["org/tiny-chat-medusa"]
    assert found[0].downloads == 1000
    assert found[0].changed == "2026-01-02"
    assert search(settings, "nothing-like-it") == ()


def test_heads_that_do_not_fit_have_a_reason(tmp_path: Path) -> None:
    config = ModelFiles.open(write_tiny(tmp_path / "model", SPEC)).config
    for heads, reason in (
        (HeadsShape(5, 1, 320, 128), ""),
        (HeadsShape(5, 1, 384, 128), ""),
        (HeadsShape(5, 1, 1000, 128), "vocabulary size 1,000 ≠ 320"),
        (HeadsShape(5, 1, 320, 256), "hidden size 256 ≠ 128"),
        (HeadsShape(5, 1, 100, 128, is_reduced=True), ""),
        (HeadsShape(5, 1, 500, 128, is_reduced=True), "vocabulary size 500 > 320"),
        (HeadsShape(5, 1, 0, 128), ""),
        (HeadsShape(), "these are no heads"),
    ):
        assert misfit(config, heads) == reason


def test_the_catalog_is_complete_and_its_heads_fit() -> None:
    catalog = read_catalog()
    assert len({entry.pair for entry in catalog}) == len(catalog) > 3
    for entry in catalog:
        assert entry.title
        assert entry.licence
        assert entry.note
        assert "/" in entry.pair.model
        default = "" if entry.config.holds_blocks else "bf16"
        published = WeightFormats("q4" if entry.pair.file else default)
        formats = resolve_formats(published, "bfloat16", Hardware("cpu"), entry.config.stored)
        planned = weights_bytes(entry.config, formats) + 1.48e9 * bool(entry.heads.num_heads)
        if entry.config.per_layer_embeddings is None:
            # Files of mixed types have a few bits more or less than 4.5 a weight.
            assert entry.download_bytes == pytest.approx(planned, rel=0.3)
        else:  # whose vectors of every layer are the larger half
            assert planned < entry.download_bytes < 2 * planned
        if entry.heads.num_heads:
            assert misfit(entry.config, entry.heads) == ""
    # A GGUF file of 4.9 bits instead of weights of 16 that are made narrower here.
    assert {entry.title for entry in catalog if entry.pair.file} >= {"Qwen3 4B", "Qwen3 8B"}
    sizes = {entry.title: entry.download_bytes / 1e9 for entry in catalog}
    assert sizes["GPT-OSS 20B"] == pytest.approx(13.8, rel=0.01), "as its files are"


def test_the_catalog_lists_current_models_first_and_some_for_every_computer() -> None:
    catalog = read_catalog()
    assert [entry.is_earlier for entry in catalog] == sorted(entry.is_earlier for entry in catalog)
    today = [entry for entry in catalog if not entry.is_earlier]
    for gib in (2, 4, 8, 24):
        assert any(entry.download_bytes < gib * 0.8 * 2**30 for entry in today)
    for entry in today:
        if "Its makers' own file." in entry.note:
            assert entry.pair.file
            assert entry.pair.model.partition("/")[0] not in ("bartowski", "unsloth", "ggml-org")


@pytest.mark.expects_errors
def test_a_model_is_downloaded_planned_and_run_by_name(
    published: LoopbackHub,
    settings: HubSettings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", published.endpoint)
    monkeypatch.setenv("HF_HUB_CACHE", str(settings.cache_dir))

    def said(status: int, *arguments: str) -> tuple[str, str]:
        assert main([*arguments]) == status
        return capsys.readouterr()

    pair = ("org/tiny-chat", "--heads", "org/tiny-chat-medusa")
    assert json.loads(said(0, "plan", *pair, "--json")[0])["verdict"] == Fit.FITS.value
    requested = ("generate", "--prompt", "hi", "--model", *pair[:1])
    assert "medusa pull org/tiny-chat" in said(1, *requested)[1]
    assert "org/tiny-chat-medusa: " in said(0, "pull", *pair)[0]
    options = ("--max-new-tokens", "4", "--quant", "q4", "--json")
    answered = said(0, *requested, *pair[1:], *options)[0]
    preferred = min(drafter_registry().specs, key=lambda spec: spec.preference)
    assert json.loads(answered)["drafter"] == preferred.name
    assert "no repository org/nothing" in said(1, "pull", "org/nothing")[1]
