"""What holds for heads of every kind: sizes as planned, drafts that depend on the text alone."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.errors import HeadsError
from medusa_core.heads.kind import kind_registry, read_shape
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.head_memory import HeadMemory
from medusa_core.speculation.drafters.lineup import drafters_for, source_registry
from tests.support.engine.by_turns import by_turns
from tests.support.engine.heard_text import TEXT, candidates_behind, candidates_of, hear
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says
from tests.support.models.heads_of_kind import EXACT, HEADS_OF_KIND, WIDE, Formats, load_heads
from tests.support.models.tiny import write_tiny

REMEMBERING = [name for name, kind in HEADS_OF_KIND.items() if kind.remembers]
IN_GGUF = [name for name, kind in HEADS_OF_KIND.items() if kind.write_gguf]
Written = Callable[[str], Path]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """The folder of a target and its heads, written once."""

    @cache
    def write(name: str) -> Path:
        folder = tmp_path_factory.mktemp("heads")
        HEADS_OF_KIND[name].write(folder / "model", folder / "heads")
        return folder

    return write


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target that none of the heads are made for."""
    return write_tiny(tmp_path_factory.mktemp("other") / "model", replace(WIDE, hidden_size=48))


def test_every_kind_of_heads_is_covered(written: Written) -> None:
    folders = [written(name) for name in HEADS_OF_KIND]
    places = [each / ("heads" if (each / "heads").exists() else "model") for each in folders]
    assert {read_shape(place).kind for place in places} >= {
        one.name for one in kind_registry().specs
    }


def differences(folder: Path, formats: Formats, drafter: str) -> list[str]:
    """Return differences between planned and actual memory of heads in some weight formats."""
    target = load_heads(folder, formats)
    alone = load_heads(folder, formats, takes_heads=False)
    heads = target.heads
    assert heads is not None
    assert alone.heads is None
    held = 0 if heads.caches is None else heads.caches.nbytes
    sizes = {
        "weights": (target.plan.heads_bytes, heads.nbytes),
        "cache": (target.plan.kv_bytes - alone.plan.kv_bytes, held),
    }
    found = [f"{formats}, {part}: {pair}" for part, pair in sizes.items() if pair[0] != pair[1]]
    if drafter not in [spec.name for spec in drafters_for(target)]:
        found.append(f"{formats}: {drafter} isn't offered")
    settings = GenerateSettings(drafter, max_new_tokens=6, tree_rows=12)
    drafted = decode(target, settings, user_says("one two"))
    check_same_tokens(decode(target, plainly(settings), user_says("one two")), drafted)
    return found


@pytest.mark.parametrize("name", [name for name, kind in HEADS_OF_KIND.items() if kind.formats])
def test_planned_and_actual_memory_are_equal_to_the_byte(name: str, written: Written) -> None:
    kind = HEADS_OF_KIND[name]
    found = [differences(written(name), formats, kind.drafter) for formats in kind.formats]
    assert not any(found), found


@pytest.mark.parametrize(
    "name",
    [
        *("EAGLE-1", "EAGLE-3", "Hydra", "DFlash2", "DSpark, DeepSeek", "MiMo"),
        "an assistant of gemma 4 26B",
    ],
)
def test_quantized_heads_are_smaller(name: str, written: Written) -> None:
    sizes = {}
    for chosen in ("bf16", "int8", "q4"):
        target = load_heads(written(name), Formats("bfloat16", heads=chosen))
        assert target.heads is not None
        assert target.formats.heads.name == chosen
        sizes[chosen] = target.heads.nbytes
    assert max(sizes["int8"], sizes["q4"]) < 0.8 * sizes["bf16"], sizes


def memory_of(session: Session) -> HeadMemory:
    """Return the memory of a target's heads."""
    (memory,) = session.memory.values()
    assert isinstance(memory, HeadMemory)
    return memory


def messages_behind(history: str, first: str, token_ids: list[int]) -> tuple[ChatMessage, ...]:
    """The second turn of a conversation."""
    if history == "message edited":
        return user_says("one two and then")
    answer = (first, token_ids) if history == "answer whole" else (first[:4],)
    output = ChatMessage(Role.ASSISTANT, *answer)
    return (*user_says("one two three"), output, *user_says("and four, or five"))


@pytest.mark.parametrize(
    ("name", "history"), by_turns(REMEMBERING, ["answer whole", "answer cut", "message edited"])
)
def test_a_second_turn_drafts_as_if_the_conversation_had_been_prefilled_at_once(
    name: str, history: str, written: Written
) -> None:
    target = load_heads(written(name), EXACT)
    settings = GenerateSettings(HEADS_OF_KIND[name].drafter, max_new_tokens=12, tree_rows=12)
    session, fresh = Session(target), Session(target)
    first = decode(target, settings, user_says("one two three"), session=session)
    messages = messages_behind(history, first.done.text, first.token_ids)
    second = decode(
        target,
        settings,
        messages,
        session=session,
        after_step=lambda after: check_cache(after, target, 1e-9),
    )
    assert second.done.num_cached_tokens > 0
    assert second.token_ids == decode(target, settings, messages, session=fresh).token_ids
    kept, new = memory_of(session), memory_of(fresh)
    assert kept.token_ids == new.token_ids
    rows = min(kept.kv.length, new.kv.length)
    assert rows > len(second.prompt_ids) - 2
    pair = [memory.kv.committed()[:, :, :, :rows] for memory in (kept, new)]
    torch.testing.assert_close(*pair, rtol=1e-9, atol=1e-9)
    session.close()
    fresh.close()


@pytest.mark.parametrize("name", HEADS_OF_KIND)
def test_heads_of_another_target_are_refused(name: str, written: Written, other: Path) -> None:
    folder = written(name)
    heads = folder / "heads"
    with pytest.raises(HeadsError) as caught:
        load_target(other, heads if heads.exists() else folder / "model", LoadOptions("float32"))
    assert caught.value.hint


def drafted(target: Target, drafter: str) -> list[dict[int, float]]:
    """Return the drafts of heads after a text, and after their most likely draft."""
    source = source_registry().get(drafter).build(target, RowBudget(24))
    hear(target, source, TEXT, [4, 1, 3])
    source.start(TEXT[-1], 24)
    first = candidates_behind(source)
    return [first, *candidates_of(source, *((token,) for token in list(first)[:3]))]


@pytest.mark.parametrize("name", IN_GGUF)
def test_heads_draft_the_same_from_a_gguf_file(name: str, written: Written, tmp_path: Path) -> None:
    folder, kind = written(name), HEADS_OF_KIND[name]
    assert kind.write_gguf is not None
    file = kind.write_gguf(tmp_path / "x.gguf")
    assert read_shape(file) == read_shape(folder / "heads")
    found = [drafted(load_heads(folder, EXACT, heads), kind.drafter) for heads in (None, file)]
    assert found[0] == found[1]
    assert all(len(each) > 1 for each in found[0])
