"""Law 5 from the engine to the screen: what is marked is what the traces say was accepted."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from PySide6.QtGui import QTextCursor, QTextDocument
from torch import Tensor

from app.chat.messages.answer_document import AnswerDocument
from app.theme.legend import Mark
from medusa_core.api import demo_model
from medusa_core.engine.direct import events_of, generate
from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import (
    TARGET,
    ChatMessage,
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadOptions,
    Role,
    StepDone,
    StepTrace,
    TokenSource,
)
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.text.tokenizer import Tokenizer
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    Runner,
    Waited,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import user_says
from tests.support.models.sentencepiece_files import train
from tests.support.models.tiny import TinySpec, make_tokenizer, write_tiny
from tests.support.window.markdown_samples import (
    SPELLED_OUT,
    TEMPLATES,
    fill,
    is_unique_char,
    seen_in,
    source_of,
)
from tests.support.window.rendered import (
    STYLE,
    blocks_of,
    fragments_of,
    shown_chars,
    underlined_chars,
    utf16_units,
)
from tests.support.window.streamed_answers import StreamedDocument

SETTINGS = GenerateSettings(drafter="medusa", max_new_tokens=4000, tree_rows=24)
STOP = "@@stop@@"
MARKUP = str.maketrans("", "", "*#\n")  # of it, Pebble writes bold, headings and paragraphs


class ScriptedRunner(Runner):
    """Runner that returns the tokens of a script; a hidden state is the position in the text."""

    hidden_dtype = cache_dtype = torch.float32
    taps = ()
    waited = Waited()

    def __init__(self, honest: Runner, script: Sequence[int], vocab_size: int) -> None:
        self._honest = honest
        self._script = script
        self._vocab_size = vocab_size

    def use_threads(self, decoding: int, prefill: int) -> None:
        self._honest.use_threads(decoding, prefill)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        return self._honest.new_cache(capacity, memory)

    def tap(self, layers: Sequence[int]) -> None:
        """Return states that are positions in the text."""

    def verify(self, *placed: PlacedTree) -> Tensor:
        ((tree, kv, *_),) = placed
        kv.reserve(tree.shape.num_nodes)
        return torch.tensor([[float(kv.length + depth + 1)] for depth in tree.shape.depths])

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        kv.reserve(len(token_ids))
        kv.commit(range(len(token_ids)))
        return torch.tensor([[float(kv.length)]])

    def logits(self, hidden: Tensor) -> Tensor:
        scores = torch.zeros(len(hidden), self._vocab_size)
        for row, place in enumerate(hidden[:, 0].int().tolist()):
            scores[row, self._script[min(place, len(self._script) - 1)]] = 9.0
        return scores


@pytest.fixture(scope="module", params=["bpe", "sentencepiece"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Target:
    """A random target with a byte-level BPE, or with pieces and byte fallback."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "bpe":
        tokenizer = Tokenizer(make_tokenizer())
    else:
        (folder / "tokenizer.model").write_bytes(train())
        tokenizer = ModelFiles.open(folder).tokenizer
    size = max(tokenizer.vocab_size, 320)
    path = write_tiny(folder / "model", TinySpec(vocab_size=size, context_tokens=8000))
    loaded = load_target(path, None, LoadOptions(dtype="float32", device="cpu"))
    return replace(loaded, tokenizer=tokenizer, eos_token_ids=frozenset({1}))


def emit(
    target: Target, document: str, settings: GenerateSettings, seed: int
) -> tuple[list[StepDone], list[StepTrace], GenerationDone]:
    """Decode a document with an oracle as drafter, and return its events."""
    prompt = target.tokenizer.encode_prompt(target.template.render(user_says("write")))
    script = [*prompt, *target.tokenizer.encode_within(document), 1]
    size = target.config.vocab_size
    scripted = replace(target, runner=ScriptedRunner(target.runner, script, size))
    request = Generate("s", "r", tuple(user_says("write")), settings, records=True)
    oracle = oracle_spec(script, seed)
    generation = start_generation(
        request, scripted, Session(scripted), RowPolicy(scripted), drafter=oracle
    )
    steps: list[StepDone] = []
    traces: list[StepTrace] = []
    for event in events_of(generation):
        if isinstance(event, StepDone):
            steps.append(event)
        elif isinstance(event, StepTrace):
            traces.append(event)
    assert isinstance(event, GenerationDone)
    return steps, traces, event


def accepted_in(traces: Sequence[StepTrace]) -> list[tuple[bytes, TokenSource]]:
    """Return every token of an answer by its traces: its bytes and its source."""
    tokens = []
    for trace in traces:
        verdicts, nodes = trace.verdicts, trace.nodes
        for place, verdict in enumerate(verdicts[: trace.num_appended]):
            is_accepted = place + 1 < len(verdicts)
            source = nodes[verdicts[place + 1].node].source if is_accepted else TARGET
            tokens.append((verdict.choice.text, source))
    return tokens


def coloured_chars(traces: Sequence[StepTrace], num_chars: int) -> list[tuple[str, str]]:
    """Return all characters with the colour of the token that completes each, by traces alone."""
    data, owners = b"", []
    for text, source in accepted_in(traces):
        data += text
        owners += [source] * len(text)
    coloured, at = [], 0
    for char in data.decode(errors="replace")[:num_chars]:
        at += len(char.encode())
        coloured.append((char, colour_of(owners[at - 1])))
    return coloured


def colour_of(source: TokenSource) -> str:
    if source == TARGET:
        return ""
    return STYLE.underline(Mark(source.proposers[0], source.head))


