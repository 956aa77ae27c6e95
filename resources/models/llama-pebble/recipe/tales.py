"""Very short stories by wish, put together from parts: who, where, what happens, how it ends."""

from __future__ import annotations

import random

from recipe.sentences import Sentences


def tale(rng: random.Random, known: Sentences) -> tuple[str, str]:
    """A wish and the story that answers it."""

    def one_of(name: str) -> str:
        return rng.choice(known.lists[name])

    hero = rng.choice(known.heroes)
    words = {
        "noun": hero.noun,
        "subject": hero.subject,
        "Subject": hero.subject.capitalize(),
        "owner": hero.owner,
        "name": one_of("names"),
        "place": one_of("tale_places"),
    }
    words |= {"Name": words["name"], "Place": words["place"].capitalize()}
    parts = [
        one_of("tale_openings"),
        f"Every day {hero.subject} liked to {hero.habit}.",
        one_of("tale_events"),
        one_of("tale_help"),
        one_of("tale_endings"),
    ]
    story = " ".join(part.format(**words) for part in parts)
    return one_of("tale_wishes").format(**words), story
