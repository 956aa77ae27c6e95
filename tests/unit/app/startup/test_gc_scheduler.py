"""GcScheduler is collected where and when it does no harm."""

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.startup import gc_scheduler as module
from app.startup.gc_scheduler import GcScheduler
from medusa_core.system.garbage import collect_garbage


@pytest.fixture
def garbage(qtbot: QtBot) -> Iterator[GcScheduler]:
    """Activate the scheduler in an idle window."""
    collector = GcScheduler(lambda: False)
    collector.start()
    yield collector
    collector.stop()
    assert gc.isenabled()


class Holder:
    """Object with a reference to itself."""

    def __init__(self) -> None:
        self.me = self


def test_garbage_is_collected_only_in_the_window_thread(garbage: GcScheduler) -> None:
    assert not gc.isenabled()
    alive = weakref.ref(Holder())
    assert alive() is not None
    garbage.collect()
    assert alive() is None


def test_garbage_of_widgets_is_deleted_by_the_window_when_an_engine_collects(
    garbage: GcScheduler, qtbot: QtBot
) -> None:
    deleted_in: list[threading.Thread] = []
    weakref.finalize(Holder(), lambda: deleted_in.append(threading.current_thread()))
    engine = threading.Thread(target=collect_garbage)
    engine.start()
    qtbot.waitUntil(lambda: not engine.is_alive())
    assert deleted_in == [threading.main_thread()]


def test_old_generations_are_collected_when_the_window_is_idle(
    garbage: GcScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_WHOLE_EVERY", 2)
    held = Holder()
    alive = weakref.ref(held)
    garbage.collect()
    garbage.collect()
    del held  # old by now
    monkeypatch.setattr(garbage, "_is_busy", lambda: True)
    garbage.collect()
    assert alive() is not None, "an answer comes"
    monkeypatch.setattr(garbage, "_is_busy", lambda: False)
    garbage.collect()
    assert alive() is None
