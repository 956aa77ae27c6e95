"""The names in pyproject.toml that pip is asked for."""

import re
import tomllib

from installer.layout import Layout


def read_requirements(layout: Layout, *, with_tests: bool) -> list[str]:
    """Requirements of the application with its server, and of its tests.

    As pyproject.toml states them; other extras are for whoever wants them.
    """
    project = tomllib.loads(layout.pyproject.read_text(encoding="utf-8"))["project"]
    extras = ("server", "test") if with_tests else ("server",)
    optional = (project["optional-dependencies"][extra] for extra in extras)
    return [str(line) for lines in (project["dependencies"], *optional) for line in lines]


def name_of(requirement: str) -> str:
    """The distribution's name at the start of a requirement."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return found[0]
