"""Heads of safetensors files that don't say what the files hold."""

import json

import pytest

from medusa_core.errors import CheckpointError
from medusa_core.system.files.safetensors_header import LENGTH_BYTES, parse_header


def header_of(*places: tuple[int, int]) -> bytes:
    """Head of a file with a tensor of bytes at each place."""
    return json.dumps(
        {
            f"t{number}": {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end]}
            for number, (start, end) in enumerate(places)
        }
    ).encode()


def test_contiguous_tensors_are_accepted() -> None:
    header = header_of((4, 10), (0, 4))
    begin = LENGTH_BYTES + len(header)
    found = parse_header(header, begin + 10, "x")
    assert {name: (one.start - begin, one.nbytes) for name, one in found.items()} == {
        "t0": (4, 6),
        "t1": (0, 4),
    }


@pytest.mark.parametrize(
    "places",
    [((0, 4), (5, 10)), ((1, 10),), ((0, 6), (4, 10)), ((0, 10), (0, 10)), ((0, 9),)],
    ids=["gap", "gap before the first", "overlap", "twice", "rest"],
)
def test_gaps_and_overlaps_of_tensors_are_refused(places: tuple[tuple[int, int], ...]) -> None:
    header = header_of(*places)
    with pytest.raises(CheckpointError, match="damaged"):
        parse_header(header, LENGTH_BYTES + len(header) + 10, "x")
