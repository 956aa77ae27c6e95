"""Which drafter is tried on which target, so that none is left out.

It depends on what the targets hold, so a test over all drafters has one case for each drafter,
which asks for its targets when it runs: collecting tests writes and loads no models.

A drafter that reads nothing but the text does the same on every family. So each is tried with every
set of its sources that serve some target, on the demo, and on one more target by turns.
"""

from functools import cache

from medusa_core.loading.target import Target
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import source_registry
from tests.support.models.targets import TARGET_NAMES, load
from tests.support.models.tiny import trusted_template

Pair = tuple[str, DrafterSpec]


@cache
def serving_pairs() -> tuple[Pair, ...]:
    """Targets by name, each with a drafter that serves it; none of either is left out."""
    with trusted_template():
        pairs = [
            (name, spec)
            for number, spec in enumerate(drafter_registry().specs)
            for name in targets_for(spec, number)
        ]
    met = {name for name, _ in pairs}
    default = drafter_registry().get("composite")
    return (*pairs, *((name, default) for name in TARGET_NAMES if name not in met))


def targets_of(spec: DrafterSpec) -> list[str]:
    """The targets that a test over every drafter tries this one on."""
    return [name for name, drafter in serving_pairs() if drafter is spec]


def targets_for(spec: DrafterSpec, turn: int) -> list[str]:
    """The targets that a drafter is tried on.

    Args:
        spec: The drafter.
        turn: Chooses the last one.
    """
    serving = [name for name in TARGET_NAMES if spec.serves(load(name, "float64"))]
    by_sources: dict[frozenset[str], str] = {}
    for name in serving:
        by_sources.setdefault(sources_on(spec, load(name, "float64")), name)
    chosen = [*by_sources.values(), *({"pebble"} & set(serving))]
    others = [name for name in serving if name not in chosen]
    if others:
        chosen.append(others[turn % len(others)])
    return list(dict.fromkeys(chosen))


def sources_on(spec: DrafterSpec, target: Target) -> frozenset[str]:
    """Return a drafter's sources that serve a target, and the cache that one of them reads."""
    names = {name for name in spec.sources if source_registry().get(name).serves(target)}
    reads_earlier = "suffix" in names and target.learned is not None
    return frozenset(names | {"earlier answers"} if reads_earlier else names)
