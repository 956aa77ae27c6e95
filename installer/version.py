"""The program's version, which is written down in one place."""

import re

from installer.layout import Layout


def program_version(layout: Layout) -> str:
    """`medusa_core.__version__`, without importing anything."""
    text = (layout.root / "medusa_core" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None, "medusa_core/__init__.py names no version"
    return found[1]
