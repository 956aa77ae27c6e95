"""Own answers: batched as one by one, ended where they end, written down in turn."""

import torch

from medusa_core.system.prompts import BenchPrompt
from recipe.attention import document_mask
from recipe.network import PebbleNetwork
from recipe.samples import as_markdown, converse
from recipe.self_answers import GenerationOptions, generate_answers
from recipe.templates import make_documents
from recipe.tokenizer import encode_prompt, train_tokenizer
from tests.lanes.recipe.toy_recipe import NARROW


@torch.inference_mode()
def greedy_one_by_one(network: PebbleNetwork, prompt: list[int], num_new: int) -> list[int]:
    """Return greedy answers computed without cache and batch."""
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


def test_a_finished_answer_has_nothing_after_its_end(network: PebbleNetwork) -> None:
    end_id = greedy_one_by_one(network, [0, 3, 9, 1, 4], 5)[2]
    prompts = [[0, 3, 9, 1, 4], [0, 3, 7, 8, 2, 1, 4], [0, 3, 17, 1, 4]]
    answers = generate_answers(network, prompts, GenerationOptions(30, end_id, bf16=False))
    assert answers[0].finished
    assert answers[0].answer_ids[-1] == end_id
    assert all(end_id not in answer.answer_ids[:-1] for answer in answers)


def test_samples_contain_each_turn_after_the_earlier_ones(network: PebbleNetwork) -> None:
    tokenizer = train_tokenizer([d.text for d in make_documents(4000, 1)], NARROW.vocab_size)
    prompts = [
        BenchPrompt("a", "talk", ("Hello", "And *you*?")),
        BenchPrompt("b", "tales", ("A tale",)),
    ]
    answers = converse(network, tokenizer, prompts)
    assert [len(texts) for texts in answers] == [2, 1]
    reported = [("user", "Hello"), ("assistant", answers[0][0]), ("user", "And *you*?")]
    options = GenerationOptions(400, 1)
    (alone,) = generate_answers(network, [encode_prompt(tokenizer, reported)], options)
    assert tokenizer.decode(list(alone.answer_ids), skip_special_tokens=True) == answers[0][1]
    page = as_markdown(prompts, [["One\n# two", "3"], ["4"]])
    assert page.startswith("### Talk\n\na **Hello**\n\n> One\n> \\# two\n\n**And \\*you\\*?**")
    assert "### Tales\n\nb **A tale**\n\n> 4\n" in page
