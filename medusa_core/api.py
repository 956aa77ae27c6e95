"""The only public door of the engine.

Importing this module loads neither torch nor Qt: both are slow, and a window must open first.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from medusa_core import __version__ as VERSION
from medusa_core import messages
from medusa_core.chats.attachments.attachment import (
    Attachment,
    with_attachments,
)
from medusa_core.chats.attachments.reader import read_attachment
from medusa_core.chats.history.exchange.export import (
    Exported,
    FileKind,
    export_gently,
    export_page,
    write_whole,
)
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import (
    History,
    open_history,
)
from medusa_core.chats.history.records import (
    AnswerState,
    ConversationInfo,
    Folder,
    SearchHit,
    Stored,
    StoredAnswer,
)
from medusa_core.chats.history.stored_chats import (
    first_words,
    open_conversation,
    state_of,
    stored_answer,
    stored_prompt,
    stored_prompts,
)
from medusa_core.chats.trace_file import (
    Recording,
    is_trace,
    pack_trace,
    read_trace,
    unpack_trace,
    write_trace,
)
from medusa_core.hub.job import DownloadJob, JobState, Pair
from medusa_core.hub.settings import (
    HubSettings,
    has_token_file,
    remove_token,
    save_token,
    settings_from,
)
from medusa_core.memory.trained_heads import trained_bytes
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.system.extras import SERVER_EXTRA
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.whole_file import replace_text
from medusa_core.system.installation import command_to_mend
from medusa_core.system.jobs.batch.job import (
    BatchJob,
    BatchState,
    BatchWish,
    OwnBatches,
)
from medusa_core.system.jobs.batch.progress import BatchProgress
from medusa_core.system.jobs.batch.row import (
    BatchRow,
    read_rows,
)
from medusa_core.system.jobs.heads_training import (
    HeadsNeeds,
    HeadsProgress,
    HeadsTraining,
    HeadsWish,
    NeedsQuery,
    OwnHeads,
)
from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS
from medusa_core.system.resources import (
    FIRST_MODEL_LICENCE,
    FIRST_MODEL_NAME,
    calibrations_dir,
    changelog_file,
    demo_heads_dir,
    demo_model_dir,
    docs_dir,
    import_places,
    quantized_models_dir,
    resources_dir,
)
from medusa_core.system.user_folders import (
    APP_NAME,
    Places,
    places,
    prepare_home,
    with_home,
    without_home,
)

if TYPE_CHECKING:
    from medusa_core.chats.settings_file import (
        NOT_EXPORTED,
        SettingsFile,
        exported_names,
        read_settings_file,
        write_settings_file,
    )
    from medusa_core.doctor.check import Check
    from medusa_core.doctor.doctor import run_checks
    from medusa_core.doctor.report import compose_report
    from medusa_core.engine.batch.lines import read_lines
    from medusa_core.hub.drafters import DRAFTER_KINDS, DrafterOffer
    from medusa_core.hub.first_model import (
        FIRST_MODEL_BYTES,
        fetch_first_model,
        is_first_model_offered,
    )
    from medusa_core.hub.library.library import (
        AdapterOffer,
        Installed,
        InstalledKind,
        Library,
        PairOffer,
    )
    from medusa_core.hub.whoami import whoami
    from medusa_core.loading.forecast import (
        Forecast,
        ReadRate,
        forecast,
        measure_read_rate,
        rate_limiting_format,
    )
    from medusa_core.loading.offers import (
        LoadOffer,
        smaller_loads,
    )
    from medusa_core.loading.offload_forecast import (
        OffloadPlan,
        device_with,
        offloaded_load,
        plan_offload,
    )
    from medusa_core.memory.budget import Budget, DeviceOffer
    from medusa_core.memory.now import MemoryNow
    from medusa_core.memory.probe import offered_devices
    from medusa_core.memory.recommend import (
        Recommendation,
        choices,
        plan_choice,
        plan_least,
        recommend,
    )
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.datastore.folder import (
        forget_answers,
        forget_strangers,
    )
    from medusa_core.models.lora.adapter_shape import AdapterShape
    from medusa_core.models.parts import num_parameters
    from medusa_core.remote.address import endpoint_url, is_readable_by_others
    from medusa_core.remote.connecting import (
        connect_endpoint,
        disconnect_endpoint,
        refresh_endpoint,
    )
    from medusa_core.runtime.cluster.address import split_address
    from medusa_core.runtime.cluster.layer_range import client_config
    from medusa_core.system.components import (
        component_licences,
        component_versions,
        licences_file,
    )
    from medusa_core.system.running_models import RunningFile

EventSink = Callable[[messages.Event], None]

# What the model manager needs is imported when it is asked for: a window opens without it.
_LATER = {
    "read_lines": "medusa_core.engine.batch.lines",
    **dict.fromkeys(
        ("AdapterOffer", "Installed", "InstalledKind", "Library", "PairOffer"),
        "medusa_core.hub.library.library",
    ),
    **dict.fromkeys(("DRAFTER_KINDS", "DrafterOffer"), "medusa_core.hub.drafters"),
    "AdapterShape": "medusa_core.models.lora.adapter_shape",
    "Budget": "medusa_core.memory.budget",
    "DeviceOffer": "medusa_core.memory.budget",
    "client_config": "medusa_core.runtime.cluster.layer_range",
    "split_address": "medusa_core.runtime.cluster.address",
    **dict.fromkeys(("endpoint_url", "is_readable_by_others"), "medusa_core.remote.address"),
    **dict.fromkeys(
        ("refresh_endpoint", "connect_endpoint", "disconnect_endpoint"),
        "medusa_core.remote.connecting",
    ),
    **dict.fromkeys(
        ("Recommendation", "choices", "plan_choice", "plan_least", "recommend"),
        "medusa_core.memory.recommend",
    ),
    "MemoryNow": "medusa_core.memory.now",
    "ModelConfig": "medusa_core.models.config",
    "num_parameters": "medusa_core.models.parts",
    **dict.fromkeys(
        ("Forecast", "ReadRate", "forecast", "measure_read_rate", "rate_limiting_format"),
        "medusa_core.loading.forecast",
    ),
    **dict.fromkeys(("LoadOffer", "smaller_loads"), "medusa_core.loading.offers"),
    **dict.fromkeys(
        ("OffloadPlan", "device_with", "plan_offload", "offloaded_load"),
        "medusa_core.loading.offload_forecast",
    ),
    "Check": "medusa_core.doctor.check",
    **dict.fromkeys(
        ("component_licences", "component_versions", "licences_file"),
        "medusa_core.system.components",
    ),
    "RunningFile": "medusa_core.system.running_models",
    **dict.fromkeys(
        (
            "NOT_EXPORTED",
            "SettingsFile",
            "exported_names",
            "read_settings_file",
            "write_settings_file",
        ),
        "medusa_core.chats.settings_file",
    ),
    "whoami": "medusa_core.hub.whoami",
    **dict.fromkeys(
        ("FIRST_MODEL_BYTES", "fetch_first_model", "is_first_model_offered"),
        "medusa_core.hub.first_model",
    ),
    **dict.fromkeys(("forget_answers", "forget_strangers"), "medusa_core.models.datastore.folder"),
    "compose_report": "medusa_core.doctor.report",
    "run_checks": "medusa_core.doctor.doctor",
    "offered_devices": "medusa_core.memory.probe",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)


class Engine(Protocol):
    """What an application needs of an engine; tests bring their own.

    Attributes:
        is_alive: Commands are still heard. False before it was closed is a fault of the engine:
            it sends no more events, and another one can be started.
    """

    @property
    def is_alive(self) -> bool: ...

    def submit(self, command: messages.Command) -> None:
        """Queue a command; returns at once. `Cancel` overtakes everything that waits."""

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel what runs, free the model and end the worker; safe to call twice."""


