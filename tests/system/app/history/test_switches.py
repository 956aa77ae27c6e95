"""Switching between chats leaves nothing of them behind."""

from pathlib import Path

from pytestqt.qtbot import QtBot

from tests.benchmarks.chat_switches import held, open_window, switch, write_chats

WARM, SWITCHES = 4, 12
# Colours of code are kept, a few objects a chat; a message that stays is some 300 objects.
MOST_OBJECTS_A_SWITCH = 50


def test_objects_and_widgets_do_not_grow_with_the_chats_that_were_open(
    qtbot: QtBot, tmp_path: Path
) -> None:
    write_chats(tmp_path / "history.db", WARM + SWITCHES)
    chats = (f"c{number}" for number in range(WARM + SWITCHES))
    with open_window(tmp_path) as window:
        switch(window, chats, WARM // 2)
        switch(window, chats, WARM - WARM // 2, asks=True)
        first = held(0)
        switch(window, chats, SWITCHES)
        last = held(SWITCHES)
    assert last.num_objects - first.num_objects <= MOST_OBJECTS_A_SWITCH * SWITCHES
    assert last.num_widgets <= first.num_widgets
    assert last.num_qobjects <= first.num_qobjects
