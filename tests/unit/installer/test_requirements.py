"""pyproject.toml and constraints.txt agree with each other and with what is installed."""

import re
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from installer.layout import this_repository
from installer.licences.installed import read_requirements

LAYOUT = this_repository()
LINUX_ONLY_WITH_CUDA = re.compile(r"^(nvidia|cuda|triton)\b")
ONLY_ON_WINDOWS = {"colorama", "pywin32"}
ONLY_TO_INSTALL = {"uv"}
ONLY_FOR_PACKAGES = {"ziglang", "nvidia-cuda-nvrtc-cu12"}  # extras `native` and `cuda-build`


def pins() -> dict[str, str]:
    """Pinned version of every distribution."""
    lines = LAYOUT.constraints.read_text(encoding="utf-8").splitlines()
    rows = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in rows}


def closure() -> set[str]:
    """Return every installed distribution that the application and its tests need."""
    found: set[str] = set()
    waiting = [Requirement(line) for line in read_requirements(LAYOUT, with_tests=True)]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or LINUX_ONLY_WITH_CUDA.match(name):
            continue
        found.add(name)
        for line in metadata.requires(name) or []:
            needed = Requirement(line)
            extras = ["", *requirement.extras]
            if not needed.marker or any(needed.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(needed)
    return found


def test_every_distribution_of_the_closure_is_pinned_and_no_other() -> None:
    others = ONLY_ON_WINDOWS | ONLY_TO_INSTALL | ONLY_FOR_PACKAGES
    assert set(pins()) - others == closure() - ONLY_ON_WINDOWS
    project = tomllib.loads(LAYOUT.pyproject.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    builders = {*extras["native"], *extras["cuda-build"]}
    assert builders == {f"{name}=={pins()[name]}" for name in ONLY_FOR_PACKAGES}


def test_pins_satisfy_the_requirements() -> None:
    pinned_versions = pins()
    for line in read_requirements(LAYOUT, with_tests=True):
        requirement = Requirement(line)
        assert pinned_versions[canonicalize_name(requirement.name)] in requirement.specifier, line


def test_installed_versions_are_the_pinned_ones() -> None:
    pinned_versions = pins()
    installed = {name: metadata.version(name).partition("+")[0] for name in closure()}
    assert installed == {name: pinned_versions[name] for name in installed}


def test_each_pin_is_found_by_name() -> None:
    assert LAYOUT.pinned("torch") == "torch==2.13.0"
    with pytest.raises(LookupError):
        LAYOUT.pinned("torchvision")


def test_no_package_host_is_named() -> None:
    for path in (LAYOUT.pyproject, LAYOUT.constraints, *LAYOUT.root.glob("installer/**/*.py")):
        assert not re.search(r"://\w", path.read_text(encoding="utf-8")), path.name
