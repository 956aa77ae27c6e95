"""Everything that can go wrong, as one tree.

MedusaError
├── ModelError            a checkpoint, its tokenizer or its template can't be used
│   ├── CheckpointError   a file is missing, truncated or not what its header says
│   ├── CompanionError    a file that goes with a model, and isn't one
│   │   └── HeadsFileError    heads, where a model is wanted
│   ├── HeadsError        Medusa heads that don't fit, or aren't Medusa heads
│   ├── AdapterError      an adapter that doesn't fit, or is no plain LoRA
│   ├── TokenizerError    a tokenizer of a kind that can't be streamed
│   ├── TemplateError     a chat template that fails to render
│   └── ConversionError   a pickle that isn't converted: refused, damaged or stopped
├── PlanError             the device has no room for a model, as is known before it is loaded
├── Cancelled             whoever asked for it doesn't want it any more
├── RequestError          what was asked for can't be done: empty prompt, too long, bad setting
│   ├── GrammarError      a grammar can't be used, or an answer can't match it
│   └── MissingExtraError libraries that aren't installed unless somebody asks for them
├── EngineError           the engine failed while it worked
│   ├── NumericsError     the target's logits hold no number
│   ├── OutOfMemoryError  the device has no memory left
│   └── TierError         a disk that holds layers fails, is full, or was changed
├── HubError              the Hub, or the way to it
│   ├── OfflineError      offline mode is on, and this needs the Hub or another machine
│   ├── NetworkError      the Hub can't be reached, or fails
│   ├── AccessError       the Hub asks who you are, or for its terms to be accepted
│   ├── NotFoundError     there is no such repository, revision or file
│   ├── UnusableRepoError a repository without anything that can be loaded
│   ├── AnswerError       an answer that can't be read, or names what mustn't be touched
│   ├── IntegrityError    what arrived isn't what the Hub announced
│   └── DiskFullError     the disk has no room
├── EndpointError         another machine's models, behind an address, can't be used
│   ├── EndpointUnreachableError  nothing answers there, or the way there isn't safe
│   ├── EndpointKeyError  it wants a key, or refuses the one it was shown
│   ├── EndpointModelError  it has no such model
│   ├── EndpointBusyError it asks for patience
│   ├── EndpointFailedError  it failed, or refuses what was asked for
│   └── EndpointAnswerError  its answer can't be read, or broke off
├── ClusterError          machines that share a model can't be reached, or don't go together
│   ├── StageBusyError    one of them serves somebody else
│   └── StageLostError    one of them doesn't answer any more
├── StorageError          a database of ours can't be opened, read or written
├── ConversationFileError a file of conversations can't be read or written
│   └── UnknownKindError  it is no conversation of a program that is known here
├── AttachmentError       a file whose text can't be attached to a message
├── PromptFileError       a file of prompts can't be read
├── PresetError           settings under a name that can't be read, changed or written
├── SettingsFileError     a file of settings and presets that can't be read or written
├── TraceError            a recording can't be written or read
├── TrainingError         a training run can't start or go on
└── BatchError            a batch can't start, or keep its answers

Every error says what happened (`message`), what to do (`hint`) and with which values (`data`).
Both texts have at most 500 characters: they may quote what a foreign file holds.
"""

from __future__ import annotations

_MOST_CHARS = 500
_SHOWN_END = 100  # of a text that is too long
_GAP = " … "


class MedusaError(Exception):
    """Root of the tree.

    Attributes:
        message: What happened, in one sentence.
        hint: What the reader can do about it, in one sentence; may be empty.
        data: The values that matter, by name.
    """

    def __init__(self, message: str, hint: str = "", **data: str | int | float) -> None:
        self.message = _printable(message)
        self.hint = _printable(hint)
        super().__init__(self.message)
        self.data = dict(data)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions pickle by their args alone; the hint and the data must travel too.
        return _rebuild, (type(self), self.message, self.hint, self.data)


def _printable(text: str) -> str:
    """A text that every screen and file takes: not too long, and without lone surrogates."""
    if len(text) > _MOST_CHARS:
        begin = _MOST_CHARS - _SHOWN_END - len(_GAP)
        text = text[:begin] + _GAP + text[-_SHOWN_END:]
    # What is no character is written by its name, which may be longer again.
    shown = text.encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= _MOST_CHARS else text.encode("utf-8", "replace").decode()


def _rebuild(
    kind: type[MedusaError], message: str, hint: str, data: dict[str, str | int | float]
) -> MedusaError:
    return kind(message, hint, **data)


