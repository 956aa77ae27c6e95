"""Law 7: answers that share a pass don't change each other's tokens."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice, product

import pytest
from torch import Tensor

from medusa_core.engine import loop
from medusa_core.engine.executor import Executor
from medusa_core.engine.sequence import DecodingSequence
from medusa_core.engine.transcript import transcribe
from medusa_core.loading.target import Target
from medusa_core.messages import (
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    StepDone,
)
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.step import Proposal
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import RuleSpec
from medusa_core.system.resources import (
    demo_heads_dir,
    demo_model_dir,
)
from tests.support.engine import faults
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.law_settings import EXACT, prompts_of
from tests.support.engine.laws import decode, plainly, user_says
from tests.support.engine.pairs import serving_pairs
from tests.support.engine.together import decode_together, requests_of
from tests.support.models.targets import TARGET_NAMES

_AT_ONCE = 4  # for more the caches of tiny targets have no room


def methods_on(name: str) -> list[tuple[DrafterSpec, RuleSpec]]:
    """Drafters that are tried on a target, each with one exact rule by turns; a batch or more."""
    turn = TARGET_NAMES.index(name)
    tried = [drafter for each, drafter in serving_pairs() if each == name]
    count = max(len(tried), _AT_ONCE)
    return list(zip(islice(cycle(tried), count), cycle(EXACT[turn % 2 :] + EXACT[: turn % 2])))


def batched(requests: Sequence[Generate], size: int) -> Iterator[Sequence[Generate]]:
    """Split into batches of a size; the last members may be repeated to fill one."""
    for start in range(0, len(requests) - size + 1, size):
        yield requests[start : start + size]
    yield requests[-size:]


@pytest.mark.parametrize(("name", "dtype"), by_turns(TARGET_NAMES, ["float64", "float32"]))
def test_answers_and_caches_of_a_shared_pass_equal_those_of_each_alone(
    name: str, dtype: str, load: LoadTarget
) -> None:
    target = load(name, dtype)
    if dtype == "float32" and not isinstance(target.runner, NativeRunner):
        pytest.skip("equal but for ties, which float64 shows exactly")
    requests = requests_of(name, methods_on(name), 16)
    random.Random(3).shuffle(requests)
    for some in batched(requests, _AT_ONCE):
        together, largest = decode_together(target, some, honest=target)
        assert largest == len(some)
        for request, done in zip(some, together, strict=True):
            alone = decode(target, request.settings, request.messages)
            assert done.token_ids == alone.token_ids, request.settings
            assert done.text == alone.done.text


class Crossed(ResidentRunner):
    """Gives every session the states of the next one."""

    def __init__(self, honest: Target) -> None:
        super().__init__(honest.runner._model, honest.precision)

    def verify(self, *placed: PlacedTree) -> Tensor:
        states = super().verify(*placed)
        return states.roll(len(states) // len(placed), dims=0)


FAULTS: dict[str, Callable[[Target], Target]] = {
    "siblings see each other": lambda honest: faults.with_layout(honest, faults.sibling_mask),
    "positions are off by one": lambda honest: faults.with_layout(honest, faults.shifted_positions),
    "states are crossed": lambda honest: replace(honest, runner=Crossed(honest)),
    "rows are committed in the wrong order": lambda honest: faults.with_cache(
        honest, faults.ReversedCommit
    ),
}


def oracles(honest: Target) -> tuple[list[Generate], dict[str, DrafterSpec]]:
    """Return requests with an oracle each: correct tokens at random ranks among wrong ones."""
    requests = requests_of("grouped", product([drafter_registry().get("none")], EXACT), 40)
    requests += [replace(r, session_id=f"{r.session_id} again") for r in requests]
    drafters = {}
    for number, request in enumerate(requests):
        longer = replace(request.settings, max_new_tokens=48)
        plain = decode(honest, longer, request.messages)
        truth = [*plain.prompt_ids, *plain.token_ids]
        drafters[request.session_id] = oracle_spec(truth, seed=number)
    return [
        replace(r, settings=replace(r.settings, drafter="medusa", tree_rows=24)) for r in requests
    ], drafters


def test_drafts_in_shared_passes_are_accepted_at_every_depth(load: LoadTarget) -> None:
    honest = load("grouped", "float64")
    requests, drafters = oracles(honest)
    together, _ = decode_together(honest, requests, honest=honest, drafters=drafters)
    for request, done in zip(requests, together, strict=True):
        assert (
            done.token_ids == decode(honest, plainly(request.settings), request.messages).token_ids
        )
        assert max(done.accept_lengths) >= 3


def test_trees_share_the_rows_of_a_pass(load: LoadTarget) -> None:
    reported: list[tuple[int, int]] = []

    class Counting(ResidentRunner):
        def verify(self, *placed: PlacedTree) -> Tensor:
            reported.append((len(placed), sum(each.tree.shape.num_nodes for each in placed)))
            return super().verify(*placed)

    resident = load("grouped", "float64")
    counting = replace(resident, runner=Counting(resident.runner._model, resident.precision))
    requests, drafters = oracles(resident)
    wide = [replace(r, settings=replace(r.settings, tree_rows=64)) for r in requests]
    decode_together(counting, wide, drafters=drafters)
    assert max(count for count, _ in reported) == len(requests)
    assert all(rows <= 64 for count, rows in reported if count > 1)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_shared_passes_is_caught(fault: str, load: LoadTarget) -> None:
    honest = load("grouped", "float64")
    requests, drafters = oracles(honest)
    together, _ = decode_together(FAULTS[fault](honest), requests, drafters=drafters)
    alone = [decode(honest, plainly(r.settings), r.messages).token_ids for r in requests]
    assert [done.token_ids for done in together] != alone


class EngineHere:
    """Executor without a thread that collects its events."""

    def __init__(self) -> None:
        self.reported: list[Event] = []
        self.executor = Executor(self.reported.append, lambda _: False)
        self.executor.handle(LoadModel("", "load", demo_model_dir(), demo_heads_dir()))

    def answer(self, requests: Sequence[Generate]) -> dict[str, GenerationDone]:
        """Let the engine answer all requests at once, and return their events."""
        for request in requests:
            self.executor.handle(request)
        while self.executor.has_work:
            self.executor.work()
        return {e.session_id: e for e in self.reported if isinstance(e, GenerationDone)}


def test_the_engine_decodes_waiting_answers_together() -> None:
    engine = EngineHere()
    texts = random.Random(1).sample([m[0].text for m in prompts_of("pebble")], 4)
    requests = [
        Generate(str(i), "r", user_says(text), GenerateSettings(max_new_tokens=30), shares=4)
        for i, text in enumerate(texts)
    ]
    alone = {r.session_id: engine.answer([r])[r.session_id].token_ids for r in requests}
    engine.reported.clear()
    together = {name: done.token_ids for name, done in engine.answer(requests).items()}
    assert together == alone
    owners = [event.session_id for event in engine.reported if isinstance(event, StepDone)]
    assert len(set(owners[-8:])) > 1  # they took their steps side by side


@pytest.mark.expects_errors
def test_an_answer_that_fails_in_a_shared_pass_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EngineHere()
    propose = loop.propose

    def breaks(sequence: DecodingSequence) -> Proposal:
        if sequence.context.history[: len(bye)] == bye:
            raise ValueError("a broken drafter")
        return propose(sequence)

    monkeypatch.setattr(loop, "propose", breaks)
    settings = GenerateSettings(max_new_tokens=12)
    texts = ("Hello!", "Bye!", "Hello!")
    bye = transcribe(user_says("Bye!"), None, engine.executor._model.target).prompt_ids
    requests = [Generate(str(i), "r", user_says(text), settings) for i, text in enumerate(texts)]
    done = engine.answer(requests)
    assert set(done) == {"0", "2"}
    assert [e.session_id for e in engine.reported if isinstance(e, Failed)] == ["1"]


@pytest.mark.expects_errors
def test_a_pass_that_fails_ends_all_its_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EngineHere()
    settings = GenerateSettings(max_new_tokens=12)
    requests = [Generate(str(i), "r", user_says("Hello!"), settings) for i in range(2)]

    def breaks(*_: object) -> None:
        raise RuntimeError("the pass broke")

    monkeypatch.setattr(NativeRunner, "verify", breaks)
    assert engine.answer(requests) == {}
    assert {e.session_id for e in engine.reported if isinstance(e, Failed)} == {"0", "1"}
    monkeypatch.undo()
    assert set(engine.answer(requests)) == {"0", "1"}
