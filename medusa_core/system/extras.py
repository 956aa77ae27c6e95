"""Optional dependencies: the extras of pyproject.toml."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from medusa_core.errors import MissingExtraError
from medusa_core.i18n import tr
from medusa_core.system.installation import command_for_extra


@dataclass(frozen=True, slots=True)
class Extra:
    """Libraries that one part of the program needs.

    Attributes:
        name: Name of the extra in pyproject.toml.
        modules: Modules that are imported.
        note: A remark about its installation; may be empty.
    """

    name: str
    modules: tuple[str, ...]
    note: str = ""

    def need(self) -> None:
        """Check that all modules are installed.

        Raises:
            MissingExtraError: One isn't.
        """
        missing = [one for one in self.modules if importlib.util.find_spec(one) is None]
        if missing:
            raise MissingExtraError(
                tr("Not installed: {0}.", ", ".join(missing)),
                tr("Install it: {0}{1}", command_for_extra(self.name), self.note),
            )


SERVER_EXTRA = Extra("server", ("starlette", "uvicorn", "pydantic"))
TOOLS_EXTRA = Extra("tools", ("mcp",))
CLUSTER_EXTRA = Extra("cluster", ("ray",))
LLAMA_CPP = Extra("peers", ("llama_cpp",), " (builds it, which needs a C++ compiler)")
GGUF_WRITER = Extra("peers", ("gguf",), " (builds llama.cpp, which needs a C++ compiler)")
PLOTS_EXTRA = Extra("plots", ("matplotlib",))
