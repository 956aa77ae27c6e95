"""The names in pyproject.toml that pip is asked for."""

import re
import tomllib

from installer.layout import Layout


def read_requirements(layout: Layout, *, with_tests: bool) -> list[str]:
    """Requirements of the application, and of its tests, as pyproject.toml states them."""
    project = tomllib.loads(layout.pyproject.read_text(encoding="utf-8"))["project"]
    requirements = [str(line) for line in project["dependencies"]]
    if with_tests:
        requirements += [str(line) for line in project["optional-dependencies"]["test"]]
    return requirements


def name_of(requirement: str) -> str:
    """The distribution's name at the start of a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return found[0]
