"""Settings and drafts that the laws are checked with on every kind of model."""

from medusa_core.messages import GenerateSettings
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.rules.rule import RuleSpec
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import Run, user_says

MESSAGES = user_says("as far as windows let it see")


def settings_of(rule: RuleSpec, drafter: str = "none") -> GenerateSettings:
    """Under the rule that draws, a setting that draws often."""
    return GenerateSettings(
        rule=rule.name, drafter=drafter, temperature=0.8, top_k=40, seed=3, max_new_tokens=20
    )


def oracle_of(plain: Run) -> DrafterSpec:
    """An oracle that knows this answer."""
    return oracle_spec([*plain.prompt_ids, *plain.token_ids])
