"""All errors, as one class tree.

MedusaError
├── ModelError            a checkpoint, its tokenizer or its template can't be used
│   ├── CheckpointError   a file is missing, truncated or contradicts its header
│   ├── CompanionError    a file that accompanies a model, such as heads
│   │   └── HeadsFileError    heads instead of a model
│   ├── HeadsError        Medusa heads that don't fit, or aren't Medusa heads
│   ├── AdapterError      an adapter that doesn't fit, or is no plain LoRA
│   ├── TokenizerError    a tokenizer that can't be read or streamed
│   ├── TemplateError     a chat template that fails to render
│   └── ConversionError   a pickle that isn't converted: refused, damaged or stopped
├── PlanError             the planned model doesn't fit the device
├── Cancelled             the caller cancelled the request
├── RequestError          an invalid request: empty prompt, too long, bad setting
│   ├── GrammarError      a grammar can't be used, or an answer can't match it
│   └── MissingExtraError libraries of an extra that isn't installed
├── EngineError           the engine failed during a request
│   ├── NumericsError     the target's logits are not finite
│   ├── OutOfMemoryError  the device has no memory left
│   └── TierError         the disk with offloaded layers failed, is full, or was changed
├── HubError              the Hub or the connection to it
│   ├── OfflineError      offline mode forbids a connection
│   ├── NetworkError      the Hub can't be reached, or failed
│   ├── AccessError       the Hub requires a token, or accepted terms
│   ├── NotFoundError     there is no such repository, revision or file
│   ├── UnusableRepoError a repository without a loadable model
│   ├── AnswerError       an invalid response, or one with unsafe paths
│   ├── IntegrityError    a download differs from its hash or size
│   └── DiskFullError     the disk has no room
├── EndpointError         models of an OpenAI-compatible endpoint can't be used
│   ├── EndpointUnreachableError  the endpoint can't be reached, or not safely
│   ├── EndpointKeyError  the key is missing or invalid
│   ├── EndpointModelError  the endpoint has no such model
│   ├── EndpointBusyError the endpoint is overloaded, or limits the rate
│   ├── EndpointFailedError  the endpoint failed, or rejected the request
│   └── EndpointAnswerError  the response is invalid or incomplete
├── ClusterError          machines that share a model can't be reached, or are incompatible
│   ├── StageBusyError    a stage serves another client
│   └── StageLostError    the connection to a stage is lost
├── StorageError          a database can't be opened, read or written
├── ConversationFileError a file of conversations can't be read or written
│   └── UnknownKindError  the file has an unknown format
├── AttachmentError       a file whose text can't be attached to a message
├── PromptFileError       a file of prompts can't be read
├── PresetError           a preset that can't be read, changed or written
├── SettingsFileError     a file of settings and presets that can't be read or written
├── TraceError            a trace can't be written or read
├── TrainingError         a training run can't start or go on
├── BatchError            a batch can't start, or write its answers
└── ToolError             a tool, its server or their settings can't be used

Each error has a `message`, a `hint` for the user and the values involved (`data`).
Message and hint have at most 500 characters, since they may quote foreign files. Those with values
are `tr(template, *values)`: see `i18n`.
"""

from __future__ import annotations

from medusa_core.i18n import Translatable, tr

_MOST_CHARS = 500
_SHOWN_END = 100  # of a truncated text
_GAP = " … "


class MedusaError(Exception):
    """Root of the tree.

    Attributes:
        message: What happened, in one sentence.
        hint: What the user can do about it, in one sentence; may be empty.
        data: The values involved, by name.
    """

    def __init__(self, message: str, hint: str = "", **data: str | int | float) -> None:
        self.message = _printable(message)
        self.hint = _printable(hint)
        super().__init__(self.message)
        self.data = dict(data)

    def __str__(self) -> str:
        return tr("{0} {1}", self.message, self.hint) if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # By default, exceptions pickle only their args, without hint and data.
        return _rebuild, (type(self), self.message, self.hint, self.data)


def _printable(text: str) -> str:
    """Truncate a text, and escape its lone surrogates; values of a template one by one.

    A literal becomes translatable, too, since other texts may quote it.
    """
    shown = _cut(text, _MOST_CHARS)
    if shown == text:
        return text if isinstance(text, Translatable) else tr(text)
    if isinstance(text, Translatable) and text.values:
        room = max(0, _MOST_CHARS - len(text.template)) // len(text.values)
        values = (_cut(v, room) if isinstance(v, str) else v for v in text.values)
        cut = tr(text.template, *values)
        return cut if len(cut) <= _MOST_CHARS else shown
    return shown


