"""Flaws of own answers: where they begin, and that they can be unlearned."""

import random
from dataclasses import replace

import pytest
import torch

from medusa_core.training.answers import OwnAnswer
from recipe.attention import document_mask
from recipe.corpus import Document, Segment, shortened, without_middle
from recipe.flaws import Flaw, Pieces, flaws
from recipe.network import PebbleNetwork
from recipe.polish import PolishRun, against
from recipe.recipe import RECIPES
from recipe.rounds import keep_some
from recipe.tokenizer import begins_word, ends_sentence, train_tokenizer


def test_flaws_are_words_that_complete_a_repeated_run() -> None:
    pieces = Pieces([True] * 40, [False] * 40)
    rng = random.Random(0)
    answers = [
        OwnAnswer((0, 3, 9, 1, 4), (20, 21, 22, 20, 21, 22, 30), finished=False),
        OwnAnswer((20, 21, 22, 1, 4), (20, 21, 22, 30), finished=True),
        OwnAnswer((0, 1), (20, 21, 22) * 3, finished=False),
    ]
    found = flaws(answers, 3, 2, pieces, rng)
    assert [flaw.repeated for flaw in found] == [(10,), (7, 8, 9, 10)]
    assert [flaw.end for flaw in found] == [None, None]
    assert [flaw.repeated for flaw in flaws(answers, 3, 3, pieces, rng)] == [(7, 10)]
    others = Pieces([token_id != 22 for token_id in range(40)], pieces.ends_sentence)
    assert not flaws(answers, 3, 3, others, rng)


def test_an_answer_should_have_ended_before_its_first_repetition() -> None:
    stop = 39
    pieces = Pieces([False] * 40, [token_id == stop for token_id in range(40)])
    prompt = (0, 3, 4)
    opening = (*range(10, 18), stop)
    circle = (20, 21, stop)
    endless = OwnAnswer(prompt, opening + circle * 4, finished=False)
    ended = OwnAnswer(prompt, opening + circle * 4, finished=True)
    (flaw, same) = flaws([endless, ended], 3, 3, pieces, random.Random(0))
    # behind the opening and once round: there the second round begins
    assert flaw == same == Flaw(prompt + endless.answer_ids, (), 3 + 9 + 3)
    sentences = tuple(token for start in range(5, 35, 2) for token in (start, start + 1, stop))
    requested = [
        flaws([OwnAnswer(prompt, sentences, finished=False)], 3, 3, pieces, random.Random(seed))
        for seed in range(20)
    ]
    ends = {found[0].end for found in requested}
    assert len(ends) > 3
    assert all(end is not None and sentences[end - 3 - 1] == stop for end in ends)
    assert min(end for end in ends if end is not None) >= 3 + len(sentences) // 2 - 2
    assert not flaws([OwnAnswer(prompt, sentences, finished=True)], 3, 3, pieces, random.Random(0))
    assert not flaws([OwnAnswer(prompt, (5, 6, stop, 7), False)], 3, 3, pieces, random.Random(0))


def test_words_begin_with_a_space_a_line_or_a_mark() -> None:
    tokenizer = train_tokenizer(["The hens sing. The hens\nsinging 12 songs, singer."] * 9, 320)
    begins = begins_word(tokenizer)
    pieces = tokenizer.get_vocab()
    assert all(begins[pieces[piece]] for piece in ("\u0120", "\u010a", "1", ".", ",", "<|end|>"))
    assert not any(begins[pieces[piece]] for piece in ("s", "i", "T"))
    assert begins[tokenizer.encode(" sing").ids[0]]


def test_a_shortened_answer_keeps_its_first_and_last_paragraphs() -> None:
    paragraphs = [f"{number}" * 20 for number in range(10)]
    text = "\n\n".join(paragraphs)
    short = without_middle(text, 120)
    assert short.split("\n\n") == [*paragraphs[:4], *paragraphs[-2:]]
    assert len(short.replace("\n", "")) <= 120
    assert without_middle(text, len(text)) == text
    assert without_middle("a" * 50, 10) == "a" * 50
    requested = Document("rows", (Segment("user", text), Segment("assistant", text)))
    assert [s.text for s in shortened(requested, 120).segments] == [text, short]


def test_rounds_of_the_polish_divide_all_steps_among_them() -> None:
    polish = RECIPES["small"].polishes[0]
    polish = replace(polish, num_rounds=4, schedule=replace(polish.schedule, num_steps=10))
    rounds = [
        PolishRun(polish, number, 0, equals_id=0, end_id=1, bf16=True).steps for number in range(4)
    ]
    assert [step for steps in rounds for step in steps] == list(range(10))
    assert [len(steps) for steps in rounds] == [2, 3, 2, 3]


@pytest.mark.parametrize("name", ["repetition", "no_end"])
def test_flaws_of_an_answer_can_be_unlearned(name: str, network: PebbleNetwork) -> None:
    group = [Flaw((0, 3, 9, 1, 4, 20, 21, 20, 21), (7, 8), 9), Flaw((0, 3, 4, 7, 7), (), 4)]
    before = getattr(against(network, group, 5, 0.9, bf16=False), name)
    before.backward()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter -= 1e-2 * parameter.grad
    assert getattr(against(network, group, 5, 0.9, bf16=False), name) < before


@torch.no_grad()
def test_the_losses_of_flaws_cover_the_marked_positions_only(network: PebbleNetwork) -> None:
    ids = (0, 3, 9, 1, 4, 20, 21, 20, 21)
    row = torch.tensor([ids])
    states = network.hidden_states(row, document_mask(torch.zeros_like(row)))[0]
    chances = network.logits(states).softmax(-1).detach()
    found = against(network, [Flaw(ids, (7, 8), 6)], 5, 0.9, bf16=False)
    repeated = -torch.log1p(-torch.stack([chances[6, 20], chances[7, 21]])).mean()
    assert float(found.repetition) == pytest.approx(float(repeated), rel=1e-4)
    assert float(found.no_end) == pytest.approx(-float(chances[5, 5].log()), rel=1e-4)
    # an answer may end behind its last token, too
    behind = against(network, [Flaw(ids, (), 9)], 5, 0.9, bf16=False)
    assert float(behind.no_end) == pytest.approx(-float(chances[8, 5].log()), rel=1e-4)
    assert float(behind.repetition) == 0
    likely = float(chances[5, 5]) * 0.9
    assert float(against(network, [Flaw(ids, (), 6)], 5, likely, bf16=False).no_end) == 0


def test_a_moving_average_keeps_a_share_of_earlier_weights(network: PebbleNetwork) -> None:
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 1
    keep_some(network, before, 0.25)
    for name, tensor in network.state_dict().items():
        assert torch.allclose(tensor, before[name] + 0.75, atol=1e-5)


def test_sentences_end_with_a_mark_or_a_line() -> None:
    tokenizer = train_tokenizer(['The hens sing. The hens!\nSo? "Yes."\nNo, e.g. so.'] * 9, 320)
    ends = ends_sentence(tokenizer)
    pieces = tokenizer.get_vocab()
    assert all(ends[pieces[piece]] for piece in ("\u010a", ".", "!", "?"))
    assert not any(ends[pieces[piece]] for piece in ("s", ",", "\u0120", "<|end|>", '"'))
