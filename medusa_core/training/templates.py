"""The recipe's own chat rows: identity, greetings, honesty, facts, sums, tales, follow-ups."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from medusa_core.training import facts, phrases
from medusa_core.training.corpus import Document, Segment
from medusa_core.training.recipe import TEMPLATES
from medusa_core.training.tales import tale

Turn = tuple[str, str]
Kinds = tuple[tuple[Sequence[str], Sequence[str]], ...]
Maker = Callable[[random.Random], Turn]

TOKENS_PER_ROW = 46  # measured


def make_documents(num_tokens: int, seed: int) -> list[Document]:
    """Seeded chat rows of about this many tokens.

    Args:
        num_tokens: how much to make.
        seed: of the choices.
    """
    rng = random.Random(f"templates-{seed}")
    documents = []
    for _ in range(num_tokens // TOKENS_PER_ROW):
        turns = _conversation(rng)
        instructed = rng.random() < 0.06
        segments = [Segment("system", rng.choice(phrases.SYSTEM))] if instructed else []
        segments += [
            Segment(role, text)
            for question, answer in turns
            for role, text in (("user", question), ("assistant", answer))
        ]
        documents.append(Document(TEMPLATES, tuple(segments)))
    return documents


def make_sums(num_documents: int, seed: int) -> list[Document]:
    """Seeded one-turn rows of sums, most of them small: results are learnt by heart.

    Args:
        num_documents: how many rows.
        seed: of the choices.
    """
    rng = random.Random(f"sums-{seed}")
    documents = []
    for _ in range(num_documents):
        question, answer = _arithmetic(rng, most=rng.choice((10, 10, 10, 20)))
        segments = (Segment("user", question), Segment("assistant", answer))
        documents.append(Document(TEMPLATES, segments))
    return documents


def _conversation(rng: random.Random) -> list[Turn]:
    """One to three turns; questions may come after a greeting and before thanks."""
    if rng.random() < 0.12:
        return _introduction(rng)
    if rng.random() < 0.18:
        return rng.choice((_two_capitals, _longer_list, _running_sum, _two_facts))(rng)
    if rng.random() < 0.65:
        return [_turn(rng)]
    turns = [_small_talk(rng)] if rng.random() < 0.5 else []
    turns.append(_turn(rng))
    if rng.random() < 0.4 or len(turns) == 1:
        turns.append(_turn(rng))
    if rng.random() < 0.3:
        turns.append(_reply(rng, phrases.THANKS, phrases.THANKS_ANSWERS))
    return turns


def _turn(rng: random.Random) -> Turn:
    makers: tuple[tuple[Maker, float], ...] = (
        (_identity, 5.0),
        (_small_talk, 4.0),
        (_unknown, 1.2),
        (_capital, 6.0),
        (_arithmetic, 7.0),
        (_calendar, 1.5),
        (_colour, 0.7),
        (_opposite, 0.8),
        (_definition, 1.2),
        (_list, 1.2),
        (tale, 1.6),
        (_one_liner, 1.0),
    )
    maker = rng.choices([m for m, _ in makers], [weight for _, weight in makers])[0]
    return maker(rng)


def _reply(rng: random.Random, questions: Sequence[str], answers: Sequence[str]) -> Turn:
    return _vary(rng, rng.choice(questions)), rng.choice(answers)


def _vary(rng: random.Random, question: str) -> str:
    """Now and then the way people type: lower case, or without the last mark."""
    if rng.random() < 0.2:
        question = question.lower()
    if rng.random() < 0.15 and len(question) > 3:
        question = question.rstrip("?.!")
    return question


def _identity(rng: random.Random) -> Turn:
    kinds: Kinds = (
        (phrases.WHO, phrases.WHO_ANSWERS),
        (phrases.HUMAN, phrases.HUMAN_ANSWERS),
        (phrases.MAKER, phrases.MAKER_ANSWERS),
        (phrases.ABILITY, phrases.ABILITY_ANSWERS),
    )
    questions, answers = rng.choices(kinds, (4, 3, 1, 1.5))[0]
    return _reply(rng, questions, answers)


def _small_talk(rng: random.Random) -> Turn:
    kinds: Kinds = (
        (phrases.HELLO, phrases.HELLO_ANSWERS),
        (phrases.HOW, phrases.HOW_ANSWERS),
        (phrases.THANKS, phrases.THANKS_ANSWERS),
        (phrases.BYE, phrases.BYE_ANSWERS),
    )
    questions, answers = rng.choices(kinds, (4, 2, 1, 1))[0]
    return _reply(rng, questions, answers)


def _unknown(rng: random.Random) -> Turn:
    return _reply(rng, facts.UNKNOWABLE, phrases.UNKNOWN_ANSWERS)


def _capital(rng: random.Random) -> Turn:
    country, city = rng.choice(list(facts.CAPITALS.items()))
    form = rng.choice(phrases.ASK_CAPITAL)
    place = city if form == phrases.REVERSED else country
    return _vary(rng, form.format(place)), _capital_answer(country, city)


def _capital_answer(country: str, city: str) -> str:
    answer = f"The capital of {country} is {city}"
    return answer if answer.endswith(".") else answer + "."


def _arithmetic(rng: random.Random, most: int = 20) -> Turn:
    op = rng.choices("+-*", (6, 2, 1))[0]
    a, b = rng.randint(0, most), rng.randint(0, most)
    if op == "-":
        a, b = max(a, b), min(a, b)
    if op == "*":
        a, b = rng.randint(0, 10), rng.randint(0, 10)
    result = {"+": a + b, "-": a - b, "*": a * b}[op]
    special = {"+": phrases.ASK_PLUS, "-": phrases.ASK_MINUS, "*": phrases.ASK_TIMES}[op]
    form = rng.choice(special if rng.random() < 0.45 else phrases.ASK_SUM)
    words = {"+": "plus", "-": "minus", "*": "times"}
    sign = rng.choice((op, op, words[op]))
    spelt = rng.random() < 0.12
    first, second = (facts.NUMBER_WORDS[n] if spelt else str(n) for n in (a, b))
    question = form.format(
        a=first, b=second, op=sign, thing=rng.choice(phrases.THINGS), name=rng.choice(facts.NAMES)
    )
    return _vary(rng, question), f"{a} {op} {b} = {result}"


def _calendar(rng: random.Random) -> Turn:
    names = rng.choice((facts.DAYS, facts.MONTHS))
    kind = "day" if names is facts.DAYS else "month"
    place = rng.randrange(len(names))
    name, after = names[place], names[(place + 1) % len(names)]
    if rng.random() < 0.5:
        return _vary(rng, f"Which {kind} comes after {name}?"), f"{after} comes after {name}."
    if rng.random() < 0.5:
        return _vary(rng, f"What {kind} comes before {after}?"), f"{name} comes before {after}."
    number = "seven days in a week" if kind == "day" else "twelve months in a year"
    frame = "week" if kind == "day" else "year"
    listed = ", ".join(names[:-1]) + f" and {names[-1]}"
    return f"How many {kind}s are there in a {frame}?", f"There are {number}: {listed}."


def _colour(rng: random.Random) -> Turn:
    thing, colour = rng.choice(list(facts.COLOURS.items()))
    form = rng.choice(("What colour is {}?", "What color is {}?", "Tell me the colour of {}."))
    return _vary(rng, form.format(thing)), f"{thing[0].upper()}{thing[1:]} is {colour}."


def _opposite(rng: random.Random) -> Turn:
    pair = list(rng.choice(list(facts.OPPOSITES.items())))
    rng.shuffle(pair)
    form = rng.choice(("What is the opposite of {}?", "Give me the opposite of '{}'."))
    return _vary(rng, form.format(pair[0])), f'The opposite of "{pair[0]}" is "{pair[1]}".'


def _definition(rng: random.Random) -> Turn:
    thing, definition = rng.choice(list(facts.DEFINITIONS.items()))
    form = rng.choice(("What is {}?", "What's {}?", "Explain what {} is.", "Define {}."))
    return _vary(rng, form.format(thing)), definition


def _list(rng: random.Random) -> Turn:
    kind, items = rng.choice(list(facts.LISTS.items()))
    number = rng.randint(2, 5)
    chosen = items[:number] if rng.random() < 0.7 else tuple(rng.sample(items, number))
    word = facts.NUMBER_WORDS[number] if rng.random() < 0.6 else str(number)
    form = rng.choice(("Name {} {}.", "List {} {}.", "Give me {} {}.", "Tell me {} {}."))
    if rng.random() < 0.5:
        answer = "\n".join(f"{place}. {item}" for place, item in enumerate(chosen, 1))
    else:
        answer = ", ".join(chosen[:-1]) + f" and {chosen[-1]}."
    return _vary(rng, form.format(word, kind)), answer[0].upper() + answer[1:]


def _one_liner(rng: random.Random) -> Turn:
    task, code = rng.choice(list(facts.ONE_LINERS.items()))
    return _vary(rng, rng.choice(facts.ASK_ONE_LINER).format(task)), f"```python\n{code}\n```"


def _two_capitals(rng: random.Random) -> list[Turn]:
    """The second question names only another country."""
    (first, city), (second, other) = rng.sample(list(facts.CAPITALS.items()), 2)
    question = _vary(rng, rng.choice(phrases.ASK_CAPITAL[:15]).format(first))
    follow_up = _vary(rng, rng.choice(phrases.FOLLOW_UP_PLACE).format(second))
    return [(question, _capital_answer(first, city)), (follow_up, _capital_answer(second, other))]


def _longer_list(rng: random.Random) -> list[Turn]:
    """A list, and then one item that wasn't in it."""
    kind, items = rng.choice(list(facts.LISTS.items()))
    number = rng.randint(2, 4)
    *chosen, another = rng.sample(items, number + 1)
    question = f"Name {facts.NUMBER_WORDS[number]} {kind}."
    answer = ", ".join(chosen[:-1]) + f" and {chosen[-1]}."
    more = f"{another[0].upper()}{another[1:]}."
    return [(question, answer[0].upper() + answer[1:]), (rng.choice(phrases.MORE_ITEMS), more)]