def start_engine(on_event: EventSink) -> Engine:
    """Start an engine in a thread of its own.

    Args:
        on_event: Called in the worker's thread with every event, in order; must return quickly
            and not raise.

    Returns:
        The running engine. Torch is imported by its thread, not by the caller. Commands go to a
        model of this computer, or of another machine, whichever is loaded.
    """
    from medusa_core.engine.worker import Worker
    from medusa_core.remote.router import EngineRouter

    return EngineRouter(on_event, Worker, _start_remote_engine)


def _start_remote_engine(on_event: EventSink) -> Engine:
    # Imported for the first model of another machine: most windows never need it.
    from medusa_core.remote.remote_engine import RemoteEngine

    return RemoteEngine(on_event)


def demo_model() -> tuple[Path, Path]:
    """Folders of the embedded demo model and of its Medusa heads."""
    return demo_model_dir(), demo_heads_dir()


def with_offline(settings: HubSettings, is_offline: bool) -> HubSettings:
    """The same settings with offline mode on or off."""
    return replace(settings, is_offline=is_offline)


def converting(pair: Pair) -> Pair:
    """The same pair with the user's consent to convert pickles."""
    return replace(pair, converts=True)


def with_token(settings: HubSettings, token: str) -> HubSettings:
    """The same settings with another token."""
    return replace(settings, token=token)


def user_hub_settings(cache_dir: Path | None = None) -> HubSettings:
    """The Hub as this user's environment describes it.

    Args:
        cache_dir: Another folder for models than the shared cache.
    """
    return settings_from(os.environ, cache_dir)


