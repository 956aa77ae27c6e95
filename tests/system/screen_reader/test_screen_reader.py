"""A real client of the accessibility bus finds every page in order, and does the main tasks."""

import pytest

from tests.system.screen_reader import session

LACK = session.lack()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(LACK), reason=LACK),
    pytest.mark.timeout(1200),
]
TOURS = ("welcome", "chat", "panels", "models", "settings", "others")
TASKS = (
    *("write_and_hear", "stop", "read_a_verdict", "load_a_model", "use_the_menu"),
    *("read_the_tree", "change_a_setting", "read_an_error", "undo_a_deleted_chat"),
)


def test_every_page_is_readable_and_reachable_by_keys() -> None:
    pages = session.run(TOURS)["pages"]
    assert isinstance(pages, dict)
    assert len(pages) > 25
    assert {name: faults for name, faults in pages.items() if faults} == {}


def test_the_main_tasks_work_by_keys_and_are_announced() -> None:
    tasks = session.run(TASKS)["tasks"]
    assert isinstance(tasks, dict)
    assert list(tasks) == list(TASKS)
    assert {name: said for name, said in tasks.items() if said.startswith("FAILED")} == {}