def _running_sum(rng: random.Random) -> list[Turn]:
    """A sum, and then more added to its result."""
    a, b, more = rng.randint(0, 10), rng.randint(0, 10), rng.randint(1, 9)
    question = rng.choice(phrases.ASK_SUM[:5]).format(a=a, b=b, op="+")
    follow_up = rng.choice(phrases.NEXT_SUM).format(b=more)
    return [
        (question, f"{a} + {b} = {a + b}"),
        (follow_up, f"{a + b} + {more} = {a + b + more}"),
    ]


def _two_facts(rng: random.Random) -> list[Turn]:
    """A colour or an opposite, and then the same of something else."""
    if rng.random() < 0.5:
        (thing, colour), (other, second) = rng.sample(list(facts.COLOURS.items()), 2)
        follow_up = rng.choice(phrases.AND_COLOUR).format(other)
        return [
            (f"What colour is {thing}?", f"{thing[0].upper()}{thing[1:]} is {colour}."),
            (follow_up, f"{other[0].upper()}{other[1:]} is {second}."),
        ]
    (word, against), (other, second) = rng.sample(list(facts.OPPOSITES.items()), 2)
    follow_up = rng.choice(phrases.AND_OPPOSITE).format(other)
    return [
        (f"What is the opposite of {word}?", f'The opposite of "{word}" is "{against}".'),
        (follow_up, f'The opposite of "{other}" is "{second}".'),
    ]


def _introduction(rng: random.Random) -> list[Turn]:
    """The user says something that the next turn asks about."""
    name, like = rng.choice(facts.NAMES), rng.choice(facts.LIKES)
    if rng.random() < 0.5:
        form = rng.choice(("My name is {}.", "I am {}.", "Hi, I'm {}.", "You can call me {}."))
        ask = rng.choice(
            ("What is my name?", "Do you remember my name?", "What did I say my name is?")
        )
        first = form.format(name), f"Nice to meet you, {name}! How can I help you?"
        return [first, (_vary(rng, ask), f"Your name is {name}.")]
    form = rng.choice(("I like {}.", "I love {}.", "My favourite thing is {}."))
    ask = rng.choice(("What do I like?", "What did I say I like?", "Do you remember what I like?"))
    first = form.format(like), f"That is nice! What do you like about {like}?"
    return [first, (_vary(rng, ask), f"You said that you like {like}.")]