def with_limit(settings: HubSettings, mb_per_s: float) -> HubSettings:
    """The same settings with at most so many megabytes a second; 0 for no limit."""
    return replace(settings, bytes_per_s=round(mb_per_s * 1e6))


def with_cache(settings: HubSettings, cache_dir: Path) -> HubSettings:
    """The same settings with another folder for models."""
    return replace(settings, cache_dir=cache_dir)


def save_user_token(token: str) -> Path:
    """Keep the user's token where all programs that use the Hub look for it.

    Raises:
        OSError: It can't be written.
    """
    return save_token(token, os.environ)


def has_saved_token() -> bool:
    """Whether this user keeps a token in a file."""
    return has_token_file(os.environ)


def remove_user_token() -> None:
    """Remove the token that this user keeps, for all programs.

    Raises:
        OSError: It can't be removed.
    """
    remove_token(os.environ)


def format_bits(name: str) -> int:
    """Nominal bits of a weight in a format, such as 4."""
    from medusa_core.models.quant.in_blocks import weight_formats

    return int(weight_formats().get(name).bits)


def memory_now(device: str) -> MemoryNow:
    """The memory of a device as it is now; may take a while, and is best asked in a thread.

    Raises:
        RequestError: There is no such device.
        RuntimeError: The device can't be asked.
    """
    from medusa_core.memory import now

    return now.memory_now(device)


def format_label(name: str) -> str:
    """The name of a weight format for people."""
    from medusa_core.models.quant.in_blocks import weight_formats

    return weight_formats().get(name).label


__all__ = [
    "APP_NAME",
    "DRAFTER_KINDS",
    "FIRST_MODEL_BYTES",
    "FIRST_MODEL_LICENCE",
    "FIRST_MODEL_NAME",
    "NOT_EXPORTED",
    "SERVER_EXTRA",
    "TRAINED_KINDS",
    "VERSION",
    "AdapterOffer",
    "AdapterShape",
    "AnswerState",
    "Attachment",
    "BatchJob",
    "BatchProgress",
    "BatchRow",
    "BatchState",
    "BatchWish",
    "Budget",
    "Check",
    "ConversationFile",
    "ConversationInfo",
    "DeviceOffer",
    "DownloadJob",
    "DrafterOffer",
    "Endpoint",
    "Endpoints",
    "Engine",
    "EventSink",
    "Exported",
    "FileKind",
    "Folder",
    "Forecast",
    "HeadsNeeds",
    "HeadsProgress",
    "HeadsTraining",
    "HeadsWish",
    "History",
    "HubSettings",
    "Installed",
    "InstalledKind",
    "JobState",
    "Library",
    "LoadOffer",
    "MemoryNow",
    "ModelConfig",
    "NeedsQuery",
    "OffloadPlan",
    "OwnBatches",
    "OwnHeads",
    "Pair",
    "PairOffer",
    "Places",
    "ReadRate",
    "Recommendation",
    "Recording",
    "RunningFile",
    "SearchHit",
    "SettingsFile",
    "Stored",
    "StoredAnswer",
    "calibrations_dir",
    "changelog_file",
    "choices",
    "client_config",
    "command_to_mend",
    "component_licences",
    "component_versions",
    "compose_report",
    "connect_endpoint",
    "converting",
    "demo_model",
    "device_with",
    "disconnect_endpoint",
    "docs_dir",
    "endpoint_url",
    "export_gently",
    "export_page",
    "exported_names",
    "fetch_first_model",
    "first_words",
    "forecast",
    "forget_answers",
    "forget_strangers",
    "format_bits",
    "format_label",
    "has_saved_token",
    "import_places",
    "is_first_model_offered",
    "is_readable_by_others",
    "is_trace",
    "licences_file",
    "measure_read_rate",
    "memory_now",
    "messages",
    "num_parameters",
    "offered_devices",
    "offloaded_load",
    "open_conversation",
    "open_history",
    "pack_trace",
    "places",
    "plan_choice",
    "plan_least",
    "plan_offload",
    "prepare_home",
    "quantized_models_dir",
    "rate_limiting_format",
    "read_attachment",
    "read_json",
    "read_lines",
    "read_rows",
    "read_settings_file",
    "read_trace",
    "recommend",
    "refresh_endpoint",
    "remove_user_token",
    "replace_text",
    "resources_dir",
    "run_checks",
    "save_user_token",
    "smaller_loads",
    "split_address",
    "start_engine",
    "state_of",
    "stored_answer",
    "stored_prompt",
    "stored_prompts",
    "trained_bytes",
    "unpack_trace",
    "user_hub_settings",
    "whoami",
    "with_attachments",
    "with_cache",
    "with_home",
    "with_limit",
    "with_offline",
    "with_token",
    "without_home",
    "write_settings_file",
    "write_trace",
    "write_whole",
]
