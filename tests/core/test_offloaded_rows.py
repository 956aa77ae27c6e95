"""Cached rows below the device are those that would lie on it, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.core.cached_rows import KINDS, Driver, kind_of_cache

BELOW = (1, 2, 4)  # layers whose rows lie there


@torch.inference_mode()
@pytest.mark.parametrize("kind", KINDS)
def test_rows_below_equal_those_on_the_device(kind: str, tmp_path: Path) -> None:
    driver, done = Driver(kind_of_cache(kind), BELOW, tmp_path), set()
    for _ in range(40):
        done.add(driver.step())
        driver.check()
    assert done == {"prompt", "tree", "prune", "cut", "fail", "renew"}
