"""The public interface of the engine for the window.

Importing this module loads neither torch nor Qt: both are slow, and a window must open first. So
names of other modules are imported when they are first used.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from medusa_core import __version__ as VERSION
from medusa_core import messages
from medusa_core.hub.settings import has_token_file, remove_token, save_token, settings_from
from medusa_core.system.resources import demo_heads_dir, demo_model_dir

# Each exported name once: type checkers read imports, and `__getattr__` reads the same lines.
if TYPE_CHECKING:
    from medusa_core.chats.attachments.attachment import Attachment, with_attachments
    from medusa_core.chats.attachments.reader import read_attachment
    from medusa_core.chats.history.exchange.export import (
        Exported,
        FileKind,
        export_gently,
        export_page,
        write_whole,
    )
    from medusa_core.chats.history.exchange.reading import ConversationFile
    from medusa_core.chats.history.history import History, open_history
    from medusa_core.chats.history.records import ConversationInfo, Folder, SearchHit
    from medusa_core.chats.history.stored_chats import (
        first_words,
        open_conversation,
        state_of,
        stored_answer,
        stored_prompt,
        stored_prompts,
    )
    from medusa_core.chats.passages import source_of
    from medusa_core.chats.settings_file import (
        NOT_EXPORTED,
        SettingsFile,
        exported_names,
        read_settings_file,
        write_settings_file,
    )
    from medusa_core.chats.trace_file import (
        Recording,
        is_trace,
        pack_trace,
        read_trace,
        unpack_trace,
        write_trace,
    )
    from medusa_core.doctor.check import Check
    from medusa_core.doctor.doctor import run_checks
    from medusa_core.doctor.report import compose_report
    from medusa_core.documents.collections import Collections
    from medusa_core.documents.records import (
        CollectionInfo,
        DocumentInfo,
        DocumentState,
        Embed,
        IndexProgress,
        Passage,
    )
    from medusa_core.documents.retrieval import PassageRoom, Retrieved, passage_room, retrieve
    from medusa_core.engine.batch.lines import read_lines
    from medusa_core.hub.drafters import DRAFTER_KINDS, DrafterOffer
    from medusa_core.hub.first_model import (
        FIRST_MODEL_BYTES,
        fetch_first_model,
        is_first_model_offered,
    )
    from medusa_core.hub.hub_api import whoami
    from medusa_core.hub.job import DownloadJob, JobState, Pair
    from medusa_core.hub.library.installed import Installed
    from medusa_core.hub.library.library import AdapterOffer, Library
    from medusa_core.hub.library.library_folder import ContentsKind
    from medusa_core.hub.library.offers import PairOffer
    from medusa_core.hub.settings import HubSettings
    from medusa_core.loading.cpu_parts import CpuPlan, plan_cpu
    from medusa_core.loading.measure.weights import measure_read_rate
    from medusa_core.loading.memory.budget import Budget, DeviceOffer
    from medusa_core.loading.memory.estimate import (
        Forecast,
        ReadRate,
        forecast,
        rate_limiting_format,
    )
    from medusa_core.loading.memory.probe import MemoryStatus, memory_status, offered_devices
    from medusa_core.loading.memory.recommend import (
        Recommendation,
        choices,
        plan_choice,
        plan_least,
        recommend,
    )
    from medusa_core.loading.memory.trained_heads import trained_bytes
    from medusa_core.loading.offers import LoadOffer, smaller_loads
    from medusa_core.loading.offload_forecast import (
        OffloadPlan,
        device_with,
        offloaded_load,
        plan_offload,
    )
    from medusa_core.models.blocks.sizes import num_parameters
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.datastore.folder import forget_answers, forget_deleted_conversations
    from medusa_core.models.lora.adapter_shape import AdapterShape
    from medusa_core.models.text.answer_form import ChatForm, chat_form
    from medusa_core.models.text.schema_check import check_json_schema
    from medusa_core.remote.address import endpoint_url, is_readable_by_others
    from medusa_core.remote.connecting import (
        connect_endpoint,
        disconnect_endpoint,
        refresh_endpoint,
    )
    from medusa_core.remote.endpoints import Endpoint, Endpoints
    from medusa_core.runtime.cluster.address import split_address
    from medusa_core.runtime.cluster.layer_range import client_config
    from medusa_core.system.components import component_licences, component_versions, licences_file
    from medusa_core.system.extras import SERVER_EXTRA, TOOLS_EXTRA
    from medusa_core.system.files.atomic_file import replace_text
    from medusa_core.system.files.json_file import read_json
    from medusa_core.system.installation import repair_command
    from medusa_core.system.jobs.batch.job import BatchJob, BatchSpec, BatchState, OwnBatches
    from medusa_core.system.jobs.batch.progress import BatchProgress
    from medusa_core.system.jobs.batch.row import BatchRow, read_rows
    from medusa_core.system.jobs.heads_training import (
        HeadsJobSpec,
        HeadsNeeds,
        HeadsProgress,
        HeadsTraining,
        NeedsQuery,
        OwnHeads,
    )
    from medusa_core.system.jobs.trained_kinds import TRAINED_KINDS
    from medusa_core.system.resources import (
        FIRST_MODEL_LICENCE,
        FIRST_MODEL_NAME,
        calibrations_dir,
        changelog_file,
        docs_dir,
        import_places,
        quantized_models_dir,
        resources_dir,
    )
    from medusa_core.system.running_models import RunningFile
    from medusa_core.system.user_folders import (
        APP_NAME,
        Places,
        places,
        prepare_home,
        with_home,
        without_home,
    )
    from medusa_core.tools.approvals import HOST_SEPARATOR, Approvals, approval_key
    from medusa_core.tools.arguments import arguments_problem, visible_text
    from medusa_core.tools.builtin_tool import BuiltinTool
    from medusa_core.tools.call_loop import MOST_ROUNDS, CallLoop
    from medusa_core.tools.offered_tool import OfferedTool
    from medusa_core.tools.results import RunningCall
    from medusa_core.tools.servers import ToolServer, import_servers
    from medusa_core.tools.status import ServerState
    from medusa_core.tools.toolbox import BuiltinStatus, ServerStatus, Toolbox
    from medusa_core.tools.web.settings import WebSettings

EventSink = Callable[[messages.Event], None]


def __getattr__(name: str) -> object:
    if name not in _origins():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_origins()[name]), name)


@cache
def _origins() -> dict[str, str]:
    """Map the names that are imported for type checkers only to their modules."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


