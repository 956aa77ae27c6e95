"""Commands that go to the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from medusa_core.messages.load_options import LoadOptions
from medusa_core.messages.records import ChatMessage, EndpointModel, GenerateSettings, Message


@dataclass(frozen=True, slots=True)
class LoadModel(Message):
    """Load a target and, if given, its Medusa heads; replaces what is loaded.

    If that fails, what was loaded before is loaded again.

    Attributes:
        model_dir: Folder in Hugging Face layout, or a GGUF file.
        heads_dir: Folder with Medusa heads, or None.
        options: How.
        calibrations_dir: Folder where measured step costs are kept; None keeps nothing.
        num_threads: CPU threads; 0 for the fastest count, which is measured.
        shows_drafts: The default drafter drafts even where plain decoding is faster: the model is
            there to show how.
    """

    model_dir: Path
    heads_dir: Path | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    calibrations_dir: Path | None = None
    num_threads: int = 0
    shows_drafts: bool = False


@dataclass(frozen=True, slots=True)
class LoadRemote(Message):
    """Let a model of another machine answer; replaces what is loaded and frees its memory.

    If that fails, what was loaded before answers as before.

    Attributes:
        model: Which.
        key: API key; empty for the one that is saved for the address. Not shown when printed.
        keys_dir: Folder of this user's configuration, where keys are looked up; None for nowhere.
        is_offline: No request may leave this computer: the command fails.
    """

    model: EndpointModel
    key: str = field(default="", repr=False)
    keys_dir: Path | None = None
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class Unload(Message):
    """Forget the loaded model and free its memory."""


@dataclass(frozen=True, slots=True)
class Calibrate(Message):
    """Measure the time of a step at several row counts on the loaded model, in spare time.

    Attributes:
        is_anew: Forget what was measured of it on this computer, the drafters' speeds, too.
    """

    is_anew: bool = False


@dataclass(frozen=True, slots=True)
class Race(Message):
    """Let all drafters of the loaded model answer the same questions, and see which is fastest.

    They do so while the engine is idle; earlier measurements are sent at once.
    """


@dataclass(frozen=True, slots=True)
class Generate(Message):
    """Answer a conversation; what the session already holds in its cache is not computed again.

    Attributes:
        messages: The turns, oldest first. An assistant's message at the end is an answer to go on
            with: the text is what it would have been without the pause.
        settings: How to decode.
        keep_tokens: How many tokens of that answer to keep, for another one from there on; None
            for all. Under a rule that chooses without chance, the token that stood there is
            forbidden there; else `settings.seed` makes the difference.
        records: Send a `StepTrace` for every step.
        shares: The context is split into this many equal parts, and the answer gets one of them;
            for answers that run at the same time.
        joins: It may be batched with other answers; False where its own speed is measured.
        is_background: Answer while nothing else is answered, in free rows of the cache: it never
            evicts a conversation, and begins again after an answer that interrupted it.
        updates_datastore: Later drafts are also looked up in this answer, until its conversation is
            deleted.
        tools: Functions that the model may call, each a JSON object of `name`, `description` and
            `parameters`, as text.
        grammar: What the answer must match, in llguidance's form: Lark, or JSON with `grammars`;
            empty for anything.
        prompt_ids: Tokens to continue, without a chat template, instead of messages.
        num_logprobs: Send a `StepLogprobs` for every step, with so many alternatives of each token;
            −1 for none.
        cache_salt: The answer may begin with cached rows of other conversations with the same
            salt. How soon an answer begins tells who asks what others have asked: whoever may not
            know that of each other gets a salt of their own.
    """

    messages: tuple[ChatMessage, ...]
    settings: GenerateSettings = field(default_factory=GenerateSettings)
    keep_tokens: int | None = None
    records: bool = False
    shares: int = 1
    joins: bool = True
    is_background: bool = False
    updates_datastore: bool = False
    tools: tuple[str, ...] = ()
    grammar: str = ""
    prompt_ids: tuple[int, ...] = ()
    num_logprobs: int = -1
    cache_salt: str = ""


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """Stop the Generate with this session and request; takes effect within one step."""


@dataclass(frozen=True, slots=True)
class CloseSession(Message):
    """Forget a session and free its cache."""


@dataclass(frozen=True, slots=True)
class Verify(Message):
    """Read a text in one forward pass: what would the target have written at each place?

    The text is that of the messages if there are any; else the tokens of `before_ids`, those of
    `text`, and those of `after_ids`, which stay as they are.

    Attributes:
        messages: A conversation, as the target reads it; its last answer belongs to it.
        before_ids: Tokens before the text.
        text: A text that may have been edited.
        after_ids: Tokens behind it.
    """

    messages: tuple[ChatMessage, ...] = ()
    before_ids: tuple[int, ...] = ()
    text: str = ""
    after_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Count(Message):
    """How long is a conversation, and how much of it will be read? Answered between two steps.

    Attributes:
        messages: As `Generate` gets them.
        settings: As `Generate` gets them: the longest answer and the overflow policy count.
        wants_prompt: `Counted` has the rendered prompt, too.
        tools: As `Generate` gets them.
    """

    messages: tuple[ChatMessage, ...]
    settings: GenerateSettings = field(default_factory=GenerateSettings)
    wants_prompt: bool = False
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokenize(Message):
    """Which tokens are a text? Answered between two steps by `Tokenized`.

    Attributes:
        text: The text; special tokens written in it become themselves.
        token_ids: Tokens whose text is asked for instead.
        opens_prompt: Put the token that begins the model's prompts (BOS) before the text.
        is_literal: Names of special tokens in the text are mere text.
    """

    text: str = ""
    token_ids: tuple[int, ...] = ()
    opens_prompt: bool = False
    is_literal: bool = False


Command = (
    LoadModel
    | LoadRemote
    | Unload
    | Calibrate
    | Race
    | Generate
    | Cancel
    | CloseSession
    | Verify
    | Count
    | Tokenize
)
