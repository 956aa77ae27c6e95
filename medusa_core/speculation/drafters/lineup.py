"""Registry of drafters, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice, DrafterSpeed
from medusa_core.speculation import drafters
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.grown import grown_spec
from medusa_core.speculation.drafters.source import SourceSpec, source_registry
from medusa_core.speculation.drafters.sources.heads_source import HINT
from medusa_core.system.registry import Registry


def combinations() -> tuple[DrafterSpec, ...]:
    """The combinations; each uses those of its sources that serve a target, at least two."""
    return (
        grown_spec(
            DrafterChoice(
                "composite",
                "All methods",
                "All sources of drafts that this model has, together in one tree.",
            ),
            # Sources with riders can't be combined.
            [spec.name for spec in source_registry().specs if not spec.rides],
            preference=0,
            hint=HINT,
        ),
        grown_spec(
            DrafterChoice(
                "phrases",
                "Phrases and suffix tree",
                "A table of what the model often says, and what followed the same words before.",
            ),
            ("phrases", "suffix"),
            preference=20,
        ),
    )


_SAME_SPEED = 0.97  # measurements can't tell closer speeds apart


@cache
def drafter_registry() -> Registry[DrafterSpec]:
    """All drafters: those of this folder, the combinations, and each source alone.

    A source with the name of another drafter isn't a drafter of its own.
    """
    registry = Registry(drafters, "drafter", DrafterSpec).with_others(combinations())
    alone = [_alone(spec) for spec in source_registry().specs]
    return registry.with_others(spec for spec in alone if spec.name not in registry.names)


def _alone(source: SourceSpec) -> DrafterSpec:
    """The drafter of one source."""
    info = source.info
    choice = source.alone or DrafterChoice(info.name, info.label.capitalize(), info.explanation)
    return grown_spec(choice, (source.name,), source.preference, is_raced=source.is_raced)


def serving_drafters(target: Target) -> tuple[DrafterSpec, ...]:
    """Drafters that can draft for a target, by preference."""
    serving = (spec for spec in drafter_registry().specs if spec.can_draft(target))
    return tuple(sorted(serving, key=lambda spec: spec.preference))


def fixed_tree_drafter() -> DrafterSpec:
    """The preferred drafter with one tree for all steps."""
    fixed = (spec for spec in drafter_registry().specs if spec.drafts and not spec.weighs_rows)
    return min(fixed, key=lambda spec: spec.preference)


def raced_drafters(target: Target) -> tuple[DrafterSpec, ...]:
    """Drafters that take part in a target's race, by preference."""
    return tuple(spec for spec in drafters_for(target) if spec.is_raced)


def drafters_for(
    target: Target, speeds: Sequence[DrafterSpeed] = (), *, shows_drafts: bool = False
) -> tuple[DrafterSpec, ...]:
    """Drafters that users may choose for a target, the default first.

    Args:
        target: The target.
        speeds: Measured speeds, if known: then the fastest one is the default.
        shows_drafts: Whether the default must be able to draft.
    """
    offered = [spec for spec in serving_drafters(target) if spec.is_offered]
    raced = [spec for spec in offered if spec.is_raced]
    able = [spec for spec in raced if spec.drafts] if shows_drafts else raced
    names = {spec.name for spec in able}
    known = {speed.name: speed.tokens_per_s for speed in speeds if speed.name in names}
    best = max(known.values(), default=0.0)
    fast = (spec for spec in able if known.get(spec.name, -1.0) >= _SAME_SPEED * best)
    first = next(fast, (able or offered)[0])
    return (first, *(spec for spec in offered if spec is not first))
