"""What the real engine says of its drafters, rules and sources, as it was recorded.

A room of tests that needs no torch has it from the file beside this module;
`python -m tests.support.window.engine_events` writes that anew.
"""

import json
from pathlib import Path
from typing import Any

from app.theme.legend import Legend
from medusa_core.messages import DrafterChoice, RuleChoice, SourceInfo

RECORDED = Path(__file__).with_suffix(".json")


def engine_says() -> dict[str, Any]:
    """Return recorded engine events; to record them imports torch."""
    from medusa_core.speculation.drafters.forced_text import source_infos
    from medusa_core.speculation.drafters.lineup import drafter_registry
    from medusa_core.speculation.drafters.source import source_registry
    from medusa_core.speculation.rules.rule import rules_by_preference

    drafters = sorted(drafter_registry().specs, key=lambda spec: spec.preference)
    said = {
        "sources": [one._asdict() for one in source_infos()],
        "of_heads": [spec.name for spec in source_registry().specs if spec.of_heads],
        "rules": [one._asdict() for one in rules_by_preference()],
        "drafters": [spec.choice._asdict() for spec in drafters],
    }
    return json.loads(json.dumps(said))  # type: ignore[no-any-return]


def tuples(value: Any) -> Any:
    """Lists of JSON as the tuples that they were."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def read(kind: Any, name: str) -> Any:
    """Return all records of a kind."""
    return tuple(kind(*map(tuples, fields.values())) for fields in _SAID[name])


_SAID: dict[str, Any] = json.loads(RECORDED.read_text(encoding="utf-8"))
SOURCES: tuple[SourceInfo, ...] = read(SourceInfo, "sources")
RULES: tuple[RuleChoice, ...] = read(RuleChoice, "rules")
ALL_DRAFTERS: tuple[DrafterChoice, ...] = read(DrafterChoice, "drafters")
DRAFTERS = tuple(next(d for d in ALL_DRAFTERS if d.name == name) for name in ("medusa", "none"))
OF_HEADS = frozenset(_SAID["of_heads"])
# The oracle of the engine's tests is marked as heads are.
MEDUSA = next(source for source in SOURCES if source.name == "medusa")
ORACLE = MEDUSA._replace(name="oracle", colours=("blue", "amber", "green"))
LEGEND = Legend((*SOURCES, ORACLE), RULES)

if __name__ == "__main__":
    text = json.dumps(engine_says(), ensure_ascii=False, indent=1)
    RECORDED.write_text(text + "\n", encoding="utf-8")