def expected_chars(traces: Sequence[StepTrace], num_chars: int) -> list[tuple[str, str]]:
    """Return the expected characters that occur once in their document."""
    return [one for one in coloured_chars(traces, num_chars) if is_unique_char(one[0])]


def offloaded(steps: Sequence[StepDone], done: GenerationDone) -> AnswerDocument:
    """An answer, shown step by step."""
    view = StreamedDocument(QTextDocument(), STYLE)
    for step in steps:
        view.append(step)
    view.finish(done)
    return view


def document_of(template: int | str) -> str:
    """Return a document of one kind of Markdown, or of all."""
    if template == "all":
        return fill(list(TEMPLATES), ["\n\n"] * len(TEMPLATES))
    if template == "twice":
        return fill([*TEMPLATES, *reversed(TEMPLATES)], ["\n\n"] * (2 * len(TEMPLATES)))
    # SentencePiece's answers begin without a space: some templates do with one.
    return "Begin\n\n" + fill([TEMPLATES[int(template)]], ["\n"])


@pytest.mark.parametrize(
    ("template", "seed"), by_turns([*range(len(TEMPLATES)), "all", "twice"], range(3))
)
def test_marks_equal_the_traces(
    qapp: object, target: Target, template: int | str, seed: int
) -> None:
    document = document_of(template)
    steps, traces, done = emit(target, document, SETTINGS, seed)
    assert done.text == document
    view = offloaded(steps, done)
    marked = underlined_chars(view.document)
    assert marked == expected_chars(traces, len(done.text))
    if isinstance(template, str):
        assert len({colour for _, colour in marked}) >= 3  # several depths were accepted


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("spelled", SPELLED_OUT)
def test_every_character_has_the_mark_of_its_trace(
    qapp: object, target: Target, spelled: str, seed: int
) -> None:
    begin = "Begin, so.\n\n"
    document = begin + source_of(spelled)
    steps, traces, done = emit(target, document, SETTINGS, seed)
    assert done.text == document
    view = offloaded(steps, done)
    chars = coloured_chars(traces, len(document))
    seen = [*range(len(begin) - 2), *(len(begin) + place for place in seen_in(spelled))]
    shown = shown_chars(view.document)
    assert "".join(char for char, _ in shown) == "".join(document[place] for place in seen)
    assert shown == [chars[place] for place in seen]
    assert len({colour for _, colour in shown}) >= 2


@pytest.mark.parametrize("seed", range(6))
def test_a_stop_string_within_a_step_ends_the_marks_with_the_text(
    qapp: object, target: Target, seed: int
) -> None:
    shown = fill(["{} {} **{}**", "- {}\n- {}"], ["\n\n", " "])
    document = f"{shown}{STOP} and more that nobody sees"
    steps, traces, done = emit(target, document, replace(SETTINGS, stop=(STOP,)), seed)
    assert done.text == shown
    view = StreamedDocument(QTextDocument(), STYLE)
    view.append(*steps)
    view.finish(done)
    assert underlined_chars(view.document) == expected_chars(traces, len(shown))


def shown_by(view: AnswerDocument, token: int) -> str:
    """Return the characters that the document shows of a token."""
    parts = []
    for found in view.ranges_of(range(token, token + 1)):
        cursor = QTextCursor(view.document)
        cursor.setPosition(found.start)
        cursor.setPosition(found.end, QTextCursor.MoveMode.KeepAnchor)
        parts.append(cursor.selectedText())
    return "".join(parts)


def underlines_between(document: QTextDocument, start: int, end: int) -> set[str]:
    """The colours under a part of a document."""
    return {
        fragment.underline
        for block in blocks_of(document)
        for fragment in fragments_of(block)
        if fragment.position < end and start < fragment.position + utf16_units(fragment.text)
    }


@pytest.mark.parametrize("drafter", ["medusa", "composite"])
def test_in_conversations_with_pebble_every_token_is_marked_as_traced(
    drafter: str, qapp: object
) -> None:
    pebble = load_target(*demo_model(), LoadOptions(device="cpu"))
    prompts = (
        "Tell me a story about a red boat.",
        "What is the capital of France?",
        "Who are you?",
        "Write a bedtime story about a small bear.",
    )
    num_marked = 0
    messages: list[ChatMessage] = []
    for prompt in prompts:
        messages = [*messages, ChatMessage(Role.USER, prompt)]
        steps: list[StepDone] = []
        traces: list[StepTrace] = []
        settings = GenerateSettings(drafter=drafter, max_new_tokens=80, tree_rows=16)
        done = generate(pebble, messages, settings, steps.append, on_trace=traces.append)
        messages.append(ChatMessage(Role.ASSISTANT, done.text, done.token_ids))
        view = StreamedDocument(QTextDocument(), STYLE)
        view.append(*steps)
        view.finish(done)
        tokens = accepted_in(traces)
        for place, (text, _) in enumerate(tokens):
            assert shown_by(view, place).strip() == text.decode().translate(MARKUP).strip()
        for found in view.marked_ranges():
            _, source = tokens[found.token_index]
            under = underlines_between(view.document, found.start, found.end)
            assert under == {colour_of(source)}, "the colour of who drafted it"
        marked = {found.token_index for found in view.marked_ranges()}
        drafted = {i for i, (text, source) in enumerate(tokens) if source != TARGET}
        visible = {
            i for i, (text, _) in enumerate(tokens) if text.decode().translate(MARKUP).strip()
        }
        assert marked & visible == drafted & visible
        num_marked += len(marked)
    assert num_marked > 60


def test_some_characters_of_the_test_documents_consist_of_several_tokens(target: Target) -> None:
    assert len(target.tokenizer.encode_within("é😀")) > 2
