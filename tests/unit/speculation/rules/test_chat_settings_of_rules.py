"""Settings of answers over the rules that read them."""

from dataclasses import replace

import pytest

from medusa_core.chats.setting import When
from medusa_core.chats.settings import SETTINGS, ChatSettings
from medusa_core.engine.admission import admit
from medusa_core.messages import DrafterChoice
from medusa_core.speculation.rules.rule import (
    rule_registry,
    rules_by_preference,
    with_greedy_at_zero,
)

RULES = {rule.name: rule for rule in rules_by_preference()}
PLAIN = DrafterChoice("none", "Plain", "Nothing.", drafts=False)


@pytest.mark.parametrize("name", SETTINGS)
def test_every_declared_setting_is_the_engines_and_valid_over_its_range(name: str) -> None:
    setting = SETTINGS[name]
    assert setting.default == getattr(ChatSettings(), name)
    for value in (setting.low, setting.default, setting.high):
        chosen = replace(ChatSettings(), **{name: setting.read(value)})
        settings = chosen.generate_settings(seed=1)
        assert getattr(settings, name) == value
        admit((), settings)
        for rule in rule_registry().specs:
            named = with_greedy_at_zero(replace(settings, rule=rule.name)).rule
            rule_registry().get(named).build(settings)
    for senseless in (setting.low - 1, setting.high + 1, "1", None, True, float("nan")):
        with pytest.raises((ValueError, TypeError)):
            setting.read(senseless)


def test_a_setting_says_why_it_has_no_effect() -> None:
    heads = DrafterChoice("medusa", "Heads", "Heads.")
    assert "likeliest" in When.DRAWS.reason_ignored(RULES["greedy"], heads)
    assert When.DRAWS.reason_ignored(RULES["sample"], heads) == ""
    assert "Typical" in When.NOT_EXACT.reason_ignored(RULES["sample"], heads)
    assert When.NOT_EXACT.reason_ignored(RULES["typical"], heads) == ""
    assert "drafts nothing" in When.DRAFTS.reason_ignored(RULES["sample"], PLAIN)
    assert When.ALWAYS.reason_ignored(RULES["greedy"], PLAIN) == ""