class Engine(Protocol):
    """An engine, as applications use it.

    Attributes:
        is_alive: Whether commands are still executed. If it is false before `close`, the engine has
            failed: it sends no more events, and another one can be started.
    """

    @property
    def is_alive(self) -> bool: ...

    def submit(self, command: messages.Command) -> None:
        """Queue a command and return at once. `Cancel` overtakes all commands in the queue."""

    def close(self, timeout_s: float = 10.0) -> None:
        """Cancel all requests, free the model and end the worker; safe to call twice."""


def start_engine(on_event: EventSink) -> Engine:
    """Start an engine in its own thread, which imports torch.

    Args:
        on_event: Called in the worker's thread with every event, in order; must return quickly
            and not raise.

    Returns:
        The running engine. It sends commands to the loaded model, local or remote.
    """
    from medusa_core.engine.worker import Worker
    from medusa_core.remote.router import EngineRouter

    return EngineRouter(on_event, Worker, _start_remote_engine)


def _start_remote_engine(on_event: EventSink) -> Engine:
    # Imported for the first remote model: most users never have one.
    from medusa_core.remote.remote_engine import RemoteEngine

    return RemoteEngine(on_event)


def demo_model() -> tuple[Path, Path]:
    """Return the folders of the embedded demo model and of its Medusa heads."""
    return demo_model_dir(), demo_heads_dir()


def with_offline(settings: HubSettings, is_offline: bool) -> HubSettings:
    """Return the settings with offline mode on or off."""
    return replace(settings, is_offline=is_offline)


def converting(pair: Pair) -> Pair:
    """Return the pair with the user's consent to convert pickles."""
    return replace(pair, converts=True)


def with_token(settings: HubSettings, token: str) -> HubSettings:
    """Return the settings with another token."""
    return replace(settings, token=token)


def user_hub_settings() -> HubSettings:
    """Return the Hub settings of this user's environment."""
    return settings_from(os.environ)


def with_limit(settings: HubSettings, mb_per_s: float) -> HubSettings:
    """Return the settings with a download limit in MB/s; 0 for none."""
    return replace(settings, bytes_per_s=round(mb_per_s * 1e6))


def with_cache(settings: HubSettings, cache_dir: Path) -> HubSettings:
    """Return the settings with another folder for models."""
    return replace(settings, cache_dir=cache_dir)


def save_user_token(token: str) -> Path:
    """Save the user's token in the file that all programs for the Hub read.

    Raises:
        OSError: It can't be written.
    """
    return save_token(token, os.environ)


def has_saved_token() -> bool:
    """Return whether the user has saved a token."""
    return has_token_file(os.environ)


def remove_user_token() -> None:
    """Remove the saved token, for all programs.

    Raises:
        OSError: It can't be removed.
    """
    remove_token(os.environ)


def format_bits(name: str) -> int:
    """Return the nominal bits of a weight in a format, such as 4."""
    from medusa_core.models.quant.block_format import weight_formats

    return int(weight_formats().get(name).bits)


def format_label(name: str) -> str:
    """Return the label of a weight format."""
    from medusa_core.models.quant.block_format import weight_formats

    return weight_formats().get(name).label
