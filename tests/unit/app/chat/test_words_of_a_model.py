"""What the header says of a loaded model, and what an empty conversation offers for it."""

from dataclasses import replace

from app.chat.header import describe
from app.chat.remarks import REPETITION, ROUNDS, remarks_on
from app.chat.suggestions import CODE, CONTINUED, DEMO, GENERAL, SMALL, suggestions_for
from medusa_core.chats.conversation import Conversation
from medusa_core.loading.state import ModelStatus, Phase
from medusa_core.messages import DrafterChoice, GenerateSettings, ModelLoaded, StopReason
from medusa_core.tools.call_loop import MOST_ROUNDS
from tests.support.messages import DONE, EXAMPLES
from tests.support.window.engine_events import LEGEND

PLAIN = DrafterChoice("none", "None", "", drafts=False)
NGRAM = DrafterChoice("suffix", "N-gram", "")


LOADED = next(example for example in EXAMPLES if isinstance(example, ModelLoaded))


def words(note: str, *drafters: DrafterChoice, draft_model: str = "") -> str:
    changes = {"num_heads": 0, "drafters": drafters, "runner_note": note}
    loaded = replace(LOADED, **changes, draft_model=draft_model)
    return describe(ModelStatus(Phase.READY, loaded=loaded))


def test_answers_that_end_early_are_explained() -> None:
    turn = Conversation().ask("Hello", GenerateSettings())
    turn.answer.content.finish("One two three.")
    looping = replace(DONE, stop_reason=StopReason.REPETITION)
    assert list(remarks_on(turn, looping, LEGEND)) == [REPETITION]
    assert list(remarks_on(turn, DONE, LEGEND, MOST_ROUNDS)) == []
    assert list(remarks_on(turn, DONE, LEGEND, MOST_ROUNDS + 1)) == [ROUNDS.format(10)]


def test_suggested_questions_suit_the_model() -> None:
    large = replace(LOADED, name="Qwen3 8B", num_parameters=8_000_000_000, continues_text=False)
    assert suggestions_for(large, is_demo=False) == GENERAL
    assert suggestions_for(replace(large, name="Qwen2.5 Coder 7B"), is_demo=False) == CODE
    assert suggestions_for(replace(large, continues_text=True), is_demo=False) == CONTINUED
    assert suggestions_for(replace(large, num_parameters=135_000_000), is_demo=False) == SMALL
    assert suggestions_for(large, is_demo=True) == DEMO


def test_the_header_says_that_transformers_runs_a_model_and_whether_it_verifies_trees() -> None:
    assert "transformers" not in words("", NGRAM, PLAIN)
    assert words("so", NGRAM, PLAIN).endswith("through transformers")
    assert words("so", PLAIN).endswith("through transformers, one token a step")


def test_without_heads_the_header_has_room_for_the_draft_model() -> None:
    assert "no heads" in words("", NGRAM, PLAIN)
    assert "no heads" not in words("so", NGRAM, PLAIN)


def test_a_draft_model_is_named_in_place_of_heads() -> None:
    shown = words("", NGRAM, PLAIN, draft_model="Small 0.5B")
    assert "draft model: Small 0.5B" in shown
    assert "no heads" not in shown
