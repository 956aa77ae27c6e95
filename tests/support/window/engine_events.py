"""What the real engine says of its drafters, rules and sources."""

from app.theme.legend import Legend
from medusa_core.speculation.drafters.forced_text import source_infos
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import rules_by_preference

SOURCES = source_infos()
RULES = rules_by_preference()
DRAFTERS = tuple(drafter_registry().get(name).choice for name in ("medusa", "none"))
ALL_DRAFTERS = tuple(
    spec.choice for spec in sorted(drafter_registry().specs, key=lambda spec: spec.preference)
)
# The oracle of the engine's tests is marked as heads are.
ORACLE = SOURCES[0]._replace(name="oracle", colours=("blue", "amber", "green"))
LEGEND = Legend((*SOURCES, ORACLE), RULES)
