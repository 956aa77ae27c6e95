"""What the header says of a model that transformers runs."""

from app.chat.header import describe
from medusa_core.loading.state import ModelStatus, Phase
from medusa_core.messages import DrafterChoice, ModelLoaded
from tests.support.window.fakes import PLAN

PLAIN = DrafterChoice("none", "None", "", drafts=False)
NGRAM = DrafterChoice("suffix", "N-gram", "")


def words(note: str, *drafters: DrafterChoice, draft_model: str = "") -> str:
    loaded = ModelLoaded(
        *("", "", "m", 10**6, 0, 512, 320, "float32", "fp32", PLAN, "cpu", drafters, (), (), 0.1),
        runner_note=note,
        draft_model=draft_model,
    )
    return describe(ModelStatus(Phase.READY, loaded=loaded))


def test_the_header_says_that_transformers_runs_a_model_and_whether_it_takes_trees() -> None:
    assert "transformers" not in words("", NGRAM, PLAIN)
    assert words("so", NGRAM, PLAIN).endswith("through transformers")
    assert words("so", PLAIN).endswith("through transformers, one token a step")


def test_heads_that_are_not_there_leave_room_for_it() -> None:
    assert "no heads" in words("", NGRAM, PLAIN)
    assert "no heads" not in words("so", NGRAM, PLAIN)


def test_a_draft_model_is_named_where_heads_would_be() -> None:
    shown = words("", NGRAM, PLAIN, draft_model="Small 0.5B")
    assert "draft model: Small 0.5B" in shown
    assert "no heads" not in shown
