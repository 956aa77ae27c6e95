"""The extras of the package: what isn't installed unless somebody asks for it."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from medusa_core.errors import MissingExtraError
from medusa_core.system.installation import command_for_extra


@dataclass(frozen=True, slots=True)
class Extra:
    """Libraries that one part of the program needs.

    Attributes:
        name: Of the extra in pyproject.toml.
        modules: What is imported.
        note: What else to know before it is installed; may be empty.
    """

    name: str
    modules: tuple[str, ...]
    note: str = ""

    def need(self) -> None:
        """Go on only where all of it is installed.

        Raises:
            MissingExtraError: It isn't.
        """
        missing = [one for one in self.modules if importlib.util.find_spec(one) is None]
        if missing:
            raise MissingExtraError(
                f"Not installed: {', '.join(missing)}.",
                f"Install it: {command_for_extra(self.name)}{self.note}",
            )


SERVER_EXTRA = Extra("server", ("starlette", "uvicorn", "pydantic"))
CLUSTER_EXTRA = Extra("cluster", ("ray",))
LLAMA_CPP = Extra("peers", ("llama_cpp",), " (builds it, which needs a C++ compiler)")
GGUF_WRITER = Extra("peers", ("gguf",), " (builds llama.cpp, which needs a C++ compiler)")
PLOTS_EXTRA = Extra("plots", ("matplotlib",))
