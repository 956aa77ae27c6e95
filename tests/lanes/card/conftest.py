"""The guard that fake cards need, once for all tests, and targets to put on them."""

from pathlib import Path

import pytest

from tests.support.card.guard import (
    NO_COMPILER,
    find_compiler,
    register_guard,
    system_compiler,
)
from tests.support.card.host_kernels import HostKernels, shared_host_kernels

Folders = dict[str, tuple[Path, Path]]


@pytest.fixture(autouse=True, scope="session")
def guard(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Register a device guard, without which torch refuses tensors on a card."""
    compiler = system_compiler()  # ziglang's libraries have another C++ standard library
    if compiler is None:
        pytest.skip("The fake card needs a C++ compiler: apt-get install g++.")
    register_guard(tmp_path_factory.mktemp("guard"), compiler)


@pytest.fixture(scope="session")
def compiler() -> list[str]:
    found = find_compiler()
    assert found is not None, NO_COMPILER
    return found


@pytest.fixture(scope="session")
def kernels() -> HostKernels:
    return shared_host_kernels()