class ModelError(MedusaError):
    """A checkpoint, its tokenizer or its template can't be used."""


class CheckpointError(ModelError):
    """A checkpoint file is missing, truncated or not what its header says."""


class CompanionError(ModelError):
    """A file that goes with a model, or does something else than write text."""


class HeadsFileError(CompanionError):
    """Heads, where a model is wanted."""


class HeadsError(ModelError):
    """Medusa heads that don't fit the target, or that aren't Medusa heads."""


class AdapterError(ModelError):
    """An adapter that doesn't fit the target, or that is no plain LoRA."""


class TokenizerError(ModelError):
    """A tokenizer that can't be read or streamed."""


class TemplateError(ModelError):
    """A chat template that fails to parse or render."""


class ConversionError(ModelError):
    """A pickle that can't or mustn't be turned into safetensors."""


class PlanError(MedusaError):
    """The device has no room for a model."""


class Cancelled(MedusaError):  # noqa: N818 - nothing went wrong
    """Whoever asked for it doesn't want it any more."""


class RequestError(MedusaError):
    """The request itself can't be served."""


class GrammarError(RequestError):
    """A grammar that can't be used, or that an answer can't match."""


class MissingExtraError(RequestError):
    """Libraries of an extra that isn't installed."""


class EngineError(MedusaError):
    """The engine failed while it worked."""


class NumericsError(EngineError):
    """The target produced logits that are not numbers."""


class OutOfMemoryError(EngineError):
    """The device ran out of memory."""


class TierError(EngineError):
    """The disk that holds some of a model's layers fails, is full, or was changed."""


class HubError(MedusaError):
    """The Hub, or the way to it."""


class OfflineError(HubError):
    """Offline mode is on, and this needs the Hub or another machine."""


class NetworkError(HubError):
    """The Hub can't be reached, or fails."""


class AccessError(HubError):
    """The Hub asks who you are, or for its terms to be accepted."""


class NotFoundError(HubError):
    """There is no such repository, revision or file."""


class UnusableRepoError(HubError):
    """A repository without anything that can be loaded."""


class AnswerError(HubError):
    """An answer of the Hub that can't be read, or that names what mustn't be touched."""


class IntegrityError(HubError):
    """What arrived isn't what the Hub announced."""


class DiskFullError(HubError):
    """The disk has no room."""


class EndpointError(MedusaError):
    """Another machine's models, behind an OpenAI-compatible address, can't be used."""


class EndpointUnreachableError(EndpointError):
    """Nothing answers at an address, or the way there isn't safe."""


class EndpointKeyError(EndpointError):
    """An address wants a key, or refuses the one that it was shown."""


class EndpointModelError(EndpointError):
    """An address has no such model."""


class EndpointBusyError(EndpointError):
    """An address asks for patience."""


class EndpointFailedError(EndpointError):
    """A server failed, or refuses what was asked for."""


class EndpointAnswerError(EndpointError):
    """An answer that can't be read, or that broke off."""


class ClusterError(MedusaError):
    """Machines that share a model can't be reached, or don't go together."""


class StageBusyError(ClusterError):
    """A machine of a cluster serves another client."""


class StageLostError(ClusterError):
    """A machine that had some of the layers doesn't answer any more.

    Args:
        message: As of `MedusaError`.
        hint: As of `MedusaError`.
        stage: Its name among the connections of the cluster.
        data: As of `MedusaError`.
    """

    def __init__(
        self, message: str, hint: str = "", *, stage: str, **data: str | int | float
    ) -> None:
        super().__init__(message, hint, stage=stage, **data)


class StorageError(MedusaError):
    """A database of ours that can't be opened, read or written."""


class ConversationFileError(MedusaError):
    """A file of conversations that can't be read or written."""


class UnknownKindError(ConversationFileError):
    """A value is no conversation of a program that is known here."""


class AttachmentError(MedusaError):
    """A file whose text can't be attached to a message."""


class PromptFileError(MedusaError):
    """A file of prompts that can't be read."""


class PresetError(MedusaError):
    """Settings under a name that can't be read, changed or written."""


class SettingsFileError(MedusaError):
    """A file of settings and presets that can't be read or written."""


class TraceError(MedusaError):
    """A recording that can't be written, or a file that is none."""


class TrainingError(MedusaError):
    """A training run that can't start or go on."""


class BatchError(MedusaError):
    """A batch that can't start, or keep its answers."""
