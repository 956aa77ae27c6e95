"""Registries of plug-ins: each module of a package that exports `SPEC` is an entry."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from copy import copy
from types import ModuleType
from typing import Generic, Protocol, TypeVar

from medusa_core.errors import RequestError


class Named(Protocol):
    """A spec with a name."""

    @property
    def name(self) -> str: ...


S = TypeVar("S", bound=Named)


class Registry(Generic[S]):
    """The specs of one package, by name.

    Attributes:
        specs: All specs, sorted by name.
    """

    def __init__(self, package: ModuleType, noun: str, kind: type[S]) -> None:
        self._noun = noun
        found: list[S] = []
        for module in pkgutil.iter_modules(package.__path__):
            spec = vars(importlib.import_module(f"{package.__name__}.{module.name}")).get("SPEC")
            if isinstance(spec, kind):
                found.append(spec)
        self.specs = tuple(sorted(found, key=lambda spec: spec.name))

    def with_others(self, specs: Iterable[S]) -> Registry[S]:
        """Return a copy with further specs."""
        larger = copy(self)
        larger.specs = tuple(sorted((*self.specs, *specs), key=lambda spec: spec.name))
        return larger

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all specs."""
        return tuple(spec.name for spec in self.specs)

    def get(self, name: str) -> S:
        """Return the spec of a name.

        Raises:
            RequestError: There is none; the hint lists all names.
        """
        for spec in self.specs:
            if spec.name == name:
                return spec
        raise RequestError(
            f"There is no {self._noun} {name!r}.", f"Choose one of {', '.join(self.names)}."
        )
