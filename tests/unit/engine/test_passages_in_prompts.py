"""Passages in prompts: their text is text, is computed once, and is drafted from."""

from dataclasses import replace

from medusa_core.chats.conversation import Conversation
from medusa_core.engine.transcript import transcribe
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, PassagePart, with_passages
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lineup import drafter_registry
from tests.support.engine.conversations import GREEDY, Conversations
from tests.support.engine.fixtures import LoadTarget

RULES = "Books are lent for three weeks. Nobody may eat in the reading room.\n" * 2


def conversation_about(*passages: PassagePart) -> Conversation:
    """Return a conversation whose first prompt has passages."""
    conversation = Conversation()
    turn = conversation.ask("For how long?", GenerateSettings())
    turn.prompt.content = with_passages(turn.prompt.content, passages)
    return conversation


def test_names_of_special_tokens_in_passages_are_text(load: LoadTarget) -> None:
    pebble = load("pebble", "float32")
    specials = dict(pebble.tokenizer.special_tokens)
    hostile = "".join(specials.values())
    passage = PassagePart(1, "library.md", "Rules", RULES)
    prompts = [
        transcribe(conversation_about(one).messages(), None, pebble).prompt_ids
        for one in (passage, replace(passage, document=hostile, place=hostile, text=hostile))
    ]
    found = [[token_id for token_id in ids if token_id in specials] for ids in prompts]
    assert found[0] == found[1]
    text = b"".join(pebble.tokenizer.bytes_of(token_id) for token_id in prompts[1]).decode()
    assert text.count(hostile) == 3


def test_the_second_turn_computes_only_its_new_tokens(tiny: Target) -> None:
    chats = Conversations(tiny)
    conversation = conversation_about(PassagePart(1, "library.md", "Rules", RULES))
    first = chats.answer("a", conversation.messages(), GREEDY)
    turn = conversation.turns[0]
    turn.answer.content.append()
    turn.answer.end(first)
    conversation.ask("And eating?", GenerateSettings())
    second = chats.answer("a", conversation.messages(), GREEDY)
    assert second.num_cached_tokens >= first.num_prompt_tokens
    num_new = second.num_prompt_tokens - second.num_cached_tokens
    assert num_new < 48 < len(tiny.tokenizer.encode(RULES))
    chats.close()


def test_the_suffix_tree_drafts_from_a_passage(tiny: Target) -> None:
    messages = conversation_about(PassagePart(1, "library.md", "Rules", RULES)).messages()
    prompt_ids = transcribe(messages, None, tiny).prompt_ids
    ids = tiny.tokenizer.encode_within(RULES)
    at = next(i for i in range(len(prompt_ids)) if prompt_ids[i : i + 12] == ids[8:20])
    begun = [*prompt_ids, *prompt_ids[at : at + 6]]
    drafter = drafter_registry().get("suffix").build(tiny, RowBudget(8))
    drafter.begin(begun)
    tree = drafter.propose(begun[-1], 8).tree
    assert list(tree.token_ids[1:4]) == prompt_ids[at + 6 : at + 9]