def _cut(text: str, most_chars: int) -> str:
    """Truncate a text in its middle, and escape its lone surrogates."""
    if len(text) > most_chars:
        num_end = min(_SHOWN_END, most_chars // 3)
        begin = max(0, most_chars - num_end - len(_GAP))
        text = text[:begin] + _GAP + text[len(text) - num_end :]
    # Escapes lengthen the text.
    shown = text.encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= most_chars else text.encode("utf-8", "replace").decode()


def _rebuild(
    kind: type[MedusaError], message: str, hint: str, data: dict[str, str | int | float]
) -> MedusaError:
    return kind(message, hint, **data)


class ModelError(MedusaError):
    """A checkpoint, its tokenizer or its template can't be used."""


class CheckpointError(ModelError):
    """A checkpoint file is missing, truncated or contradicts its header."""


class CompanionError(ModelError):
    """A file that accompanies a model, or a model that doesn't generate text."""


class HeadsFileError(CompanionError):
    """Heads instead of a model."""


class HeadsError(ModelError):
    """Medusa heads that don't fit the target, or that aren't Medusa heads."""


class AdapterError(ModelError):
    """An adapter that doesn't fit the target, or that is no plain LoRA."""


class TokenizerError(ModelError):
    """A tokenizer that can't be read or streamed."""


class TemplateError(ModelError):
    """A chat template that fails to parse or render."""


class ConversionError(ModelError):
    """A pickle that isn't converted to safetensors: refused, damaged or stopped."""


class PlanError(MedusaError):
    """The device has no room for a model."""


class Cancelled(MedusaError):  # noqa: N818 - not an error
    """The caller cancelled the request."""


class RequestError(MedusaError):
    """An invalid request."""


class GrammarError(RequestError):
    """A grammar that can't be used, or that an answer can't match."""


class MissingExtraError(RequestError):
    """Libraries of an extra that isn't installed."""


class EngineError(MedusaError):
    """The engine failed during a request."""


class NumericsError(EngineError):
    """The target produced logits that are not finite."""


class OutOfMemoryError(EngineError):
    """The device ran out of memory."""


class TierError(EngineError):
    """The disk with offloaded layers failed, is full, or was changed."""


class HubError(MedusaError):
    """The Hub or the connection to it failed."""


class OfflineError(HubError):
    """Offline mode forbids a connection."""


class NetworkError(HubError):
    """The Hub can't be reached, or failed."""


class AccessError(HubError):
    """The Hub requires a token, or accepted terms."""


class NotFoundError(HubError):
    """There is no such repository, revision or file."""


class UnusableRepoError(HubError):
    """A repository without a loadable model."""


class AnswerError(HubError):
    """An invalid response of the Hub, or one with unsafe paths."""


class IntegrityError(HubError):
    """A download differs from its hash or size."""


class DiskFullError(HubError):
    """The disk has no room."""


class EndpointError(MedusaError):
    """Models of an OpenAI-compatible endpoint can't be used."""


class EndpointUnreachableError(EndpointError):
    """The endpoint can't be reached, or not safely."""


class EndpointKeyError(EndpointError):
    """The key of the endpoint is missing or invalid."""


class EndpointModelError(EndpointError):
    """The endpoint has no such model."""


class EndpointBusyError(EndpointError):
    """The endpoint is overloaded, or limits the rate."""


class EndpointFailedError(EndpointError):
    """The endpoint failed, or rejected the request."""


class EndpointAnswerError(EndpointError):
    """The response of the endpoint is invalid or incomplete."""


class ClusterError(MedusaError):
    """Machines that share a model can't be reached, or are incompatible."""


class StageBusyError(ClusterError):
    """A stage of the cluster serves another client."""


class StageLostError(ClusterError):
    """The connection to a stage is lost.

    Args:
        message: See `MedusaError`.
        hint: See `MedusaError`.
        stage: Name of the stage.
        data: See `MedusaError`.
    """

    def __init__(
        self, message: str, hint: str = "", *, stage: str, **data: str | int | float
    ) -> None:
        super().__init__(message, hint, stage=stage, **data)


class StorageError(MedusaError):
    """A database that can't be opened, read or written."""


class ConversationFileError(MedusaError):
    """A file of conversations that can't be read or written."""


class UnknownKindError(ConversationFileError):
    """A file of an unknown format."""


class AttachmentError(MedusaError):
    """A file whose text can't be attached to a message."""


class PromptFileError(MedusaError):
    """A file of prompts that can't be read."""


class PresetError(MedusaError):
    """A preset that can't be read, changed or written."""


class SettingsFileError(MedusaError):
    """A file of settings and presets that can't be read or written."""


class TraceError(MedusaError):
    """A trace that can't be written or read."""


class TrainingError(MedusaError):
    """A training run that can't start or go on."""


class BatchError(MedusaError):
    """A batch that can't start, or write its answers."""


class ToolError(MedusaError):
    """A tool, its server or their settings that can't be used."""
