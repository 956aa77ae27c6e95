"""Read configurations and tensor headers of a repository: kilobytes instead of gigabytes."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import quote

from medusa_core.errors import CheckpointError, HubError, NotFoundError
from medusa_core.heads.mtp_parts import declared_shape
from medusa_core.hub.convert.convert_source import HEADS_FILES
from medusa_core.hub.listing import Listing, list_repo
from medusa_core.hub.refusals import access_error, unreachable, unreadable
from medusa_core.hub.settings import HubSettings
from medusa_core.hub.wire import BrokenError, Head, Wire
from medusa_core.i18n import tr
from medusa_core.messages import HeadsShape
from medusa_core.models.checkpoints.gguf_config import config_of, gguf_errors
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.system.files.gguf import Gguf, read_beginning
from medusa_core.system.files.safetensors_header import (
    LENGTH_BYTES,
    TensorEntry,
    header_bytes,
    parse_header,
)

_FIRST_BYTES = 1 << 16  # holds most headers whole
_MOST_TEXT_BYTES = 16 << 20
_REFUSED = (401, 403)
_NOT_FOUND = 404
_ERRORS, _OK, _PARTIAL = 400, 200, 206
_USUAL = ("q4_k_m", "q4_0", "q4_k_s", "mxfp4")
_MOST_SHARDS = 8
T = TypeVar("T")
_HEADER_BYTES = (1 << 20, 8 << 20, 48 << 20)


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model on the Hub, without its weights.

    Attributes:
        listing: Files of the repository.
        config: Configuration of the model.
        heads: Sizes of heads among its weights.

    Where it is a GGUF file, the listing says which.
    """

    listing: Listing
    config: ModelConfig
    heads: HeadsShape


@dataclass(frozen=True, slots=True)
class RemoteHeads:
    """Heads on the Hub, without their weights.

    Attributes:
        listing: Files of the repository, with the GGUF file if there is one.
        shape: Sizes of the heads.
    """

    listing: Listing
    shape: HeadsShape


def look_at_model(
    settings: HubSettings, repo: str, revision: str = "main", file: str = ""
) -> RemoteModel:
    """Read a model's configuration and the headers of its weights; blocks.

    Args:
        settings: Settings of the Hub.
        repo: `owner/name`.
        revision: Branch, tag or commit.
        file: GGUF file; empty for safetensors, or for the default GGUF file.

    Raises:
        HubError: The Hub can't be reached, or lacks it.
        ModelError: It isn't a model that can be loaded.
    """
    listing = list_repo(settings, repo, revision)
    if file or (listing.ggufs and not listing.has_safetensors):
        listing = replace(listing, file=file or _default_file(listing))
        listing.check()
        return RemoteModel(listing, *_gguf_header(settings, listing, _model_in))
    listing.check()
    names = {one.path for one in listing.files}
    raw = _read_json(settings, listing, "config.json")
    generation = {}
    if "generation_config.json" in names:
        generation = _read_json(settings, listing, "generation_config.json")
    config = parse_config(raw, generation)
    heads = declared_shape(raw, config)
    if raw.get("medusa_num_heads") and "model.safetensors" in names:
        heads = _heads_shape(read_remote_header(settings, listing, "model.safetensors"), {})
    return RemoteModel(listing, config, heads)


def _default_file(listing: Listing) -> str:
    """Return the default GGUF file, of about 4.5 bits; else the smallest."""
    for kind in _USUAL:
        for file in listing.ggufs:
            if kind in file.path.lower():
                return file.path
    return min(listing.ggufs, key=lambda file: file.size).path


def _gguf_header(
    settings: HubSettings, listing: Listing, make: Callable[[Gguf], T], is_model: bool = True
) -> T:
    """Read the header of a GGUF file in growing pieces until it is complete."""
    first = listing.needed[0]
    with tempfile.TemporaryDirectory(prefix="medusa-header-") as folder:
        path = Path(folder) / PurePosixPath(first.path).name  # the name may contain the file type
        for count in _HEADER_BYTES:
            head = _read(settings, listing, first.path, 0, min(count, first.size))
            path.write_bytes(head)
            os.truncate(path, first.size)  # the rest of it takes no room
            try:
                return make(read_beginning(path, len(head), is_model))
            except CheckpointError:
                if count >= min(first.size, _HEADER_BYTES[-1]):
                    raise
    raise CheckpointError(tr("{0} has no header that can be read.", first.path), "Choose another.")


