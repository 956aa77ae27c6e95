"""Whatever is registered takes part in the laws: no drafter, source or target is left out."""

from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.source import source_registry
from tests.support.engine.pairs import serving_pairs, sources_on
from tests.support.models.targets import TARGET_NAMES, load


def test_every_drafter_and_every_target_is_paired() -> None:
    pairs = serving_pairs()
    missing = set(drafter_registry().names) - {spec.name for _, spec in pairs}
    assert not missing, "write a target that they can draft for, and name it in TARGET_NAMES"
    assert {name for name, _ in pairs} == set(TARGET_NAMES)
    assert all(spec.serves(load(name, "float64")) for name, spec in pairs)


def test_every_source_drafts_in_some_pair() -> None:
    drafting = {
        source
        for name, spec in serving_pairs()
        for source in sources_on(spec, load(name, "float64"))
    }
    assert drafting - {"earlier answers"} == set(source_registry().names)


def test_every_set_of_a_drafters_sources_is_paired() -> None:
    composite = drafter_registry().get("composite")
    met = {
        sources_on(spec, load(name, "float64"))
        for name, spec in serving_pairs()
        if spec is composite
    }
    assert met == {sources_on(composite, load(name, "float64")) for name in TARGET_NAMES}
