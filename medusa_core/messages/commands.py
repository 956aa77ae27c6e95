"""Commands to the engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from medusa_core.messages.load_options import LoadOptions
from medusa_core.messages.records import (
    ChatMessage,
    EndpointModel,
    GenerateSettings,
    Message,
    Purpose,
)


@dataclass(frozen=True, slots=True)
class LoadModel(Message):
    """Load a target and its heads in place of the loaded model.

    If that fails, the previous model is loaded again.

    Attributes:
        model_dir: Folder in Hugging Face layout, or a GGUF file.
        heads_dir: Folder with heads, or None.
        options: Options of loading.
        calibrations_dir: Folder for measured step costs; None to save none.
        num_threads: CPU threads; 0 for the fastest number, which is measured.
        shows_drafts: Whether the default drafter drafts even if plain decoding is faster, for a
            model that demonstrates drafting.
    """

    model_dir: Path
    heads_dir: Path | None = None
    options: LoadOptions = field(default_factory=LoadOptions)
    calibrations_dir: Path | None = None
    num_threads: int = 0
    shows_drafts: bool = False


@dataclass(frozen=True, slots=True)
class LoadRemote(Message):
    """Use a remote model in place of the loaded one, whose memory is freed.

    If that fails, the previous model stays in use.

    Attributes:
        model: The model.
        key: API key; empty for the saved one. Not part of the repr.
        keys_dir: Folder of the user's configuration with saved keys; None for none.
        is_offline: Whether offline mode is on: the command fails.
    """

    model: EndpointModel
    key: str = field(default="", repr=False)
    keys_dir: Path | None = None
    is_offline: bool = False


@dataclass(frozen=True, slots=True)
class Unload(Message):
    """Unload the model and the embedding model, and free their memory."""


@dataclass(frozen=True, slots=True)
class Calibrate(Message):
    """Measure the loaded model's time of a step by number of rows, while the engine is idle.

    Attributes:
        is_anew: Whether to discard saved measurements, the drafters' speeds included.
    """

    is_anew: bool = False


@dataclass(frozen=True, slots=True)
class Race(Message):
    """Measure the speeds of all drafters with the same questions, while the engine is idle.

    Saved measurements are sent at once.
    """


@dataclass(frozen=True, slots=True)
class Generate(Message):
    """Answer a conversation; cached KV rows of the session are reused.

    Attributes:
        messages: The conversation, oldest message first. An assistant's message at the end is
            continued as if it had not been interrupted.
        settings: Generation settings.
        keep_tokens: Tokens of that message to keep, for a different continuation; None for all.
            Under a deterministic rule the next token of the message is forbidden; else
            `settings.seed` makes the difference.
        records: Whether to send a `StepTrace` after every step.
        shares: Number of equal parts of the context, of which the answer gets one, for answers that
            run at the same time.
        joins: Whether it may be batched with other answers; False to measure its own speed.
        is_background: Answer while the engine is idle, in free rows of the cache: it never evicts a
            conversation, and starts again after an answer that interrupted it.
        updates_datastore: Whether to add the answer to the datastore of drafts.
        tools: Functions that the model may call, each a JSON object of `name`, `description` and
            `parameters`, as text.
        grammar: Grammar of the answer for llguidance: Lark, or JSON with `grammars`; empty for
            none.
        requires_grammar: Whether the answer fails if its grammar can't be used; else it is decoded
            without, such as one whose grammar only has the schemas of tools, which others wrote.
        prompt_ids: Token ids of a prompt to continue without a chat template, instead of messages.
        num_logprobs: Number of alternatives in a `StepLogprobs` for every step; −1 to send none.
        cache_salt: Only conversations with the same salt share cached rows. The time to the first
            token reveals what others have asked, so each client that must not know gets its own
            salt.
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
    requires_grammar: bool = True
    prompt_ids: tuple[int, ...] = ()
    num_logprobs: int = -1
    cache_salt: str = ""


@dataclass(frozen=True, slots=True)
class Cancel(Message):
    """Stop the `Generate` with this session and request within one step."""


@dataclass(frozen=True, slots=True)
class CloseSession(Message):
    """Close a session and free its cache."""


@dataclass(frozen=True, slots=True)
class Verify(Message):
    """Predict the next token at each position of a text, in one forward pass.

    The text is that of the messages if there are any; else `before_ids`, the tokens of `text` and
    `after_ids`.

    Attributes:
        messages: A conversation, its last answer included.
        before_ids: Tokens before the text.
        text: Text that may have been edited.
        after_ids: Tokens after the text.
    """

    messages: tuple[ChatMessage, ...] = ()
    before_ids: tuple[int, ...] = ()
    text: str = ""
    after_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Count(Message):
    """Count the tokens of a conversation and of its prompt, between two steps.

    Attributes:
        messages: The conversation, as in `Generate`.
        settings: Settings of the answer; only its maximum length and the overflow policy matter.
        wants_prompt: Whether `Counted` has the rendered prompt.
        tools: Functions that the model may call, as in `Generate`.
    """

    messages: tuple[ChatMessage, ...]
    settings: GenerateSettings = field(default_factory=GenerateSettings)
    wants_prompt: bool = False
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokenize(Message):
    """Tokenize a text, or detokenize tokens, between two steps.

    Attributes:
        text: The text; names of special tokens in it become these tokens.
        token_ids: Tokens to detokenize instead.
        opens_prompt: Whether to add the BOS token, if the model's prompts have one.
        is_literal: Whether names of special tokens in the text are plain text.
    """

    text: str = ""
    token_ids: tuple[int, ...] = ()
    opens_prompt: bool = False
    is_literal: bool = False


@dataclass(frozen=True, slots=True)
class Embed(Message):
    """Embed texts with an embedding model, which is loaded beside the chat model on first use.

    It runs between the steps of answers, of whose time it takes a part.

    Attributes:
        model_dir: Folder in Hugging Face layout, or a GGUF file, of the embedding model.
        texts: Texts to embed.
        token_ids: Texts as token ids, instead of `texts`.
        dimensions: Dimensions of the vectors; 0 for all.
        purpose: Purpose of the texts, whose prefix is added; queries overtake other texts.
        device: Torch device name; empty for the best there is.
        truncates: Whether to embed the begin of texts that exceed the context, instead of failing.
    """

    model_dir: Path
    texts: tuple[str, ...] = ()
    token_ids: tuple[tuple[int, ...], ...] = ()
    dimensions: int = 0
    purpose: Purpose = Purpose.ANY
    device: str = ""
    truncates: bool = False


@dataclass(frozen=True, slots=True)
class UnloadEmbedder(Message):
    """Unload the embedding model and free its memory; the next `Embed` loads it again."""


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
    | Embed
    | UnloadEmbedder
)
