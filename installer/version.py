"""The program's version and licence, which `medusa_core/__init__.py` defines."""

import re

from installer.layout import Layout


def program_version(layout: Layout) -> str:
    """Return `medusa_core.__version__`, without importing anything."""
    return _constant(layout, "__version__")


def program_licence(layout: Layout) -> str:
    """Return `medusa_core.LICENCE`: a sentence about the program's own terms."""
    return _constant(layout, "LICENCE")


def program_licence_id(layout: Layout) -> str:
    """Return `medusa_core.LICENCE_ID`: the SPDX expression of the program's own terms."""
    return _constant(layout, "LICENCE_ID")


def _constant(layout: Layout, name: str) -> str:
    text = (layout.root / "medusa_core" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(rf'^{name} = "(.+?)"', text, re.MULTILINE)
    assert found is not None, f"medusa_core/__init__.py has no {name}"
    return found[1]
