"""Settings and prompts that the laws of decoding are checked with."""

import json
from dataclasses import replace

from medusa_core.messages import ChatMessage, GenerateSettings
from medusa_core.speculation.rules.rule import RuleSpec, rule_registry
from medusa_core.system.resources import prompts_dir
from tests.support.engine.laws import user_says

RULES = rule_registry().specs
EXACT = [rule for rule in RULES if rule.choice.is_exact]
TINY_PROMPTS = (
    "the rest is silence",
    "one",
    "é as in café",
    "1 2 3 4 5 6 7 8 9 10",
    "tea and toast",
)
# Under a rule without these settings they change nothing: then the variants agree.
VARIANTS = (
    GenerateSettings(temperature=1.0, seed=1),
    GenerateSettings(temperature=0.6, top_k=7, seed=2),
    GenerateSettings(temperature=1.3, top_p=0.8, seed=3),
    GenerateSettings(temperature=0.9, top_k=40, top_p=0.9, seed=2**64 - 1),
    GenerateSettings(temperature=0.8, min_p=0.1, repetition_penalty=1.2, seed=4),
)
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
Prompts = tuple[tuple[ChatMessage, ...], ...]


def prompts_of(name: str) -> Prompts:
    """Conversations to answer."""
    if name != "pebble":
        return tuple(map(user_says, TINY_PROMPTS))
    lines = (prompts_dir() / "in_domain.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["turns"][0] for line in lines]
    # Short ones from all over the file, so that many categories take part.
    return tuple(map(user_says, [text for text in texts if len(text) < 300][::4]))


def settings_for(rule: RuleSpec, num_tokens: int) -> tuple[GenerateSettings, ...]:
    """Settings to decode with under a rule."""
    variants = VARIANTS[:1] if rule.name == "greedy" else VARIANTS
    return tuple(replace(v, rule=rule.name, max_new_tokens=num_tokens) for v in variants)
