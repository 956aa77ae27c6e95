"""All drafters, by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, DrafterSpeed
from medusa_core.speculation import drafters
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.grown import grown_spec
from medusa_core.speculation.drafters.source import source_registry
from medusa_core.system.registry import Registry

_LATER = 40  # than the ones that have files of their own
_AS_FAST = 0.97  # closer than this, measurements don't tell speeds apart


@cache
def drafter_registry() -> Registry[DrafterSpec]:
    """All drafters: those of this folder, and each source alone that none of them is for."""
    named = Registry(drafters, "drafter", DrafterSpec)
    alone = [
        grown_spec(
            DrafterChoice(info.name, info.label.capitalize(), info.explanation),
            (info.name,),
            _LATER,
        )
        for info in (spec.info for spec in source_registry().specs)
        if not _has_own(info.name, named)
    ]
    return named.with_others(alone)


def drafters_for(
    target: Target, speeds: Sequence[DrafterSpeed] = (), *, shows_drafts: bool = False
) -> tuple[DrafterSpec, ...]:
    """Those that can draft for a target, the default first.

    Args:
        target: The target.
        speeds: How fast they were here, if that is known: the fastest is the default then.
        shows_drafts: Of those that draft, that is.
    """
    serving = [spec for spec in drafter_registry().specs if spec.serves(target)]
    serving.sort(key=lambda spec: spec.preference)
    able = [spec for spec in serving if spec.drafts] if shows_drafts else serving
    names = {spec.name for spec in able}
    known = {speed.name: speed.tokens_per_s for speed in speeds if speed.name in names}
    best = max(known.values(), default=0.0)
    fast = (spec for spec in able if known.get(spec.name, -1.0) >= _AS_FAST * best)
    first = next(fast, (able or serving)[0])
    return (first, *(spec for spec in serving if spec is not first))


def _has_own(source: str, named: Registry[DrafterSpec]) -> bool:
    """Whether a drafter other than the one of all sources uses it."""
    return any(source in spec.sources and spec.name != "composite" for spec in named.specs)
