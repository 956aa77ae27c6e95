"""Grammars: what may follow, what is refused, and that nobody waits for one."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from medusa_core.engine.direct import events_of
from medusa_core.engine.failures import Failures
from medusa_core.engine.scheduler import Scheduler
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import GrammarError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Event,
    Failed,
    Generate,
    GenerateSettings,
    GenerationDone,
    Role,
    StepTrace,
    StopReason,
    Tokenize,
)
from medusa_core.models.text.grammar import Grammar
from medusa_core.models.text.grammar_compiler import GrammarCompiler, json_schema_grammar
from medusa_core.models.text.grammar_limits import MAX_GRAMMAR_CHARS
from medusa_core.models.text.grammar_process import GrammarProcess
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.grammars import (
    ABC_GRAMMAR,
    PERSON,
    PERSON_GRAMMAR,
    check_person,
    grammar_of,
)
from tests.support.engine.laws import decode, plainly, user_says

MESSAGES = user_says("Who lives here?")
SETTINGS = GenerateSettings(drafter="none", rule="greedy", max_new_tokens=80)


def chain_of_rules(count: int) -> str:
    """A schema each of whose parts needs the next one."""
    parts = {
        f"a{i}": {"type": "object", "properties": {"x": {"$ref": f"#/$defs/a{(i + 1) % count}"}}}
        for i in range(count)
    }
    return grammar_of({"$ref": "#/$defs/a0", "$defs": parts})


def any_of(depth: int) -> dict[str, object]:
    """Alternatives within alternatives."""
    if not depth:
        return {"type": "string"}
    inner = [{"type": "object", "properties": {f"a{i}": any_of(depth - 1)}} for i in range(6)]
    return {"anyOf": inner}


HOSTILE = {
    "no grammar": lambda: "start: (",
    "of an unknown type": lambda: grammar_of({"type": "strange"}),
    "too long": lambda: f'start: "{"a" * MAX_GRAMMAR_CHARS}"',
    "too deep": lambda: chain_of_rules(5000),
    "rules in a ring": lambda: (
        "start: r0\n" + "\n".join(f'r{i}: "x{i}" r{(i + 1) % 20_000}?' for i in range(20_000))
    ),
    "alternatives of alternatives": lambda: grammar_of(any_of(5)),
    "a large remainder": lambda: grammar_of({"type": "integer", "multipleOf": 9_999_991}),
    "a thousand keys": lambda: grammar_of(
        {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(5000)}}
    ),
    "expressions that grow": lambda: "start: A\nA: /(.*a.{20})/ & ~/(.*b.{20})/ & /(.*c.{18})/",
}


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_grammar_soon_ends_in_an_error(make: Callable[[], str], load: LoadTarget) -> None:
    grammars = load("pebble", "float32").grammars
    grammars.compile(PERSON_GRAMMAR).result()  # what is made once
    text = make()
    started = time.perf_counter()
    with pytest.raises(GrammarError) as caught:
        grammars.compile(text).result()
    assert time.perf_counter() - started < 60  # about 1 s where nothing else runs
    assert caught.value.hint
    assert grammars.compile(ABC_GRAMMAR).result() is not None  # others go on


def test_a_grammar_that_crashes_its_process_affects_nothing_else() -> None:
    process = GrammarProcess()
    with pytest.raises(GrammarError, match="too deep"):
        process.check(chain_of_rules(3000))
    process.check(PERSON_GRAMMAR)


def test_a_schema_that_is_no_json_is_refused() -> None:
    for schema in ("{", "[]", "[" * 100_000):
        with pytest.raises(GrammarError, match="no JSON"):
            json_schema_grammar(schema)


def test_a_model_without_eos_is_refused(load: LoadTarget) -> None:
    compiler = GrammarCompiler(load("pebble", "float32").tokenizer, (), 4096)
    with pytest.raises(GrammarError, match="ends an answer"):
        compiler.compile(ABC_GRAMMAR).result()


@pytest.fixture
def grammar(load: LoadTarget) -> Grammar:
    return load("pebble", "float32").grammars.compile('start: "ab" | "ac"').result()


def allowed_texts(target: Target, grammar: Grammar, path: list[int]) -> set[bytes | int]:
    """The texts of the tokens that may follow; ids of those without a text."""
    allowed = grammar.allowed(path, target.config.vocab_size + 8)
    assert allowed is not None
    ids = np.flatnonzero(allowed).tolist()
    return {target.tokenizer.bytes_of(token_id) or token_id for token_id in ids}


def test_masks_are_correct_along_any_path(load: LoadTarget, grammar: Grammar) -> None:
    target = load("pebble", "float32")
    ids = {text: target.tokenizer.encode(text)[0] for text in "abc"}
    begin = allowed_texts(target, grammar, [])
    assert {b"a"} <= begin <= {b"a", b"ab", b"ac"}
    assert allowed_texts(target, grammar, [ids["a"]]) == {b"b", b"c"}
    assert allowed_texts(target, grammar, [ids["a"], ids["c"]]) == target.eos_token_ids
    assert allowed_texts(target, grammar, []) == begin
    assert grammar.allows([ids["a"]], [ids["a"], ids["b"], ids["c"]]) == [False, True, True]
    (end,) = target.eos_token_ids
    assert grammar.allows([ids["a"]], [end]) == [False]
    assert grammar.allows([ids["a"], ids["b"]], [end, ids["a"]]) == [True, False]
    assert grammar.allowed([ids["a"], ids["b"], end], 9) is None, "all is over"
    assert grammar.allows([ids["a"], ids["b"], end], [ids["a"]]) == [False]


def test_committed_tokens_stay_committed(load: LoadTarget, grammar: Grammar) -> None:
    target = load("pebble", "float32")
    ids = {text: target.tokenizer.encode(text)[0] for text in "abc"}
    grammar.allowed([ids["a"], ids["b"]], 9000)  # a guess
    grammar.advance([ids["a"]])
    assert allowed_texts(target, grammar, []) == {b"b", b"c"}
    assert list(grammar.forced([ids["c"]])) == sorted(target.eos_token_ids)
    with pytest.raises(GrammarError, match=r"match|used"):
        grammar.advance([ids["a"]])


def test_every_eos_token_may_end_the_answer(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    ends = (1, 3)
    compiler = GrammarCompiler(target.tokenizer, ends, target.config.vocab_size)
    grammar = compiler.compile('start: "a"').result()
    path = target.tokenizer.encode("a")
    assert grammar.allows([], ends) == [False, False]
    assert grammar.allows(path, ends) == [True, True]
    allowed = grammar.allowed(path, target.config.vocab_size)
    assert allowed is not None
    assert np.flatnonzero(allowed).tolist() == list(ends)


def test_a_grammar_may_require_names_of_special_tokens_as_text(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    for _, name in target.tokenizer.special_tokens:
        wanted = f"say {name}{name} now"
        run = decode(target, SETTINGS, MESSAGES, grammar=f"start: {json.dumps(wanted)}")
        assert run.done.text == wanted


def test_an_answer_is_continued_under_its_grammar(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    given = '{"name": "Ann", "age": 7'
    messages = (*MESSAGES, ChatMessage(Role.ASSISTANT, given))
    run = decode(target, SETTINGS, messages, grammar=PERSON_GRAMMAR)
    assert run.done.text.startswith(given)
    check_person(run.done.text)
    wrong = (*MESSAGES, ChatMessage(Role.ASSISTANT, "Well, "))
    with pytest.raises(GrammarError):
        decode(target, SETTINGS, wrong, grammar=PERSON_GRAMMAR)


def test_a_grammar_whose_tokens_are_all_banned_is_an_error(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    banned = tuple(i for i in range(4096) if target.tokenizer.bytes_of(i).startswith(b"{"))
    with pytest.raises(GrammarError, match="banned"):
        decode(target, replace(SETTINGS, banned=banned), MESSAGES, grammar=PERSON_GRAMMAR)


class _HeldCompiler(GrammarCompiler):
    """Compiles when it is allowed to."""

    def __init__(self, target: Target) -> None:
        super().__init__(target.tokenizer, target.eos_token_ids, target.config.vocab_size)
        self.may_go_on = threading.Event()

    def _compile(self, text: str) -> Grammar:
        self.may_go_on.wait(30)
        return super()._compile(text)


def test_other_answers_continue_while_a_grammar_is_compiled(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    held = _HeldCompiler(target)
    target = replace(target, grammars=held)
    row_policy, scheduler = RowPolicy(target), Scheduler()
    requests = [
        Generate(name, "", MESSAGES, SETTINGS, grammar=grammar)
        for name, grammar in (("waits", PERSON_GRAMMAR), ("goes on", ""))
    ]
    sessions = [Session(target) for _ in requests]
    running = [
        start_generation(request, target, session, row_policy)
        for request, session in zip(requests, sessions, strict=True)
    ]
    done: dict[str, GenerationDone] = {}

    def step() -> None:
        for turn in scheduler.step(running):
            assert turn.error is None
            done.update({e.session_id: e for e in turn.events if isinstance(e, GenerationDone)})

    while "goes on" not in done:
        step()
    assert [one.request.session_id for one in running] == ["waits"]
    assert running[0].awaits_grammar
    started, used = time.perf_counter(), time.thread_time()
    for _ in range(3):
        step()
    waited = time.perf_counter() - started
    assert waited > 0.1, "it spins"
    assert time.thread_time() - used < waited / 2
    held.may_go_on.set()
    while running:
        step()
    check_person(done["waits"].text)
    alone = decode(load("pebble", "float32"), SETTINGS, MESSAGES, grammar=PERSON_GRAMMAR)
    assert done["waits"].token_ids == alone.token_ids
    for session in sessions:
        session.close()


def test_an_answer_waiting_for_its_grammar_can_be_cancelled(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    held = _HeldCompiler(target)
    request = Generate("s", "", MESSAGES, SETTINGS, grammar=PERSON_GRAMMAR)
    target = replace(target, grammars=held)
    session = Session(target)
    generation = start_generation(request, target, session, RowPolicy(target))
    running = [generation]
    for _ in range(3):
        Scheduler().step(running)
    (done,) = generation.cancel()
    assert isinstance(done, GenerationDone)
    assert done.stop_reason is StopReason.CANCELLED
    held.may_go_on.set()
    session.close()


def test_a_refused_grammar_fails_only_its_answer(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    row_policy, scheduler = RowPolicy(target), Scheduler()
    requests = [
        Generate(name, "", MESSAGES, SETTINGS, grammar=grammar)
        for name, grammar in (("wrong", "start: ("), ("right", PERSON_GRAMMAR))
    ]
    sessions = [Session(target) for _ in requests]
    running = [
        start_generation(request, target, session, row_policy)
        for request, session in zip(requests, sessions, strict=True)
    ]
    errors = {}
    while running:
        for turn in scheduler.step(running):
            if turn.error is not None:
                errors[turn.generation.request.session_id] = turn.error
    assert list(errors) == ["wrong"]
    assert isinstance(errors["wrong"], GrammarError)
    for session in sessions:
        session.close()


def test_a_log_of_refusals_quotes_no_schema(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    events: list[Event] = []
    secret = GrammarError("Invalid type: secret.")
    Failures(events.append).report(Tokenize("s", "r", "a"), secret)
    (event,) = events
    assert isinstance(event, Failed)
    assert event.message == "Invalid type: secret."
    assert "grammar" in caplog.text
    assert "secret" not in caplog.text


def test_drafts_that_violate_the_grammar_are_pruned_and_traced(
    load: LoadTarget,
) -> None:
    target = load("pebble", "float32")
    settings = replace(SETTINGS, drafter="composite", tree_rows=16)
    for name in ("composite", "medusa"):
        request = Generate(
            "s",
            "",
            MESSAGES,
            replace(settings, drafter=name),
            records=True,
            grammar=PERSON_GRAMMAR,
        )
        session = Session(target)
        events = list(events_of(start_generation(request, target, session, RowPolicy(target))))
        traces = [event for event in events if isinstance(event, StepTrace)]
        session.close()
        checker = target.grammars.compile(PERSON_GRAMMAR).result()
        assert sum(len(trace.forbidden) for trace in traces) > 5
        for trace in traces:
            if trace.step:
                _check_trace(trace, checker)
            checker.advance(trace.choice_ids[: trace.num_appended])


def _check_trace(trace: StepTrace, checker: Grammar) -> None:
    """Check that all nodes of the tree are allowed, and none of the pruned ones."""
    paths: list[tuple[int, ...]] = [()]
    for token_id, parent in zip(trace.token_ids[1:], trace.parents[1:], strict=True):
        assert checker.allows(paths[parent], [token_id]) == [True]
        paths.append((*paths[parent], token_id))
    for guess in trace.forbidden:
        assert checker.allows(paths[guess.node], [guess.token_id]) == [False]


def test_forced_tokens_of_a_grammar_are_drafted_without_heads(load: LoadTarget) -> None:
    target = load("tied", "float64")
    run = decode(
        target,
        replace(SETTINGS, drafter="suffix", tree_rows=16),
        MESSAGES,
        grammar='start: "the rest is silence, and so are we"',
    )
    assert run.done.text == "the rest is silence, and so are we"
    assert {s.drafter for step in run.steps[1:] for s in step.sources} >= {"grammar"}
    assert run.done.num_steps < len(run.token_ids) / 3


def test_masked_drafts_increase_tokens_per_step(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    settings = replace(SETTINGS, drafter="composite", tree_rows=16)
    masked = decode(target, settings, MESSAGES, grammar=PERSON_GRAMMAR)
    plain = decode(target, plainly(settings), MESSAGES, grammar=PERSON_GRAMMAR)
    assert masked.token_ids == plain.token_ids
    assert json.loads(masked.done.text).keys() == PERSON["properties"].keys()
    assert masked.done.mean_acceptance_length > 2.5
