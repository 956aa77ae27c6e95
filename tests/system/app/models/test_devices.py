"""What models run on: offered with the reason where it can't be, kept, and used at once."""

from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from PySide6.QtGui import QStandardItemModel
from pytestqt.qtbot import QtBot

from app.models.library_dialog import LibraryDialog
from app.models.subject import Subject
from app.settings.device_box import DeviceBox
from app.settings.preferences import Preferences, load_preferences
from app.settings.storage_page import StoragePage
from app.settings.store import SettingsStore
from medusa_core.api import DeviceOffer, Library
from medusa_core.cli.plan import shape_config
from medusa_core.loading.memory import budget
from medusa_core.loading.memory.probe import offered_devices
from medusa_core.messages import Fit, HeadsShape, LoadModel
from medusa_core.system import cuda as card
from tests.support.card.card import fake_cuda
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run
from tests.support.window.managing import until, wait_for_tasks


def test_without_a_card_only_the_processor_is_offered() -> None:
    automatic, absent, processor = offered_devices()
    assert (automatic.device, automatic.label) == ("", "Processor")
    assert absent.lack
    assert processor == DeviceOffer("cpu", "Processor")


def test_a_card_is_listed_by_name_and_chosen_by_default() -> None:
    with fake_cuda((8, 6)):
        automatic, offered, processor = offered_devices()
        name = card.name(torch.device("cuda:0"))
    assert offered == DeviceOffer("cuda:0", name)
    assert automatic.label == name
    assert processor.device == "cpu"


def test_a_card_that_cannot_compute_says_why() -> None:
    def no_kernel(device: torch.device) -> None:
        raise RuntimeError("CUDA error: no kernel image is available for execution on the device")

    with fake_cuda((6, 1)), patch.object(card, "multiply", no_kernel):
        automatic, offered, _ = offered_devices()
    assert "compute capability 6.1" in offered.lack
    assert automatic.label == "Processor"


@pytest.mark.parametrize("row", [0, 2])
def test_another_device_is_remembered_and_the_model_moves_there(
    row: int,
    run: Run,
    open_ready: Open,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    offers = (
        DeviceOffer("", "GTX 1080"),
        DeviceOffer("cuda:0", "GTX 1080", "no kernels for it"),
        DeviceOffer("cpu", "Processor"),
    )
    monkeypatch.setattr("medusa_core.loading.memory.probe.offered_devices", lambda: offers)
    store = SettingsStore(Preferences(device="cuda:7"), tmp_path)
    window, engine = open_ready(settings=store)

    async def work() -> None:
        window.pages.open("settings", "Models")
        (box,) = window.findChildren(DeviceBox)
        await until(lambda: box.count() == 5)
        labels = ["Automatic (GTX 1080)", "GTX 1080", "Processor", "cuda:7 (not here)", "Cluster…"]
        assert [box.itemText(n) for n in range(box.count())] == labels
        assert box.currentText() == labels[3], "one that is gone can be left"
        model = box.model()
        assert isinstance(model, QStandardItemModel)
        assert not model.item(1).isEnabled()
        assert model.item(1).toolTip() == "no kernels for it"
        box.setCurrentIndex(row)
        box.activated.emit(row)
        (storage,) = window.findChildren(StoragePage)
        await storage.tasks.wait()

    run(work)
    qtbot.waitUntil(lambda: len(engine.of_kind(LoadModel)) == 2)
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)
    assert engine.of_kind(LoadModel)[-1].options.device == offers[row].device
    assert window.settings.folder is not None
    assert load_preferences(window.settings.folder).device == offers[row].device


def test_the_manager_explains_a_missing_device(
    run: Run, open_ready: Open, library: Library
) -> None:
    window, _ = open_ready(open_library=lambda: library)
    window.settings.set(device="cuda:3")

    async def work() -> None:
        window.pages.open("models")
        assert window.pages.find(LibraryDialog) is not None
        await wait_for_tasks(window.pages.find(LibraryDialog))
        await library.downloads.close()

    run(work)
    assert window.pages.find(LibraryDialog) is not None
    assert "CUDA" in window.pages.find(LibraryDialog).notice_label.text()


def test_a_cluster_is_offered_as_a_device(
    run: Run,
    open_ready: Open,
    qtbot: QtBot,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    typed = iter([("somewhere", True), (" 10.0.0.2:6379 ", True), ("", False)])
    requested: list[str] = []

    def answer(_parent: object, _title: str, words: str, **_: object) -> tuple[str, bool]:
        requested.append(words)
        return next(typed)

    monkeypatch.setattr("app.settings.device_box.QInputDialog.getText", answer)
    window, engine = open_ready()

    async def work() -> None:
        window.pages.open("settings", "Models")
        (box,) = window.findChildren(DeviceBox)
        await until(lambda: not box.tasks.is_running)
        for _ in range(2):
            box.setCurrentIndex(box.count() - 1)
            box.activated.emit(box.count() - 1)
            assert box.currentText() == "Cluster at 10.0.0.2:6379"
        (storage,) = window.findChildren(StoragePage)
        await storage.tasks.wait()

    run(work)
    assert len(requested) == 3, "once again behind what is no address"
    assert requested[1].startswith("somewhere is no address of a cluster.")
    qtbot.waitUntil(lambda: len(engine.of_kind(LoadModel)) >= 2)
    qtbot.waitUntil(lambda: window.loaded_model.status.calibrated is not None)
    loads = engine.of_kind(LoadModel)
    assert (loads[-1].options.cluster, loads[-1].options.device) == ("10.0.0.2:6379", "")
    assert (loads[0].options.cluster, loads[0].options.device) == ("", "")
    assert window.settings.folder is not None
    assert load_preferences(window.settings.folder).device == "cluster:10.0.0.2:6379"


def test_with_a_cluster_the_clients_part_must_fit(dialog: LibraryDialog) -> None:
    details = dialog.discover.details
    config = shape_config("vicuna-13b")
    details.show_subject(Subject("Vicuna 13B", "", config, HeadsShape()))
    details.set_budget(budget.cuda_budget(4))
    details.quant_box.setCurrentIndex(details.quant_box.findData("nf4"))
    assert details.choice is not None
    assert details.choice.plan.fit is Fit.NO
    details.set_budget(budget.cuda_budget(4), "10.0.0.2:6379")
    assert details.choice.plan.fit is Fit.FITS
    assert "the machines at 10.0.0.2:6379" in details.verdict_label.text()
