"""Own answers, heads, accuracies and the gates."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from medusa_core.engine.sampling import Sampler
from medusa_core.errors import TrainingError
from medusa_core.heads.weights import HeadSet, HeadWeights
from medusa_core.messages import GenerateSettings
from medusa_core.prompts import Prompt
from medusa_core.training.accuracy import (
    best_trees,
    head_accuracies,
    path_counts,
    path_length,
    replayed_length,
    true_ranks,
)
from medusa_core.training.checks import CHECKS
from medusa_core.training.corpus import Document, Segment, shortened, without_middle
from medusa_core.training.evaluate import (
    bits_by_source,
    distinct,
    is_loop,
    load_exported,
    overall_bits,
    read_split,
    repeated_share,
)
from medusa_core.training.heads import (
    HeadData,
    MedusaHeads,
    _later_tokens,
    _rate_factor,
    collect,
)
from medusa_core.training.network import PebbleNetwork, initialise
from medusa_core.training.packing import document_mask
from medusa_core.training.pebble import frequent_tokens, keep_some
from medusa_core.training.polish import Flaw, Pieces, PolishRun, against, flaws
from medusa_core.training.recipe import RECIPES, HeadRecipe, ModelSize
from medusa_core.training.reliability import reliabilities, reliability
from medusa_core.training.samples import as_markdown, converse
from medusa_core.training.self_answers import Answer, GenerationOptions, generate_answers
from medusa_core.training.templates import make_documents
from medusa_core.training.tokenizer import (
    begins_word,
    encode_prompt,
    ends_sentence,
    train_tokenizer,
)

TINY = ModelSize(32, 2, 2, 64, 300, max_positions=96)
HEADS: HeadRecipe = RECIPES["small"].heads


@pytest.fixture
def network() -> PebbleNetwork:
    result = PebbleNetwork(TINY)
    initialise(result, 0)
    generator = torch.Generator().manual_seed(1)
    for parameter in result.parameters():
        if parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=0.3, generator=generator)
    return result.eval()


@torch.inference_mode()
def greedy_one_by_one(network: PebbleNetwork, prompt: list[int], num_new: int) -> list[int]:
    """The same, without cache and without batch."""
    ids = list(prompt)
    for _ in range(num_new):
        row = torch.tensor([ids])
        hidden = network.hidden_states(row, document_mask(torch.zeros_like(row)))
        ids.append(int(network.logits(hidden[0, -1]).argmax()))
        if ids[-1] == 1:
            break
    return ids[len(prompt) :]


def test_batched_answers_equal_answers_made_one_by_one(network: PebbleNetwork) -> None:
    prompts = [[0, 3, 40, 41, 1, 4], [0, 3, 9, 1, 4], [0, 3, 7, 8, 9, 10, 11, 1, 4]]
    options = GenerationOptions(20, end_id=1, bf16=False)
    answers = generate_answers(network, prompts, options)
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer.prompt_ids == tuple(prompt)
        assert list(answer.answer_ids) == greedy_one_by_one(network, prompt, 20)


def test_an_answer_that_ended_holds_nothing_after_its_end(network: PebbleNetwork) -> None:
    end_id = greedy_one_by_one(network, [0, 3, 9, 1, 4], 5)[2]
    prompts = [[0, 3, 9, 1, 4], [0, 3, 7, 8, 2, 1, 4], [0, 3, 17, 1, 4]]
    answers = generate_answers(network, prompts, GenerationOptions(30, end_id, bf16=False))
    assert answers[0].finished
    assert answers[0].answer_ids[-1] == end_id
    assert all(end_id not in answer.answer_ids[:-1] for answer in answers)


def test_head_k_learns_the_token_k_plus_two_places_on(network: PebbleNetwork) -> None:
    answer = Answer((0, 3, 9, 1, 4), (20, 21, 22, 23, 24), finished=False)
    data = collect(network, [answer], HEADS.num_heads)
    assert data.roots.tolist() == [20, 21, 22, 23, 24]
    # row 0 is the last prompt position: 20 is the target's own, 21 is head 0's
    assert data.targets.tolist() == [
        [21, 22, 23, 24],
        [22, 23, 24, -1],
        [23, 24, -1, -1],
        [24, -1, -1, -1],
        [-1, -1, -1, -1],
    ]
    ids = torch.tensor([answer.prompt_ids + answer.answer_ids])
    hidden = network.hidden_states(ids, document_mask(torch.zeros_like(ids)))[0, 4:9]
    assert (data.hidden.float() - hidden).abs().max() < 0.1


def positions(hidden: torch.Tensor, targets: torch.Tensor, roots: torch.Tensor) -> HeadData:
    """Positions of greedy answers."""
    nothing = torch.zeros(len(hidden), dtype=torch.int64)
    return HeadData(hidden, roots, targets, nothing, nothing)


class ListedHeads(MedusaHeads):
    """Heads whose ranking is given: head k ranks `ranking[k]` first at every position."""

    def __init__(self, rankings: list[list[int]], vocab_size: int) -> None:
        super().__init__(torch.zeros(vocab_size, 4), HEADS)
        self.rankings = rankings

    def logits(self, head: int, hidden: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        scores = torch.zeros(len(hidden), 50)
        for place, token in enumerate(self.rankings[head]):
            scores[:, token] = 10.0 - place
        return scores


def test_the_heads_rate_rises_over_a_tenth_and_falls_to_nothing() -> None:
    rates = [_rate_factor(step, 100) for step in range(101)]
    assert rates[:10] == pytest.approx([0.1 * (step + 1) for step in range(10)])
    assert rates[10] == 1
    assert rates[55] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_accuracies_count_every_rank_and_skip_positions_past_the_end() -> None:
    heads = ListedHeads([[5, 6], [7, 5], [9, 8], [8, 9]], 50)
    targets = torch.tensor([[5, 5, 9, 9], [6, 7, 8, -1], [5, 7, -1, -1], [1, -1, -1, -1]])
    ranks = true_ranks(heads, positions(torch.zeros(4, 4), targets, torch.zeros(4)), 2)
    assert ranks.tolist() == [[0, 1, 0, 1], [1, 0, 1, -1], [0, 0, -1, -1], [2, -1, -1, -1]]
    known = torch.tensor([1, 5, 8, 9])  # a head without 7 holds 5 first
    reduced = true_ranks(heads, positions(torch.zeros(4, 4), targets, torch.zeros(4)), 2, known)
    assert reduced[:3, 1].tolist() == [0, 2, 2]
    expected = [[0.5, 0.25], [2 / 3, 1 / 3], [0.5, 0.5], [0.0, 1.0]]
    assert head_accuracies(ranks, 2) == [pytest.approx(row) for row in expected]


def test_replayed_length_counts_accepted_and_bonus_tokens_but_not_the_first() -> None:
    heads = ListedHeads([[5], [6], [7], [8]], 50)
    answer = Answer((0, 4), (4, 5, 6, 9, 5, 2, 3), finished=False)
    data = positions(torch.zeros(7, 4), _later_tokens(answer, 4), torch.tensor(answer.answer_ids))
    ranks = true_ranks(heads, data, 1)
    # from 4: 5 6 right, bonus 9; from 9: 5 right, bonus 2; from 2: bonus 3
    assert replayed_length([ranks], [(0,), (0, 0), (0, 0, 0)]) == pytest.approx(6 / 3)
    assert replayed_length([ranks], []) == 1.0


class TargetAsHead(MedusaHeads):
    """A head that scores the next place as the target will: what chance adds is all it lacks."""

    def __init__(self, scores: torch.Tensor) -> None:
        super().__init__(
            torch.zeros(TINY.vocab_size, TINY.hidden_size), replace(HEADS, num_heads=1)
        )
        self.scores = scores

    def logits(self, head: int, hidden: torch.Tensor, roots: torch.Tensor) -> torch.Tensor:
        return self.scores


def test_drawn_answers_are_what_the_engine_draws_and_heads_that_know_the_noise_guess_them(
    network: PebbleNetwork,
) -> None:
    prompts = [[0, 3, 9, 1, 4], [0, 3, 7, 8, 2, 1, 4], [0, 3, 17, 1, 4]]
    options = GenerationOptions(24, -1, temperature=1.3, seed=70, bf16=False)
    answers = generate_answers(network, prompts, options)
    assert [answer.seed for answer in answers] == [70, 71, 72]
    for answer in answers:
        sampler = Sampler(GenerateSettings(rule="sample", temperature=1.3, seed=answer.seed))
        ids = torch.tensor([answer.prompt_ids + answer.answer_ids])
        states = network.hidden_states(ids, document_mask(torch.zeros_like(ids)))[0]
        first = len(answer.prompt_ids)
        scores = network.logits(states[first - 1 : -1]).detach()
        drawn = [sampler.draw(row, first + place) for place, row in enumerate(scores)]
        assert tuple(drawn) == answer.answer_ids
        data = collect(network, [answer], 1)
        assert data.places.tolist() == list(range(first, first + 24))
        head = TargetAsHead(torch.cat([scores[1:], scores[:1]]))
        knowing = true_ranks(head, data, 5, temperature=1.3)
        assert knowing.flatten().tolist() == [0] * 23 + [-1]
        assert true_ranks(head, data, 5).flatten().tolist().count(0) < 20


def test_the_best_tree_holds_the_most_frequent_paths_and_every_parent() -> None:
    ranks = torch.tensor([[0, 0, 0]] * 5 + [[1, 0, 2]] * 4 + [[0, 1, 2]] * 2 + [[2, 0, -1]])
    counts = path_counts(ranks, 2)
    trees = best_trees(counts, (4, 8))
    assert trees[4] == [(0,), (0, 0), (0, 0, 0)]
    assert trees[8] == [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)]
    assert path_length(counts, trees[4], len(ranks)) == pytest.approx(1 + (7 + 5 + 5) / 12)


def test_loops_are_three_repeats_of_eight_tokens_within_the_first_150() -> None:
    eight = list(range(8))
    assert is_loop(eight * 3)
    assert not is_loop(eight * 2)
    assert not is_loop(list(range(100, 240)) + eight * 3)


def test_distinct_runs_and_repeated_tokens_are_counted_by_answer() -> None:
    answers = [Answer((0,), (7, 8, 7, 8, 7, 8), True), Answer((0,), (7, 9), True)]
    assert distinct(answers, 1) == 3 / 8
    assert distinct(answers, 2) == 3 / 6
    assert repeated_share(answers, 2) == 3 / 8
    assert distinct([], 2) == repeated_share([]) == 0


def test_heads_that_know_how_sure_they_may_be_have_no_error() -> None:
    sure = torch.tensor([0.75] * 8 + [0.25] * 4)
    came = torch.tensor([True] * 6 + [False] * 2 + [True] + [False] * 3)
    found = reliability(sure, came)
    assert found.error == pytest.approx(0)
    assert found.bins[7] == (0.75, 0.75, 8)
    assert found.bins[2] == (0.25, 0.25, 4)
    assert reliability(torch.ones(4), torch.zeros(4, dtype=torch.bool)).error == 1
    # too sure of the wrong ones, too modest about the right: that doesn't cancel out
    crossed = reliability(torch.tensor([0.9, 0.1]), torch.tensor([False, True]))
    assert crossed.error == pytest.approx(0.9)


def test_reliabilities_read_the_heads_own_guesses(network: PebbleNetwork) -> None:
    hidden = torch.randn(
        40, TINY.hidden_size, generator=torch.Generator().manual_seed(2)
    ).bfloat16()
    matrix = network.model.embed_tokens.weight
    bare = HeadSet((HeadWeights((), None), HeadWeights((), matrix.flip(0))))
    best = F.linear(hidden.float(), matrix).argmax(-1)
    targets = torch.stack((best, best), dim=1)
    targets[:10] = -1
    first, second = reliabilities(bare, matrix, positions(hidden, targets, best))
    assert (first.accuracy, second.accuracy) == (1, 0)
    assert sum(count for _, _, count in first.bins) == 30


@pytest.mark.parametrize("reads_root", [False, True])
def test_published_heads_are_those_that_were_trained(
    reads_root: bool, network: PebbleNetwork
) -> None:
    recipe = replace(HEADS, reads_root=reads_root)
    matrix = network.model.embed_tokens.weight.detach()
    trained = MedusaHeads(matrix, recipe, root_scale=3.0)
    generator = torch.Generator().manual_seed(4)
    for parameter in trained.blocks.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.1
    hidden = torch.randn(60, TINY.hidden_size, generator=generator)
    roots = torch.randint(0, TINY.vocab_size, (60,), generator=generator)
    token_ids = torch.arange(0, TINY.vocab_size, 3)
    with torch.no_grad():
        best = [trained.logits(h, hidden, roots)[:, token_ids].argmax(-1) for h in range(4)]
    targets = torch.stack([token_ids[column] for column in best], dim=1)
    data = positions(hidden, targets, roots)
    published = trained.weights(token_ids)
    assert published.reads_root == reads_root
    assert published.num_columns == len(token_ids)
    found = reliabilities(published, matrix, data)
    assert min(head.accuracy for head in found) > 0.9  # bfloat16 turns a few close ones round
    if reads_root:
        others = positions(hidden, targets, roots.flip(0))
        assert max(head.accuracy for head in reliabilities(published, matrix, others)) < 0.9


def test_heads_draft_from_the_tokens_that_come_most_often() -> None:
    answers = [Answer((9, 9, 9), (5, 3, 5), True), Answer((9,), (3, 5, 7, 1, 1), False)]
    assert frequent_tokens(answers, 3).tolist() == [1, 3, 5]
    assert frequent_tokens(answers, 100).tolist() == [1, 3, 5, 7]


def test_samples_are_written_with_each_turn_behind_the_ones_before(network: PebbleNetwork) -> None:
    tokenizer = train_tokenizer([d.text for d in make_documents(4000, 1)], TINY.vocab_size)
    prompts = [Prompt("a", "talk", ("Hello", "And *you*?")), Prompt("b", "tales", ("A tale",))]
    answers = converse(network, tokenizer, prompts)
    assert [len(texts) for texts in answers] == [2, 1]
    told = [("user", "Hello"), ("assistant", answers[0][0]), ("user", "And *you*?")]
    options = GenerationOptions(400, 1)
    (alone,) = generate_answers(network, [encode_prompt(tokenizer, told)], options)
    assert tokenizer.decode(list(alone.answer_ids), skip_special_tokens=True) == answers[0][1]
    page = as_markdown(prompts, [["One\n# two", "3"], ["4"]])
    assert page.startswith("### Talk\n\na **Hello**\n\n> One\n> \\# two\n\n**And \\*you\\*?**")
    assert "### Tales\n\nb **A tale**\n\n> 4\n" in page


def test_flaws_are_words_that_complete_a_run_seen_before() -> None:
    pieces = Pieces([True] * 40, [False] * 40)
    rng = random.Random(0)
    answers = [
        Answer((0, 3, 9, 1, 4), (20, 21, 22, 20, 21, 22, 30), finished=False),
        Answer((20, 21, 22, 1, 4), (20, 21, 22, 30), finished=True),
        Answer((0, 1), (20, 21, 22) * 3, finished=False),
    ]
    found = flaws(answers, 3, 2, pieces, rng)
    assert [flaw.repeated for flaw in found] == [(10,), (7, 8, 9, 10)]
    assert [flaw.end for flaw in found] == [None, None]
    assert [flaw.repeated for flaw in flaws(answers, 3, 3, pieces, rng)] == [(7, 10)]
    others = Pieces([token_id != 22 for token_id in range(40)], pieces.ends_sentence)
    assert not flaws(answers, 3, 3, others, rng)


def test_an_answer_should_have_ended_before_it_began_to_repeat_itself() -> None:
    stop = 39
    pieces = Pieces([False] * 40, [token_id == stop for token_id in range(40)])
    prompt = (0, 3, 4)
    opening = (*range(10, 18), stop)
    circle = (20, 21, stop)
    endless = Answer(prompt, opening + circle * 4, finished=False)
    ended = Answer(prompt, opening + circle * 4, finished=True)
    (flaw, same) = flaws([endless, ended], 3, 3, pieces, random.Random(0))
    # behind the opening and once round: there the second round begins
    assert flaw == same == Flaw(prompt + endless.answer_ids, (), 3 + 9 + 3)
    sentences = tuple(token for start in range(5, 35, 2) for token in (start, start + 1, stop))
    asked = [
        flaws([Answer(prompt, sentences, finished=False)], 3, 3, pieces, random.Random(seed))
        for seed in range(20)
    ]
    ends = {found[0].end for found in asked}
    assert len(ends) > 3
    assert all(end is not None and sentences[end - 3 - 1] == stop for end in ends)
    assert min(end for end in ends if end is not None) >= 3 + len(sentences) // 2 - 2
    assert not flaws([Answer(prompt, sentences, finished=True)], 3, 3, pieces, random.Random(0))
    assert not flaws([Answer(prompt, (5, 6, stop, 7), False)], 3, 3, pieces, random.Random(0))


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
    asked = Document("rows", (Segment("user", text), Segment("assistant", text)))
    assert [s.text for s in shortened(asked, 120).segments] == [text, short]


def test_rounds_of_the_polish_share_all_steps() -> None:
    polish = RECIPES["small"].polishes[0]
    polish = replace(polish, num_rounds=4, schedule=replace(polish.schedule, num_steps=10))
    rounds = [
        PolishRun(polish, number, 0, equals_id=0, end_id=1, bf16=True).steps for number in range(4)
    ]
    assert [step for steps in rounds for step in steps] == list(range(10))
    assert [len(steps) for steps in rounds] == [2, 3, 2, 3]


@pytest.mark.parametrize("name", ["repetition", "no_end"])
def test_what_is_wrong_with_an_answer_can_be_unlearned(name: str, network: PebbleNetwork) -> None:
    group = [Flaw((0, 3, 9, 1, 4, 20, 21, 20, 21), (7, 8), 9), Flaw((0, 3, 4, 7, 7), (), 4)]
    before = getattr(against(network, group, 5, 0.9, bf16=False), name)
    before.backward()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter -= 1e-2 * parameter.grad
    assert getattr(against(network, group, 5, 0.9, bf16=False), name) < before


@torch.no_grad()
def test_the_losses_of_flaws_are_those_of_the_marked_places_alone(network: PebbleNetwork) -> None:
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


def test_a_share_of_earlier_weights_is_kept(network: PebbleNetwork) -> None:
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


def test_templates_hold_none_of_the_check_questions() -> None:
    asked = {
        _plain(segment.text)
        for document in make_documents(400_000, seed=5)
        for segment in document.segments
        if segment.role == "user"
    }
    assert len(asked) > 2000
    assert not [check.question for check in CHECKS if _plain(check.question) in asked]


def _plain(text: str) -> str:
    return "".join(char for char in text.lower() if char.isalnum())


def test_twenty_checks_in_four_kinds_reject_an_empty_and_a_wrong_answer() -> None:
    assert len(CHECKS) == 20
    assert len({check.category for check in CHECKS}) == 4
    for check in CHECKS:
        assert not check.accepts("")
        assert not check.accepts("The story takes place in London, where 77 people live.")


def test_bits_per_byte_of_equal_scores_are_the_tokens_times_the_vocabularys_bits(
    network: PebbleNetwork, tmp_path: Path
) -> None:
    torch.nn.init.zeros_(network.model.embed_tokens.weight)
    tokenizer = train_tokenizer(["abc"], 300)
    row = {
        "messages": [
            {"role": "user", "content": "hello there"},
            {"role": "assistant", "content": "zq xé"},
        ]
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({"text": "plain"}))
    sources = bits_by_source(network, tokenizer, tmp_path)
    bits, num_rows = overall_bits(sources), sources["rows"].num_rows
    num_tokens = len(tokenizer.encode("zq xé").ids) + 1
    assert num_rows == 1
    assert bits == pytest.approx(num_tokens * torch.tensor(300.0).log2().item() / 6)


def test_a_folder_without_rows_and_a_folder_without_a_model_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"no .* rows"):
        list(read_split(tmp_path))
    with pytest.raises(TrainingError, match="train pebble"):
        load_exported(tmp_path)
