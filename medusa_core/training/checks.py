"""Twenty questions that the demo model must answer, judged by pattern.

None of them occurs in the recipe's own training rows; a test holds the two apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_IDENTITY = r"pebble"
_MACHINE = r"pebble|language model|\bmodel\b|program|not a (human|person)|\bno\b"
_GREETING = r"\b(hi|hello|hey|good|welcome|nice|glad|great|fine|well|help)\b"


@dataclass(frozen=True, slots=True)
class Check:
    """One question and the pattern (searched, case ignored) of a right answer."""

    category: str
    question: str
    pattern: str

    def accepts(self, answer: str) -> bool:
        """Whether the answer's first 200 characters hold the pattern."""
        return re.search(self.pattern, answer[:200], re.IGNORECASE) is not None


CHECKS = (
    Check("identity", "Who am I talking to?", _IDENTITY),
    Check("identity", "Please tell me who you are.", _IDENTITY),
    Check("identity", "What name do you go by?", _IDENTITY),
    Check("identity", "Are you a real human being?", _MACHINE),
    Check("identity", "What sort of model are you?", _MACHINE),
    Check("greeting", "Hello, Pebble!", _GREETING),
    Check("greeting", "Good evening to you!", _GREETING),
    Check("greeting", "Hey, how's it going today?", _GREETING),
    Check("greeting", "Hi, it's me again.", _GREETING),
    Check("greeting", "Greetings, little model!", _GREETING),
    Check("capital", "I forgot the capital of France. What is it?", r"\bparis\b"),
    Check("capital", "Which town is Japan's capital?", r"\btokyo\b"),
    Check("capital", "Say the name of the capital city of Italy.", r"\brome\b"),
    Check("capital", "Can you tell me what the capital of Egypt is?", r"\bcairo\b"),
    Check("capital", "The capital of Germany is which city?", r"\bberlin\b"),
    Check("sum", "What do 2 and 3 make?", r"\b(5|five)\b(?! ?\+)"),
    Check("sum", "If I have 4 apples and get 4 more, how many do I have?", r"\b(8|eight)\b"),
    Check("sum", "Please work out 7 + 5.", r"\b(12|twelve)\b"),
    Check("sum", "Add 6 to 3.", r"\b(9|nine)\b"),
    Check("sum", "How much do I get when I add 10 and 5?", r"\b(15|fifteen)\b"),
)
