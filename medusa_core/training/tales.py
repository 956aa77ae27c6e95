"""Very short stories by wish, put together from parts: who, where, what happens, how it ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from medusa_core.training import facts


@dataclass(frozen=True, slots=True)
class Hero:
    """Who a tale may be about: the word in the wish, the pronouns, and what it likes to do."""

    noun: str
    subject: str
    owner: str
    habit: str


HEROES = (
    Hero("a fox", "he", "his", "run through the tall grass"),
    Hero("a cat", "she", "her", "sleep in the sun"),
    Hero("a dog", "he", "his", "dig holes in the garden"),
    Hero("a dragon", "he", "his", "fly over the mountains"),
    Hero("a robot", "it", "its", "count the stars"),
    Hero("a mouse", "she", "her", "collect crumbs of cheese"),
    Hero("a bear", "he", "his", "eat berries by the river"),
    Hero("a bird", "she", "her", "sing early in the morning"),
    Hero("a king", "he", "his", "walk in the palace garden"),
    Hero("a princess", "she", "her", "read books about the sea"),
    Hero("a farmer", "he", "his", "talk to the cows"),
    Hero("a fisherman", "he", "his", "sit by the quiet lake"),
    Hero("a girl", "she", "her", "climb the old apple tree"),
    Hero("a boy", "he", "his", "fly a red kite"),
    Hero("a wizard", "he", "his", "mix strange potions"),
    Hero("an owl", "she", "her", "watch the moon"),
    Hero("a rabbit", "he", "his", "hop across the meadow"),
    Hero("a horse", "she", "her", "gallop along the beach"),
    Hero("a turtle", "he", "his", "think about the world"),
    Hero("a little ghost", "it", "its", "float through the old house"),
)
PLACES = (
    "at the edge of a forest",
    "in a small village",
    "on a hill above the sea",
    "near a wide river",
    "in a far country",
    "in a little wooden house",
    "behind the old mill",
    "in a quiet valley",
)
EVENTS = (
    "One day a storm came, and the path home was lost.",
    "One morning there was a strange key on the doorstep.",
    "One evening {name} heard somebody cry behind the trees.",
    "One winter day the snow fell so high that nobody could go out.",
    "One day {name} found a small box that would not open.",
    "One night a bright star fell into the garden.",
    "One summer day the well ran dry, and everybody was thirsty.",
    "One day {name} lost {owner} favourite hat.",
)
HELP = (
    "{Subject} was afraid at first, but then {subject} had an idea and asked a friend for help.",
    "{Subject} looked everywhere and did not give up.",
    'An old woman said, "Be patient, and look where you would never look."',
    "Together with {owner} neighbours, {name} worked until the sun went down.",
    "{Subject} waited, listened, and followed a little light.",
    'A small voice said, "I can help you, if you are kind to me."',
)
ENDINGS = (
    "In the end everything was well, and they all had soup together.",
    "From that day on, {name} was never lonely again.",
    "{Name} smiled, went home and slept very well that night.",
    "And so {name} learned that a friend is worth more than gold.",
    "Everybody thanked {name}, and there was a great feast.",
    "{Name} kept the secret, and told it only to the moon.",
)
WISHES = (
    "Tell me a short story about {noun}.",
    "Tell me a very short story about {noun}.",
    "Write a short story about {noun} named {name}.",
    "Write a little story about {noun}.",
    "Can you tell me a short tale about {noun}?",
    "I would like a short story about {noun} called {name}.",
    "Make up a short story about {noun}, please.",
    "Please write a short bedtime story about {noun}.",
)
OPENINGS = (
    "Once upon a time there was {noun} named {name}. {Subject} lived {place}.",
    "There once was {noun} called {name}, who lived {place}.",
    "{Place} lived {noun} whose name was {name}.",
)


def tale(rng: random.Random) -> tuple[str, str]:
    """A wish and the story that answers it."""
    hero = rng.choice(HEROES)
    words = {
        "noun": hero.noun,
        "subject": hero.subject,
        "Subject": hero.subject.capitalize(),
        "owner": hero.owner,
        "name": rng.choice(facts.NAMES),
        "place": rng.choice(PLACES),
    }
    words |= {"Name": words["name"], "Place": words["place"].capitalize()}
    habit = f"Every day {words['subject']} liked to {hero.habit}."
    parts: Sequence[str] = (
        rng.choice(OPENINGS),
        habit,
        rng.choice(EVENTS),
        rng.choice(HELP),
        rng.choice(ENDINGS),
    )
    return rng.choice(WISHES).format(**words), " ".join(part.format(**words) for part in parts)
