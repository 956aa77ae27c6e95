"""GcScheduler is collected where and when it does no harm."""

import gc
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.startup import gc_scheduler as module
from app.startup.gc_scheduler import GcScheduler


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
