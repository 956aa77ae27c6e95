"""What is downloaded is what `huggingface_hub` itself would have left, and its Hub is ours."""

from pathlib import Path

from medusa_core.hub.cache_folder import find_snapshot
from medusa_core.hub.job import Pair
from medusa_core.hub.pair_download import Tally
from medusa_core.hub.settings import HubSettings
from tests.support.hub.fixtures import LoopbackHub, in_library
from tests.support.hub.pairs import (
    HEADS,
    MODEL,
    check_whole,
    fetch,
    fill,
    sent,
)


def test_a_model_and_its_heads_are_fetched_and_found_by_the_library(
    hub: LoopbackHub, settings: HubSettings
) -> None:
    fill(hub)
    tally = Tally()
    model, heads = fetch(settings, Pair(MODEL, HEADS), tally)
    check_whole(hub, MODEL, model)
    check_whole(hub, HEADS, heads)
    assert tally.done_bytes == tally.total_bytes == tally.fetched_bytes
    names = {path.name for path in model.iterdir()}
    assert {"pytorch_model.bin", "consolidated.safetensors"}.isdisjoint(names)
    assert find_snapshot(settings.cache_dir, MODEL) == model
    # The library itself, offline, and with what it knows of snapshots.
    patterns = "allow_patterns=['*.json', 'model-*.safetensors']"
    code = f"from huggingface_hub import snapshot_download as s; print(s('{MODEL}', {patterns}"
    assert in_library(hub, settings.cache_dir, f"{code}, local_files_only=True))") == str(model)
    assert in_library(hub, settings.cache_dir, f"{code}, local_files_only=True))", offline=True)
    before = sent(hub)
    assert in_library(hub, settings.cache_dir, f"{code}))") == str(model)
    assert sent(hub) == before, "the library fetched again what was here"


def test_huggingface_hub_can_use_the_test_hub(hub: LoopbackHub, tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    fill(hub)
    save_file({"a": np.zeros((2, 3), np.float32)}, hub.root / "org" / "heads" / "model.safetensors")
    code = (
        "from huggingface_hub import HfApi, snapshot_download as s; a = HfApi();"
        f"print(len(a.model_info('{MODEL}').siblings),"
        f"len(list(a.list_repo_tree('{MODEL}'))), [m.id for m in a.list_models(search='head')],"
        f"len(a.get_paths_info('{MODEL}', ['config.json'])),"
        f"a.get_safetensors_metadata('{HEADS}').parameter_count, bool(s('{MODEL}')))"
    )
    printed = in_library(hub, tmp_path / "library-cache", code)
    assert printed == "8 8 ['org/heads'] 1 {'F32': 6} True"