def _model_in(gguf: Gguf) -> tuple[ModelConfig, HeadsShape]:
    """Return the configuration, and the sizes of heads among the tensors."""
    raw, *others = config_of(gguf)
    with gguf_errors(gguf):
        config = parse_config(raw, *others)
    if not any(".nextn." in name for name in gguf.tensors):
        return config, HeadsShape()
    from medusa_core.heads.kind import embedded_shape  # takes torch along
    from medusa_core.models.checkpoints.gguf_checkpoint import GgufCheckpoint

    checkpoint = GgufCheckpoint(gguf)
    shapes = {name: checkpoint.shape(name) for name in checkpoint.names}
    return config, embedded_shape(shapes, config, raw)


def look_at_heads(settings: HubSettings, repo: str, file: str = "") -> RemoteHeads:
    """Read the sizes of a repository's heads; blocks.

    Args:
        settings: Settings of the Hub.
        repo: `owner/name`.
        file: GGUF file; empty for safetensors, or for the default GGUF file.

    Raises:
        HubError: The Hub can't be reached, or lacks it.
        HeadsError: It holds no heads.
    """
    listing = list_repo(settings, repo)
    listing = replace(listing, file=file or listing.default_drafter)
    listing.check()
    if listing.file:
        return RemoteHeads(listing, _gguf_header(settings, listing, _gguf_shape, is_model=False))
    found = [file.path for file in listing.needed if file.path.endswith(".safetensors")]
    alone = [file for file in HEADS_FILES if file in found][:1]
    entries: dict[str, TensorEntry] = {}
    for name in alone or found[:_MOST_SHARDS]:
        entries |= read_remote_header(settings, listing, name)
    has_config = any(one.path == "config.json" for one in listing.files)
    config = _read_json(settings, listing, "config.json") if has_config else {}
    return RemoteHeads(listing, _heads_shape(entries, config))


def _gguf_shape(gguf: Gguf) -> HeadsShape:
    """Return the sizes of heads from a GGUF header."""
    from medusa_core.heads.gguf_heads import gguf_heads
    from medusa_core.heads.kind import shape_of_tensors

    checkpoint, config = gguf_heads(gguf)
    return shape_of_tensors({name: checkpoint.shape(name) for name in checkpoint.names}, config)


def read_remote_header(
    settings: HubSettings, listing: Listing, path: str
) -> dict[str, TensorEntry]:
    """Read the header of a safetensors file on the Hub; blocks.

    Raises:
        CheckpointError: It is no safetensors file.
        HubError: It can't be read.
    """
    size = next((file.size for file in listing.files if file.path == path), None)
    first = _read(settings, listing, path, 0, _FIRST_BYTES)
    length = header_bytes(first[:LENGTH_BYTES], path)
    header = first[LENGTH_BYTES : LENGTH_BYTES + length]
    if len(header) < length:
        header += _read(settings, listing, path, len(first), LENGTH_BYTES + length - len(first))
    return parse_header(header, size, path)


def _heads_shape(entries: dict[str, TensorEntry], config: Mapping[str, object]) -> HeadsShape:
    """Return the sizes of heads from a safetensors header."""
    from medusa_core.heads.kind import shape_of_tensors

    return shape_of_tensors({name: entry.shape for name, entry in entries.items()}, config)


def _read_json(settings: HubSettings, listing: Listing, path: str) -> dict[str, Any]:
    """Read a JSON object of a repository."""
    text = _read(settings, listing, path, 0, _MOST_TEXT_BYTES)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            tr("{0} of {1} is no JSON.", path, listing.repo), "Choose another."
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(
            tr("{0} of {1} is no JSON object.", path, listing.repo), "Choose another."
        )
    return value


def _read(settings: HubSettings, listing: Listing, path: str, start: int, count: int) -> bytes:
    """Read a range of a file."""
    settings.require_online()
    url = f"{settings.endpoint}/{listing.repo}/resolve/{listing.sha}/{quote(path)}"
    headers = {"Range": f"bytes={start}-{start + count - 1}", "Accept-Encoding": "identity"}
    wire = Wire(settings)
    found = bytearray()
    try:
        with wire.get(url, threading.Event(), headers) as exchange:
            _check(settings, listing, path, exchange.head(), start)
            for piece in exchange.pieces():
                found += piece
                if len(found) >= count:  # a server that ignores ranges would send all
                    break
    except BrokenError as error:
        raise unreachable(settings, str(error)) from error
    finally:
        wire.close()
    return bytes(found[:count])


def _check(settings: HubSettings, listing: Listing, path: str, head: Head, start: int) -> None:
    """Raise the error of a response that isn't the requested range."""
    if head.status in _REFUSED:
        raise access_error(settings, listing.repo)
    if head.status == _NOT_FOUND:
        raise NotFoundError(tr("{0} has no {1}.", listing.repo, path), "Choose another repository.")
    if head.status >= _ERRORS:
        raise HubError(tr("The Hub failed ({0}).", head.status), "Try again later.")
    if head.status != _PARTIAL and (head.status != _OK or start):
        raise unreadable(listing.repo, tr("its status is {0}", head.status))
