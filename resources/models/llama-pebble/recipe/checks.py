"""Twenty questions that the demo model must answer, judged by pattern.

None of them occurs in the recipe's own training rows; a test holds the two apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from recipe.sentences import read_jsonl


@dataclass(frozen=True, slots=True)
class Check:
    """One question and the pattern (searched, case ignored) of a right answer."""

    category: str
    question: str
    pattern: str

    def accepts(self, answer: str) -> bool:
        """Whether the answer's first 200 characters hold the pattern."""
        return re.search(self.pattern, answer[:200], re.IGNORECASE) is not None


def read_checks() -> list[Check]:
    """All of them."""
    return [Check(**row) for row in read_jsonl("checks.jsonl")]
