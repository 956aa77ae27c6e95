"""LoRA adapters in the model manager: listed, explained, planned, and loaded with a model."""

from pathlib import Path

from app.models.library_dialog import LibraryDialog
from medusa_core.loading.choice import ModelChoice
from medusa_core.loading.state import ModelState
from tests.support.models.adapter_files import lora_for
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import random_heads, write_heads, write_tiny
from tests.support.window.library_fixtures import OTHER, SPEC, Run
from tests.support.window.managing import card, until, wait_for_tasks


def texts(dialog: LibraryDialog) -> list[str]:
    box = dialog.installed.adapter_box
    return [box.itemText(place) for place in range(box.count())]


def test_installed_adapters_are_offered_and_one_is_loaded_with_a_model(
    run: Run, dialog: LibraryDialog, tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", SPEC)
    lora_for(model, tmp_path / "style")
    lora_for(write_tiny(tmp_path / "other", OTHER), tmp_path / "foreign")
    heads = write_heads(tmp_path / "heads", random_heads(SPEC))
    lora_for(model, heads / "adapter")
    tab, loaded = dialog.installed, list[ModelChoice]()
    tab.load_requested.connect(loaded.append)

    async def work() -> None:
        card(dialog, 8)
        for name in ("model", "style", "foreign", "heads"):
            tab.add_folder(str(tmp_path / name))
        await until(lambda: len(tab.items) == 4)
        kinds = {item.name: item.kind.value for item in tab.items}
        assert (kinds["style"], kinds["model"]) == ("adapter", "target")
        names = [item.name for item in tab.rows]
        tab.table.selectRow(names.index("style"))
        assert not tab.details.action_button.isEnabled(), "it is loaded with a model"
        tab.table.selectRow(names.index("model"))
        assert sorted(texts(dialog)[1:3]) == ["heads/adapter", "style"]
        assert texts(dialog)[3].startswith("foreign – ")
        assert "shape" in texts(dialog)[3]
        assert tab.adapter_box.currentIndex() == 0, "it changes what the model says"
        tab.details.action_button.click()
        tab.adapter_box.setCurrentIndex(texts(dialog).index("style"))
        tab.details.action_button.click()
        await wait_for_tasks(dialog)

    run(work)
    assert [choice.options.adapter_dir for choice in loaded] == [None, tmp_path / "style"]
    assert ModelState(loaded[1]).load().options.adapter_dir == tmp_path / "style"


def test_an_adapter_beside_block_quantized_weights_is_planned(
    run: Run, dialog: LibraryDialog, tmp_path: Path
) -> None:
    model = write_tiny(tmp_path / "model", SPEC)
    lora_for(model, tmp_path / "style")
    file = write_as_gguf(model, tmp_path / "blocks.gguf", "q8_0")
    tab, weights = dialog.installed, list[int]()

    async def work() -> None:
        card(dialog, 8)
        for path in (file, tmp_path / "style"):
            tab.add_folder(str(path))
        await until(lambda: len(tab.items) == 2)
        tab.table.selectRow([item.path for item in tab.rows].index(file))
        for place in (0, 1):
            tab.adapter_box.setCurrentIndex(place)
            assert tab.details.choice is not None
            weights.append(tab.details.choice.plan.weights_bytes)
        await wait_for_tasks(dialog)

    run(work)
    assert weights[1] > weights[0]
