"""The recipe's own chat rows: identity, greetings, honesty, facts, sums, tales, follow-ups."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from recipe.corpus import Document, Segment
from recipe.recipe import TEMPLATES
from recipe.sentences import Fact, Sentences, read_sentences
from recipe.tales import tale

Turn = tuple[str, str]

TOKENS_PER_ROW = 46  # measured


def make_documents(num_tokens: int, seed: int) -> list[Document]:
    """Seeded chat rows of about this many tokens.

    Args:
        num_tokens: how much to make.
        seed: of the choices.
    """
    talk = _Talk(random.Random(f"templates-{seed}"), read_sentences())
    return [talk.document() for _ in range(num_tokens // TOKENS_PER_ROW)]


def make_sums(num_documents: int, seed: int) -> list[Document]:
    """Seeded one-turn rows of sums, most of them small: results are learnt by heart.

    Args:
        num_documents: how many rows.
        seed: of the choices.
    """
    rng = random.Random(f"sums-{seed}")
    talk = _Talk(rng, read_sentences())
    return [
        _document([talk.arithmetic(most=rng.choice((10, 10, 10, 20)))])
        for _ in range(num_documents)
    ]


def _document(turns: Sequence[Turn], instruction: str | None = None) -> Document:
    segments = [] if instruction is None else [Segment("system", instruction)]
    for question, answer in turns:
        segments += [Segment("user", question), Segment("assistant", answer)]
    return Document(TEMPLATES, tuple(segments))


class _Talk:
    """Makes conversations; the order in which it draws is part of the recipe."""

    def __init__(self, rng: random.Random, known: Sentences) -> None:
        self._rng, self._known = rng, known

    def document(self) -> Document:
        """One row."""
        turns = self._conversation()
        instructed = self._rng.random() < 0.06
        return _document(turns, self._one_of("system") if instructed else None)

    def _one_of(self, name: str, first: int | None = None) -> str:
        return self._rng.choice(self._known.lists[name][:first])

    def _fact(self, kind: str) -> Fact:
        return self._rng.choice(self._known.facts[kind])

    def _two(self, kind: str) -> list[Fact]:
        return self._rng.sample(self._known.facts[kind], 2)

    def _word(self, number: int) -> str:
        return self._known.lists["number_words"][number]

    def _vary(self, question: str) -> str:
        """Now and then the way people type: lower case, or without the last mark."""
        if self._rng.random() < 0.2:
            question = question.lower()
        if self._rng.random() < 0.15 and len(question) > 3:
            question = question.rstrip("?.!")
        return question

    def _question(self, name: str, *words: str) -> str:
        """A question of a list with words in it, as people type."""
        return self._vary(self._one_of(name).format(*words))

    def _conversation(self) -> list[Turn]:
        """One to three turns; questions may come after a greeting and before thanks."""
        rng = self._rng
        if rng.random() < 0.12:
            return self._introduction()
        if rng.random() < 0.18:
            makers = (self._two_capitals, self._longer_list, self._running_sum, self._two_facts)
            return rng.choice(makers)()
        if rng.random() < 0.65:
            return [self._turn()]
        turns = [self._small_talk()] if rng.random() < 0.5 else []
        turns.append(self._turn())
        if rng.random() < 0.4 or len(turns) == 1:
            turns.append(self._turn())
        if rng.random() < 0.3:
            turns.append(self._reply("thanks"))
        return turns

    def _turn(self) -> Turn:
        makers: tuple[tuple[Callable[[], Turn], float], ...] = (
            (self._identity, 5.0),
            (self._small_talk, 4.0),
            (self._unknown, 1.2),
            (self._capital, 6.0),
            (self.arithmetic, 7.0),
            (self._calendar, 1.5),
            (self._colour, 0.7),
            (self._opposite, 0.8),
            (self._definition, 1.2),
            (self._list, 1.2),
            (self._tale, 1.6),
            (self._one_liner, 1.0),
        )
        maker = self._rng.choices([m for m, _ in makers], [weight for _, weight in makers])[0]
        return maker()

    def _reply(self, name: str) -> Turn:
        """A question of a list, and one of the answers to it."""
        return self._question(name), self._one_of(f"{name}_answers")

    def _identity(self) -> Turn:
        kinds = ("who", "human", "maker", "ability")
        return self._reply(self._rng.choices(kinds, (4, 3, 1, 1.5))[0])

    def _small_talk(self) -> Turn:
        kinds = ("hello", "how", "thanks", "bye")
        return self._reply(self._rng.choices(kinds, (4, 2, 1, 1))[0])

    def _unknown(self) -> Turn:
        return self._reply("unknown")

    def _tale(self) -> Turn:
        return tale(self._rng, self._known)

    def _capital(self) -> Turn:
        country, city = self._fact("capitals")
        form = self._one_of("ask_capital")
        place = city if form.startswith("Of which country") else country
        return self._vary(form.format(place)), _capital_answer(country, city)

    def arithmetic(self, most: int = 20) -> Turn:
        """A sum, a difference or a product, as a number or in words."""
        rng = self._rng
        op = rng.choices("+-*", (6, 2, 1))[0]
        a, b = rng.randint(0, most), rng.randint(0, most)
        if op == "-":
            a, b = max(a, b), min(a, b)
        if op == "*":
            a, b = rng.randint(0, 10), rng.randint(0, 10)
        result = {"+": a + b, "-": a - b, "*": a * b}[op]
        word = {"+": "plus", "-": "minus", "*": "times"}[op]
        form = self._one_of(f"ask_{word}" if rng.random() < 0.45 else "ask_sum")
        sign = rng.choice((op, op, word))
        spelt = rng.random() < 0.12
        first, second = (self._word(n) if spelt else str(n) for n in (a, b))
        thing, name = self._one_of("things"), self._one_of("names")
        question = form.format(a=first, b=second, op=sign, thing=thing, name=name)
        return self._vary(question), f"{a} {op} {b} = {result}"

    def _calendar(self) -> Turn:
        kind = self._rng.choice(("day", "month"))
        names = self._known.lists[f"{kind}s"]
        place = self._rng.randrange(len(names))
        name, after = names[place], names[(place + 1) % len(names)]
        if self._rng.random() < 0.5:
            return self._vary(f"Which {kind} comes after {name}?"), f"{after} comes after {name}."
        if self._rng.random() < 0.5:
            return self._vary(f"What {kind} comes before {after}?"), f"{name} comes before {after}."
        number = "seven days in a week" if kind == "day" else "twelve months in a year"
        frame = "week" if kind == "day" else "year"
        listed = _joined(names)
        return f"How many {kind}s are there in a {frame}?", f"There are {number}: {listed}."

    def _colour(self) -> Turn:
        thing, colour = self._fact("colours")
        return self._question("ask_colour", thing), f"{_capitalised(thing)} is {colour}."

    def _opposite(self) -> Turn:
        pair = list(self._fact("opposites"))
        self._rng.shuffle(pair)
        return self._question("ask_opposite", pair[0]), _opposite_answer(*pair)

    def _definition(self) -> Turn:
        thing, definition = self._fact("definitions")
        return self._question("ask_definition", thing), definition

    def _list(self) -> Turn:
        rng = self._rng
        kind, items = self._fact("lists")
        number = rng.randint(2, 5)
        chosen = items[:number] if rng.random() < 0.7 else rng.sample(items, number)
        word = self._word(number) if rng.random() < 0.6 else str(number)
        form = self._one_of("ask_list")
        if rng.random() < 0.5:
            answer = "\n".join(f"{place}. {item}" for place, item in enumerate(chosen, 1))
        else:
            answer = _joined(chosen) + "."
        return self._vary(form.format(word, kind)), _capitalised(answer)

    def _one_liner(self) -> Turn:
        task, code = self._fact("one_liners")
        return self._question("ask_one_liner", task), f"```python\n{code}\n```"

    def _two_capitals(self) -> list[Turn]:
        """The second question names only another country."""
        (first, city), (second, other) = self._two("capitals")
        question = self._vary(self._one_of("ask_capital", 15).format(first))
        follow_up = self._question("follow_up_place", second)
        return [
            (question, _capital_answer(first, city)),
            (follow_up, _capital_answer(second, other)),
        ]

    def _longer_list(self) -> list[Turn]:
        """A list, and then one item that wasn't in it."""
        kind, items = self._fact("lists")
        number = self._rng.randint(2, 4)
        *chosen, another = self._rng.sample(items, number + 1)
        question = f"Name {self._word(number)} {kind}."
        answer = _capitalised(_joined(chosen)) + "."
        return [(question, answer), (self._one_of("more_items"), f"{_capitalised(another)}.")]

    def _running_sum(self) -> list[Turn]:
        """A sum, and then more added to its result."""
        rng = self._rng
        a, b, more = rng.randint(0, 10), rng.randint(0, 10), rng.randint(1, 9)
        question = self._one_of("ask_sum", 5).format(a=a, b=b, op="+")
        follow_up = self._one_of("next_sum").format(b=more)
        return [
            (question, f"{a} + {b} = {a + b}"),
            (follow_up, f"{a + b} + {more} = {a + b + more}"),
        ]

    def _two_facts(self) -> list[Turn]:
        """A colour or an opposite, and then the same of something else."""
        if self._rng.random() < 0.5:
            (thing, colour), (other, second) = self._two("colours")
            follow_up = self._one_of("and_colour").format(other)
            return [
                (f"What colour is {thing}?", f"{_capitalised(thing)} is {colour}."),
                (follow_up, f"{_capitalised(other)} is {second}."),
            ]
        (word, against), (other, second) = self._two("opposites")
        follow_up = self._one_of("and_opposite").format(other)
        return [
            (f"What is the opposite of {word}?", _opposite_answer(word, against)),
            (follow_up, _opposite_answer(other, second)),
        ]

    def _introduction(self) -> list[Turn]:
        """The user says something that the next turn asks about."""
        name, like = self._one_of("names"), self._one_of("likes")
        if self._rng.random() < 0.5:
            form, ask = self._one_of("say_name"), self._one_of("ask_name")
            first = form.format(name), f"Nice to meet you, {name}! How can I help you?"
            return [first, (self._vary(ask), f"Your name is {name}.")]
        form, ask = self._one_of("say_like"), self._one_of("ask_like")
        first = form.format(like), f"That is nice! What do you like about {like}?"
        return [first, (self._vary(ask), f"You said that you like {like}.")]


def _capital_answer(country: str, city: str) -> str:
    answer = f"The capital of {country} is {city}"
    return answer if answer.endswith(".") else answer + "."


def _opposite_answer(word: str, against: str) -> str:
    return f'The opposite of "{word}" is "{against}".'


def _joined(items: Sequence[str]) -> str:
    return ", ".join(items[:-1]) + f" and {items[-1]}"


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
