"""The list of planted faults fits the code of now."""

from pathlib import Path

import pytest

from tests.tools.fault_list import FAULTS, Fault
from tests.tools.planted_faults import ROOT, PlantingError, find_place, find_tests, planted

SOURCE = "one = 1\ntwo = 2\n"
TWO = Fault("two", "app/x.py", "two = 2", "two = 3", "two is wrong", ("test_x.py",))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "x.py").write_text(SOURCE)
    return tmp_path


def test_every_fault_can_be_planted_and_has_its_tests() -> None:
    assert len({fault.fault_id for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        place = find_place(ROOT, fault)
        wrong = place.read_text(encoding="utf-8").replace(fault.old, fault.new)
        compile(wrong, str(place), "exec")
        assert find_tests(ROOT, fault)


def test_a_fault_is_present_while_it_is_planted(checkout: Path) -> None:
    file = checkout / "app" / "x.py"
    with planted(checkout, TWO):
        assert file.read_text() == "one = 1\ntwo = 3\n"
    assert file.read_text() == SOURCE


def test_moved_code_is_found_by_its_text(checkout: Path) -> None:
    moved = checkout / "app" / "y.py"
    (checkout / "app" / "x.py").rename(moved)
    assert find_place(checkout, TWO) == moved


@pytest.mark.parametrize("text", ["one = 1\n", SOURCE + "two = 2\n"], ids=["none", "twice"])
def test_a_missing_or_ambiguous_text_names_the_fault(checkout: Path, text: str) -> None:
    (checkout / "app" / "x.py").write_text(text)
    with pytest.raises(PlantingError, match="two"):
        find_place(checkout, TWO)


def test_a_missing_test_file_names_the_fault(checkout: Path) -> None:
    with pytest.raises(PlantingError, match=r"test_x\.py"):
        find_tests(checkout, TWO)
