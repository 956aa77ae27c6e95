"""A model that holds a layer to guess with: its own heads, in the plan, and left out if wished."""

from pathlib import Path

from app.models.library_dialog import LibraryDialog
from medusa_core.api import Library
from medusa_core.loading.choice import ModelChoice
from tests.support.models.mtp_files import write_mimo
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import card, wait_for_tasks


def test_a_models_mtp_layer_is_offered_planned_and_can_be_left_out(
    run: Run, library: Library, dialog: LibraryDialog, tmp_path: Path
) -> None:
    folder = write_mimo(tmp_path / "guesses")
    library.add_folder(str(folder))
    loaded: list[ModelChoice] = []
    dialog.load_requested.connect(loaded.append)

    async def work() -> None:
        tab = dialog.installed
        card(dialog, 8)
        await tab.refresh()
        tab.table.selectRow([item.name for item in tab.rows].index("guesses"))
        assert tab.heads_box.currentText() == "its own"
        assert tab.details.choice is not None
        assert tab.details.choice.plan.heads_bytes > 0
        tab.details.action_button.click()
        tab.heads_box.setCurrentIndex(0)
        assert tab.details.choice.plan.heads_bytes == 0
        tab.details.action_button.click()
        await wait_for_tasks(dialog)

    run(work)
    assert [choice.heads_dir for choice in loaded] == [folder, None]
    assert [choice.options.takes_own_heads for choice in loaded] == [True, False]
